"""Checks of what comes in from outside. The code behind them trusts its arguments."""

import functools
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_edges, as_integer, as_number, as_tensor, as_values, shape_of

P = ParamSpec("P")
R = TypeVar("R")


def misfit(function: Callable[..., object], *args: object, **kwargs: object) -> str | None:
    """Returns why a function cannot be called with some arguments; `None` if it can.

    Example:
        >>> misfit(lambda user: user, 1, 2)
        'too many positional arguments'
    """
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    except ValueError:  # some functions of C say nothing of their arguments
        return None
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
                name = function.__qualname__.removesuffix(".__init__")
                raise TypeError(
                    f"{name}() got other arguments than it takes ({wrong}); write {example}"
                ) from error

        return call

    return decorate


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
            f"'{name}' needs to be on the device of '{owner}', {device} (got {value.device})"
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
    low, high = (int(bound) for bound in ids.aminmax())
    if low < 0 or high >= num_ids:
        wrong = low if low < 0 else high
        is_shifted = 0 < num_users <= low and high < num_users + num_ids
        hint = f"; subtract 'num_users' ({num_users}) if the ids of users come first"
        raise ValueError(
            f"'{name}' needs to hold {what} ids in [0, {num_ids}) (got {wrong})"
            f"{hint if is_shifted else ''}"
        )


def check_edges(edges: object, name: str) -> Tensor:
    """Returns `edges` as 64-bit integers if they are integers of shape `[2, num_edges]`.

    Of a sparse matrix, these are the entries that are not zero.
    """
    return check_valued_edges(edges, name)[0]


def check_valued_edges(edges: object, name: str) -> tuple[Tensor, Tensor | None]:
    """Returns edges like :func:`check_edges`, and the value of each if they come as a matrix."""
    index, value = as_edges(edges, name)
    index = check_integers(index, name)
    if index.dim() != 2 or index.size(0) != 2:
        raise ValueError(f"'{name}' needs to have shape [2, num_edges] (got {list(index.shape)})")
    return index, value


def check_bipartite(edges: object, name: str, num_users: int, num_items: int) -> Tensor:
    """Returns `edges` as 64-bit integers if they run from users to items."""
    tensor = check_edges(edges, name)
    check_matrix(edges, name, num_users, num_items)
    check_pairs(tensor, name, num_users, num_items)
    return tensor


def check_pairs(edges: Tensor, name: str, num_users: int, num_items: int) -> None:
    """Raises if edges of 64-bit integers do not run from users to items."""
    check_num_pairs(name, num_users, num_items)
    check_ids(edges[0], name, "user", num_users)
    check_ids(edges[1], name, "item", num_items, num_users)


def check_matrix(edges: object, name: str, num_rows: int | None, num_columns: int | None) -> None:
    """Raises if edges come as a matrix of another shape. `None` stands for any number."""
    found, wanted = shape_of(edges), (num_rows, num_columns)
    sizes = zip(found or (), wanted, strict=False)
    if any(None not in pair and pair[0] != pair[1] for pair in sizes):
        shape = ", ".join("any" if size is None else str(size) for size in wanted)
        raise ValueError(
            f"'{name}' needs to be a matrix of shape [{shape}] (got {list(found or ())})"
        )


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


def check_weighted_edges(
    edges: object, weight: object, name: str, weight_name: str
) -> tuple[Tensor, Tensor | None]:
    """Returns edges like :func:`check_edges`, and their weights if they have any.

    The values of a matrix are weights, unless all of them are one.
    """
    index, value = check_valued_edges(edges, name)
    if weight is None:
        is_binary = value is None or bool((value == 1).all())
        return index, None if is_binary else value
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


def check_weight(weight: object, name: str, edges: Tensor) -> Tensor:
    """Returns `weight` in double precision if it gives every edge one finite number."""
    tensor = as_tensor(weight, name)
    check_shape(tensor, name, tuple(edges.shape[1:]), "a number for every edge")
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
    for values in parts:
        # Torch can neither compare complex numbers nor compute with floating-point ones of 8 bits.
        if values.is_complex() or (values.is_floating_point() and values.element_size() < 2):
            raise ValueError(
                f"'{name}' needs to hold real numbers of 16 bits or more (got {values.dtype})"
            )
    if len({values.device for values in parts}) > 1:
        return [check_finite(values, name) for values in parts]
    # The extremes show both, and take no memory, unlike a mask of all values. All of them come to
    # the host in one copy.
    ends = [end for values in parts if values.numel() for end in values.aminmax()]
    numbers = iter(torch.stack(ends).tolist() if ends else ())
    return [_check_ends(values, numbers, name) for values in parts]


def _check_ends(values: Tensor, ends: Iterator[float], name: str) -> float:
    low, high = (next(ends), next(ends)) if values.numel() else (0.0, 0.0)
    if math.isfinite(low) and math.isfinite(high):
        return max(-low, high)
    num_wrong = int((~values.isfinite()).sum())
    raise ValueError(f"'{name}' needs to hold finite numbers (got {num_wrong} NaN or infinite)")


def check_ranked_scores(scores: Tensor, name: str) -> None:
    """Raises if scores are neither finite nor `-inf`, which keeps an item out of a ranking."""
    if scores.numel() == 0 or not bool((highest := scores.max()).isnan() | highest.isposinf()):
        return
    num_wrong = int((scores.isnan() | scores.isposinf()).sum())
    raise ValueError(
        f"'{name}' needs to hold finite numbers, or '-inf' for items that must not be retrieved "
        f"(got {num_wrong} NaN or 'inf')"
    )


def check_integer(value: object, name: str) -> int:
    """Returns `value` as an integer if it is one, of Python or any other library."""
    return _check_integer(value, name, "an integer")


def check_positive_integer(value: object, name: str) -> int:
    """Returns `value` as an integer if it is a positive one, of Python or any other library."""
    return _check_integer(value, name, "a positive integer", least=1)


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


def check_natural_number(value: object, name: str) -> int:
    """Returns `value` as an integer if it is one that is not negative."""
    return _check_integer(value, name, "a non-negative integer", least=0)


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


def check_choice(value: object, name: str, choices: Sequence[str], or_else: str = "") -> str:
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


def _check_integer(value: object, name: str, what: str, least: float = -math.inf) -> int:
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
