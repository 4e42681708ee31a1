"""The options of the command, and how results, notes and warnings become lines of text.

Results alone go to standard output, and everything else to standard error. Nothing is imported for
the options but Python, so that help and mistakes are answered at once.
"""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

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
    """Prints how something was read, on standard error."""
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
    names = inspect.signature(function).parameters
    given = vars(options).items()
    return {name: value for name, value in given if name in names and value is not None}


def check_output(output: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raises if the output would take the place of an input, or of a file that one links to."""
    if output is None or not output.exists():
        return
    for path in inputs:
        if path is not None and path.is_file() and output.samefile(path):
            raise ValueError(f"{output}: --output needs to be another file than {path}")


def print_result(result: "Tabular", as_json: Any, options: argparse.Namespace) -> None:
    """Prints a result as a table, or in another form.

    Args:
        result (Tabular): The result.
        as_json (Any): What stands for it in JSON.
        options (Namespace): The options `json`, `markdown` and `latex`.
    """
    if options.json:
        print_json(as_json)
    elif options.markdown:
        print(result.to_markdown())
    elif options.latex:
        print(result.to_latex())
    else:
        print(result)


def print_json(value: Any) -> None:
    """Prints a value as JSON, which has no `NaN` and no infinity: they become `null`."""
    known = json.loads(json.dumps(value), parse_constant=lambda _: None)
    print(json.dumps(known, indent=2, ensure_ascii=False))


_EXIT_STATUS = """exit status:
  0  done; of 'gate': the new model is not worse by more than the margin
  1  of 'gate': it is worse, surely or perhaps by more than the margin
  2  of 'gate': undecided
  3  an option or a file is wrong, or something is not installed
"""

_FILES = """Tables are CSV, TSV, JSON lines, Parquet, or runs and qrels of TREC. Columns are found
by their usual names.
"""


# Mistakes are told by the names of these functions.


def integer(text: str) -> int:
    """Reads an integer."""
    return read_number(text, int)


def number(text: str) -> float:
    """Reads a number."""
    return read_number(text, float)


def size(text: str) -> float | str:
    """Reads a number. A share such as `2%` stays a text, for the function that takes it."""
    return text if "%" in text else number(text)


#: How what an option takes is read; texts are left as they are.
_KINDS: dict[str, Callable[[str], Any]] = {
    "FILE": Path,
    "N": integer,
    "X": number,
    "SIZE": size,
}

# Options, and what they are for. Behind the names of an option stands what it takes, if anything,
# and dots if it takes several.
_RESULTS = {"results [NAME=]FILE ..": "results of recommenders; files of one NAME are its runs"}
_LEVEL = {
    "--level X": "of confidence: 0.95",
    "--deterministic NAME ..": "names of recommenders that no seed changes",
}
_COMPARISON = {
    "--baseline NAME": "compare all others with this one",
    "--equivalence SIZE": "the smallest difference that matters: .01, or 2%%",
    **_LEVEL,
}
_JSON = {"--json": "print JSON"}
_FORMS = {
    **_JSON,
    "--markdown": "print a table in Markdown",
    "--latex": "print a table in LaTeX",
}


class _Command(NamedTuple):
    """A subcommand. What a public function takes by the name of an option is passed on to it.

    Attributes:
        about: What the help says about it.
        required: The options and arguments that are needed.
        options: All others.
        below: What stands below them.
    """

    about: str
    required: dict[str, str]
    options: dict[str, str]
    below: str = ""


_COMMANDS = {
    "evaluate": _Command(
        "measure recommendations on held-out interactions",
        {"--test FILE": "held-out interactions, the truth"},
        {
            "--train FILE ..": "what users have seen, which is not ranked",
            "--user-column NAME": "the column of users",
            "--item-column NAME": "the column of items",
            "--columns NAME ..": "all columns of files without a header",
            "--rating-column NAME": "how relevant each row of --test is",
            "--threshold X": "the smallest rating that is relevant",
            "--include-seen": "rank what users have seen, too",
            "--lists FILE": "rows of a user, an item, and its rank or score; or a run",
            "--item-ids FILE": "all items that could be listed, an id a line",
            "--users FILE": "embeddings of users by their ids; needs --items",
            "--items FILE": "embeddings of items by their ids",
            "--list-columns NAME ..": "all columns of --lists without a header",
            "--metrics NAME@K ..": "such as ndcg@20 recall@20",
            "--convention NAME": "the library whose definitions count",
            "--ties HOW": "index, best, worst, mean or random",
            "--seed N": "the seed of random ties",
            "--empty-target-action HOW": "of users without truth: skip, neg, pos or error",
            "--batch-size N": "how many users to rank at once",
            "--margin X": "rank random users until means are known to it",
            "-o/--output FILE": "save the result for the others (.npz)",
            "--keep-items": "save the recommended items with it",
            **_FORMS,
        },
        _FILES,
    ),
    "compare": _Command(
        "test which of some saved results is better",
        _RESULTS,
        {"--metrics NAME@K ..": "the metrics to compare", **_COMPARISON, **_FORMS},
    ),
    "report": _Command(
        "write a page about saved results",
        _RESULTS,
        {"-o/--output FILE": "report.html", "--title TEXT": "the title of the page", **_COMPARISON},
    ),
    "gate": _Command(
        "say whether a new model may replace the old one, by its exit status",
        {
            "results FILE ..": "results of the new model; several files are its runs",
            "--baseline FILE ..": "the same of the old model",
            "--metric NAME@K": "the one that decides",
            "--margin SIZE": "how much worse it may be: .01, 2%%",
        },
        {**_LEVEL, **_JSON},
        _EXIT_STATUS,
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
    for name, (about, required, options, below) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about, epilog=below, **form)
        _add(command, "-q/--quiet", "do not say how files are read")
        for spelled, what in required.items():
            # What has no dashes is needed anyway.
            _add(command, spelled, what, **({"required": True} if spelled[0] == "-" else {}))
        has_forms = not _FORMS.keys().isdisjoint(options)  # an empty group has no usage
        forms = command.add_mutually_exclusive_group() if has_forms else command
        for spelled, what in options.items():
            _add(forms if spelled in _FORMS else command, spelled, what)
    return parser


def _add(parser: argparse._ActionsContainer, spelled: str, about: str, **more: Any) -> None:
    names, _, takes = spelled.partition(" ")
    if takes:
        what = takes.removesuffix(" ..")
        nargs = None if takes == what else "+"
        more |= {"metavar": what, "type": _KINDS.get(what), "nargs": nargs}
    else:
        more["action"] = "store_true"
    parser.add_argument(*names.split("/"), help=about, **more)
