"""Forest plots of means and of paired differences."""

import math
from itertools import pairwise

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from pyg_recmetrics import Runs, compare, evaluate, plot
from pyg_recmetrics.plot.picture import description_of
from pyg_recmetrics.plot.style import COLORS
from tests.support.cases.random_tasks import random_scores, random_task

METRICS = ["recall@3", "ndcg@3", "coverage@3"]


@pytest.fixture(scope="module")
def task():
    return random_task(150, 20, truth_share=0.15, seen_share=0.2)


@pytest.fixture(scope="module")
def results(task):
    def run(skill, seed):
        scores = random_scores(task, seed)
        scores[tuple(task.truth)] += skill
        return evaluate(scores, task, METRICS)

    runs = Runs([run(0.5, seed) for seed in range(3)])
    return {"Runs": runs, "Single": run(0.3, 5), "_odd $name": run(0.1, 6)}


def marks(axes):
    """What is drawn of each recommender or pair in each metric."""
    found = {}
    for line in axes.lines:
        if description := description_of(line):
            key = description.recommenders, description.metrics
            found.setdefault(key, []).append(line)
    return found


class TestMeans:
    def test_each_mean_has_its_interval_and_its_runs(self, results):
        _, axes = plot.means(results, level=0.9)
        assert [label.get_text() for label in axes.get_yticklabels()] == METRICS[:2]
        found = marks(axes)
        assert len(found) == 6
        for ((name,), (metric,)), (interval, dot, *ticks) in found.items():
            result = results[name]
            if name == "Runs":
                value, low, high, *_ = result.mean(metric, 0.9)
                assert [tick.get_xdata()[0] for tick in ticks] == pytest.approx(
                    [run[metric] for run in result]
                )
            else:
                value = result[metric]
                low, high = result.confidence_interval(metric, 0.9)
                assert not ticks
            assert interval.get_xdata() == pytest.approx([low, high])
            assert dot.get_xdata() == pytest.approx([value])
            assert interval.get_ydata()[0] == interval.get_ydata()[1] == dot.get_ydata()[0]
            row = METRICS.index(metric)
            assert abs(dot.get_ydata()[0] - row) < 0.5
            color = COLORS[list(results).index(name)]
            assert same_color(dot.get_color(), color)
            assert same_color(interval.get_color(), color)
            assert f"{name}, {metric}: {value:.4f} ± " in description_of(dot).text

    def test_rows_do_not_lie_on_each_other(self, results):
        _, axes = plot.means(results)
        rows = [dot.get_ydata()[0] for _, (_, dot, *_) in marks(axes).items()]
        assert len({round(row, 6) for row in rows}) == 6

    def test_a_single_result_has_no_legend(self, results):
        _, axes = plot.means(results["Single"], "ndcg@3")
        assert axes.get_legend() is None
        _, axes = plot.means(results)
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names == ["Runs", "Single", r" _odd \$name"]

    def test_the_figure_grows_with_its_rows_and_holds_the_legend(self, results):
        few, many = (
            plot.means(results, "ndcg@3"),
            plot.means(results, [f"ndcg@{k}" for k in range(1, 4)]),
        )
        assert many.figure.get_figheight() > few.figure.get_figheight()
        for figure, axes in (few, many):
            FigureCanvasAgg(figure).draw()
            box = axes.get_legend().get_window_extent()
            assert box.y0 >= -1
            assert box.y1 < axes.bbox.y0 - axes.xaxis.label.get_window_extent().height

    def test_given_axes_are_drawn_on(self, results):
        axes = Figure(layout="constrained").subplots()
        assert plot.means(results, ax=axes).axes is axes

    def test_what_is_wrong_is_named(self, results):
        with pytest.raises(ValueError, match=r"value for every user \(got 'coverage@3'"):
            plot.means(results, "coverage@3")
        with pytest.raises(ValueError, match="'level' needs to be"):
            plot.means(results, level=2)
        with pytest.raises(TypeError, match="'results' needs to be"):
            plot.means(3)


class TestDifferences:
    def test_each_difference_has_its_interval(self, results):
        comparison = compare(results, equivalence=0.02)
        _, axes = plot.differences(comparison)
        found = marks(axes)
        for row in comparison.select(METRICS[:2]):
            interval, dot = found[(row.a, row.b), (row.metric,)]
            assert interval.get_xdata() == pytest.approx([row.low, row.high])
            assert dot.get_xdata() == pytest.approx([row.difference])
            is_filled = not same_color(dot.get_markerfacecolor(), "white")
            assert is_filled == comparison.is_significant(row)
            assert f"{row.lift:+.1f}%" in description_of(dot).text
        filled = {comparison.is_significant(row) for row in comparison if not math.isnan(row.low)}
        assert filled == {True, False}
        assert len(found) == 6
        rows = [row for row in comparison if not math.isnan(row.low)]
        for row, text in zip(rows, axes.texts, strict=True):
            lift, p, relation, number, *star = text.get_text().split()
            assert (lift, p) == (f"{row.lift:+.1f}%", "p")
            wanted = ("<", "0.0001") if row.p_adjusted < 1e-4 else ("=", f"{row.p_adjusted:.4f}")
            assert (relation, number) == wanted
            assert "".join(star) == comparison.star(row)

    def test_the_zone_is_what_is_too_small_to_matter(self, results):
        pair = {name: results[name] for name in ("Runs", "Single")}
        for equivalence in (0.02, "5%"):
            comparison = compare(pair, metrics="ndcg@3", equivalence=equivalence)
            _, axes = plot.differences(comparison)
            (bar,) = axes.patches
            bound = 0.02 if equivalence == 0.02 else 0.05 * comparison[0].mean_b
            assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((-bound, bound))
        _, axes = plot.differences(compare(pair))
        assert not axes.patches
        assert axes.get_xlabel() == "Runs - Single"
        assert axes.get_legend() is None

    def test_the_note_says_which_intervals_are_simultaneous(self, results):
        for options, said in (
            ({}, "paired differences, 90% confidence intervals"),
            ({"simultaneous": True}, "paired differences, simultaneous 90% confidence intervals"),
        ):
            comparison = compare(results, level=0.9, **options)
            _, axes = plot.differences(comparison)
            (above,) = axes.child_axes
            assert " ".join(above.get_xlabel().split()) == said
        one = compare(dict(list(results.items())[:2]), metrics="ndcg@3", simultaneous=True)
        assert "simultaneous" not in plot.differences(one).axes.child_axes[0].get_xlabel()

    @pytest.mark.parametrize("layout", [None, "constrained", "tight"])
    @pytest.mark.parametrize("size", [(4, 3), (6, 4), (9, 9)], ids=str)
    def test_six_pairs_on_given_axes_are_neither_cut_off_nor_on_each_other(
        self, results, size, layout
    ):
        comparison = compare({**results, "Fourth": results["Single"]})
        figure = Figure(figsize=size, layout=layout)
        axes = figure.subplots()
        plot.differences(comparison, ax=axes)
        FigureCanvasAgg(figure).draw()
        whole = figure.bbox.padded(1)
        beside = [box for text in axes.texts if (box := text.get_window_extent()).width > 0]
        labels = [text.get_window_extent() for text in axes.get_yticklabels()]
        for box in (*beside, *labels, axes.get_legend().get_window_extent()):
            assert whole.contains(*box.min)
            assert whole.contains(*box.max)
        assert len(beside) == (12 if size == (9, 9) else len(beside))
        rows = sorted(beside, key=lambda box: box.y0)
        for lower, upper in pairwise(rows):
            assert lower.y1 <= upper.y0 + 1

    def test_panels_keep_to_themselves(self, results):
        comparison = compare({**results, "Fourth": results["Single"]})
        figure = Figure(figsize=(10, 12))
        panels = figure.subplots(2, 2)
        for panel in panels.flat:
            plot.differences(comparison, ax=panel)
        FigureCanvasAgg(figure).draw()
        for upper, lower in zip(*panels, strict=True):
            assert upper.get_legend().get_window_extent().y0 >= lower.bbox.y1
        for left, right in panels:
            ends = [box.x1 for text in left.texts if (box := text.get_window_extent()).width > 0]
            assert ends
            assert max(ends) <= right.bbox.x0

    def test_a_second_picture_on_the_same_axes_takes_no_more_room(self, results):
        figure = Figure(figsize=(6, 6))
        axes = figure.subplots()
        plot.differences(compare(results), ax=axes)
        once = axes.get_position().bounds
        axes.clear()
        plot.differences(compare(results), ax=axes)
        assert axes.get_position().bounds == pytest.approx(once)

    def test_entries_of_legends_are_about_recommenders(self, results):
        legend = plot.differences(compare(results)).axes.get_legend()
        for text in legend.get_texts():
            a, b = description_of(text).recommenders
            assert description_of(text).text == f"{a} - {b}"
        legend = plot.metric_at_k(results, "ndcg", max_k=3).axes.get_legend()
        for name, *marks in zip(results, legend.legend_handles, legend.get_texts(), strict=True):
            assert [description_of(mark).recommenders for mark in marks] == [(name,)] * 2

    def test_what_is_wrong_is_named(self, results):
        with pytest.raises(TypeError, match=r"needs to be a 'Comparison' \(got dict\)"):
            plot.differences(results)
        with pytest.raises(ValueError, match="difference with an interval"):
            plot.differences(compare(results, metrics="coverage@3"))


class TestDifferenceAtK:
    def test_it_is_that_of_a_comparison_at_every_k(self, results):
        _, axes = plot.difference_at_k(results["Runs"], results["Single"], "ndcg", level=0.9)
        rows = compare(
            {"a": results["Runs"], "b": results["Single"]},
            metrics=[f"ndcg@{k}" for k in (1, 2, 3)],
            level=0.9,
        )
        line = axes.lines[1]
        assert list(line.get_xdata()) == [1, 2, 3]
        assert line.get_ydata() == pytest.approx([row.difference for row in rows])
        band = axes.collections[0].get_paths()[0].vertices
        for row, k in zip(rows, (1, 2, 3), strict=True):
            ends = band[band[:, 0] == k, 1]
            assert (ends.min(), ends.max()) == pytest.approx((row.low, row.high))

    def test_what_is_wrong_is_named(self, results):
        a, b = results["Single"], results["Runs"]
        with pytest.raises(ValueError, match="without a cut-off"):
            plot.difference_at_k(a, b, "ndcg@3")
        with pytest.raises(ValueError, match="'level' needs to be"):
            plot.difference_at_k(a, b, level=0)
        other = evaluate(
            torch.rand(9, 5), random_task(9, 5, truth_share=0.3, seen_share=0.1), "ndcg@3"
        )
        with pytest.raises(ValueError, match="differ in"):
            plot.difference_at_k(a, other, max_k=3)
