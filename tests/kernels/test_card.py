"""What is counted and found around scores, in torch and by the kernel of a card.

The kernel runs in Triton's interpreter, in a process of its own: `TRITON_INTERPRET=1` has to be set
before Triton is imported.
"""

import importlib.util
import os

import pytest
import torch

from pyg_recmetrics.kernels import card
from pyg_recmetrics.kernels.card import Ranked
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.ranks import count_around, find_around
from tests.support.machines.other_process import run_python

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.fixture(params=["torch", "kernel"])
def scratch(request, monkeypatch):
    if request.param == "kernel":
        if not (IS_INTERPRETED and HAS_TRITON):
            pytest.skip("needs Triton, and TRITON_INTERPRET=1")
        monkeypatch.setattr(card, "has_kernel", lambda device: True)
        monkeypatch.setattr(card, "_WIDTH", 64)
        monkeypatch.setattr(card, "_STEPS", 2)
    return Scratch(torch.device("cpu"))


def drawn_scores(generator, num_rows, num_columns, dtype):
    """Few different scores, zeros of both signs, and some that must not be retrieved."""
    scores = torch.randint(-9, 9, (num_rows, num_columns), generator=generator).to(dtype) / 8
    scores[torch.rand(scores.shape, generator=generator) < 0.1] = -0.0
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -torch.inf
    scores[:, -1] = 0.0
    return scores


def check(scores, row, column, error, scratch):
    """Compares with plain Python, in numbers that are not rounded."""
    own = scores[row, column]
    factor, norm = error or (scores.new_zeros(scores.size(0)), scores.new_zeros(scores.size(1)))
    margin = factor[row] * norm[column]
    ranked = Ranked(row, column, own - margin, own + margin)
    counts = count_around(scores, ranked, error, scratch)
    num = counts[1] - 1
    num[::3] = 0  # which do not matter
    found = find_around(scores, ranked, error, num, int(num.sum()), scratch)
    pairs, places = [], zip(row.tolist(), column.tolist(), strict=True)
    norms, factors = norm.tolist(), factor.tolist()
    for number, (r, c) in enumerate(places):
        margins = [factors[r] * size for size in norms]
        others = list(enumerate(zip(scores[r].tolist(), margins, strict=True)))
        low, high = ranked.low.tolist()[number], ranked.high.tolist()[number]
        above = [i for i, (score, margin) in others if score - margin > high]
        close = [i for i, (x, margin) in others if x + margin >= low and i not in set(above)]
        wanted = [len(above), len(close), sum(i < c for i in close)]
        assert counts[:, number].tolist() == wanted[: len(counts)]
        pairs += [(number, i) for i in close if i != c and number % 3]
    assert sorted(map(tuple, found.t().tolist())) == pairs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize(
    ("num_rows", "num_columns", "num_ranked"),
    [(1, 1, 1), (1, 300, 6), (3, 1, 2), (5, 64, 21), (7, 300, 40)],
)
def test_counts_are_those_of_plain_python(
    scratch, dtype, is_exact, num_rows, num_columns, num_ranked
):
    generator = torch.Generator().manual_seed(num_ranked)
    scores = drawn_scores(generator, num_rows, num_columns, dtype)
    row, column = (scores > -torch.inf).nonzero()[:num_ranked].t()
    steps = [torch.randint(4, (size,), generator=generator) for size in scores.shape]
    error = None if is_exact else tuple(step.to(dtype) / 16 for step in steps)
    check(scores, row, column, error, scratch)


def test_a_user_with_ten_thousand_relevant_items(scratch):
    scores = torch.arange(10_000.0).remainder(5000).view(1, -1)
    column = torch.arange(10_000)
    own = scores[0]
    ranked = Ranked(torch.zeros_like(column), column, own, own)
    if IS_INTERPRETED:  # takes seconds for each thousand
        ranked = Ranked(*(values[-5:] for values in ranked))
    above, equal, before = count_around(scores, ranked, None, scratch)
    column, own = ranked.column, ranked.low
    assert torch.equal(above, (2 * (4999 - own)).long())
    assert equal.tolist() == [2] * len(column)
    assert torch.equal(before, (column >= 5000).long())


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
@pytest.mark.parametrize(
    "call",
    [
        ["pytest", "-q", "-p", "no:cacheprovider", __file__],
        ["tests.support.tools.fuzz", "0", "200", "triton"],
    ],
    ids=["counts", "random rankings"],
)
def test_the_kernel_in_an_interpreter(call):
    ran = run_python("-m", *call, TRITON_INTERPRET="1")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
