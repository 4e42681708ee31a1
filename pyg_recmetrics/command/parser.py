"""The options of the command, and what its help says. Nothing is imported for them but Python."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from pyg_recmetrics.command import notes
from pyg_recmetrics.version import __version__

_EXIT_STATUS = """exit status:
  0  done; of 'gate': the new model is not worse, or equivalent
  1  of 'gate': it is worse
  2  of 'gate': undecided
  3  an option or a file is wrong, or something is not installed
"""

_FILES = """Tables are CSV, TSV, JSON lines, Parquet, or runs and qrels of TREC. Columns are found
by their usual names.
"""

_RESULTS = "results [NAME=]FILE .."

#: An option: how it is spelled, what it is for, and further arguments of `add_argument`. Behind its
#: names stands what it takes, if anything, and dots if it takes several: `"--train FILE .."`.
_Option: TypeAlias = tuple[str, str, dict[str, Any]]


def _option(spelled: str, about: str, **more: Any) -> _Option:
    return spelled, about, more


def amount(text: str) -> float | str:
    """Reads a number, or a share such as `2%`. Mistakes are told by the name of this function."""
    return text if "%" in text else float(text)


_LEVEL = _option("--level X", "of confidence: 0.95", type=float)
_DETERMINISTIC = _option("--deterministic NAME ..", "names of recommenders that no seed changes")
_EQUIVALENCE = "the smallest difference that matters: a number, or a share such as 2%%"

_COLUMNS = (
    _option("--user-column NAME", "the column of users"),
    _option("--item-column NAME", "the column of items"),
    _option("--columns NAME ..", "all columns of files without a header"),
)
_COMPARISON = (
    _option("--baseline NAME", "compare all others with this one"),
    _option("--equivalence X", _EQUIVALENCE, type=amount),
    _LEVEL,
    _DETERMINISTIC,
)
_FORMS = (
    _option("--json", "print JSON", dest="form", const="json"),
    _option("--markdown", "print a table in Markdown", dest="form", const="markdown"),
    _option("--latex", "print a table in LaTeX", dest="form", const="latex"),
)

#: One of these is needed by `gate`.
_SIZES = (
    _option("--margin X", "how much worse it may be: .01, or 2%% of the old", type=amount),
    _option("--equivalence X", f"test both sides; {_EQUIVALENCE}", type=amount),
)

#: What the help says about each subcommand, what stands below, and the options. What a public
#: function takes by the same name is passed on to it.
_COMMANDS: dict[str, tuple[str, str, tuple[_Option, ...]]] = {
    "evaluate": (
        "measure recommendations on held-out interactions",
        _FILES,
        (
            _option("--test FILE", "held-out interactions, the truth", required=True, type=Path),
            _option("--train FILE ..", "what users have seen, which is not ranked", type=Path),
            *_COLUMNS,
            _option("--rating-column NAME", "how relevant each row of --test is"),
            _option("--threshold X", "the smallest rating that is relevant", type=float),
            _option("--include-seen", "rank what users have seen, too"),
            _option(
                "--lists FILE",
                "rows of a user, an item, and its rank or score; or a run",
                type=Path,
            ),
            _option("--item-ids FILE", "all items that could be listed, an id a line", type=Path),
            _option("--users FILE", "embeddings of users by their ids; needs --items", type=Path),
            _option("--items FILE", "embeddings of items by their ids", type=Path),
            _option("--list-columns NAME ..", "all columns of --lists without a header"),
            _option("--metrics NAME@K ..", "such as ndcg@20 recall@20"),
            _option("--convention NAME", "the library whose definitions count"),
            _option("--ties HOW", "index, best, worst, mean or random"),
            _option("--seed N", "the seed of random ties", type=int),
            _option("--empty-target-action HOW", "of users without truth: skip, neg, pos or error"),
            _option("--batch-size N", "how many users to rank at once", type=int),
            _option("--margin X", "rank random users until means are known to it", type=float),
            _option("-o --output FILE", "save the result for the others (.npz)", type=Path),
            _option("--keep-items", "save the recommended items with it"),
            *_FORMS,
        ),
    ),
    "compare": (
        "test which of some saved results is better",
        "",
        (
            _option(_RESULTS, "results of recommenders; files of one NAME are its runs"),
            _option("--metrics NAME@K ..", "the metrics to compare"),
            *_COMPARISON,
            *_FORMS,
        ),
    ),
    "report": (
        "write a page about saved results",
        "",
        (
            _option(_RESULTS, "results of recommenders; files of one NAME are its runs"),
            _option("-o --output FILE", "report.html", type=Path, default=Path("report.html")),
            _option("--title TEXT", "the title of the page"),
            *_COMPARISON,
        ),
    ),
    "gate": (
        "say whether a new model may replace the old one, by its exit status",
        _EXIT_STATUS,
        (
            _option(_RESULTS, "results of the new model; several files are its runs"),
            _option("--baseline FILE ..", "the same of the old model", required=True),
            _option("--metric NAME@K", "the one that decides", required=True),
            _LEVEL,
            _DETERMINISTIC,
            _FORMS[0],
        ),
    ),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes have an exit status of their own, as `gate` needs the usual one."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(notes.WRONG, f"{self.prog}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all subcommands."""
    form: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    about = "Evaluates recommenders from files: what they recommend, or their embeddings."
    parser = _Parser(prog="pyg-recmetrics", description=about, epilog=_EXIT_STATUS, **form)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (about, below, options) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about, epilog=below, **form)
        _add(command, *_option("-q --quiet", "do not say how files are read"))
        for option in options:
            _add(command, *option)
        if name == "gate":
            group = command.add_mutually_exclusive_group(required=True)
            for option in _SIZES:
                _add(group, *option)
    return parser


def _add(
    parser: argparse._ActionsContainer, spelled: str, about: str, more: dict[str, Any]
) -> None:
    words = spelled.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    taken = [word for word in words if word not in (*names, "..")]
    if taken:
        more = {"metavar": taken[0], **({"nargs": "+"} if ".." in words else {}), **more}
    else:
        more = {"action": "store_const" if "const" in more else "store_true", **more}
    parser.add_argument(*names, help=about, **more)
