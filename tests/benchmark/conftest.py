import pytest

from tests.support.cases.small_benchmark import small_benchmark


@pytest.fixture(scope="session")
def benchmark():
    return small_benchmark()
