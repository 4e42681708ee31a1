"""Files that are replaced at once: whatever happens, there is the old file or the new one."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # as on Windows, where what a killed process leaves behind stays
    fcntl = None  # type: ignore[assignment]

#: How the names of all temporary files start.
_PREFIX = ".pyg_recmetrics-"


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a new file that takes the place of `path` once it is complete.

    Raises:
        OSError: If the file cannot be written. The error names `path`.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a folder, which raises, or a device or a pipe
            with path.open("wb") as other:
                yield other
            return
        target = Path(os.path.realpath(path))  # a link stays, and leads to the new file
        mode = None
        if target.exists():
            with target.open("r+b"):  # raises if the file must not be written
                mode = stat.S_IMODE(target.stat().st_mode)
        temporary = target.with_name(f"{_PREFIX}{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
                _lock(file)  # for `remove_leftovers`
                if mode is not None:
                    temporary.chmod(mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        # By the name that the caller knows.
        raise OSError(error.errno, error.strerror, str(path)) from error


def remove_leftovers(folder: Path) -> None:
    """Removes what killed processes left in a folder instead of the files they were writing."""
    if fcntl is None:
        return
    for leftover in folder.glob(f"{_PREFIX}*.tmp"):
        try:
            with leftover.open("r+b") as file:
                if _lock(file):
                    leftover.unlink(missing_ok=True)
        except OSError:  # somebody else removed it, or owns it
            continue


def _lock(file: IO[Any]) -> bool:
    """Locks a file until it is closed, and returns whether nobody else has locked it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has, or the file system has no locks
        return False
    return True
