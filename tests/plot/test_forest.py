"""Pictures of several data sets."""

import math

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from pyg_recmetrics import Benchmark, Runs, plot
from pyg_recmetrics.plot.forest import panel_of
from pyg_recmetrics.plot.picture import description_of
from pyg_recmetrics.plot.style import COLORS
from tests.support.cases.small_benchmark import DETERMINISTIC, SKILLS, small_benchmark
from tests.support.tools.small_pictures import texts


@pytest.fixture(scope="module")
def benchmark():
    return small_benchmark()


def marks(axes):
    """What is drawn of each recommender or pair."""
    found = {}
    for line in axes.lines:
        if description := description_of(line):
            found.setdefault(description.recommenders, []).append(line)
    return found


class TestMeans:
    def test_each_data_set_has_axes_with_a_row_for_each_recommender(self, benchmark):
        figure, panels = plot.benchmark(benchmark, "recall@3", level=0.9)
        assert [axes.get_title(loc="left") for axes in panels] == list(benchmark)
        for axes, (data_set, results) in zip(panels, benchmark.items(), strict=True):
            found = marks(axes)
            assert [name for (name,) in found] == list(results)
            for (name,), (interval, dot, *ticks) in found.items():
                result = results[name]
                place = list(SKILLS).index(name)
                assert set(dot.get_ydata()) == set(interval.get_ydata()) == {place}
                assert same_color(dot.get_color(), COLORS[place])
                if isinstance(result, Runs):
                    value, low, high, *_ = result.mean("recall@3", 0.9)
                    runs = [run["recall@3"] for run in result]
                    assert [tick.get_xdata()[0] for tick in ticks] == pytest.approx(runs)
                else:
                    value = result["recall@3"]
                    low, high = result.confidence_interval("recall@3", 0.9)
                    assert not ticks
                assert interval.get_xdata() == pytest.approx([low, high])
                assert dot.get_xdata() == pytest.approx([value])
                assert f"{name} on {data_set}, recall@3: {value:.4f}" in description_of(dot).text
            assert axes.get_xlabel() == "recall@3"
        assert [text.get_text() for text in panels[2].texts] == ["not run"]
        names = [[x.get_text() for x in axes.get_yticklabels()] for axes in panels]
        assert names == [list(SKILLS), [], []] or names == [list(SKILLS), [""] * 3, [""] * 3]
        assert figure.axes[0] is panels[0]

    def test_many_data_sets_stand_in_several_rows(self, benchmark):
        many = Benchmark({f"{i}": benchmark["Small"] for i in range(5)})
        figure, panels = plot.benchmark(many)
        assert len(panels) == len(figure.axes) - sum(len(x.child_axes) for x in panels) or panels
        FigureCanvasAgg(figure).draw()
        tops = [round(axes.get_position().y1, 3) for axes in panels]
        assert tops[0] == tops[1] == tops[2] > tops[3] == tops[4]
        named = [any(x.get_text() for x in axes.get_yticklabels()) for axes in panels]
        assert named == [True, False, False, True, False]

    def test_no_text_lies_on_another(self, benchmark):
        for drawn in (benchmark, benchmark.compare("ndcg@3")):
            figure, _ = plot.benchmark(drawn)
            FigureCanvasAgg(figure).draw()
            boxes = list(texts(figure).values())
            for place, box in enumerate(boxes):
                assert not any(box.shrunk(0.98, 0.9).overlaps(other) for other in boxes[:place])

    def test_a_notebook_shows_it(self, benchmark):
        panels = plot.benchmark(benchmark)
        assert panels._repr_png_().startswith(b"\x89PNG")
        assert repr(panels) == "Panels(3 axes)"


class TestDifferences:
    def test_each_pair_has_its_interval_and_lift(self, benchmark):
        comparison = benchmark.compare("ndcg@3", equivalence="2%", deterministic=DETERMINISTIC)
        _, panels = plot.benchmark(comparison)
        for axes, (data_set, rows) in zip(panels, comparison.items(), strict=True):
            found = marks(axes)
            assert len(found) == len(rows)
            for row in rows:
                interval, dot = found[row.a, row.b]
                assert interval.get_xdata() == pytest.approx([row.low, row.high])
                assert dot.get_xdata() == pytest.approx([row.difference])
                assert dot.get_ydata() == [comparison.pairs.index((row.a, row.b))]
                is_filled = not same_color(dot.get_markerfacecolor(), "white")
                assert is_filled == rows.is_significant(row)
                assert f"{row.a} - {row.b} on {data_set}" in description_of(dot).text
            lifts = [x.get_text() for x in axes.texts if "not run" not in x.get_text()]
            assert lifts == [f"{row.lift:+.1f}% {rows.star(row)}".strip() for row in rows]
            assert sum(x.get_text() == "not run" for x in axes.texts) == 3 - len(rows)
            assert sum(not math.isnan(patch.get_width()) for patch in axes.patches) == len(rows)

    def test_a_common_baseline_is_named_once(self, benchmark):
        _, panels = plot.benchmark(benchmark.compare("ndcg@3", baseline="None"))
        assert [x.get_text() for x in panels[0].get_yticklabels()] == ["Good", "Fair"]
        assert " ".join(panels[0].get_xlabel().split()) == "ndcg@3, difference from None"


class TestErrors:
    def test_what_is_wrong_is_named(self, benchmark):
        with pytest.raises(TypeError, match="'benchmark' needs to be a 'Benchmark' or"):
            plot.benchmark(3)
        with pytest.raises(ValueError, match="'level' needs to be"):
            plot.benchmark(benchmark, level=3)
        with pytest.raises(ValueError, match="one for all users together"):
            plot.benchmark(benchmark, "coverage@3")
        comparison = benchmark.compare("ndcg@3")
        with pytest.raises(ValueError, match="needs to be that of the comparison, 'ndcg@3'"):
            plot.benchmark(comparison, "recall@3")
        with pytest.raises(ValueError, match="needs to have an interval on Small"):
            plot.benchmark(benchmark.compare("coverage@3"))

    def test_it_draws_on_axes_of_any_figure(self, benchmark):
        axes = Figure().subplots()
        assert panel_of(benchmark, "ndcg@3")("Small", axes).axes is axes
