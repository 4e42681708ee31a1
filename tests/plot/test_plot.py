"""Pictures: what they show, against loops, and how they look, against images kept in the tests.

If a change is meant to alter the images, write the new ones, look at them, and commit them:

    PYG_RECMETRICS_NEW_IMAGES=1 python -m pytest tests/plot/test_plot.py
"""

import builtins
import math
import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    evaluate,
    metrics,
    plot,
    rank,
)
from pyg_recmetrics.plot.groups import _growing_groups
from pyg_recmetrics.plot.picture import users
from tests.support.references.variance_components import margin_over_runs
from tests.support.tools.small_pictures import (
    NUM_ITEMS,
    NUM_USERS,
    PICTURES,
    lines,
    make_task,
    note,
    scores_like,
)

stats = pytest.importorskip("scipy.stats")

IMAGES = Path(__file__).parent / "images"

#: The root mean square of the difference of all pixels, of 255 levels. The same version of
#: matplotlib draws the same picture except for the last bit of anti-aliasing. A curve that moves by
#: its own width makes a difference of more than 5 (see the test that swaps two curves).
TOLERANCE = 1.0


class TestWhatIsShown:
    def test_a_metric_at_every_k_with_its_interval(self, results):
        _, axes = plot.metric_at_k(results, "recall", level=0.9)
        for (name, result), band in zip(results.items(), axes.collections, strict=True):
            x, y = lines(axes)[name].get_data()
            assert list(x) == list(range(1, 11))
            corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9).tolist()}
            for k, value in zip(x, y, strict=True):
                values = result.values_of(f"recall@{k}")[0]
                values = values[~values.isnan()].numpy()
                assert value == pytest.approx(values.mean())
                margin = stats.t.ppf(0.95, len(values) - 1) * stats.sem(values)
                for end in (value - margin, value + margin):
                    assert any(
                        corner[0] == k and corner[1] == pytest.approx(end, abs=1e-6)
                        for corner in corners
                    )

    def test_several_runs_are_drawn_by_their_mean(self, results):
        pytest.importorskip("scipy")
        runs = Runs(list(results.values()))
        _, axes = plot.metric_at_k({"three": runs, "Good": results["Good"]}, "recall", level=0.9)
        x, y = lines(axes)["three"].get_data()
        band = axes.collections[0].get_paths()[0].vertices
        for k, value in zip(x, y, strict=True):
            mean = runs.mean(f"recall@{k}", 0.9)
            assert value == pytest.approx(mean.value)
            ends = band[band[:, 0] == k, 1]
            assert (ends.min(), ends.max()) == pytest.approx((mean.low, mean.high))
        _, axes = plot.distribution(runs, "recall@10")
        (line,) = axes.lines
        shares = [float((run.values_of("recall@10")[0] > 0).sum()) for run in runs]
        counted = int((~runs.values_of("recall@10")[0].isnan()).sum())
        assert line.get_ydata()[1] == pytest.approx(sum(shares) / 3 / counted)

    @pytest.mark.parametrize("form", [Runs, list, tuple])
    def test_precision_against_recall_of_runs(self, results, form):
        pytest.importorskip("scipy")
        runs = form(results.values())
        curve = metrics.precision_recall_curve(results["Good"].ranked, max_k=5)
        picture = plot.precision_recall_curve({"three": runs, "given": curve}, max_k=5)
        x, y = lines(picture.axes)["three"].get_data()
        for k in range(1, 6):
            recall, precision = (
                np.mean([each.values_of(f"{metric}@{k}")[0].nanmean() for each in runs])
                for metric in ("recall", "precision")
            )
            assert (x[k - 1], y[k - 1]) == pytest.approx((recall, precision))
        assert note(picture) == "means over 53 users, no bands; or values as given"
        alone = plot.precision_recall_curve(runs, max_k=5)
        assert list(alone.axes.lines[0].get_xdata()) == list(x)

    def test_a_metric_by_degree_of_runs(self, results):
        pytest.importorskip("scipy")
        runs = list(results.values())
        both = {"three": runs, "Good": results["Good"]}
        picture = plot.metric_by_degree(both, "recall@5", bins=4, level=0.9)
        line, _, (bars,) = picture.axes.containers[0]
        degree = torch.bincount(runs[0].task.seen[0], minlength=NUM_USERS).numpy()
        values = np.array([result.values_of("recall@5")[0].tolist() for result in runs])
        ticks = [label.get_text() for label in picture.axes.get_xticklabels()]
        assert len(ticks) == 4
        for tick, value, segment in zip(ticks, line.get_ydata(), bars.get_segments(), strict=True):
            degrees, num_users = tick.split("\nn = ")
            low, high = map(int, (degrees.split("-") * 2)[:2])
            is_own = (low <= degree) & (degree <= high) & ~np.isnan(values[0])
            assert int(num_users) == is_own.sum()
            own = values[:, is_own]
            margin = margin_over_runs([(1, own)], 0.9)
            assert value == pytest.approx(own.mean())
            assert segment[:, 1] == pytest.approx([value - margin, value + margin])
        assert note(picture) == "means over 53 users, 90% confidence intervals"

    def test_the_long_tail_of_runs(self, results):
        pytest.importorskip("scipy")
        picture = plot.long_tail({"three": list(results.values()), **results}, k=5)
        shown = {name: line.get_ydata() for name, line in lines(picture.axes).items()}
        assert shown["three"] == pytest.approx(np.mean([shown[name] for name in results], axis=0))
        assert note(picture) == "top 5 of 59 users"

    @pytest.mark.filterwarnings("ignore:.*the seed set inside")
    @pytest.mark.parametrize("name", PICTURES)
    def test_equal_runs_are_drawn_as_one(self, results, name):
        pytest.importorskip("scipy")
        single = PICTURES[name]({"it": results["Good"]})
        several = PICTURES[name]({"it": Runs([results["Good"]] * 2)})
        assert note(several) == note(single)
        for one, other in zip(single.axes.lines, several.axes.lines, strict=True):
            assert other.get_xydata() == pytest.approx(one.get_xydata())
        for one, other in zip(single.axes.collections, several.axes.collections, strict=True):
            for path, same in zip(one.get_paths(), other.get_paths(), strict=True):
                assert same.vertices == pytest.approx(path.vertices)

    def test_precision_against_recall(self, results):
        _, axes = plot.precision_recall_curve(results, max_k=7)
        for name, result in results.items():
            x, y = lines(axes)[name].get_data()
            for k in range(1, 8):
                recall, precision = (
                    float(result.values_of(f"{metric}@{k}")[0].nanmean())
                    for metric in ("recall", "precision")
                )
                assert (x[k - 1], y[k - 1]) == pytest.approx((recall, precision))

    def test_marks_and_labels_of_cut_offs(self):
        result = evaluate(scores_like(0.5), make_task(), "recall@23")
        _, axes = plot.precision_recall_curve({"it": result})
        assert lines(axes)["it"].get_markevery() == [0, 4, 9, 22]
        expected = {"k = 1": 1, "5": 5, "10": 10, "23": 23}  # 20 is too near to 23
        assert {text.get_text() for text in axes.texts} == set(expected)
        for text in axes.texts:
            k = expected[text.get_text()]
            point = (
                float(result.values_of(f"{metric}@{k}")[0].nanmean())
                for metric in ("recall", "precision")
            )
            assert text.xy == pytest.approx(tuple(point))

    def test_the_curve_that_reaches_furthest_has_the_labels(self, results):
        _, axes = plot.precision_recall_curve(results)
        last = {name: line.get_xdata()[-1] for name, line in lines(axes).items()}
        furthest = max(last, key=last.get)
        assert max(text.xy[0] for text in axes.texts) == last[furthest]

    @pytest.mark.parametrize("max_k", [None, 3])
    def test_a_curve_is_drawn_as_it_is(self, results, max_k):
        curve = metrics.precision_recall_curve(results["Good"].ranked, max_k=10)
        # Users without truth count as zero in the curve, and not at all in the result.
        assert curve[1][4] < 0.9 * results["Good"]["recall@5"]
        precisions, recalls, _ = (values[:max_k] for values in curve)
        one = plot.precision_recall_curve(curve, max_k=max_k)
        arrays = tuple(values.numpy() for values in curve)
        several = plot.precision_recall_curve({"a": arrays, "b": results["Good"]}, max_k=max_k)
        for axes in (one.axes, several.axes):
            x, y = axes.lines[0].get_data()
            assert list(x) == recalls.tolist()
            assert list(y) == precisions.tolist()
        x, y = lines(several.axes)["b"].get_data()
        assert x[2] == pytest.approx(float(results["Good"].values_of("recall@3")[0].nanmean()))

    @pytest.mark.parametrize("metric", ["recall@5", "ndcg@10"])
    def test_the_share_of_users_who_reach_a_value(self, results, metric):
        _, axes = plot.distribution(results, metric)
        for name, result in results.items():
            values = result.values_of(metric)[0]
            values = values[~values.isnan()].tolist()
            x, y = lines(axes)[name].get_data()
            for threshold in (1e-9, 0.1, 0.25, 0.5, *values[:9]):
                if threshold == 0:
                    continue
                shown = y[np.searchsorted(x, threshold)] if threshold <= x[-1] else 0
                expected = np.mean([value >= threshold for value in values])
                assert shown == pytest.approx(expected)
            area = sum(np.diff(x) * y[1:])
            assert area == pytest.approx(result[metric])

    def test_a_metric_by_degree(self, results):
        _, axes = plot.metric_by_degree(results, "recall@5", bins=4)
        for container, result in zip(axes.containers, results.values(), strict=True):
            line, _, (bars,) = container
            means = [means["recall@5"] for means in result.by_degree(4).values()]
            assert line.get_ydata().tolist() == pytest.approx([mean.value for mean in means])
            for segment, mean in zip(bars.get_segments(), means, strict=True):
                assert segment[:, 1].tolist() == pytest.approx([mean.low, mean.high])
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        assert [tick.split("\n")[0] for tick in ticks] == list(results["Good"].by_degree(4))

    def test_the_long_tail(self, results):
        _, axes = plot.long_tail(results, k=5)
        seen = [0] * NUM_ITEMS
        for item in results["Good"].task.seen[1].tolist():
            seen[item] += 1
        order = sorted(range(NUM_ITEMS), key=lambda item: (-seen[item], item))
        x = lines(axes)["seen"].get_xdata()
        groups = _growing_groups(NUM_ITEMS)
        assert [item for first, last in groups for item in range(first, last + 1)] == list(
            range(1, NUM_ITEMS + 1)
        )
        assert x.tolist() == pytest.approx([math.sqrt(first * last) for first, last in groups])
        counts = {"seen": seen}
        for name, result in results.items():
            counts[name] = [0] * NUM_ITEMS
            for row in result.ranked.lists.to_matrix()[:, :5].tolist():
                for item in row:
                    if item >= 0:
                        counts[name][item] += 1
        for name, count in counts.items():
            expected = [
                np.mean([count[item] for item in order[first - 1 : last]]) for first, last in groups
            ]
            assert lines(axes)[name].get_ydata().tolist() == pytest.approx(expected)

    def test_the_long_tail_of_what_is_not_left_out_and_of_some_users(self):
        left_out = make_task()
        task = RankingTask(
            left_out.truth,
            seen=left_out.seen,
            exclude_seen=False,
            num_users=NUM_USERS,
            num_items=NUM_ITEMS,
        )
        ranked = rank(scores_like(0.3), task, k=5, keep_items=True)
        some = EvaluationResult(ranked, "recall@5", task=task.select_users(torch.arange(10, 20)))
        _, axes = plot.long_tail({"some": some}, k=5)
        groups = _growing_groups(NUM_ITEMS)
        sizes = [last - first + 1 for first, last in groups]
        shown = {name: line.get_ydata() @ sizes for name, line in lines(axes).items()}
        assert shown == {"seen": left_out.seen.size(1), "some": pytest.approx(10 * 5)}

    def test_the_long_tail_of_samples_is_scaled_up_to_all_users(self):
        users = torch.arange(20_000)
        truth = torch.stack([users[:18_000], users[:18_000] % 5])
        seen = torch.stack([users, 5 + users % 3])
        task = RankingTask(truth, seen=seen, num_users=20_000, num_items=8)
        # All have the same two items, so that each of these is in as many lists as there are users.
        few, more = (
            evaluate(8.0 - torch.arange(8), task, "recall@2", margin=margin, keep_items=True)
            for margin in (0.06, 0.03)
        )
        assert few.sampling.num_ranked < more.sampling.num_ranked < 18_000
        picture = plot.long_tail({"few": few, "more": more}, k=2)
        groups = _growing_groups(8)
        sizes = [last - first + 1 for first, last in groups]
        for name, line in lines(picture.axes).items():
            expected = 20_000 if name == "seen" else 2 * 20_000
            assert line.get_ydata() @ sizes == pytest.approx(expected, rel=2e-3)
        counts = [result.user_counts.num_with_list for result in (few, more)]
        assert (
            note(picture)
            == f"top 2 of {counts[0]:,} to {counts[1]:,} users, scaled up to all 20,000"
        )

    def test_conventions_and_users_without_truth_count_as_in_the_result(self):
        result = evaluate(
            scores_like(0.3),
            make_task(),
            "ndcg@5",
            convention="rectools",
            empty_target_action="neg",
        )
        _, axes = plot.metric_at_k({"it": result}, "ndcg")
        assert lines(axes)["it"].get_ydata()[-1] == pytest.approx(result["ndcg@5"])


class TestNotes:
    def test_users_and_levels(self, results):
        num_users = int((~results["Good"].values_of("recall@5")[0].isnan()).sum())
        lists = int((results["Good"].ranked.lists.to_matrix()[:, 0] >= 0).sum())
        assert 0 < num_users < lists
        expected = {
            "metric_at_k": f"mean over {num_users} users, 95% confidence band",
            "precision_recall_curve": f"means over {num_users} users, no bands",
            "distribution": f"{num_users} users",
            "metric_by_degree": f"means over {num_users} users, 95% confidence intervals",
            "long_tail": f"top 5 of {lists} users",
        }
        assert {name: note(draw(results["Good"])) for name, draw in PICTURES.items()} == expected
        band = plot.metric_at_k(results["Good"], level=0.995)
        assert note(band).endswith(", 99.5% confidence band")
        by_degree = plot.metric_by_degree(results["Good"], "recall@5", level=0.8)
        assert note(by_degree).endswith(", 80% confidence intervals")

    def test_results_of_different_numbers_of_users(self, results):
        counted = evaluate(
            scores_like(0.1), make_task(), "recall@5", empty_target_action="neg", keep_items=True
        )
        several = {"a": results["Good"], "b": counted}
        assert note(plot.metric_at_k(several, "recall")).startswith("mean over 53 to 60 users,")
        assert note(plot.distribution(several, "recall@5")) == "53 to 60 users"
        assert note(plot.precision_recall_curve(several)) == "means over 53 to 60 users, no bands"

    def test_thousands_and_a_single_user(self):
        assert users(iter([1234])) == "1,234 users"
        assert users([1]) == "1 user"
        assert users([0, 1]) == "0 to 1 user"

    def test_a_curve_says_that_it_is_one_of_others(self, results):
        curve = metrics.precision_recall_curve(results["Good"].ranked, max_k=10)
        assert note(plot.precision_recall_curve(curve)) == "values as given"
        both = plot.precision_recall_curve({"a": curve, "b": results["Good"]})
        assert note(both) == "means over 53 users, no bands; or values as given"


class TestManners:
    @pytest.mark.parametrize("name", PICTURES)
    def test_figures_axes_labels_and_legends(self, results, name):
        figure, axes = PICTURES[name](results)
        assert axes.figure is figure
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert {*results} <= {text.get_text() for text in axes.get_legend().get_texts()}
        shown = (
            [lines(axes)[model] for model in results]
            if name != "metric_by_degree"
            else [container[0] for container in axes.containers]
        )
        assert len({line.get_color() for line in shown}) == len(results)
        own = Figure().subplots()
        assert PICTURES[name](results, ax=own) == (own.figure, own)

    @pytest.mark.parametrize("name", PICTURES)
    def test_a_single_result_and_many(self, results, name):
        _, axes = PICTURES[name](results["Good"])
        assert (axes.get_legend() is None) == (name != "long_tail")
        figure, axes = PICTURES[name]({f"Model {number}": results["Fair"] for number in range(9)})
        assert len(axes.get_legend().get_texts()) >= 9
        FigureCanvasAgg(figure).draw()

    def test_odd_axes_and_metrics_are_named(self, results):
        with pytest.raises(TypeError, match=r"'ax' needs to be axes of matplotlib \(got str\)"):
            plot.metric_at_k(results, ax="axes")
        with pytest.raises(ValueError, match=r"'metric' needs to be one that every .*\(got 'f1@7'"):
            plot.metric_by_degree(results, "f1@7")
        axes = Figure().subplots()
        axes.set_xscale("log")
        plot.metric_at_k(results, ax=axes)

    def test_odd_names_are_shown(self, results):
        odd = {"_hidden": results["Good"], "$x$ & 5%": results["Fair"]}
        figure, axes = plot.metric_at_k(odd)
        FigureCanvasAgg(figure).draw()
        shown = [text.get_text().strip() for text in axes.get_legend().get_texts()]
        assert shown == ["_hidden", r"\$x\$ & 5%"]

    def test_nothing_global_is_changed(self, results):
        before = dict(matplotlib.rcParams)
        for picture in PICTURES.values():
            picture(results)
        assert dict(matplotlib.rcParams) == before

    def test_what_is_wrong_is_named(self, results):
        good = results["Good"]
        with pytest.raises(ValueError, match="at least one 'EvaluationResult'"):
            plot.metric_at_k({})
        for wrong in ({"a": 0.5}, 0.5):
            with pytest.raises(TypeError, match=r"'EvaluationResult' or 'Runs'.* \(got float"):
                plot.distribution(wrong, "recall@5")
            with pytest.raises(TypeError, match=r"\(precisions, recalls, top_k\).* \(got float"):
                plot.precision_recall_curve(wrong)
        three = torch.ones(3)
        for wrong in ((three, three), (three, three, three[:2]), 3 * (torch.ones(0),)):
            with pytest.raises(ValueError, match=r"of one shape \[num_cut_offs\] \(got \["):
                plot.precision_recall_curve(wrong)
        with pytest.raises(ValueError, match="at most 10, the depth"):
            plot.metric_at_k(good, max_k=11)
        with pytest.raises(ValueError, match="'max_k' needs to be a positive integer"):
            plot.precision_recall_curve(good, max_k=0)
        with pytest.raises(ValueError, match="'r_precision' has no cut-off"):
            plot.metric_at_k(good, "r_precision")
        with pytest.raises(ValueError, match=r"'k' needs to be at most 10.*\(got 11\)"):
            plot.long_tail(good, k=11)
        with pytest.raises(ValueError, match="'level' needs to be"):
            plot.metric_at_k(good, level=2)
        short = evaluate(scores_like(0.1), make_task(), "recall@5")
        with pytest.raises(ValueError, match="'keep_items=True'"):
            plot.long_tail(short)
        narrow = evaluate(scores_like(0.1), make_task(), ["coverage@5", "recall@20"])
        with pytest.raises(ValueError, match=r"at most 5, .* 'keep_items=20' \(got 20\)"):
            plot.long_tail(narrow, k=20)
        other = evaluate(scores_like(0.1), make_task(11), "recall@5", keep_items=True)
        with pytest.raises(ValueError, match="of users with the same training degrees"):
            plot.metric_by_degree({"a": good, "b": other}, "recall@5")
        with pytest.raises(ValueError, match="of tasks with the same seen edges"):
            plot.long_tail({"a": good, "b": other}, k=5)
        everything = evaluate(scores_like(0.1), make_task(), "mean_rank")
        with pytest.raises(ValueError, match="'max_k' needs to be given"):
            plot.metric_at_k(everything)
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1]]), torch.tensor([[0], [1]]))
        with pytest.raises(ValueError, match="'long_tail' needs what users have seen"):
            plot.long_tail(EvaluationResult(ranked, ["recall@1"]))

    def test_without_matplotlib_the_error_says_what_to_install(self, results, monkeypatch):
        original = builtins.__import__

        def without_matplotlib(name, *args, **kwargs):
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return original(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without_matplotlib)
        with pytest.raises(ImportError, match=r"pip install 'pyg-recmetrics\[plot\]'"):
            plot.metric_at_k(results)


@pytest.mark.skipif(
    not matplotlib.__version__.startswith("3.11."), reason="images are those of matplotlib 3.11"
)
class TestLooks:
    @staticmethod
    def draw(picture, results, path):
        with matplotlib.rc_context(matplotlib.rcParamsDefault):
            figure, _ = picture(results)
            FigureCanvasAgg(figure).print_png(path)

    @pytest.mark.parametrize("name", PICTURES)
    def test_a_picture_looks_as_it_was_approved(self, results, name, tmp_path):
        kept = IMAGES / f"{name}.png"
        if os.environ.get("PYG_RECMETRICS_NEW_IMAGES"):
            self.draw(PICTURES[name], results, kept)
        self.draw(PICTURES[name], results, tmp_path / "new.png")
        assert compare_images(str(kept), str(tmp_path / "new.png"), tol=TOLERANCE) is None

    @pytest.mark.parametrize("name", PICTURES)
    def test_a_picture_of_other_numbers_is_told_apart(self, results, name, tmp_path):
        swapped = {**results, "Good": results["Fair"], "Fair": results["Good"]}
        self.draw(PICTURES[name], swapped, tmp_path / "new.png")
        kept = str(IMAGES / f"{name}.png")
        difference = compare_images(kept, str(tmp_path / "new.png"), TOLERANCE, in_decorator=True)
        assert difference is not None
        assert difference["rms"] > 5 * TOLERANCE
