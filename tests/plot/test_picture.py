"""A picture is shown once, and styles stay apart."""

import itertools

import matplotlib
import pytest
from matplotlib.figure import Figure

from pyg_recmetrics import plot
from pyg_recmetrics.plot import style_of

#: So many recommenders differ in colours, dashes and markers.
NUM_STYLES = 40


def test_pyplot_shows_its_own_figures(results):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    matplotlib.use("Agg")
    figure, axes = pyplot.subplots()
    picture = plot.metric_at_k(results, "recall", ax=axes)
    assert picture._repr_png_() is None
    pyplot.close(figure)
    assert picture._repr_png_() is not None


def test_axes_without_a_figure_are_refused(results):
    axes = Figure().subplots()
    axes.remove()
    with pytest.raises(TypeError, match="'ax' needs to be axes of a figure"):
        plot.metric_at_k(results, "recall", ax=axes)


def styles():
    return [style_of(index) for index in range(NUM_STYLES)]


def test_no_two_styles_are_equal():
    for one, other in itertools.combinations(styles(), 2):
        for second in ("linestyle", "marker"):  # some pictures have lines only, others points
            assert (one["color"], one[second]) != (other["color"], other[second])


def test_neighbours_differ_in_everything():
    for one, other in itertools.pairwise(styles()):
        assert all(one[part] != other[part] for part in ("color", "linestyle", "marker"))
