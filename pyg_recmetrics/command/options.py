"""The options of the command, and how results, notes and warnings become lines of text.

Results alone go to standard output, and everything else to standard error. Nothing is imported for
the options but Python, so that help and mistakes are answered at once.
"""

import argparse
import inspect
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pyg_recmetrics.utils import read_number
from pyg_recmetrics.version import __version__

if TYPE_CHECKING:
    from pyg_recmetrics.tables import Tabular


#: It did what was asked for. `gate` lets the new model pass.
DONE = 0

#: The new model of `gate` is worse.
WORSE = 1

#: `gate` cannot tell.
UNDECIDED = 2

#: An option or a file is wrong, or something is not installed. Nothing was printed as a result.
WRONG = 3

#: It was interrupted, as shells say it of Ctrl-C.
INTERRUPTED = 130

#: Whether notes are left out. Warnings and errors never are.
_is_quiet = False

#: The options and files behind the arguments of public functions, which their messages name.
FILES: dict[str, object] = {}


def start(options: argparse.Namespace) -> None:
    """Sets whether notes are left out, and the options that arguments of one name come from."""
    global _is_quiet
    _is_quiet = options.quiet
    FILES.clear()
    FILES.update({name: f"--{name.replace('_', '-')}" for name in vars(options)})
    FILES.pop("results", None)  # which no option names


def by_files(message: str) -> str:
    """Returns a message about arguments as one about the files that they were read from."""
    for argument, path in FILES.items():
        message = message.replace(f"'{argument}'", f"'{path}'")
    return message


def note(text: str) -> None:
    """Says how something was read."""
    if not _is_quiet:
        print(f"pyg-recmetrics: {text}", file=sys.stderr)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Shows a warning without the line of code that gave it, in place of that of Python."""
    print(f"pyg-recmetrics: warning: {by_files(str(message))}", file=sys.stderr)


def fail(message: str) -> int:
    """Shows an error, and returns the exit status."""
    print(f"pyg-recmetrics: error: {by_files(message)}", file=sys.stderr)
    return WRONG


def same_options(function: Callable[..., object], options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options that are given and that a public function takes by the same name."""
    given = vars(options)
    names = inspect.signature(function).parameters.keys() & given.keys()
    return {name: given[name] for name in names if given[name] not in (None, [])}


def check_output(options: argparse.Namespace) -> None:
    """Raises if the output would take the place of a file that some option names, or links to."""
    output = options.output
    if output is None or not output.exists():
        return
    for option, given in vars(options).items():
        for value in map(str, given if isinstance(given, list) else [given]):
            for name in (value, value.partition("=")[2]):  # results are `NAME=FILE`
                is_input = option != "output" and name and Path(name).is_file()
                if is_input and output.samefile(name):
                    raise ValueError(f"{output}: --output needs to be another file than {value}")


def print_result(result: "Tabular", as_json: Any, options: argparse.Namespace) -> None:
    """Prints a result as a table, or in another form.

    Args:
        result (Tabular): The result.
        as_json (Any): What stands for it in JSON.
        options (Namespace): The option `form`: `json`, `markdown`, `latex`, or none.
    """
    if options.form == "json":
        print(json.dumps(as_json, indent=2, ensure_ascii=False, allow_nan=False))
    elif options.form is None:
        print(result)
    else:
        print(getattr(result, f"to_{options.form}")())


def as_number(value: Any) -> Any:
    """Returns a value as JSON can hold it, which has no `NaN` and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


_EXIT_STATUS = """exit status:
  0  done; of 'gate': the new model is not worse by more than the margin
  1  of 'gate': it is worse, surely or perhaps by more than the margin
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


# Mistakes are told by the names of these functions.


def integer(text: str) -> int:
    """Reads an integer."""
    return read_number(text, int)


def number(text: str) -> float:
    """Reads a number."""
    return read_number(text, float)


def amount(text: str) -> float | str:
    """Reads a number, or a share such as `2%`."""
    return text if "%" in text else number(text)


_LEVEL = _option("--level X", "of confidence: 0.95", type=number)
_DETERMINISTIC = _option("--deterministic NAME ..", "names of recommenders that no seed changes")

_COLUMNS = (
    _option("--user-column NAME", "the column of users"),
    _option("--item-column NAME", "the column of items"),
    _option("--columns NAME ..", "all columns of files without a header"),
)
_COMPARISON = (
    _option("--baseline NAME", "compare all others with this one"),
    _option("--equivalence X", "the smallest difference that matters: .01, or 2%%", type=amount),
    _LEVEL,
    _DETERMINISTIC,
)
_FORMS = (
    _option("--json", "print JSON", dest="form", const="json"),
    _option("--markdown", "print a table in Markdown", dest="form", const="markdown"),
    _option("--latex", "print a table in LaTeX", dest="form", const="latex"),
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
            _option("--threshold X", "the smallest rating that is relevant", type=number),
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
            _option("--seed N", "the seed of random ties", type=integer),
            _option("--empty-target-action HOW", "of users without truth: skip, neg, pos or error"),
            _option("--batch-size N", "how many users to rank at once", type=integer),
            _option("--margin X", "rank random users until means are known to it", type=number),
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
            _option("results FILE ..", "results of the new model; several files are its runs"),
            _option("--baseline FILE ..", "the same of the old model", required=True),
            _option("--metric NAME@K", "the one that decides", required=True),
            _option("--margin X", "how much worse it may be: .01, 2%%", required=True, type=amount),
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
        self.exit(WRONG, f"{self.prog}: error: {message}\n")


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
    return parser


def _add(parser: argparse.ArgumentParser, spelled: str, about: str, more: dict[str, Any]) -> None:
    words = spelled.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    taken = [word for word in words if word not in (*names, "..")]
    if taken:
        more = {"metavar": taken[0], **({"nargs": "+"} if ".." in words else {}), **more}
    else:
        more = {"action": "store_const" if "const" in more else "store_true", **more}
    parser.add_argument(*names, help=about, **more)
