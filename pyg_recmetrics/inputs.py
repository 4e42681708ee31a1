"""The door: turns what people hold into tensors. All other code sees plain tensors alone.

What holds numbers becomes a dense tensor: a tensor of any subclass, such as PyG's `EdgeIndex`; the
weight of an `nn.Embedding`; a NumPy array, or whatever turns into one; or nested lists of numbers.
Edges may also come as a sparse matrix of users and items: of PyTorch, SciPy or `torch_sparse`.
"""

import warnings
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_edge_index


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, or one with the same method."""

    def tocoo(self) -> Any:
        """Returns it as coordinates and values."""


#: Whatever holds numbers.
TensorLike: TypeAlias = Tensor | ArrayLike | torch.nn.Embedding

#: Whatever holds edges. PyG's `Adj` is a tensor, or a `SparseTensor`.
EdgesLike: TypeAlias = TensorLike | Adj | SparseMatrix

#: The kinds of NumPy's dtypes that are numbers.
_NUMBERS = "biufc"


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


def is_sparse_matrix(value: Any) -> bool:
    """Returns whether `value` is a sparse matrix: of PyTorch, SciPy or `torch_sparse`."""
    return is_sparse(value) or hasattr(value, "tocoo")


def as_tensor(value: Any, name: str) -> Tensor:
    """Returns a dense tensor of whatever holds numbers. It shares their memory if it can.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it holds something else besides, or is not dense.
    """
    if isinstance(value, EdgeIndex | Index):
        plain: Tensor = value.as_tensor()
        return plain
    if isinstance(value, torch.nn.Embedding):
        return value.weight
    if isinstance(value, Tensor):
        kind = "nested" if value.is_nested else value.layout
        if kind != torch.strided:
            raise ValueError(f"'{name}' needs to be a dense tensor (got {kind})")
        return value
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
    if _is_sequence(value) and len(value) == 2:
        return _stack([as_tensor(part, name) for part in value], name), None
    return as_tensor(value, name), None


def as_matrix(value: Any, name: str) -> Matrix:
    """Returns the entries of a matrix, sparse or dense, that are not zero.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it is not a matrix.
    """
    if is_sparse_matrix(value):
        edges, numbers, shape = _entries(value, name)
    else:
        dense = as_tensor(value, name)
        if dense.dim() != 2:
            raise ValueError(f"'{name}' needs to be a matrix (got shape {list(dense.shape)})")
        edges = dense.nonzero().t()
        numbers, shape = dense[edges[0], edges[1]], (dense.size(0), dense.size(1))
    is_entry = numbers != 0  # a sparse matrix may also store zeros
    return Matrix(edges[:, is_entry].long(), numbers[is_entry], shape)


def _entries(value: Any, name: str) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Returns rows and columns, values and shape of a sparse matrix."""
    sizes = value.sizes() if hasattr(value, "sizes") else value.shape
    if len(sizes) != 2:
        raise ValueError(f"'{name}' needs to be a matrix (got shape {list(sizes)})")
    shape = (int(sizes[0]), int(sizes[1]))
    if is_sparse(value):
        edges, numbers = to_edge_index(value)
        return edges, numbers, shape
    coo = value.tocoo()
    edges = torch.stack([_from_array(ids, name).long() for ids in (coo.row, coo.col)])
    return edges, _from_array(coo.data, name), shape


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _stack(parts: Any, name: str) -> Tensor:
    shapes = [list(part.shape) for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"'{name}' needs to hold parts of one shape (got {shapes})")
    return torch.stack([as_tensor(part, name) for part in parts])


def _from_array(value: Any, name: str) -> Tensor:
    array = _as_array(value, name)
    if array.dtype.kind not in _NUMBERS:
        raise ValueError(f"'{name}' needs to hold numbers (got {array.dtype})")
    if array.size == 0 and _is_sequence(value):
        array = array.astype(np.int64)  # empty lists hold no numbers that could be floats
    if array.dtype.kind == "u" and array.itemsize > 1:
        if array.size and int(array.max()) >= 2**63:
            raise ValueError(f"'{name}' needs to hold 64-bit integers (got {array.max()})")
        array = array.astype(np.int64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    try:
        with warnings.catch_warnings():
            # Nobody writes to what comes in, and a copy of a file in memory would be expensive.
            warnings.filterwarnings("ignore", message=".*not writable")
            return torch.from_numpy(array)
    except TypeError:
        raise ValueError(
            f"'{name}' needs to hold numbers of at most 64 bits (got {array.dtype})"
        ) from None


def _as_array(value: Any, name: str) -> "np.ndarray[Any, Any]":
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
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"'{name}' needs to hold numbers in rows of one length ({error})"
        ) from None
