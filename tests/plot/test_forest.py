"""Forest plots of means and of paired differences, of one data set and of several."""

import math

import pytest

pytest.importorskip("matplotlib")
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from pyg_recmetrics import Runs, compare, evaluate, plot
from pyg_recmetrics.plot.style import COLORS
from pyg_recmetrics.results.notes import lift_in_words
from pyg_recmetrics.results.result import mean_of
from pyg_recmetrics.tables import format_p
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_benchmark import DETERMINISTIC, small_benchmark
from tests.support.tools.small_pictures import assert_apart, assert_inside

METRICS = ["recall@3", "mean_rank", "coverage@3"]


@pytest.fixture(scope="module")
def results():
    task = random_task(150, 20, truth_share=0.15, seen_share=0.2)

    def run(skill, seed):
        scores = random_scores(task, seed)
        scores[tuple(task.truth)] += skill
        return evaluate(scores, task, METRICS)

    runs = Runs([run(0.5, seed) for seed in range(3)])
    return {"Runs": runs, "Single": run(0.3, 5), "_odd $name": run(0.1, 6)}


@pytest.fixture(scope="module")
def benchmark():
    return small_benchmark()


@pytest.fixture(scope="module")
def comparisons(benchmark):
    options = {"metrics": "ndcg@3", "equivalence": "2%", "deterministic": DETERMINISTIC}
    return {data_set: compare(by_name, **options) for data_set, by_name in benchmark.items()}


def rows(axes):
    """The interval, the ticks of runs, the dot and the words of each row, from the top."""
    intervals = [x for x in axes.collections if isinstance(x, LineCollection)]
    marks = iter(axes.lines[1:])
    for interval, text in zip(intervals, axes.texts, strict=True):
        ends = [x for segment in interval.get_segments() for x, _ in segment]
        yield ends or [math.nan] * 2, list(next(marks).get_xdata()), next(marks), text.get_text()


def assert_means(axes, by_name, metric):
    for place, (name, (ends, runs, dot, _)) in enumerate(zip(by_name, rows(axes), strict=True)):
        mean = mean_of(by_name[name], metric, 0.9)
        assert ends == pytest.approx(mean[1:3], nan_ok=True)
        assert dot.get_xdata() == pytest.approx([mean.value])
        several = by_name[name].runs if isinstance(by_name[name], Runs) else ()
        assert runs == pytest.approx([run[metric] for run in several])
        assert same_color(dot.get_color(), COLORS[place])


def assert_differences(axes, comparison, differences):
    assert len(axes.patches) == len(axes.texts)  # the zones
    limit = 3 * min(max(-row.low, row.high) for row in differences)
    for (ends, _, dot, words), row, zone in zip(rows(axes), differences, axes.patches, strict=True):
        is_far = max(-row.low, row.high) > limit  # an arrow at the edge, beside its number
        edge = math.copysign(limit, row.difference)
        wanted = (math.nan, math.nan, edge) if is_far else (row.low, row.high, row.difference)
        assert [*ends, *dot.get_xdata()] == pytest.approx(wanted, nan_ok=True)
        is_filled = not same_color(dot.get_markerfacecolor(), "white")
        assert is_filled == comparison.is_significant(row)
        p = f"p = {format_p(row.p_adjusted)}".replace("= <", "< ")
        number = f"{row.difference:+.4g} " if is_far else ""
        assert words.split() == f"{number}{lift_in_words(row)} {p} {comparison.star(row)}".split()
        bound = comparison.bound(row) or 0
        assert (zone.get_x(), zone.get_width()) == pytest.approx((-bound, 2 * bound))


def test_each_metric_has_axes_with_a_mean_of_each_recommender(results):
    figure, panels = plot.means(results, level=0.9)
    titles = ["recall@3, 146 users", "mean_rank (lower is better), 146 users"]
    assert [axes.get_title() for axes in panels] == [*titles, "coverage@3, 150 users"]
    assert figure.get_suptitle() == "means, 90% confidence intervals, ticks are runs"
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


def test_nothing_is_cut_and_no_text_lies_on_another(results, comparisons):
    long = {f"Matrix factorisation, {place} layers": results["Single"] for place in range(9)}
    for figure, _ in (plot.means(long), plot.differences(comparisons)):
        figure.draw_without_rendering()
        assert_apart(figure)
        assert_inside(figure)


def test_a_figure_or_a_part_of_one_is_drawn_on(results):
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    assert plot.means(results, figure=left).figure is figure
    assert plot.differences(compare(results), figure=right).axes[0] in right.axes
