"""Files: what is damaged is named, and what is replaced is replaced at once."""

import gzip
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


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
        temporary = target.with_name(f".pyg_recmetrics-{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
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
