"""What every kernel fulfils: whatever is ranked, it finds what the oracle finds."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import LightGCN

from pyg_recmetrics import PairScorer
from tests.support.tools import fuzz
from tests.support.tools.fuzz_cases import Draw, draw_ranking


def algorithms_for(case):
    """The algorithms that can rank a case: each is another way through the kernels."""
    yield "dense"
    if case.task.own is not None or isinstance(case.recommender, PairScorer):
        return
    if case.depth < case.task.num_items:
        yield "search"
    has_embeddings = isinstance(case.recommender, tuple | list | LightGCN)
    if has_embeddings and (case.width is None or "full" in case.options):
        yield "count"


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_kernel_finds_the_ranks_of_the_oracle(seed):
    draw = Draw(seed)
    case = draw_ranking(draw)
    if case.error is not None or case.scores is None:
        return
    compute = case.compute
    for algorithm in algorithms_for(case):
        case.compute = partial(compute, algorithm=algorithm)
        fuzz.check_case(case, draw)
