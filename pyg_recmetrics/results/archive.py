"""Files of results: arrays and JSON in NumPy's `.npz` format, from which no code is ever run."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: The format of the files. It increases whenever older versions cannot read the new files.
FORMAT = 2

#: What stands in the header for a tensor, beside the name of its array.
_TENSOR = "__tensor__"


def write(path: str | Path, fields: dict[str, Any]) -> None:
    """Writes nested dictionaries of tensors and of what JSON can hold.

    Args:
        path (str or Path): The file to write.
        fields (dict): What to write. Keys are strings without a dot.
    """
    arrays: dict[str, Any] = {}
    header = json.dumps({"format": FORMAT, "fields": _take_tensors(fields, "", arrays)})
    with Path(path).open("wb") as file:  # a file, since NumPy appends '.npz' to a name
        np.savez_compressed(file, header=np.array(header), **arrays)


def read(path: str | Path) -> dict[str, Any]:
    """Reads what :func:`write` wrote.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If `path` is not a saved result, or has an unsupported format.
    """
    if not zipfile.is_zipfile(path) and Path(path).exists():
        raise ValueError(f"'path' needs to be a saved result (got {path})")
    with np.load(path, allow_pickle=False) as arrays:
        if "header" not in arrays:
            raise ValueError(f"'path' needs to be a saved result (got {path})")
        header = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise ValueError(
                f"'path' needs to be a result of format {FORMAT}, but another version of this "
                f"package wrote it (got format {header['format']})"
            )
        fields: dict[str, Any] = _put_tensors(header["fields"], arrays)
        return fields


def _take_tensors(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Moves all tensors to `arrays`, and returns what is left for the header."""
    if isinstance(value, Tensor):
        array = value.detach().cpu().numpy()
        # Seen edges, for example, belong to the task and to its catalogue, and are stored once.
        stored = (key for key, other in arrays.items() if _are_same(array, other))
        name = next(stored, name)
        arrays[name] = array
        return {_TENSOR: name}
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return {key: _take_tensors(part, f"{prefix}{key}", arrays) for key, part in value.items()}
    return value


def _are_same(array: Any, other: Any) -> bool:
    return array.dtype == other.dtype and np.array_equal(array, other)


def _put_tensors(value: Any, arrays: Any) -> Any:
    """Restores the tensors in nested dictionaries."""
    if not isinstance(value, dict):
        return value
    if _TENSOR in value:
        return torch.from_numpy(arrays[value[_TENSOR]])
    return {key: _put_tensors(part, arrays) for key, part in value.items()}
