"""Files of results: arrays and JSON in NumPy's `.npz` format, out of which no code is ever run."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: Raised when files change such that older versions cannot read them.
FORMAT = 1


def write(path: str | Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Writes named tensors, and a header of what JSON can hold."""
    arrays: dict[str, Any] = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
    text = json.dumps({"format": FORMAT, **header})
    with Path(path).open("wb") as file:  # a file, since names would have '.npz' appended
        np.savez_compressed(file, header=np.array(text), **arrays)


def read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what :func:`write` wrote.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no such file, or of a later format.
    """
    if not zipfile.is_zipfile(path) and Path(path).exists():
        raise ValueError(f"'path' needs to be a saved result (got {path})")
    with np.load(path, allow_pickle=False) as arrays:
        if "header" not in arrays:
            raise ValueError(f"'path' needs to be a saved result (got {path})")
        header: dict[str, Any] = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise ValueError(
                f"'path' needs to be a result of format {FORMAT}, written by another version "
                f"of this package (got format {header['format']})"
            )
        names = [name for name in arrays if name != "header"]
        return {name: torch.from_numpy(arrays[name]) for name in names}, header
