import pytest

pytest.importorskip("matplotlib")

from tests.support.tools import small_pictures


@pytest.fixture(scope="session")
def results():
    with pytest.warns(UserWarning, match="depending on the order of ties"):
        return small_pictures.three_results()


@pytest.fixture(scope="session")
def many():
    return small_pictures.many_results(12)
