"""Labels of users or items, such as the group of each, in any form in which people hold them."""

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_values


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
