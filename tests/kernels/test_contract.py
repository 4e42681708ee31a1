"""What every kernel fulfils: whatever is ranked, it finds what the oracle finds."""

from dataclasses import replace

from hypothesis import given, strategies as st

from tests.support.tools import fuzz
from tests.support.tools.fuzz_cases import draw_case


def algorithms_for(case):
    """The algorithms that can rank a case: each is another way through the kernels."""
    yield from ("auto", "dense")
    if case.task.own is not None:
        return
    if case.given.can_be_searched and case.depth < case.task.num_items:
        yield "search"
    if case.given.can_be_counted and (case.width is None or "full" in case.options):
        yield "count"


@given(seed=st.integers(0, 2**32 - 1))
def test_every_kernel_finds_the_ranks_of_the_oracle(seed):
    case = draw_case(seed)
    only = [case.options["algorithm"]]
    for algorithm in algorithms_for(case) if case.error is None else only:
        fuzz.check_case(replace(case, options=case.options | {"algorithm": algorithm}))
