"""Groups of users beside those who have as many relevant items; the rest is in test_plot.py."""

import pytest

pytest.importorskip("matplotlib")

from pyg_recmetrics import plot


def test_groups_beyond_their_number_of_relevant_items(results):
    _, axes = plot.metric_by_degree(results, "recall@5", bins=4, same_degree=True)
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    for name, result in results.items():
        groups = result.by_degree(4, same_degree=True)
        assert drawn[name] == pytest.approx([of["recall@5"].value for of in groups.values()])
    title = axes.get_title().replace("\n", " ")
    assert "groups differ by the mean difference of users with as many" in title
