"""Turns what comes in from outside into tensors and numbers, and checks it.

The code behind them trusts its arguments. What holds numbers becomes a dense tensor: a tensor of
any subclass, such as PyG's `EdgeIndex`; the weight of an `nn.Embedding`; a NumPy array, or whatever
turns into one; or nested lists of numbers. Edges may also come as a sparse matrix of users and
items: of PyTorch, SciPy or `torch_sparse`. Single numbers may be those of any library.
"""

import functools
import inspect
import math
import operator
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from copy import deepcopy
from difflib import get_close_matches
from numbers import Real
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.data.data import BaseData
from torch_geometric.typing import Adj
from torch_geometric.utils import coalesce, is_sparse, to_edge_index


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
    is_frame = hasattr(values, "columns")
    if is_frame or isinstance(values, str | Mapping | Set) or not isinstance(values, Iterable):
        column = "; write frame['column'] for one of its columns" if is_frame else ""
        raise TypeError(
            f"'{name}' needs to be a tensor or a sequence of {what} (got {type(values).__name__})"
            f"{column}"
        )
    # Arrays and columns return their values as Python's own; an array of a single one, just that.
    # Those of Arrow call it otherwise.
    to_list = getattr(values, "tolist", None) or getattr(values, "to_pylist", None)
    listed = to_list() if to_list else values
    listed = listed if isinstance(listed, Iterable) else [listed]
    found = [x.tolist() if isinstance(x, np.generic | np.ndarray | Tensor) else x for x in listed]
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
    if isinstance(value, list | tuple):
        return not any(isinstance(part, BaseData | str) for part in value)
    is_array = hasattr(value, "__array__") or is_sparse_matrix(value)
    return is_array and not hasattr(value, "columns")


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
    is_sequence = isinstance(value, list | tuple) and len(value) > 0
    if is_sequence and all(isinstance(part, Tensor) for part in value):
        return _stack([as_tensor(part, name) for part in value], name)
    return _from_array(value, name)


def shape_of(matrix: Any) -> tuple[Any, ...]:
    """Returns the shape of a matrix, sparse or dense; `None` where an `EdgeIndex` has no size."""
    if isinstance(matrix, EdgeIndex):
        return tuple(matrix.sparse_size())
    return tuple(map(int, matrix.sizes() if hasattr(matrix, "sizes") else matrix.shape))


def as_edges(
    value: Any,
    name: str,
    num_rows: int | None = None,
    num_columns: int | None = None,
    *,
    or_items: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Returns edges as 64-bit integers, and the value of each if they come as a sparse matrix.

    Args:
        value (Any): The edges.
        name (str): The name of the argument.
        num_rows (int, optional): How many rows a matrix needs to have.
            (default: `None`, any number)
        num_columns (int, optional): How many columns. (default: `None`, any number)
        or_items (bool, optional): Whether items of one dimension will do. (default: `False`)

    Returns:
        Edges of shape `[2, num_edges]`; of a matrix, those that are not zero, and their values.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it does not hold integers in this shape, or is a matrix of another shape.
    """
    if isinstance(value, EdgeIndex) or is_sparse_matrix(value):
        found, wanted = shape_of(value), (num_rows, num_columns)
        for size, needed in zip(found, wanted, strict=False):
            if size != needed and size is not None and needed is not None:
                shape = ", ".join("any" if each is None else str(each) for each in wanted)
                raise ValueError(
                    f"'{name}' needs to be a matrix of shape [{shape}] (got {[*found]})"
                )
    entries: Tensor | None
    if is_sparse_matrix(value):
        index, entries, _ = as_matrix(value, name)
    elif hasattr(value, "columns"):
        raise TypeError(
            f"'{name}' needs to hold user ids over item ids (got a data frame, which "
            f"'RankingTask.from_frames' takes)"
        )
    elif isinstance(value, list | tuple) and len(value) == 2 and as_integer(value[0]) is None:
        index, entries = _stack([check_integers(part, name) for part in value], name), None
    else:
        index, entries = as_tensor(value, name), None
    if not (index.dim() == 2 and index.size(0) == 2) and not (or_items and index.dim() == 1):
        raise ValueError(
            f"'{name}' needs to have shape [2, num_edges], with users first, as "
            f"matrix.nonzero().t() has for a dense matrix (got {list(index.shape)})"
        )
    return check_integers(index, name), entries


def as_matrix(value: Any, name: str) -> Matrix:
    """Returns the entries of a matrix, sparse or dense, that are not zero.

    A sparse matrix may store an entry in several parts, whose sum it is.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it is not a matrix.
    """
    if isinstance(value, EdgeIndex):
        edges = value.as_tensor()
        return Matrix(edges.long(), torch.ones_like(edges[0]), tuple(value.get_sparse_size()))
    is_stored = is_sparse_matrix(value)
    matrix = value if is_stored else as_tensor(value, name)
    shape = shape_of(matrix)
    if len(shape) != 2:
        raise ValueError(f"'{name}' needs to be a matrix (got shape {list(shape)})")
    if not is_stored:
        edges = matrix.nonzero().t()
        return Matrix(edges, matrix[edges[0], edges[1]], shape)
    edges, numbers = _add_up(*_entries(matrix, name))
    is_entry = numbers != 0  # a sparse matrix may also store zeros
    return Matrix(edges[:, is_entry].long(), numbers[is_entry], shape)


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


def _add_up(edges: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Adds up the values of entries that are stored in several parts."""
    merged, total = coalesce(edges, value.double(), reduce="sum")
    if merged.size(1) == edges.size(1):
        return edges, value
    return merged, total > 0 if value.dtype == torch.bool else total


def _stack(parts: list[Tensor], name: str) -> Tensor:
    shapes = [list(part.shape) for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"'{name}' needs to hold parts of one shape (got {shapes})")
    devices = {str(part.device) for part in parts}
    if len(devices) > 1:
        raise ValueError(f"'{name}' needs to hold parts on one device (got {sorted(devices)})")
    return torch.stack(parts)


def _from_array(value: Any, name: str) -> Tensor:
    if is_sparse_matrix(value):
        raise TypeError(
            f"'{name}' needs to be dense, as 'toarray()' makes it, with 0 where nothing is stored; "
            f"as scores, these items need '-inf' if they must not be retrieved (got "
            f"{type(value).__name__})"
        )
    if np.ma.isMaskedArray(value):
        raise TypeError(f"'{name}' needs to hold a number everywhere (got a masked array)")
    if not (isinstance(value, list | tuple) or hasattr(value, "__array__")):
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
            f"pd.factorize(ids)[0] for names, and .to_dict() for a series of lists"
        )
    if array.size == 0 and isinstance(value, list | tuple):
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
        found, number = labels.unique(return_inverse=True)
        distinct = found.tolist()
    else:
        given = as_values(labels, name, "labels")
        distinct = list(dict.fromkeys(label for label in given if not pd.isna(label)))
        with suppress(TypeError):  # labels of different types stay in the order in which they came
            distinct = sorted(distinct)
        numbers = {label: place for place, label in enumerate(distinct)}
        places = [numbers.get(label, -1) for label in given]
        number = torch.tensor(places, dtype=torch.long, device="cpu")
    check_shape(number, name, (num_wanted,), f"a label for every {what}")
    return number, distinct


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_A_CUT_OFF = "a metric with its cut-off, as in 'recall@20'"

#: What to write in place of arguments that a function does not take, by the names people try.
_INSTEAD = {
    **dict.fromkeys(("k", "ks", "topk", "top_k", "cutoff", "at"), _A_CUT_OFF),
    "candidates": "RankingTask.from_data(data, candidates=items) in place of data",
    "device": "model.to(device) and data.to(device) before",
    "edge_type": "RankingTask.from_data(data, edge_type) in place of data",
    "model": "the recommender first, without a name",
    "seen": "RankingTask(..., seen=edges), or 'edge_index' beside ground-truth edges",
    "threshold": "RankingTask.from_data(data, threshold=4)",
    "train": "RankingTask(test, seen=train, num_users=..., num_items=...)",
    "users": "RankingTask.from_data(data, users=ids) in place of data",
    "verbose": "progress=True",
    **dict.fromkeys(("test_size", "test_ratio"), "num_test=0.2"),
}


def misfit(function: Callable[..., object], *args: object, **kwargs: object) -> str | None:
    """Returns why a function cannot be called with some arguments; `None` if it can.

    Example:
        >>> misfit(lambda user: user, 1, 2)
        'too many positional arguments'
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C say nothing of their arguments
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def written(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets a public function say what to write where it is called with other arguments.

    Args:
        example (str): A call that is right.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if (wrong := misfit(function, *args, **kwargs)) is None:
                    raise
                raise TypeError(_what_to_write(function, example, wrong, kwargs)) from error

        return call

    return decorate


def _what_to_write(
    function: Callable[..., object], example: str, wrong: str, kwargs: Mapping[str, object]
) -> str:
    name = function.__qualname__.removesuffix(".__init__")
    parameters = inspect.signature(function).parameters
    unknown = next((key for key in kwargs if key not in parameters), None)
    if unknown is None:
        return f"{name}() got other arguments than it takes ({wrong}); write {example}"
    similar = [f"'{match}'" for match in get_close_matches(unknown, parameters, n=1)]
    instead = _INSTEAD.get(unknown, *similar or [example])
    return f"{name}() takes no '{unknown}'; write {instead}"


def check_integers(value: object, name: str) -> Tensor:
    """Returns `value` as a tensor of 64-bit integers if it holds integers."""
    tensor = as_tensor(value, name)
    if tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        raise ValueError(f"'{name}' needs to hold integers (got {tensor.dtype})")
    return tensor.long()


def check_mask(value: object, name: str, shape: tuple[int, ...]) -> Tensor:
    """Returns `value` as a tensor if it holds booleans of a shape."""
    mask = as_tensor(value, name)
    if mask.dtype != torch.bool or mask.shape != shape:
        raise ValueError(
            f"'{name}' needs to be a mask of shape {list(shape)} (got {mask.dtype}, "
            f"{list(mask.shape)})"
        )
    return mask


def check_device(value: Tensor, name: str, device: torch.device, owner: str) -> None:
    """Raises if `value` is on another device than its `owner`."""
    if value.device != device:
        raise ValueError(
            f"'{name}' needs to be on the device of '{owner}', {device} (got {value.device}); "
            f"write .to(device) behind one of them"
        )


def holds_double_precision(device: torch.device) -> bool:
    """Returns whether tensors on a device can have double precision. On Apple's, they cannot."""
    return device.type != "mps"


def check_double_precision(device: torch.device, name: str) -> None:
    """Raises if numbers on a device cannot have double precision, in which results are exact."""
    if not holds_double_precision(device):
        raise ValueError(
            f"'{name}' needs to be on a device with double precision, such as the CPU "
            f"(got {device})"
        )


def check_ids(ids: Tensor, name: str, what: str, num_ids: int, num_users: int = 0) -> None:
    """Raises if an id lies outside of `[0, num_ids)`.

    The error gives a hint if all ids would fit without the `num_users` that come before items in a
    homogeneous graph.
    """
    if ids.numel() == 0:
        return
    low, high = torch.stack(ids.aminmax()).tolist()
    if low < 0 or high >= num_ids:
        wrong = low if low < 0 else high
        is_shifted = 0 < num_users <= low and high < num_users + num_ids
        hint = f"; subtract 'num_users' ({num_users}) if the ids of users come first"
        raise ValueError(
            f"'{name}' needs to hold {what} ids in [0, {num_ids}) (got {wrong})"
            f"{hint if is_shifted else ''}"
        )


def check_edges(
    edges: object, name: str, num_rows: int | None = None, num_columns: int | None = None
) -> Tensor:
    """Returns `edges` as 64-bit integers if they are integers of shape `[2, num_edges]`.

    Of a sparse matrix, which needs to have a shape, these are the entries that are not zero.
    """
    return as_edges(edges, name, num_rows, num_columns)[0]


def check_pairs(edges: Tensor, name: str, num_users: int, num_items: int) -> None:
    """Raises if edges of 64-bit integers do not run from users to items."""
    check_num_pairs(name, num_users, num_items)
    try:
        check_ids(edges[0], name, "user", num_users)
        check_ids(edges[1], name, "item", num_items, num_users)
    except ValueError as error:
        first, second = edges
        if edges.min() >= 0 and first.max() < num_items and second.max() < num_users:
            raise ValueError(f"{error}; write edges.flip(0) if items stand first") from None
        raise


def check_labels(value: Any, name: str, *ids: Sequence[Hashable] | None) -> None:
    """Raises if a labelled array holds its numbers in another order than it will be read in.

    Args:
        value (Any): Anything. Only pandas labels its arrays.
        name (str): The name of the argument.
        *ids (sequence, optional): The original ids of the rows, and of the columns, in their order;
            `None` if there are no others than their numbers.
    """
    if not hasattr(value, "iloc"):
        return
    for labels, wanted in zip(value.axes, ids, strict=False):
        found = labels.tolist()
        if found != list(range(len(found))) and (wanted is None or found != list(wanted)):
            raise ValueError(
                f"'{name}' needs to be labelled by the original ids of the task in their order, as "
                f"'reindex' puts them, or not at all (got labels that start with {found[:3]})"
            )


def unless_all_one(weight: Tensor | None) -> Tensor | None:
    """Returns weights if they say anything: `None` if all of them are one."""
    return None if weight is None or bool((weight == 1).all()) else weight


def check_weighted_edges(
    edges: object,
    weight: object,
    name: str,
    weight_name: str,
    num_rows: int,
    num_columns: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Returns edges like :func:`check_edges`, and their weights if they have any.

    The values of a matrix are weights, unless all of them are one.
    """
    index, value = as_edges(edges, name, num_rows, num_columns)
    if weight is None:
        return index, unless_all_one(value)
    if value is not None:
        raise ValueError(
            f"'{weight_name}' needs to be None if '{name}' is a matrix, whose values are the "
            f"weights (got both)"
        )
    return index, as_tensor(weight, weight_name)


def check_raw_ids(ids: object, name: str, num_ids: int | None = None) -> tuple[Hashable, ...]:
    """Returns the original ids of users or items, if all of them differ.

    Args:
        ids (object): A sequence, an array or a column of a data frame.
        name (str): The name of the argument.
        num_ids (int, optional): How many ids there need to be. (default: `None`, any number)
    """
    raw_ids = tuple(as_values(ids, name, "ids"))
    if len(counts := Counter(raw_ids)) < len(raw_ids):
        repeated = counts.most_common(1)[0][0]
        raise ValueError(f"'{name}' needs to hold every id once (got {repeated!r} more than once)")
    if num_ids is not None and len(raw_ids) != num_ids:
        raise ValueError(f"'{name}' needs to hold {num_ids} ids (got {len(raw_ids)})")
    return raw_ids


def check_num_pairs(name: str, num_users: int, num_items: int) -> None:
    """Raises if there are more pairs of a user and an item than 64 bits can number."""
    if num_users * num_items >= 2**63:
        raise ValueError(
            f"'{name}' needs the number of users times that of items to be less than 2**63 (got "
            f"{num_users} users and {num_items} items)"
        )


def check_weight(weight: object, name: str, edges: Tensor, owner: str) -> Tensor:
    """Returns `weight` in double precision if it gives every edge one finite number.

    It needs to be on the device of the edges, which an error calls `owner`.
    """
    tensor = as_tensor(weight, name)
    check_shape(tensor, name, tuple(edges.shape[1:]), "a number for every edge")
    check_device(tensor, name, edges.device, owner)
    check_finite(tensor, name)
    check_double_precision(tensor.device, name)
    return tensor.double()


def check_finite(values: Tensor, name: str) -> float:
    """Returns the largest size of a value. Zero if there is none.

    Raises:
        ValueError: If values are no real numbers, NaN or infinite; the error says how many.
    """
    return check_all_finite([values], name)[0]


def check_all_finite(parts: Sequence[Tensor], name: str) -> list[float]:
    """Returns the largest size of a value of each part, see :func:`check_finite`."""
    if len({values.device for values in parts}) > 1:
        return [check_finite(values, name) for values in parts]
    ends: list[Tensor] = []
    for values in parts:
        # Torch can neither compare complex numbers nor compute with floating-point ones of 8 bits.
        if values.is_complex() or (values.is_floating_point() and values.element_size() < 2):
            raise ValueError(
                f"'{name}' needs to hold real numbers of 16 bits or more (got {values.dtype})"
            )
        # The extremes show what is not finite, and take no memory, unlike a mask of all values.
        ends += values.aminmax() if values.numel() else values.new_zeros(2)
    numbers = torch.stack(ends).tolist()  # all of them come to the host in one copy
    if not all(map(math.isfinite, numbers)):
        wrong = sum(int((~values.isfinite()).sum()) for values in parts)
        raise ValueError(f"'{name}' needs to hold finite numbers (got {wrong} NaN or infinite)")
    return [max(high, -low) for low, high in zip(numbers[::2], numbers[1::2], strict=True)]


def check_ranked_scores(scores: Tensor, name: str) -> None:
    """Raises if scores are neither finite nor `-inf`, which keeps an item out of a ranking."""
    if scores.numel() == 0 or float(scores.max()) < math.inf:  # which NaN is not
        return
    num_wrong = int((scores.isnan() | scores.isposinf()).sum())
    raise ValueError(
        f"'{name}' needs to hold finite numbers, or '-inf' for items that must not be retrieved "
        f"(got {num_wrong} NaN or 'inf')"
    )


def check_integer(
    value: object, name: str, what: str = "an integer", least: float = -math.inf
) -> int:
    """Returns `value` as an integer if it is one, of Python or any other library.

    Args:
        value (object): Anything.
        name (str): The name of the argument.
        what (str, optional): What it needs to be. (default: `"an integer"`)
        least (float, optional): The smallest number that is allowed. (default: `-inf`)
    """
    number = as_integer(value)
    if number is None or number < least:
        raise ValueError(f"'{name}' needs to be {what} (got {value!r})")
    # Numbers that large also overflow when they are added or multiplied in 64 bits.
    if abs(number) >= 2**53:
        raise ValueError(
            f"'{name}' needs to be less than 2**53, up to where double precision is exact (got an "
            f"integer of {number.bit_length()} bits)"
        )
    return number


def check_positive_integer(value: object, name: str) -> int:
    """Returns `value` as an integer if it is a positive one, of Python or any other library."""
    return check_integer(value, name, "a positive integer", least=1)


def check_natural_number(value: object, name: str) -> int:
    """Returns `value` as an integer if it is one that is not negative."""
    return check_integer(value, name, "a non-negative integer", least=0)


def check_scores(scores: object, name: str) -> Tensor:
    """Returns `scores` if it is a dense floating-point tensor of 16 to 64 bits."""
    tensor = as_tensor(scores, name)
    if tensor.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"'{name}' needs to hold floating-point numbers of 16 to 64 bits (got {tensor.dtype})"
        )
    return tensor


def check_shape(value: Tensor, name: str, shape: tuple[int, ...], what: str, tip: str = "") -> None:
    """Raises if `value`, which is called `what`, does not have a shape, and says what to write."""
    if (found := tuple(value.shape)) != shape:
        raise ValueError(
            f"'{name}' needs to hold {what} of shape {list(shape)} (got {list(found)}){tip}"
        )


def check_range(user: float, item: float, bias: float, dim: int) -> None:
    """Raises if scores of embeddings with biases may be too large for single precision.

    Args:
        user (float): The largest number of user embeddings.
        item (float): That of item embeddings.
        bias (float): That of item biases.
        dim (int): The dimension.
    """
    # A bias and the products it is added to share one scale. Otherwise, any size would do.
    largest = user * item * dim + bias
    if largest > torch.finfo(torch.float32).max:
        raise ValueError(
            f"'recommender' needs to have scores in the range of single precision (got embeddings "
            f"whose scores may reach {largest:.1e})"
        )


def check_boolean(value: object, name: str) -> bool:
    """Returns `value` if it is a boolean."""
    if not isinstance(value, bool):
        raise TypeError(f"'{name}' needs to be a boolean (got {value!r})")
    return value


def check_fraction(value: object, name: str) -> float:
    """Returns `value` as a number of Python if it lies between zero and one."""
    number = as_number(value)
    if number is None or not 0 < number < 1:
        raise ValueError(f"'{name}' needs to be a number between 0 and 1 (got {value!r})")
    return number


def check_finite_number(value: object, name: str) -> float:
    """Returns `value` as a number of Python if it is a finite real number."""
    number = as_number(value)
    # An integer may be too large for `math.isfinite`.
    if number is None or not abs(number) <= sys.float_info.max:
        raise ValueError(f"'{name}' needs to be a finite number (got {value!r})")
    return number


def check_number(value: object, name: str, or_else: str) -> float:
    """Returns `value` as a finite number of Python. The error also says what else is allowed.

    Raises:
        TypeError: If it is no real number.
        ValueError: If it is not finite.
    """
    if as_number(value) is None:
        raise TypeError(f"'{name}' needs to be a number or {or_else} (got {value!r})")
    return check_finite_number(value, name)


def check_choice(value: T, name: str, choices: Collection[str], or_else: str = "") -> T:
    """Returns `value` if it is one of some words. The error also names what else is allowed."""
    if not isinstance(value, str) or value not in choices:
        allowed = f"one of {list(choices)}{or_else and f' or {or_else}'}"
        raise ValueError(f"'{name}' needs to be {allowed} (got {value!r})")
    return value


def check_mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Returns `value` if it is a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"'{name}' needs to be a mapping (got {type(value).__name__})")
    return value


def check_level(level: object) -> float:
    """Returns `level` if it is a number between zero and one."""
    return check_fraction(level, "level")
