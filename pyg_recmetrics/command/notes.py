"""What the command says beside its result, all of it on standard error."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

#: Whether notes are left out. Warnings and errors never are.
_is_quiet = False

#: The files behind the arguments of public functions, which their messages name.
_files: dict[str, str] = {}


def start(quiet: bool) -> None:
    """Sets whether notes are left out, and forgets the files of a run before."""
    global _is_quiet
    _is_quiet = quiet
    _files.clear()


def remember_file(argument: str, path: object) -> None:
    """Sets what messages call an argument of a public function from now on."""
    _files[argument] = str(path)


def by_files(message: str) -> str:
    """Returns a message about arguments as one about the files that they were read from."""
    for argument, path in _files.items():
        message = message.replace(f"'{argument}'", f"'{path}'")
    return message


def note(text: str) -> None:
    """Says how something was read."""
    if not _is_quiet:
        print(f"pyg-recmetrics: {text}", file=sys.stderr)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Shows a warning without the line of code that gave it, in place of that of Python."""
    print(f"pyg-recmetrics: warning: {by_files(str(message))}", file=sys.stderr)


def is_terminal() -> bool:
    """Returns whether somebody watches, for whom to draw progress bars."""
    return sys.stderr.isatty()


def progress(size: int, name: str) -> "tqdm[Any]":
    """Returns a progress bar over the bytes of a file, which nobody sees but on a terminal."""
    from tqdm import tqdm

    return tqdm(
        total=size, desc=name, unit="B", unit_scale=True, leave=False, disable=not is_terminal()
    )
