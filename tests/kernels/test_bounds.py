"""The bound on the error of a fast product holds."""

import pytest
import torch
from embeddings import KINDS

from pyg_recmetrics.kernels.bounds import ErrorBound
from pyg_recmetrics.kernels.scores import scaled_by_all, scaled_by_row


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("dtype", "rounding_of_sum"), [(torch.bfloat16, 8 * 2.0**-22), (torch.float32, 9 * 2.0**-24)]
)
def test_no_score_is_further_from_the_exact_one(kind, dtype, rounding_of_sum):
    generator = torch.Generator().manual_seed(0)
    user = scaled_by_row(KINDS[kind]((20, 8), generator))
    item = scaled_by_all(KINDS[kind]((50, 8), generator))
    fast = user.to(dtype).float() @ item.to(dtype).float().t()
    error = (fast.double() - user @ item.t()).abs()
    of_user = ErrorBound(user, user.to(dtype), rounding_of_sum)
    of_item = ErrorBound(item, item.to(dtype))
    assert (error <= of_user.of_any(of_item).unsqueeze(1)).all()
    row, column = torch.cartesian_prod(torch.arange(20), torch.arange(50)).t()
    of_pairs = of_user.of_pairs(row, of_item, column)
    assert (error[row, column] <= of_pairs).all()
    assert (of_pairs <= of_user.of_any(of_item)[row]).all()
