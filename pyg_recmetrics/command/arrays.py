"""Reads arrays from the files of NumPy and from safetensors."""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_recmetrics.command.notes import note
from pyg_recmetrics.extras import requires_extra

Array: TypeAlias = NDArray[Any] | torch.Tensor

#: The suffixes of files that hold arrays, whose rows have no ids.
SUFFIXES = (".npy", ".npz", ".safetensors")


def is_array_file(file: str) -> bool:
    """Returns whether a file, or the one in `FILE:NAME`, holds arrays."""
    return split_name(file)[0].suffix.lower() in SUFFIXES


def split_name(file: str) -> tuple[Path, str | None]:
    """Returns the file and the name of the array of `FILE:NAME`; `None` if there is no name."""
    match = re.fullmatch(r"(.+\.(?:npz|safetensors)):(.+)", file, flags=re.IGNORECASE)
    return (Path(match[1]), match[2]) if match else (Path(file), None)


def read_array(file: str, what: str) -> Array:
    """Reads an array. One in a `.npy` file stays there, and is read in parts.

    Args:
        file (str): The file, or `FILE:NAME` for one of its arrays.
        what (str): What the array holds, such as `"user"`: of several arrays, it is the one with
            this word in its name.

    Raises:
        ImportError: If safetensors is not installed.
        OSError: If the file cannot be opened.
        ValueError: If it is damaged, or does not say which of its arrays it is.
    """
    path, name = split_name(file)
    path.open("rb").close()  # whose errors name the file
    try:
        if path.suffix.lower() == ".npy":
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        elif path.suffix.lower() == ".npz":
            array = _from_npz(path, name, what)
        else:
            array = _from_safetensors(path, name, what)
    except (EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: the file is damaged ({error})") from None
    except ValueError as error:
        raise ValueError(_named(path, error)) from None
    if isinstance(array, np.ndarray) and array.dtype.kind not in "fiuU":
        raise ValueError(f"{path}: the array needs to hold numbers (got {array.dtype})")
    return array


def _from_npz(path: Path, name: str | None, what: str) -> Array:
    with path.open("rb") as raw:
        if raw.read(2) != b"PK":
            raise ValueError("the file needs to be an archive of arrays, as numpy.savez writes it")
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        if {"indptr", "indices", "shape"} <= set(file.files):
            raise ValueError(
                "a sparse matrix does not say how the other items are ranked: write its entries as "
                "a table of users, items and scores, for --lists, or save .toarray()"
            )
        return np.asarray(file[_choose(path, file.files, name, what)])


def _from_safetensors(path: Path, name: str | None, what: str) -> Array:
    with requires_extra("safetensors", "all", str(path)):
        import safetensors
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(_choose(path, list(file.keys()), name, what))
            return tensor
    except safetensors.SafetensorError as error:
        raise ValueError(f"the file needs to be safetensors ({error})") from None


def _choose(path: Path, names: Sequence[str], given: str | None, what: str) -> str:
    """Returns the name of an array: the given one, the only one, or the one about `what`."""
    if given is not None:
        if given not in names:
            raise ValueError(f"there is no array {given!r} (got {list(names)})")
        return given
    about = list(names) if len(names) == 1 else [name for name in names if what in name.lower()]
    if len(about) != 1:
        raise ValueError(
            f"{path}:NAME needs to say which array is meant (got {', '.join(names) or 'none'})"
        )
    note(f"{path}: {what} from {about[0]!r}")
    return about[0]


def _named(path: Path, error: ValueError) -> str:
    if "pickle" in str(error):
        return f"{path}: the file needs to hold numbers (got objects of Python, which are not read)"
    return str(error) if str(error).startswith(str(path)) else f"{path}: {error}"
