"""Files that are replaced at once: whatever happens, there is the old file or the new one."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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
