"""Forest plots of means and of paired differences."""

import math

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
