"""Forest plots of means and of paired differences, of one data set and of several."""

import math

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from pyg_recmetrics import Benchmark, Runs, compare, evaluate, plot
from pyg_recmetrics.plot.style import COLORS
from pyg_recmetrics.results.comparison import lift_in_words
from pyg_recmetrics.tables import format_p
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_benchmark import DETERMINISTIC, SKILLS, small_benchmark
from tests.support.tools.small_pictures import note, texts

METRICS = ["recall@3", "ndcg@3", "coverage@3"]


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


def rows(axes):
    """The interval, the dot and the ticks of each row, from the top."""
    found = {}
    for line in axes.lines:
        x, y = line.get_data()
        if len(y) and line.get_transform() == axes.transData:
            found.setdefault(round((y[0] + y[-1]) / 2, 6), []).append((list(x), line))
    return [found[place] for place in sorted(found)]


def mean_of(result, metric, level):
    if isinstance(result, Runs):
        return result.mean(metric, level)[:3], [run[metric] for run in result]
    return (result[metric], *result.confidence_interval(metric, level)), []


def assert_mean(row, result, metric, level, color):
    (value, low, high), runs = mean_of(result, metric, level)
    (interval, _), (dot, mark), *ticks = row
    assert interval == pytest.approx([low, high])
    assert dot == pytest.approx([value])
    assert [x[0] for x, _ in ticks] == pytest.approx(runs)
    assert all(same_color(line.get_color(), color) for _, line in row)
    assert mark.get_marker() != ""


def assert_difference(row, comparison, difference):
    (interval, _), (dot, mark) = row
    assert interval == pytest.approx([difference.low, difference.high])
    assert dot == pytest.approx([difference.difference])
    is_filled = not same_color(mark.get_markerfacecolor(), "white")
    assert is_filled == comparison.is_significant(difference)


def words_beside(axes):
    (beside,) = (x for x in axes.child_axes if x.yaxis.get_ticklabels() and x.get_yticks().size)
    return [text.get_text() for text in beside.get_yticklabels()]


def test_each_mean_has_its_interval_and_its_runs(results):
    picture = plot.means(results, level=0.9)
    axes = picture.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == METRICS[:2]
    wanted = [(metric, name) for metric in METRICS[:2] for name in results]
    for row, (metric, name) in zip(rows(axes), wanted, strict=True):
        assert_mean(row, results[name], metric, 0.9, COLORS[list(results).index(name)])
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["Runs", "Single", r" _odd \$name"]
    assert note(picture) == "means over 146 users, 90% confidence intervals, ticks are runs"
    assert plot.means(results["Single"], "ndcg@3").axes.get_legend() is None


def test_each_difference_has_its_interval(results):
    comparison = compare(results, equivalence=0.02)
    _, axes = plot.differences(comparison)
    shown = [row for row in comparison if not math.isnan(row.low)]
    shown.sort(key=lambda row: METRICS.index(row.metric))
    for row, difference in zip(rows(axes), shown, strict=True):
        assert_difference(row, comparison, difference)
    assert {comparison.is_significant(row) for row in shown} == {True, False}
    beside = words_beside(axes)
    assert len(beside) == len(shown)
    for row in shown:
        p = "< 0.0001" if row.p_adjusted < 1e-4 else f"= {format_p(row.p_adjusted)}"
        assert f"{row.lift:+.1f}%  p {p} {comparison.star(row)}".strip() in beside


def test_the_zone_is_what_is_too_small_to_matter(results):
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


def test_the_note_says_which_intervals_are_simultaneous(results):
    options = {"level": 0.9, "metrics": METRICS[:2]}
    assert note(plot.differences(compare(results, **options))) == (
        "paired differences, 90% confidence intervals"
    )
    together = compare(results, simultaneous=True, **options)
    assert note(plot.differences(together)) == (
        "paired differences, simultaneous 90% confidence intervals"
    )


def test_each_data_set_has_axes_with_a_row_for_each_recommender(benchmark):
    _, panels = plot.benchmark(benchmark, "recall@3", level=0.9)
    assert [axes.get_title(loc="left") for axes in panels] == list(benchmark)
    for axes, of_one in zip(panels, benchmark.values(), strict=True):
        assert axes.get_xlabel() == "recall@3"
        for row, (name, result) in zip(rows(axes), of_one.items(), strict=True):
            assert_mean(row, result, "recall@3", 0.9, COLORS[list(SKILLS).index(name)])
    assert [text.get_text() for text in panels[2].texts] == ["not run"]


def test_many_data_sets_stand_in_several_lines(benchmark):
    figure, panels = plot.benchmark(Benchmark({f"{i}": benchmark["Small"] for i in range(5)}))
    FigureCanvasAgg(figure).draw()
    tops = [round(axes.get_position().y1, 3) for axes in panels]
    assert tops[0] == tops[1] == tops[2] > tops[3] == tops[4]
    assert len([x for x in figure.axes if x.get_title(loc="left")]) == 5


def test_each_pair_has_its_interval_and_lift_on_each_data_set(benchmark):
    comparison = benchmark.compare("ndcg@3", equivalence="2%", deterministic=DETERMINISTIC)
    _, panels = plot.benchmark(comparison)
    for axes, found in zip(panels, comparison.values(), strict=True):
        of_pair = sorted(found, key=lambda row: comparison.pairs.index((row.a, row.b)))
        for row, difference in zip(rows(axes), of_pair, strict=True):
            assert_difference(row, found, difference)
        lifts = [f"{lift_in_words(row)} {found.star(row)}".strip() for row in of_pair]
        assert words_beside(axes) == lifts
        assert len(axes.texts) == 3 - len(found)
        assert len(axes.patches) == len(found)
    _, panels = plot.benchmark(benchmark.compare("ndcg@3", baseline="None"))
    assert [x.get_text() for x in panels[0].get_yticklabels()] == ["Good", "Fair"]
    assert " ".join(panels[0].get_xlabel().split()) == "ndcg@3, difference from None"


def test_no_text_of_panels_lies_on_another(benchmark):
    for drawn in (benchmark, benchmark.compare("ndcg@3", equivalence="2%")):
        figure, _ = plot.benchmark(drawn)
        FigureCanvasAgg(figure).draw()
        boxes = list(texts(figure).values())
        for place, box in enumerate(boxes):
            assert not any(box.shrunk(0.98, 0.9).overlaps(other) for other in boxes[:place])


def test_a_notebook_shows_panels(benchmark):
    panels = plot.benchmark(benchmark)
    assert panels._repr_png_().startswith(b"\x89PNG")
    assert repr(panels) == "Panels(3 axes)"


def test_given_axes_are_drawn_on(results):
    for draw in (plot.means, lambda x, ax: plot.differences(compare(x), ax=ax)):
        axes = Figure(layout="constrained").subplots()
        assert draw(results, ax=axes).axes is axes


def test_what_is_wrong_is_named(results, benchmark):
    with pytest.raises(ValueError, match=r"value for every user \(got 'coverage@3'"):
        plot.means(results, "coverage@3")
    with pytest.raises(ValueError, match="'level' needs to be"):
        plot.means(results, level=2)
    with pytest.raises(TypeError, match="'results' needs to be"):
        plot.means(3)
    with pytest.raises(TypeError, match="'comparison' needs to be a 'Comparison'"):
        plot.differences(3)
    with pytest.raises(ValueError, match="a difference with an interval"):
        plot.differences(compare(results, metrics="coverage@3"))
    with pytest.raises(TypeError, match="'benchmark' needs to be a 'Benchmark' or"):
        plot.benchmark(3)
    with pytest.raises(ValueError, match="'level' needs to be"):
        plot.benchmark(benchmark, level=3)
    with pytest.raises(ValueError, match="one for all users together"):
        plot.benchmark(benchmark, "coverage@3")
    with pytest.raises(ValueError, match="needs to be that of the comparison, 'ndcg@3'"):
        plot.benchmark(benchmark.compare("ndcg@3"), "recall@3")
    with pytest.raises(ValueError, match="needs to have an interval on Small"):
        plot.benchmark(benchmark.compare("coverage@3"))
