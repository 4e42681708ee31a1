"""A notebook shows each picture once, by a real kernel; and styles stay apart."""

import itertools

import matplotlib
import nbformat
import pytest
from matplotlib.figure import Figure

from pyg_recmetrics import plot
from pyg_recmetrics.plot import style_of
from tests.support.tools import notebooks

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

#: So many recommenders differ in colours, dashes and markers.
NUM_STYLES = 40

SETUP = """
import torch
from pyg_recmetrics import RankingTask, evaluate, plot
task = RankingTask(torch.tensor([[0, 1, 1], [2, 0, 1]]), num_users=2, num_items=3)
result = evaluate(torch.tensor([[0.1, 0.3, 0.2], [0.3, 0.1, 0.2]]), task, "recall@3")
"""

#: The code of a cell, and how many images it shows.
CELLS = {
    "last expression": ('plot.metric_at_k(result, "recall")', 1),
    "unpacked": ('figure, axes = plot.metric_at_k(result, "recall")', 0),
    "assigned": ('picture = plot.metric_at_k(result, "recall")', 0),
    "what was assigned": ("picture", 1),
    "displayed": ('display(plot.metric_at_k(result, "recall"))\nprint("more")', 1),
    "own axes": (
        "import matplotlib.pyplot as plt\n"
        "own, panels = plt.subplots(1, 2)\n"
        'plot.metric_at_k(result, "recall", ax=panels[0])\n'
        "plot.precision_recall_curve(result, ax=panels[1])",
        1,
    ),
    "own axes of an earlier cell": ('plot.metric_at_k(result, "recall", ax=panels[1])', 1),
}


def images(cell):
    return [output for output in cell.outputs if "image/png" in output.get("data", {})]


#: How a kernel may show figures: as it is, and after what many notebooks start with.
KERNELS = {"fresh": SETUP, "inline": "%matplotlib inline"}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The cells after a kernel ran all of them, by the state of the kernel and their subject."""
    codes = {
        (kernel, about): code
        for kernel, start in KERNELS.items()
        for about, code in (
            ("start", start),
            *((about, code) for about, (code, _) in CELLS.items()),
        )
    }
    cells = [nbformat.v4.new_code_cell(code) for code in codes.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebooks.execute(notebook, tmp_path_factory.mktemp("notebook"))
    return dict(zip(codes, notebook.cells, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("about", CELLS)
def test_a_cell_shows_the_picture_as_often_as_expected(about, kernel, executed):
    _, expected = CELLS[about]
    assert len(images(executed[kernel, about])) == expected


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
