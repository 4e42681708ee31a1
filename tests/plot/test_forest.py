"""Forest plots of means and of paired differences, of one data set and of several."""

import math

import pytest

pytest.importorskip("matplotlib")
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from pyg_recmetrics import Comparison, Runs, compare, evaluate, plot
from pyg_recmetrics.plot import COLORS
from pyg_recmetrics.results.notes import lift_in_words
from pyg_recmetrics.tables import format_p
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_benchmark import DETERMINISTIC
from tests.support.tools.small_pictures import assert_apart, assert_inside

METRICS = ["recall@3", "mean_rank", "coverage@3"]


@pytest.fixture(scope="module")
def results():
    task = random_task(150, 20, truth_share=0.15, seen_share=0.2)

    def run(skill, seed):
        return evaluate(random_scores(task, seed, skill), task, METRICS)

    runs = Runs([run(0.5, seed) for seed in range(3)])
    return {"Runs": runs, "Single": run(0.3, 5), "_odd $name": run(0.1, 6)}


@pytest.fixture(scope="module")
def comparisons(benchmark):
    options = {"metrics": "ndcg@3", "equivalence": "2%", "deterministic": DETERMINISTIC}
    return {data_set: compare(by_name, **options) for data_set, by_name in benchmark.items()}


def intervals_of(axes):
    return [x for x in axes.collections if isinstance(x, LineCollection)]


def rows(axes):
    """The interval, the ticks of runs, the dot and the words of each row, from the top.

    Strokes and numbers at a break come after them.
    """
    marks = iter(axes.lines[1:])
    for interval, text in zip(intervals_of(axes), axes.texts, strict=False):
        ends = [x for segment in interval.get_segments() for x, _ in segment]
        yield ends or [math.nan] * 2, list(next(marks).get_xdata()), next(marks), text.get_text()


def assert_means(axes, by_name, metric):
    for place, (name, (ends, runs, dot, _)) in enumerate(zip(by_name, rows(axes), strict=True)):
        mean = by_name[name].mean(metric, 0.9)
        assert ends == pytest.approx(mean[1:3], nan_ok=True)
        assert dot.get_xdata() == pytest.approx([mean.value])
        several = by_name[name].runs if isinstance(by_name[name], Runs) else ()
        assert runs == pytest.approx([run[metric] for run in several])
        assert same_color(dot.get_color(), COLORS[place])


def assert_differences(axes, comparison, differences):
    assert len(axes.patches) == len(intervals_of(axes))  # the zones
    for (ends, _, dot, words), row, zone in zip(rows(axes), differences, axes.patches, strict=True):
        assert [*ends, *dot.get_xdata()] == pytest.approx([row.low, row.high, row.difference])
        is_filled = not same_color(dot.get_markerfacecolor(), "white")
        assert is_filled == comparison.is_significant(row)
        p = f"p = {format_p(row.p_adjusted)}".replace("= <", "< ")
        assert words.split() == f"{lift_in_words(row)} {p} {comparison.star(row)}".split()
        bound = comparison.bound(row) or 0
        assert (zone.get_x(), zone.get_width()) == pytest.approx((-bound, 2 * bound))


def test_each_metric_has_axes_with_a_mean_of_each_recommender(results):
    figure, panels = plot.means(results, level=0.9)
    titles = ["recall@3, 146 users", "mean_rank (lower is better), 146 users"]
    assert [axes.get_title() for axes in panels] == [*titles, "coverage@3, 150 users"]
    title = figure.get_suptitle().replace("\n", " ")
    assert title.startswith("means, 90% confidence intervals, ticks are runs; Runs: 11 of 446 rel")
    for axes, metric in zip(panels, METRICS, strict=True):
        assert_means(axes, results, metric)
        names = [x.get_text() for x in axes.get_yticklabels()]
        assert names == ["Runs", "Single", r" _odd \$name"]


@pytest.mark.parametrize("equivalence", [None, 0.02, "5%"])
def test_each_difference_has_its_interval_and_what_is_too_small(results, equivalence):
    comparison = compare(results, equivalence=equivalence, metrics=METRICS[:2])
    figure, panels = plot.differences(comparison)
    for axes, metric in zip(panels, METRICS[:2], strict=True):
        assert_differences(axes, comparison, [row for row in comparison if row.metric == metric])
    assert ("grey" in figure.get_suptitle()) == (equivalence is not None)


def test_a_line_says_on_which_side_who_is_better(results):
    comparison = compare(results, METRICS[:2])
    _, (recall, rank) = plot.differences(comparison.select(name="Single"))
    assert recall.get_title() == "recall@3 of Single"
    names = [x.get_text() for x in recall.get_yticklabels()]
    assert names == ["minus Runs", r"minus _odd \$name"]
    assert recall.get_xlabel() == "right of zero: Single is better"
    assert rank.get_xlabel() == "left of zero: Single is better"
    _, (recall, rank) = plot.differences(comparison)
    assert recall.get_yticklabels()[0].get_text() == "Runs\nminus Single"
    sides = "right of zero: the first is better", "left of zero: the first is better"
    assert (recall.get_xlabel(), rank.get_xlabel()) == sides


@pytest.mark.parametrize(
    ("values", "beyond"),
    [
        ([0.01, 0.012, -0.015, 0.19, -0.9], [0.19, -0.9]),
        ([0.01, 0.029, -0.08, 0.22], []),  # no jump
        ([0.001, 0.1, 0.11, -0.09], []),  # a jump, but only one of four is before it
        ([0.0001, 0.01, 0.19, 0.012], [0.19]),
        ([0.01, -0.2], [-0.2]),
        ([0.0, 0.0, 0.3], []),
    ],
)
def test_what_is_drawn_is_where_it_is_or_is_a_number_beside_a_break(values, beyond, results):
    names = {f"r{number}": results["Single"] for number in range(len(values) + 1)}
    made = compare(names, "recall@3", baseline="r0")
    rows_of = [
        row._replace(difference=x, low=x - abs(x) / 99, high=x + abs(x) / 99)
        for row, x in zip(made, values, strict=True)
    ]
    found = Comparison(rows_of, made.protocol, names)
    figure, (axes,) = plot.differences(found)
    assert_differences(axes, found, found)
    left, right = axes.get_xlim()
    assert [row.difference for row in found if not left <= row.low <= row.high <= right] == beyond
    strokes = [x for x in axes.lines if x.get_transform() == axes.get_yaxis_transform()]
    at = {(x.get_xdata()[0], values[x.get_ydata()[0]]) for x in strokes}
    assert at == {(int(x > 0), x) for x in beyond}
    numbers = [(round(x.get_position()[0]), float(x.get_text())) for x in axes.texts[len(values) :]]
    assert numbers == [(int(x > 0), x) for x in beyond]
    figure.draw_without_rendering()
    assert_apart(figure)
    assert_inside(figure)
    for text in axes.texts[len(values) :]:
        row = axes.transData.transform((0, text.get_position()[1]))[1]
        assert not text.get_window_extent().y0 < row  # where the interval may go on


def test_each_data_set_has_axes(benchmark, comparisons):
    _, panels = plot.means(benchmark, "recall@3", level=0.9)
    titles = [axes.get_title().split(",")[0] for axes in panels]
    assert titles == [f"{data_set}: recall@3" for data_set in benchmark]
    for axes, by_name in zip(panels[:2], benchmark.values(), strict=False):
        assert_means(axes, by_name, "recall@3")
    assert [words for *_, words in rows(panels[2])] == ["", "-", ""]
    _, panels = plot.differences(comparisons)
    for axes, found in zip(panels[:2], comparisons.values(), strict=False):
        assert_differences(axes, found, found)
    assert [words for *_, words in rows(panels[2])][::2] == ["-", "-"]


@pytest.mark.parametrize("width", [4.6, 6.0, 11.5])  # those of a page, and of a new figure
def test_nothing_is_cut_and_no_text_lies_on_another(results, comparisons, width):
    long = {
        f"Matrix_factorisation_{place}_layers, all tuned": results["Single"] for place in range(9)
    }
    of_long = compare(long, METRICS[0], baseline=next(iter(long)))
    drawn = plot.means(long), plot.differences(comparisons), plot.differences(of_long)
    for figure, _ in drawn:
        figure.set_figwidth(width)
        figure.draw_without_rendering()
        assert_apart(figure)
        assert_inside(figure)


def test_a_figure_or_a_part_of_one_is_drawn_on(results):
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    assert plot.means(results, figure=left).figure is figure
    assert plot.differences(compare(results), figure=right).axes[0] in right.axes
