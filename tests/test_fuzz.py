"""Random rankings against the oracle."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from tests.support.references import oracle
from tests.support.tools import fuzz

#: Cases that reach every line of the package which any case from 5000 to 5149 reaches.
REACHING_ALL_LINES = [
    *(5003, 5022, 5023, 5024, 5025, 5032, 5041, 5048, 5059, 5064, 5072, 5076, 5077, 5083, 5093),
    *(5099, 5109, 5129, 5130, 5142, 5148),
]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 200))
def test_two_thousand_cases_are_as_the_oracle_says(first):
    failures = [failure for failure in map(failure_of, range(first, first + 200)) if failure]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(
    "seeds",
    [REACHING_ALL_LINES, pytest.param(range(5000, 5150), marks=pytest.mark.slow)],
    ids=["reaching all lines", "all"],
)
def test_cases_on_any_device_are_as_the_oracle_says(seeds, device):
    failures = [failure_of(seed, device) for seed in seeds]
    assert not any(failures), "\n".join(filter(None, failures))


def failure_of(seed, device="cpu"):
    """What is wrong with the case of a seed, or `None`."""
    try:
        fuzz.run(seed, device)
    except fuzz.FuzzError as error:
        return str(error)


@given(
    number=st.floats(
        width=64, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126
    )
    | st.integers(-(2**60), 2**60).map(lambda whole: math.ldexp(whole, -200))
    | st.integers(-(2**25), 2**25).map(lambda whole: math.ldexp(whole, -60))
)
def test_the_oracle_rounds_as_processors_do(number):
    whole, below = number.as_integer_ratio()
    rounded = oracle.rounded_to_single(whole, 1 - below.bit_length())
    assert rounded == torch.tensor(number, dtype=torch.double).float().item()
