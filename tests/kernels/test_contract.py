"""What every kernel fulfils: whatever is ranked, it finds what the oracle finds."""

from dataclasses import replace

from hypothesis import given, settings, strategies as st

from tests.support.tools import fuzz
from tests.support.tools.fuzz_cases import draw_case


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_kernel_finds_the_ranks_of_the_oracle(seed):
    case = draw_case(seed)
    own = case.options["algorithm"]
    for algorithm in {own, *case.algorithms} if case.error is None else [own]:
        fuzz.check_case(replace(case, options=case.options | {"algorithm": algorithm}))
