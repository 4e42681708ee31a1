"""Random worlds through every door: the same numbers."""

import pytest

from tests.support.tools import doors


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("door", doors.DOORS)
def test_every_door_leads_to_the_same_numbers(door, tmp_path):
    assert sum(doors.check(seed, tmp_path, door) for seed in range(40)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 1000))
def test_thousands_of_worlds(first, tmp_path):
    for seed in range(first, first + 1000):
        doors.check(seed, tmp_path)
