"""The bound on the error of a fast product holds."""

import math

import pytest
import torch

from pyg_recmetrics.kernels.exact.scores import scaled_by_row
from pyg_recmetrics.kernels.fast.bounds import ErrorBound, largest_norms
from tests.support.cases.embeddings import KINDS, scaled_by_all


def draw(kind):
    generator = torch.Generator().manual_seed(0)
    user, item = KINDS[kind]((20, 8), generator), KINDS[kind]((50, 8), generator)
    return scaled_by_row(user), scaled_by_all(item)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("dtype", "rounding_of_sum"), [(torch.bfloat16, 8 * 2.0**-22), (torch.float32, 9 * 2.0**-24)]
)
def test_no_score_is_further_from_the_exact_one(kind, dtype, rounding_of_sum):
    user, item = draw(kind)
    rounded = item.to(dtype)
    fast = user.to(dtype).float() @ rounded.float().t()
    error = (fast.double() - user @ item.t()).abs()
    bound = ErrorBound(user, user.to(dtype), rounding_of_sum).of(
        largest_norms(rounded.double()).max(), largest_norms(rounded.double() - item).max()
    )
    assert (error <= bound.unsqueeze(1)).all()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_norm_is_larger_than_its_bound_and_none_much_smaller(kind, dtype):
    rows = draw(kind)[1].to(dtype)
    for row, bound in zip(rows.tolist(), largest_norms(rows).tolist(), strict=True):
        norm = math.hypot(*row)
        assert norm <= bound <= norm * (1 + 1e-5) + 2.0**-53
