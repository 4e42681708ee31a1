"""Amounts: how many edges a fraction or an absolute number stands for."""

from typing import TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_integer, as_number

#: A float is a fraction of all, and an integer an absolute number.
Amount: TypeAlias = int | float


def check_amounts(num_val: object, num_test: object) -> tuple[Amount, Amount]:
    """Returns both amounts if they leave something to train with."""
    val, test = _check_amount(num_val, "num_val", or_zero=True), _check_amount(num_test, "num_test")
    if isinstance(val, float) and isinstance(test, float) and val + test >= 1:
        raise ValueError(
            f"'num_val' and 'num_test' need to sum to less than one (got {val} and {test})"
        )
    return val, test


def _check_amount(value: object, name: str, *, or_zero: bool = False) -> Amount:
    number = as_integer(value)
    amount = as_number(value) if number is None else number
    if amount is not None:
        is_positive = amount > 0 or (or_zero and amount == 0)
        if is_positive and (isinstance(amount, int) or amount < 1):
            return amount
    integer, interval = ("non-negative", "[0, 1)") if or_zero else ("positive", "(0, 1)")
    raise ValueError(
        f"'{name}' needs to be a {integer} integer or a fraction in {interval} (got {value!r})"
    )


def resolve(amount: Amount, total: Tensor) -> Tensor:
    """Returns the number that an amount of each `total` is, where halves are rounded up."""
    if isinstance(amount, int):
        return torch.full_like(total, amount)
    product = total.cpu().double() * amount  # not all devices have double precision
    return (product.trunc() + (product.frac() >= 0.5)).long().to(total.device)


def count_held_out(num_items: Tensor, num_val: Amount, num_test: Amount) -> tuple[Tensor, Tensor]:
    """Returns how many of each user's items validate, and how many test.

    If an amount is a positive integer, each user keeps at least one item to train with. A user
    with too few items has test items rather than validation items.

    Args:
        num_items (torch.Tensor): The number of items of each user, of shape `[num_users]`.
        num_val (int or float): The amount to validate with.
        num_test (int or float): The amount to test with.
    """
    keeps_an_item = any(isinstance(amount, int) and amount > 0 for amount in (num_val, num_test))
    available = (num_items - 1).clamp(min=0) if keeps_an_item else num_items
    num_tested = resolve(num_test, num_items).minimum(available)
    num_validated = resolve(num_val, num_items).minimum(available - num_tested)
    return num_validated, num_tested
