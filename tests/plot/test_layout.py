"""Nothing runs together, and no legend covers a curve."""

import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from pyg_recmetrics import plot
from tests.support.tools.small_pictures import PICTURES, points, texts


def assert_apart(figure):
    figure.draw_without_rendering()
    found = texts(figure)
    assert len(found) > 4
    for (one, box), (other, other_box) in itertools.combinations(found.items(), 2):
        shared = matplotlib.transforms.Bbox.intersection(box, other_box)
        assert shared is None or min(shared.width, shared.height) < 0.5, (
            one.get_text(),
            other.get_text(),
        )


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
    assert_apart(figure)
    assert_not_covered(axes)
    for text, box in texts(figure).items():
        assert figure.bbox.padded(1).contains(*box.min), text.get_text()
        assert figure.bbox.padded(1).contains(*box.max), text.get_text()
    assert axes.bbox.width > 2.4 * figure.dpi


@pytest.mark.parametrize("rows_and_columns", [(1, 3), (2, 2)])
def test_panels(results, rows_and_columns):
    figure = Figure(figsize=(13, 3.4 * rows_and_columns[0]), layout="constrained")
    panels = figure.subplots(*rows_and_columns).flat
    for panel, draw in zip(panels, PICTURES.values(), strict=False):
        draw(results, ax=panel)
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


def test_a_title_and_a_second_picture_on_the_same_axes_make_room(results):
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    plot.metric_at_k(results["Good"], "recall", ax=axes)
    plot.metric_at_k(results["Fair"], "recall", level=0.9, ax=axes)
    axes.set_title("A title that is as long as the axes of the figure, or almost as long")
    assert_apart(figure)
    notes = [text.get_text() for text in texts(figure) if "users" in text.get_text()]
    assert notes == ["mean over 53 users, 90% confidence band"]
