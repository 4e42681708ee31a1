"""Turns arrays, lists, matrices, embeddings and labels into tensors, which other code works with.

What holds numbers becomes a dense tensor: a tensor of any subclass, such as PyG's `EdgeIndex`; the
weight of an `nn.Embedding`; a NumPy array, or whatever turns into one; or nested lists of numbers.
Edges may also come as a sparse matrix of users and items: of PyTorch, SciPy or `torch_sparse`.
Single numbers may be those of any library.
"""

import operator
import warnings
from collections.abc import Hashable, Iterable, Mapping, Set
from contextlib import suppress
from copy import deepcopy
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.data.data import BaseData
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, scatter, to_edge_index


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, or one with the same method."""

    def tocoo(self) -> Any:
        """Returns it as coordinates and values."""


#: Whatever holds numbers.
TensorLike: TypeAlias = Tensor | ArrayLike | torch.nn.Embedding

#: Whatever holds edges. PyG's `Adj` is a tensor, or a `SparseTensor`.
EdgesLike: TypeAlias = TensorLike | Adj | SparseMatrix

#: The characters of NumPy's dtypes that are numbers, and that PyTorch has.
_NUMBERS = "?bBhHiIlLqQefdFD"


class Matrix(NamedTuple):
    """The entries of a matrix that are not zero.

    Attributes:
        edges: The row and the column of every entry, of shape `[2, num_entries]`.
        value: The value of every entry, of shape `[num_entries]`.
        shape: The number of rows and columns.
    """

    edges: Tensor
    value: Tensor
    shape: tuple[int, int]


def as_integer(value: object) -> int | None:
    """Returns an integer of any library as Python's own; `None` for booleans and all else."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or (isinstance(value, Tensor) and value.dtype == torch.bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_number(value: object) -> float | None:
    """Returns a real number of any library as Python's own; `None` for booleans and all else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    return float(value) if isinstance(value, Real) else None


def as_values(values: Any, name: str, what: str) -> list[Any]:
    """Returns the ids or labels in a sequence, an array or a column, as Python's own if it can.

    Raises:
        TypeError: If `values` is no sequence, or one of them cannot be hashed.
    """
    if isinstance(values, str | Mapping | Set) or not isinstance(values, Iterable):
        raise TypeError(
            f"'{name}' needs to be a tensor or a sequence of {what} (got {type(values).__name__})"
        )
    # Arrays and columns return their values as Python's own; an array of a single one, just that.
    # Those of Arrow call it otherwise.
    to_list = getattr(values, "tolist", None) or getattr(values, "to_pylist", None)
    listed = to_list() if to_list else values
    found = [
        value.item() if isinstance(value, np.generic) else value
        for value in (listed if isinstance(listed, Iterable) else [listed])
    ]
    for value in found:
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(
                f"'{name}' needs to hold {what} that can be hashed (got {value!r})"
            ) from error
    return found


def is_sparse_matrix(value: Any) -> bool:
    """Returns whether `value` is a sparse matrix: of PyTorch, SciPy or `torch_sparse`."""
    return is_sparse(value) or hasattr(value, "tocoo")


def is_edges_like(value: Any) -> bool:
    """Returns whether `value` has a form of edges: no frame, no whole split and no names."""
    if _is_sequence(value):
        return not any(isinstance(part, BaseData | str) for part in value)
    if hasattr(value, "columns"):
        return False
    return hasattr(value, "__array__") or is_sparse_matrix(value)


def to_coordinates(matrix: Any) -> tuple[Tensor, Tensor]:
    """Returns rows and columns, and values, of a sparse tensor of PyTorch or `torch_sparse`.

    An entry that is stored in several parts comes several times.
    """
    if isinstance(matrix, Tensor) and matrix.layout == torch.sparse_coo:
        # To coalesce it would add up its parts in its own dtype, such as one of eight bits.
        return matrix.detach()._indices(), matrix.detach()._values()
    edges, values = to_edge_index(matrix)
    return edges, values


def as_tensor(value: Any, name: str) -> Tensor:
    """Returns a dense tensor of whatever holds numbers. It shares their memory if it can.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it holds something else besides, or is not dense.
    """
    if isinstance(value, Tensor):
        if isinstance(value, EdgeIndex | Index):
            plain: Tensor = value.as_tensor()
            return plain
        if value.is_nested or value.layout != torch.strided:
            kind = "nested" if value.is_nested else value.layout
            raise ValueError(f"'{name}' needs to be a dense tensor (got {kind})")
        return value.detach() if value.requires_grad else value
    if isinstance(value, torch.nn.Embedding):
        rows = torch.arange(value.num_embeddings, device=value.weight.device)
        # A lookup scales rows that are too long, where they are.
        return (value.weight if value.max_norm is None else deepcopy(value)(rows)).detach()
    if _is_sequence(value) and len(value) and all(isinstance(part, Tensor) for part in value):
        return _stack(value, name)
    return _from_array(value, name)


def as_edges(value: Any, name: str) -> tuple[Tensor, Tensor | None]:
    """Returns edges of shape `[2, num_edges]`, and the value of each if they are a matrix.

    The shape is not checked if edges do not come as a matrix.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it holds something else besides, or rows of different length.
    """
    if is_sparse_matrix(value):
        matrix = as_matrix(value, name)
        return matrix.edges, matrix.value
    if hasattr(value, "columns"):
        raise TypeError(
            f"'{name}' needs to hold user ids over item ids (got a data frame, which "
            f"'RankingTask.from_frames' takes)"
        )
    if _is_sequence(value) and len(value) == 2 and as_integer(value[0]) is None:
        parts = [as_tensor(part, name) for part in value]
        if any(part.dtype == torch.bool for part in parts):
            raise ValueError(f"'{name}' needs to hold integers (got torch.bool)")
        return _stack(parts, name), None
    return as_tensor(value, name), None


def shape_of(value: Any) -> tuple[int | None, ...] | None:
    """Returns the shape that edges say to have as a matrix; `None` if they say nothing."""
    if isinstance(value, EdgeIndex):
        return tuple(value.sparse_size())
    return _shape(value) if is_sparse_matrix(value) else None


def as_matrix(value: Any, name: str) -> Matrix:
    """Returns the entries of a matrix, sparse or dense, that are not zero.

    A sparse matrix may store an entry in several parts, whose sum it is.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it is not a matrix.
    """
    if isinstance(value, EdgeIndex):
        edges = value.as_tensor()
        numbers, shape = torch.ones_like(edges[0]), tuple(value.get_sparse_size())
    elif is_sparse_matrix(value):
        shape = _shape(value)
        if len(shape) != 2:
            raise ValueError(f"'{name}' needs to be a matrix (got shape {list(shape)})")
        edges, numbers = _add_up(*_entries(value, name), num_columns=shape[1])
    else:
        dense = as_tensor(value, name)
        if dense.dim() != 2:
            raise ValueError(f"'{name}' needs to be a matrix (got shape {list(dense.shape)})")
        edges = dense.nonzero().t()
        numbers, shape = dense[edges[0], edges[1]], (dense.size(0), dense.size(1))
    is_entry = numbers != 0  # a sparse matrix may also store zeros
    return Matrix(edges[:, is_entry].long(), numbers[is_entry], shape)


def _shape(value: Any) -> tuple[int, ...]:
    """Returns the shape of a sparse matrix."""
    return tuple(map(int, value.sizes() if hasattr(value, "sizes") else value.shape))


def _entries(value: Any, name: str) -> tuple[Tensor, Tensor]:
    """Returns the rows and columns of the entries of a sparse matrix, and their values."""
    if not is_sparse(value):
        coo = value.tocoo()
        edges = torch.stack([_from_array(ids, name).long() for ids in (coo.row, coo.col)])
        return edges, _from_array(coo.data, name)
    edges, numbers = to_coordinates(value)
    if numbers.dim() != 1:
        raise ValueError(f"'{name}' needs to hold numbers (got vectors of {numbers.size(1)})")
    return edges, numbers.detach()


def _add_up(edges: Tensor, value: Tensor, num_columns: int) -> tuple[Tensor, Tensor]:
    """Adds up the values of entries that are stored in several parts."""
    keys, part = (edges[0] * num_columns + edges[1]).unique(return_inverse=True)
    if keys.numel() == part.numel():
        return edges, value
    total = scatter(value.double(), part, dim_size=keys.numel(), reduce="sum")
    user = keys.div(num_columns, rounding_mode="floor")
    return torch.stack([user, keys - user * num_columns]), (
        total > 0 if value.dtype == torch.bool else total
    )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _stack(parts: Any, name: str) -> Tensor:
    shapes = [list(part.shape) for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"'{name}' needs to hold parts of one shape (got {shapes})")
    tensors = [as_tensor(part, name) for part in parts]
    devices = {str(tensor.device) for tensor in tensors}
    if len(devices) > 1:
        raise ValueError(f"'{name}' needs to hold parts on one device (got {sorted(devices)})")
    return torch.stack(tensors)


def _from_array(value: Any, name: str) -> Tensor:
    if is_sparse_matrix(value):
        raise TypeError(
            f"'{name}' needs to be dense, as 'toarray()' makes it (got {type(value).__name__})"
        )
    if np.ma.isMaskedArray(value):
        raise TypeError(f"'{name}' needs to hold a number everywhere (got a masked array)")
    if not (_is_sequence(value) or hasattr(value, "__array__")):
        raise TypeError(
            f"'{name}' needs to be a tensor, an array or a list of numbers "
            f"(got {type(value).__name__})"
        )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"'{name}' needs to hold numbers in rows of one length ({error})"
        ) from None
    if array.dtype.char not in _NUMBERS:
        raise ValueError(
            f"'{name}' needs to hold numbers (got {array.dtype}); use astype(float) for numbers, "
            f"and .to_dict() for a series of lists"
        )
    if array.size == 0 and _is_sequence(value):
        array = array.astype(np.int64)  # empty lists hold no numbers that could be floats
    if array.dtype.kind == "u" and array.itemsize > 1:
        if array.size and int(array.max()) >= 2**63:
            raise ValueError(f"'{name}' needs to hold 64-bit integers (got {array.max()})")
        array = array.astype(np.int64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    with warnings.catch_warnings():
        # What comes in is only read, and a copy of a file in memory would be expensive.
        warnings.filterwarnings("ignore", message=".*not writable")
        return torch.from_numpy(array)


def read_labels(
    labels: Any, name: str, what: str, num_wanted: int
) -> tuple[Tensor, list[Hashable]]:
    """Numbers labels in their order.

    Args:
        labels (torch.Tensor or sequence): A label for each: integers or booleans, or a sequence of
            names. What has a name of `None` has no label.
        name (str): The name of the argument.
        what (str): What has a label, such as `"user"`.
        num_wanted (int): How many there are.

    Returns:
        The number of each label, of shape `[num_wanted]`, `-1` for none; and the distinct labels.

    Raises:
        TypeError: If `labels` does not hold labels.
        ValueError: If there is not one for each, or a tensor holds other numbers than integers.
    """
    if isinstance(labels, Tensor):
        if labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"'{name}' needs to hold integers or booleans (got {labels.dtype})")
        _check_one_for_each(list(labels.shape), name, what, num_wanted)
        found, number = labels.unique(return_inverse=True)
        return number, found.tolist()
    given = as_values(labels, name, "labels")
    _check_one_for_each([len(given)], name, what, num_wanted)
    distinct = list(dict.fromkeys(label for label in given if not _is_missing(label)))
    with suppress(TypeError):  # labels of different types stay in the order in which they came
        distinct = sorted(distinct)
    numbers = {label: number for number, label in enumerate(distinct)}
    found_numbers = [numbers.get(label, -1) for label in given]
    return torch.tensor(found_numbers, dtype=torch.long, device="cpu"), distinct


def _check_one_for_each(shape: list[int], name: str, what: str, num_wanted: int) -> None:
    if shape != [num_wanted]:
        raise ValueError(
            f"'{name}' needs to have shape [{num_wanted}], a label for every {what} (got {shape})"
        )


def _is_missing(label: Any) -> bool:
    """Returns whether something is no label, but stands for a missing one."""
    # Missing values of pandas are neither equal to themselves nor unequal.
    return label is None or not isinstance(label == label, bool) or label != label
