"""Files of results: arrays and JSON in NumPy's `.npz` format, from which no code is ever run."""

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.utils import replacing

T = TypeVar("T")

#: The format of the files. It increases whenever older versions cannot read the new files.
FORMAT = 11

#: What stands in the header for a tensor, beside the name of its array.
_TENSOR = "__tensor__"


def write(path: str | Path, fields: dict[str, Any]) -> None:
    """Writes nested dictionaries of tensors and of what JSON can hold.

    The file is replaced at once: whatever happens, there is the old file or the new one.

    Args:
        path (str or Path): The file to write.
        fields (dict): What to write. Keys are strings without a dot.

    Raises:
        OSError: If the file cannot be written.
    """
    arrays: dict[str, Any] = {}
    held = {"format": FORMAT, "fields": _take_tensors(fields, "", arrays)}
    header = json.dumps(held, default=dict)  # of other mappings
    with replacing(path) as file:
        np.savez_compressed(
            file, header=np.array(header), checksum=np.array(_checksum(header, arrays)), **arrays
        )


def read(path: str | Path, build: Callable[[dict[str, Any]], T]) -> T:
    """Reads what :func:`write` wrote, and builds something of it.

    Args:
        path (str or Path): The file to read.
        build (callable): Takes the nested dictionaries.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a saved result, is damaged, or nothing can be built of it; the
            error names it.
    """
    content = Path(path).read_bytes()
    try:
        return build(_parse(content))
    except Exception as error:  # as a file may hold anything
        is_said = isinstance(error, ValueError)
        what = str(error) if is_said else f"it is damaged: {type(error).__name__}: {error}"
        raise ValueError(f"'path' needs to be a saved result (got {path}: {what})") from error


def _parse(content: bytes) -> dict[str, Any]:
    """Returns the nested dictionaries of a file."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
        text = str(arrays.pop("header"))
        header = json.loads(text)
        number = header["format"]
    # There is no end of what decoders raise on damaged bytes, and all of it means the same.
    except Exception as error:
        raise ValueError("it is damaged, or no saved result, as 'save' writes it") from error
    if number != FORMAT:
        version = "a later version" if number > FORMAT else "version 0.2, 0.3 or 0.4"
        raise ValueError(f"{version} of this package wrote it: evaluate again")
    if str(arrays.pop("checksum", "")) != _checksum(text, arrays):
        raise ValueError("it is damaged, or was changed after it was saved")
    fields: dict[str, Any] = _put_tensors(header["fields"], arrays)
    return fields


def _checksum(header: str, arrays: Mapping[str, Any]) -> str:
    """Returns a number that any other character of the header, or bit of an array, changes."""
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _take_tensors(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Moves all tensors to `arrays`, and returns what is left for the header."""
    if isinstance(value, Tensor):
        tensor = value.detach().cpu()
        dtype = str(tensor.dtype).removeprefix("torch.")
        # NumPy has no such numbers, but integers hold their bits.
        array = (tensor.view(torch.int16) if dtype == "bfloat16" else tensor).numpy()
        # Seen edges, for example, belong to the task and to its catalogue, and are stored once.
        stored = (
            key
            for key, other in arrays.items()
            if array.dtype == other.dtype and np.array_equal(array, other)
        )
        name = next(stored, name)
        arrays[name] = array
        return {_TENSOR: name, "dtype": dtype}
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return {key: _take_tensors(part, f"{prefix}{key}", arrays) for key, part in value.items()}
    if isinstance(value, tuple):
        for id_ in value:
            if not isinstance(id_, str | int | float):
                raise TypeError(
                    f"'{name}' needs to hold strings or numbers to be saved (got "
                    f"{type(id_).__name__})"
                )
    return value


def _put_tensors(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Restores the tensors in nested dictionaries."""
    if not isinstance(value, dict):
        return value
    if _TENSOR not in value:
        return {key: _put_tensors(part, arrays) for key, part in value.items()}
    tensor = torch.from_numpy(arrays[value[_TENSOR]])
    return tensor.view(torch.bfloat16) if value["dtype"] == "bfloat16" else tensor
