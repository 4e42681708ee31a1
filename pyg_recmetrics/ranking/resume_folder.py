"""The folder of a ranking: its files hold what is known about the users who are finished."""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics import processes
from pyg_recmetrics.files import remove_leftovers, replacing
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.version import __version__

#: What a file holds: tensors of integers by name.
Part: TypeAlias = Mapping[str, Tensor]

#: The format of the files. It increases whenever they mean something else.
_FORMAT = 2

#: The file that says what a folder belongs to.
_MANIFEST = "manifest.json"

#: The limits of the integers in files, from the narrowest on.
_LIMITS: list[Any] = [np.iinfo(f"int{bits}") for bits in (8, 16, 32, 64)]


class ResumeFolder:
    """A folder that belongs to one ranking.

    Files are named by the users in them, so that neither chunks nor processes matter. Each is
    written at once, and says which ranking it belongs to.

    Args:
        path (str or Path): The folder. It is made if there is none.
        identity (mapping): What has to be the same for a ranking to go on, by what it is called.

    Raises:
        OSError: If the folder cannot be read or written.
        ValueError: If it holds something else.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, object]) -> None:
        self.path = Path(path)
        versions = {"version of pyg_recmetrics": __version__, "format": _FORMAT}
        self._manifest = versions | {name: _in_brief(value) for name, value in identity.items()}
        self._key = _digest(self._manifest)
        self.path.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.path)
        self._check_manifest()

    def read(self, kind: str) -> Iterator[tuple[Path, Part | None]]:
        """Yields the files of a kind, and what is in them; `None` if that cannot be read."""
        for path in sorted(self.path.glob(f"{kind}-*.npz")):
            content = path.read_bytes()
            try:
                part = self._parse(content)
            except Exception:  # there is no end of what decoders raise on damaged bytes
                part = None
            yield path, part

    def write(self, kind: str, users: Tensor, known: Part) -> None:
        """Writes what is known about some users."""
        arrays = {name: _narrow(values) for name, values in known.items()}
        with replacing(self.path / f"{kind}-{_digest(users)}.npz") as file:
            np.savez(file, key=np.array(self._key), **arrays)

    def _parse(self, content: bytes) -> dict[str, Tensor]:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            # A member is read to its end before it is looked at, so that its checksum is compared.
            arrays = {name: _array(file.read(name)) for name in file.namelist()}
        if str(arrays.pop("key.npy")) != self._key:
            raise ValueError("it belongs to another ranking")
        return {name.removesuffix(".npy"): _widen(array) for name, array in arrays.items()}

    def _check_manifest(self) -> None:
        """Raises if the folder belongs to something else, and makes it that of this ranking."""
        try:
            content = (self.path / _MANIFEST).read_bytes()
        except FileNotFoundError:
            self._claim()
            return
        try:
            found = dict(json.loads(content))
        except (ValueError, TypeError):
            raise ValueError(
                f"'resume' needs to be a folder of the same ranking (got {self.path}, whose "
                f"{_MANIFEST} cannot be read)"
            ) from None
        differing = [name for name, value in self._manifest.items() if found.get(name) != value]
        if differing:
            raise ValueError(
                f"'resume' needs to be a folder of the same ranking, or an empty one (got "
                f"{self.path}, of another {', another '.join(differing)})"
            )

    def _claim(self) -> None:
        """Makes the folder that of this ranking if it holds nothing else."""
        # Another process may have just written the manifest, which is the same.
        names = (entry.name for entry in self.path.iterdir())
        strange = sorted(name for name in names if name != _MANIFEST and not name.startswith("."))
        if strange:
            raise ValueError(
                f"'resume' needs to be a folder of the same ranking, or an empty one (got "
                f"{self.path}, which holds {strange[0]!r})"
            )
        with replacing(self.path / _MANIFEST) as file:
            file.write(json.dumps(self._manifest, indent=1).encode())


def _in_brief(value: object) -> object:
    """Returns a short value as it is, and otherwise its digest."""
    return value if isinstance(value, int | str) else _digest(value)


def _digest(value: object) -> str:
    return processes.digest(value).numpy().tobytes().hex()


def _array(content: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _narrow(values: Tensor) -> Any:
    """Returns integers as the narrowest that hold them, whose largest is not retrieved."""
    array = values.cpu().numpy()
    is_retrieved = array != NOT_RETRIEVED
    low = array.min(initial=0)
    high = array.max(initial=0, where=is_retrieved)
    limits = next(limits for limits in _LIMITS if limits.min <= low and high < limits.max)
    return np.where(is_retrieved, array, limits.max).astype(limits.dtype)


def _widen(array: Any) -> Tensor:
    """Returns what :func:`_narrow` was given."""
    wide = array.astype(np.int64)
    wide[array == np.iinfo(array.dtype).max] = NOT_RETRIEVED
    return torch.from_numpy(wide)
