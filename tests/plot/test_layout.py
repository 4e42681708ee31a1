"""Nothing runs together, and no legend covers a curve."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from pyg_recmetrics import plot
from tests.support.tools.small_pictures import PICTURES, assert_apart, assert_inside, points


def assert_not_covered(axes):
    legend = axes.get_legend().get_window_extent()
    drawn = points(axes)
    assert len(drawn) > 10
    inside = np.all((drawn > legend.min) & (drawn < legend.max), axis=1)
    # Curves are cut off where they leave the axes.
    inside &= np.all((drawn >= axes.bbox.min) & (drawn <= axes.bbox.max), axis=1)
    assert not inside.any()


@pytest.mark.parametrize("which", ["results", "many"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_new_figure_has_room_for_all(name, which, request):
    figure, axes = PICTURES[name](request.getfixturevalue(which))
    figure.draw_without_rendering()
    assert_apart(figure)
    assert_inside(figure)
    assert_not_covered(axes)
    assert axes.bbox.width > 2.4 * figure.dpi


@pytest.mark.parametrize("rows_and_columns", [(1, 3), (2, 2)])
def test_panels(results, rows_and_columns):
    figure = Figure(figsize=(13, 3.4 * rows_and_columns[0]), layout="constrained")
    panels = figure.subplots(*rows_and_columns).flat
    for panel, draw in zip(panels, PICTURES.values(), strict=False):
        draw(results, ax=panel)
    figure.draw_without_rendering()
    assert_apart(figure)
    for panel in panels:
        assert_not_covered(panel)


def test_without_a_layout_the_legend_stands_inside(results):
    figure = Figure()
    _, axes = plot.metric_at_k(results, ax=figure.subplots())
    figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert axes.bbox.contains(*legend.min)
    assert axes.bbox.contains(*legend.max)
