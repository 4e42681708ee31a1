"""Checks of what comes in from outside. The code behind them trusts its arguments."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.typing import EdgeType


def check_tensor(value: object, name: str) -> Tensor:
    """Returns `value` if it is a dense tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"'{name}' needs to be a tensor (got {type(value).__name__})")
    kind = "nested" if value.is_nested else value.layout
    if kind != torch.strided:
        raise ValueError(f"'{name}' needs to be a dense tensor (got {kind})")
    return value


def check_integers(value: object, name: str) -> Tensor:
    """Returns `value` as 64-bit integers if it is an integer tensor."""
    tensor = check_tensor(value, name)
    if tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        raise ValueError(f"'{name}' needs to hold integers (got {tensor.dtype})")
    return tensor.long()


def check_device(value: Tensor, name: str, device: torch.device, owner: str) -> None:
    """Raises if `value` is on another device than its `owner`."""
    if value.device != device:
        raise ValueError(
            f"'{name}' needs to be on the device of '{owner}', {device} (got {value.device})"
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
    """Returns `edges` as 64-bit integers if it is an integer tensor of shape `[2, num_edges]`."""
    tensor = check_integers(edges, name)
    if tensor.dim() != 2 or tensor.size(0) != 2:
        raise ValueError(f"'{name}' needs to have shape [2, num_edges] (got {list(tensor.shape)})")
    return tensor


def check_bipartite(edges: object, name: str, num_users: int, num_items: int) -> Tensor:
    """Returns `edges` as 64-bit integers if they run from users to items."""
    tensor = check_edges(edges, name)
    check_num_pairs(name, num_users, num_items)
    check_ids(tensor[0], name, "user", num_users)
    check_ids(tensor[1], name, "item", num_items, num_users)
    return tensor


def check_num_pairs(name: str, num_users: int, num_items: int) -> None:
    """Raises if there are more pairs of a user and an item than 64 bits can number."""
    if num_users * num_items >= 2**63:
        raise ValueError(
            f"'{name}' needs the number of users times that of items to be less than 2**63 (got "
            f"{num_users} users and {num_items} items)"
        )


def check_weight(weight: object, name: str, edges: Tensor) -> Tensor:
    """Returns `weight` in double precision if it gives every edge one finite number."""
    tensor = check_tensor(weight, name)
    if tensor.shape != edges.shape[1:]:
        raise ValueError(
            f"'{name}' needs to have shape [{edges.size(1)}], a number for every edge "
            f"(got {list(tensor.shape)})"
        )
    check_finite(tensor, name)
    return tensor.detach().double()


def check_finite(values: Tensor, name: str) -> None:
    """Raises if values are no real numbers, NaN or infinite; the error says how many."""
    _check_real(values, name)
    # The extremes show both, and take no memory, unlike a mask of all values.
    if values.numel() == 0 or bool(torch.stack(values.aminmax()).isfinite().all()):
        return
    num_wrong = int((~values.isfinite()).sum())
    raise ValueError(f"'{name}' needs to hold finite numbers (got {num_wrong} NaN or infinite)")


def check_positive_integer(value: object, name: str) -> int:
    """Returns `value` if it is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"'{name}' needs to be a positive integer (got {value!r})")
    return _check_exact(value, name)


def check_scores(scores: object, name: str) -> Tensor:
    """Returns `scores` if it is a dense floating-point tensor of 16 to 64 bits."""
    tensor = check_tensor(scores, name)
    if tensor.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"'{name}' needs to hold floating-point numbers of 16 to 64 bits (got {tensor.dtype})"
        )
    return tensor


def check_shape(value: Tensor, name: str, shape: tuple[int, ...], what: str) -> None:
    """Raises if `value`, which is called `what`, does not have a shape."""
    if tuple(value.shape) != shape:
        raise ValueError(
            f"'{name}' needs to hold {what} of shape {list(shape)} (got {list(value.shape)})"
        )


def check_natural_number(value: object, name: str) -> int:
    """Returns `value` if it is an integer that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"'{name}' needs to be a non-negative integer (got {value!r})")
    return _check_exact(value, name)


def check_boolean(value: object, name: str) -> bool:
    """Returns `value` if it is a boolean."""
    if not isinstance(value, bool):
        raise TypeError(f"'{name}' needs to be a boolean (got {value!r})")
    return value


def check_fraction(value: object, name: str, *, or_zero: bool = False) -> float:
    """Returns `value` if it lies between zero and one. It may be zero only if `or_zero`."""
    number = check_finite_number(value, name)
    if not (0 < number < 1 or (or_zero and number == 0)):
        interval = "[0, 1)" if or_zero else "(0, 1)"
        raise ValueError(f"'{name}' needs to be in {interval} (got {value!r})")
    return number


def check_finite_number(value: object, name: str) -> float:
    """Returns `value` if it is a finite number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max  # an integer may be too large for `math.isfinite`
    ):
        raise ValueError(f"'{name}' needs to be a finite number (got {value!r})")
    return value


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
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ValueError(f"'level' needs to be a number between 0 and 1 (got {level!r})")
    return level


def check_fields(fields: object, names: Iterable[str], owner: str) -> dict[str, Any]:
    """Returns `fields` if it is a dictionary with all `names` as keys, and no others."""
    if not isinstance(fields, dict):
        raise TypeError(f"'{owner}' needs to be a dictionary (got {type(fields).__name__})")
    if set(fields) != (wanted := set(names)):
        raise ValueError(f"'{owner}' needs to hold {sorted(wanted)} (got {sorted(fields)})")
    return fields


def check_edge_type(edge_type: EdgeType, data: HeteroData) -> EdgeType:
    """Returns `edge_type` if `data` has it."""
    if not isinstance(edge_type, tuple) or edge_type not in data.edge_types:
        raise ValueError(f"'edge_type' needs to be one of {data.edge_types} (got {edge_type!r})")
    return edge_type


def _check_exact(value: int, name: str) -> int:
    # Numbers that large also overflow when they are added or multiplied in 64 bits.
    if value >= 2**53:
        raise ValueError(
            f"'{name}' needs to be less than 2**53, up to where double precision is exact (got an "
            f"integer of {value.bit_length()} bits)"
        )
    return value


def _check_real(values: Tensor, name: str) -> None:
    # Torch can neither compare complex numbers nor compute with floating-point ones of 8 bits.
    if values.is_complex() or (values.is_floating_point() and values.element_size() < 2):
        raise ValueError(
            f"'{name}' needs to hold real numbers of 16 bits or more (got {values.dtype})"
        )
