"""What all rooms use: frozen objects, warnings, optional packages, and files.

There are two ways to make an object that cannot be changed. A value whose fields are its whole
definition is a `@dataclass(frozen=True)`, whose `__post_init__` may :func:`set_attributes`. An
object that computes its attributes from other arguments is a :class:`Frozen`.
"""

import gzip
import inspect
import os
import secrets
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

#: The names of the arguments of each class that was asked for.
_arguments: dict[type, tuple[str, ...]] = {}


class Frozen:
    """An object whose attributes are set by its `__init__`, which calls `_freeze` last.

    Example:
        >>> class Circle(Frozen):
        ...     def __init__(self, radius):
        ...         self.area = 3.14 * radius**2
        ...         self._freeze()
        >>> Circle(1).area = 2
        Traceback (most recent call last):
        AttributeError: 'Circle.area' cannot be set: make another one
    """

    #: What to do instead of setting an attribute.
    _INSTEAD = "make another one"

    _is_frozen = False

    def _freeze(self) -> None:
        self._is_frozen = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._is_frozen:
            raise AttributeError(f"'{type(self).__name__}.{name}' cannot be set: {self._INSTEAD}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"'{type(self).__name__}.{name}' cannot be deleted")


def set_attributes(value: object, **fields: Any) -> None:
    """Replaces attributes of an immutable object that is new and not yet used elsewhere.

    This may be a frozen dataclass in its `__post_init__`, or the copy of an object.
    """
    for name, settled in fields.items():
        object.__setattr__(value, name, settled)


class Memory:
    """What was found out before, by all that it depends on.

    Args:
        most (int, optional): How many findings it keeps. Beyond that, it begins anew.
            (default: `None`, all of them)

    Example:
        >>> memory = Memory()
        >>> memory.once("degree", lambda: 3), memory.once("degree", lambda: 4)
        (3, 3)
    """

    def __init__(self, most: int | None = None) -> None:
        self._most, self._found = most, dict[Hashable, Any]()

    def once(self, key: Hashable, make: Callable[[], V]) -> V:
        """Returns what was found out before, or finds it out."""
        if key not in self._found:
            if len(self._found) == self._most:
                self._found.clear()
            self._found[key] = make()
        return cast("V", self._found[key])


def arguments_of(value: object) -> dict[str, Any]:
    """Returns the attributes of an object that its class takes as arguments, by name.

    Example:
        >>> class Circle:
        ...     def __init__(self, radius):
        ...         self.radius, self.area = abs(radius), 3.14 * radius**2
        >>> arguments_of(Circle(-1))
        {'radius': 1}
    """
    return {name: getattr(value, name) for name in names_of_arguments(type(value))}


def made_of(kind: type[V], fields: Mapping[str, Any]) -> V:
    """Returns an object of a class that is given all of its arguments by name.

    Raises:
        KeyError: If one of them is missing.

    Example:
        >>> made_of(complex, {"real": 1, "imag": 2})
        (1+2j)
    """
    return kind(**{name: fields[name] for name in names_of_arguments(kind)})


def names_of_arguments(kind: type) -> tuple[str, ...]:
    """Returns the names of the arguments that a class takes."""
    if kind not in _arguments:
        _arguments[kind] = tuple(inspect.signature(kind).parameters)
    return _arguments[kind]


class FrozenDict(Mapping[K, V]):
    """An immutable dictionary. It can be hashed if its values can.

    Example:
        >>> FrozenDict({"k": 20}) == {"k": 20}, len({FrozenDict({"k": 20}), FrozenDict({"k": 20})})
        (True, 1)
    """

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items})"


#: Warnings point at the line that called one of these libraries.
_LIBRARIES = (__name__.partition(".")[0], "torch", "torch_geometric", "torchmetrics")


#: Whether messages are for a reader at a command line, who writes no Python.
_is_shell = ContextVar("is_shell", default=False)


@contextmanager
def for_a_shell() -> Iterator[None]:
    """Words messages for a reader at a command line."""
    token = _is_shell.set(True)
    try:
        yield
    finally:
        _is_shell.reset(token)


def written_as(python: str, shell: str) -> str:
    """Returns what is to be written, in the words of its reader.

    Example:
        >>> with for_a_shell():
        ...     written_as("exclude_seen=False", "--include-seen")
        '--include-seen'
        >>> written_as("exclude_seen=False", "--include-seen")
        'exclude_seen=False'
    """
    return shell if _is_shell.get() else python


def all_items() -> str:
    """Returns how to say which items there are."""
    return written_as("RankingTask.from_frames(..., items=ids_of_all_items)", "--item-ids FILE")


def warn(message: str) -> None:
    """Warns, pointing at the line that called the package."""
    frame, stacklevel = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, stacklevel=stacklevel)


def hashed(text: str) -> int:
    """Returns a signed integer of 64 bits that a text alone decides, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def read_number(text: str, kind: Callable[[str], V]) -> V:
    """Returns a number that digits write. Python also reads `1_0` as ten, and other digits.

    Raises:
        ValueError: If the text is no such number.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"a number needs to be written in digits (got {text!r})")
    return kind(text)


def list_some(words: Iterable[str], most: int = 5) -> str:
    """Returns words in one line, and how many more there are if they are many.

    Args:
        words (iterable of str): The words, of which there is at least one.
        most (int, optional): How many words to list at most. (default: `5`)

    Example:
        >>> list_some(["a", "b", "c"]), list_some(["a", "b", "c"], most=2)
        ('a, b, c', 'a, b and 1 more')
    """
    listed = [*words]
    num_more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {num_more} more" if num_more > 0 else "")


def singular(noun: str) -> str:
    """Returns what one of some rows is called, such as `"query"` of `"queries"`."""
    return "query" if noun == "queries" else noun.removesuffix("s")


def counted(number: int, noun: str) -> str:
    """Returns how many there are of a noun in the plural, such as `"1 user"` or `"2,000 users"`."""
    return f"{number:,} {singular(noun) if number == 1 else noun}"


def verb(number: int, plural: str) -> str:
    """Returns the form of a verb for so many, such as `"has"` or `"have"`."""
    of_one = {"are": "is", "have": "has", "leak": "leaks"}
    return of_one.get(plural, f"{plural}s") if number == 1 else plural


@contextmanager
def requires_package(package: str, needed_by: str) -> Iterator[None]:
    """Turns a failed import inside into an error that says what to install.

    Args:
        package (str): The package that is imported, or several with `" and "` between them.
        needed_by (str): The function that needs it.

    Raises:
        ImportError: If the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        wanted = f"pip install {package.replace(' and ', ' ')}"
        raise ImportError(f"'{needed_by}' needs {package}: {wanted}") from error


@contextmanager
def reading(path: str | Path) -> Iterator[Any]:
    """Opens a file, whether gzip compressed it or not, and names it in what readers raise.

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If it is damaged, or its reader raises such an error.
    """
    try:
        with Path(path).open("rb") as raw:
            is_gzip = raw.peek(2).startswith(b"\x1f\x8b")
            yield gzip.GzipFile(fileobj=raw) if is_gzip else raw
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        if getattr(error, "filename", None):
            raise
        raise ValueError(f"{path}: {str(error).strip()}") from error


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a new file that takes the place of `path` once it is complete.

    Whatever happens, there is the old file or the new one.

    Raises:
        OSError: If the file cannot be written. The error names `path`.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays, and leads to the new file
    temporary = target.with_name(f".pyg_recmetrics-{secrets.token_hex(8)}.tmp")
    # What is there and no file is a folder, which raises, or a device or a pipe. Others may write
    # the file in the meantime, so it is asked last whether it is one.
    is_file = not path.exists() or path.is_file()
    try:
        if path.is_file():
            path.open("r+b").close()  # raises if the file must not be written
        with (temporary if is_file else path).open("wb") as file:
            yield file
        if path.is_file():
            shutil.copymode(target, temporary)
        if is_file:
            temporary.replace(target)
    except OSError as error:
        # By the name that the caller knows.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
