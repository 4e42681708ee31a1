"""Sums that depend on no order, compared with exact fractions."""

import math
from fractions import Fraction

import pytest
import torch

from pyg_recmetrics.sums import exact_mean, exact_sum

#: Values of users as metrics have them, and such as no metric has.
KINDS = {
    "shares": lambda generator: torch.rand(1000, generator=generator, dtype=torch.float64),
    "ranks": lambda generator: torch.randint(1, 10**9, (500,), generator=generator).double(),
    "both signs": lambda generator: torch.randn(700, generator=generator, dtype=torch.float64),
    "far apart": lambda generator: (
        torch.randn(300, generator=generator, dtype=torch.float64)
        * torch.randint(-300, 300, (300,), generator=generator).double().exp2().pow(3)
    ),
    "denormal": lambda generator: torch.rand(40, generator=generator).double() * 2.0**-1060,
    "single": lambda generator: torch.rand(200, generator=generator),
    "none": lambda generator: torch.empty(0),
}


def fraction_of(values):
    return sum(map(Fraction, values.double().tolist()), Fraction(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_is_rounded_once(kind, seed):
    values = KINDS[kind](torch.Generator().manual_seed(seed))
    total = fraction_of(values)
    assert exact_sum(values) == float(total)
    if values.numel():
        assert exact_mean(values) == float(total) / values.numel()


def test_a_mean_leaves_out_who_does_not_count():
    assert exact_mean(torch.tensor([0.5, torch.nan, 1.0])) == 0.75
    assert math.isnan(exact_mean(torch.tensor([torch.nan])))
    assert math.isnan(exact_mean(torch.tensor([])))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([torch.inf, 1.0], torch.inf),
        ([-torch.inf, 1.0], -torch.inf),
        ([torch.inf, -torch.inf], torch.nan),
        ([torch.nan, torch.inf], torch.nan),
        ([1e308, 1e308], torch.inf),
        ([-1e308, -1e308], -torch.inf),
        ([1e308, 1e308, -1e308], 1e308),
    ],
)
def test_what_is_not_finite_stays_so(values, wanted):
    total = exact_sum(torch.tensor(values, dtype=torch.float64))
    assert total == wanted or math.isnan(wanted) == math.isnan(total) is True


def test_on_any_device(device):
    values = torch.rand(50, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    assert exact_sum(values.to(device)) == exact_sum(values)
