"""Quantiles of the t-distribution, against scipy and published tables."""

import pytest

from pyg_recmetrics.results.student import t_quantile

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_they_are_those_of_scipy(level):
    for freedom in [*range(1, 60), 100, 500, 999, 1000, 1001, 30_000, 10**8]:
        wanted = stats.t.ppf((1 + level) / 2, freedom)
        assert t_quantile(level, freedom) == pytest.approx(wanted, rel=1e-9)


def test_published_numbers():
    """The table of Fisher (1925)."""
    assert t_quantile(0.95, 1) == pytest.approx(12.706, abs=5e-4)
    assert t_quantile(0.95, 10) == pytest.approx(2.228, abs=5e-4)
    assert t_quantile(0.99, 30) == pytest.approx(2.750, abs=5e-4)
