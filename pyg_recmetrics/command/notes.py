"""What the command says and prints, and the exit statuses that scripts rely on.

Results alone go to standard output, and everything else to standard error.
"""

import argparse
import inspect
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

#: The files behind the arguments of public functions, which their messages name.
files: dict[str, object] = {}


def start(quiet: bool) -> None:
    """Sets whether notes are left out, and forgets the files of a run before."""
    global _is_quiet
    _is_quiet = quiet
    files.clear()


def by_files(message: str) -> str:
    """Returns a message about arguments as one about the files that they were read from."""
    for argument, path in files.items():
        message = message.replace(f"'{argument}'", f"'{path}'")
    return message


def note(text: str) -> None:
    """Says how something was read."""
    if not _is_quiet:
        print(f"pyg-recmetrics: {text}", file=sys.stderr)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Shows a warning without the line of code that gave it, in place of that of Python."""
    print(f"pyg-recmetrics: warning: {by_files(str(message))}", file=sys.stderr)


def same_options(function: Callable[..., object], options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options that are given and that a public function takes by the same name."""
    given = vars(options)
    names = inspect.signature(function).parameters.keys() & given.keys()
    return {name: given[name] for name in names if given[name] not in (None, [])}


def is_terminal() -> bool:
    """Returns whether somebody watches, for whom to draw progress bars."""
    return sys.stderr.isatty()


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
