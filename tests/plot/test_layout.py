"""Nothing runs together, and no legend covers a curve, at any size."""

import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from pyg_recmetrics import plot
from tests.support.tools.small_pictures import PICTURES, points, texts

SIZES = [(2, 2), (3, 2), (6, 4)]


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
    assert len(drawn) > 500
    inside = np.all((drawn > legend.min) & (drawn < legend.max), axis=1)
    # Curves are cut off where they leave the axes.
    inside &= np.all((drawn >= axes.bbox.min) & (drawn <= axes.bbox.max), axis=1)
    assert not inside.any()


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("which", ["results", "many"])
@pytest.mark.parametrize("name", PICTURES)
def test_texts_stay_apart_and_curves_are_not_covered(name, which, size, layout, request):
    figure = Figure(figsize=size, layout=layout)
    axes = figure.subplots()
    PICTURES[name](request.getfixturevalue(which), ax=axes)
    assert_apart(figure)
    assert_not_covered(axes)


@pytest.mark.parametrize("which", ["results", "many"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_new_figure_has_room_for_all(name, which, request):
    figure, axes = PICTURES[name](request.getfixturevalue(which))
    assert_apart(figure)
    assert_not_covered(axes)
    for text, box in texts(figure).items():
        assert figure.bbox.padded(1).contains(*box.min), text.get_text()
        assert figure.bbox.padded(1).contains(*box.max), text.get_text()
    assert axes.bbox.width > 3 * figure.dpi


@pytest.mark.parametrize("rows_and_columns", [(1, 3), (2, 2)])
def test_panels(results, rows_and_columns):
    figure = Figure(figsize=(12, 3.4 * rows_and_columns[0]), layout="constrained")
    panels = figure.subplots(*rows_and_columns).flat
    for panel, draw in zip(panels, PICTURES.values(), strict=False):
        draw(results, ax=panel)
    assert_apart(figure)
    for panel in panels:
        assert_not_covered(panel)


def test_a_title_and_a_second_picture_on_the_same_axes_make_room(results):
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    plot.metric_at_k(results["Good"], "recall", ax=axes)
    plot.metric_at_k(results["Fair"], "recall", level=0.9, ax=axes)
    axes.set_title("A title that is as long as the axes of the figure, or almost as long")
    assert_apart(figure)
    notes = [text.get_text() for text in texts(figure) if "users" in text.get_text()]
    assert notes == ["mean over 53 users, 90% confidence band"]


def test_curves_in_all_corners_go_below_the_legend(results):
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1, 10, 11, 11, 0], [0, 1, 1, 0, 1, 0], label="mine")
    plot.metric_at_k(results, ax=axes)
    assert len(axes.get_legend().get_texts()) == 4
    figure.draw_without_rendering()
    assert axes.bbox.contains(*axes.get_legend().get_window_extent().min)
    assert_not_covered(axes)


def test_labels_are_left_out_only_where_they_would_touch(results):
    wide, narrow = Figure(figsize=(8, 3)), Figure(figsize=(2, 3))
    labels = {}
    for figure in (wide, narrow):
        axes = figure.subplots()
        plot.metric_by_degree(results, "recall@5", bins=4, ax=axes)
        figure.draw_without_rendering()
        labels[figure] = [label.get_text() for label in axes.get_xticklabels()]
    expected = [
        f"{group}\nn = {means['recall@5'].num_users}"
        for group, means in results["Good"].by_degree(4).items()
    ]
    assert labels[wide] == expected
    assert labels[narrow] == [expected[0], "", expected[2], ""]


def test_a_zoom_shows_the_labels_again(results):
    figure = Figure(figsize=(2, 3))
    axes = figure.subplots()
    plot.metric_by_degree(results, "recall@5", bins=4, ax=axes)
    axes.set_xlim(0.5, 1.5)
    figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels() if label.get_text()]
    assert len(shown) == 1
    assert shown[0].startswith("5\n")
