"""Files of results: arrays and JSON in NumPy's `.npz` format, from which no code is ever run."""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.files import replacing
from pyg_recmetrics.metrics.empty_target_action import num_filled

T = TypeVar("T")

#: The format of the files. It increases whenever older versions cannot read the new files.
FORMAT = 9

#: The formats that can be read: this one, and those of the releases 0.2.0 and 0.3.0.
READABLE_FORMATS = (5, 8, FORMAT)

#: What stands in the header for a tensor, beside the name of its array.
_TENSOR = "__tensor__"

#: The dtypes that NumPy lacks, and the integers that hold their bits.
_BITS = {torch.bfloat16: torch.int16}

#: How much text is compressed at most: four bytes of a letter, and much the same words.
_MAX_RATIO = 100

#: How many bytes stand before the numbers of an array, and how many each of them has, at most.
_MAX_PREFIX, _MAX_ITEM = 2**10, 8


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
    header = json.dumps({"format": FORMAT, "fields": _take_tensors(fields, "", arrays)})
    with replacing(path) as file:
        np.savez_compressed(file, header=np.array(header), **arrays)


def read(path: str | Path, build: Callable[[dict[str, Any]], T]) -> T:
    """Reads what :func:`write` wrote, and builds something of it.

    Args:
        path (str or Path): The file to read.
        build (callable): Takes the nested dictionaries. It checks everything in them, since
            anybody can have written the file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a saved result, or nothing can be built of it; the error names it.
    """
    content = Path(path).read_bytes()
    try:
        return build(_parse(content))
    # There is no end of what decoders raise on damaged bytes, and all of it means the same.
    except Exception as error:
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"'path' needs to be a saved result (got {path}: {what})") from error


def numbered(parts: Iterable[Any]) -> dict[str, Any]:
    """Returns parts by their numbers, as files hold several.

    Example:
        >>> numbered(["a", "b"])
        {'0': 'a', '1': 'b'}
    """
    return {str(number): part for number, part in enumerate(parts)}


def _parse(content: bytes) -> dict[str, Any]:
    """Returns the nested dictionaries of a file of any format that can be read."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {entry.filename.removesuffix(".npy"): entry for entry in file.infolist()}
        if len(members) < len(file.infolist()):
            raise ValueError("it has an array twice")
        if "header" not in members:
            raise ValueError("it has no header")
        header_entry = members.pop("header")
        if header_entry.file_size > _MAX_RATIO * header_entry.compress_size:
            raise ValueError("its header is compressed more than text can be")
        header = json.loads(str(_array(file.read(header_entry))))
        number = header["format"]
        if number not in READABLE_FORMATS:
            raise ValueError(
                f"another version of this package wrote it, in format {number}, and this version "
                f"reads what releases from 0.2.0 on have written: evaluate again"
            )
        _check_sizes(header["fields"], members)
        arrays = {name: _array(file.read(entry)) for name, entry in members.items()}
    fields: dict[str, Any] = _upgraded_within(_put_tensors(header["fields"], arrays), number)
    return fields


def _check_sizes(fields: Any, members: dict[str, zipfile.ZipInfo]) -> None:
    """Raises if arrays are others than the header says, or larger, before they are unpacked."""
    shapes = dict(_shapes(fields))
    if unused := sorted(members.keys() - shapes.keys()):
        raise ValueError(f"it has arrays that the header does not name, {unused}")
    for name, entry in members.items():
        shape = shapes[name]
        if entry.file_size > _MAX_PREFIX + _MAX_ITEM * math.prod(shape):
            raise ValueError(f"{name!r} is larger than its shape {shape}")


def _shapes(value: Any) -> Iterator[tuple[str, list[int]]]:
    """Yields the name and the shape of every array that the header names."""
    if isinstance(value, dict) and _TENSOR in value:
        yield value[_TENSOR], value["shape"]
    elif isinstance(value, dict):
        for part in value.values():
            yield from _shapes(part)


def _upgraded_within(fields: Any, number: int) -> Any:
    """Returns the fields of a result, or of all results in nested dictionaries, as today."""
    if not isinstance(fields, dict):
        return fields
    if "ranked" in fields:
        return _upgraded(fields, number)
    return {name: _upgraded_within(part, number) for name, part in fields.items()}


def _upgraded(fields: dict[str, Any], number: int) -> dict[str, Any]:
    """Returns the fields of a result as they are today, given the format they were written in."""
    if number == 5:
        return _from_format_5(fields)
    return _from_format_8(fields) if number == 8 else fields


def _array(content: bytes) -> Any:
    """Reads a member to its end, so that its checksum is compared."""
    stream = io.BytesIO(content)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("an array has more bytes than it needs")
    return array


def _from_format_5(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns fields as they are today.

    Edges and persons had other names, every row was a user, all truth was a candidate, and nothing
    said what ranked the items.
    """
    ranked, task = fields["ranked"], fields["task"]
    ranked["edge_label_index"] = ranked.pop("edge_index")
    ranked |= {"ranked_by": None, "seed": None}
    ranked |= {"person": None, "user_of_row": None, "is_candidate": None}
    if task is not None:
        task["person"] = task.pop("owner")
        task |= {"missing": "drop", "query": None, "num_relations": None}
    return fields | {"average_over": "user", "sampling": None}


def _from_format_8(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns fields as they are today: nothing said how many users count in a mean."""
    if sampling := fields["sampling"]:
        others = num_filled(sampling["num_without_truth"], fields["empty_target_action"])
        sampling["num_counted"] = dict.fromkeys(fields["metrics"], sampling["num_users"] + others)
    return fields


def _take_tensors(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Moves all tensors to `arrays`, and returns what is left for the header."""
    if isinstance(value, Tensor):
        tensor = value.detach().cpu()
        array = tensor.view(_BITS.get(tensor.dtype, tensor.dtype)).numpy()
        # Seen edges, for example, belong to the task and to its catalogue, and are stored once.
        stored = (key for key, other in arrays.items() if _are_same(array, other))
        name = next(stored, name)
        arrays[name] = array
        dtype = str(tensor.dtype).removeprefix("torch.")
        return {_TENSOR: name, "dtype": dtype, "shape": list(tensor.shape)}
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


def _are_same(array: Any, other: Any) -> bool:
    return array.dtype == other.dtype and np.array_equal(array, other)


def _put_tensors(value: Any, arrays: dict[str, Any]) -> Any:
    """Restores the tensors in nested dictionaries."""
    if not isinstance(value, dict):
        return value
    if _TENSOR not in value:
        return {key: _put_tensors(part, arrays) for key, part in value.items()}
    name = value[_TENSOR]
    if name not in arrays:
        raise ValueError(f"it has no array {name!r}")
    tensor = torch.from_numpy(arrays[name])
    dtypes = {str(dtype): dtype for dtype in _BITS}
    tensor = tensor.view(dtypes.get(f"torch.{value['dtype']}", tensor.dtype))
    found = [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]
    if found != [value["dtype"], value["shape"]]:
        raise ValueError(f"{name!r} needs to be {[value['dtype'], value['shape']]} (got {found})")
    return tensor
