"""Pictures: what they show, against loops, and how they look, against images kept in the tests.

If a change is meant to alter the images, write the new ones, look at them, and commit them:

    PYG_RECMETRICS_NEW_IMAGES=1 python -m pytest tests/plot/test_plot.py
"""

import os
from pathlib import Path

import matplotlib
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    Population,
    RankingTask,
    Runs,
    conventions,
    evaluate,
    plot,
)
from pyg_recmetrics.plot import _ends_of_groups
from tests.support.tools.small_pictures import (
    FORESTS,
    NUM_ITEMS,
    NUM_USERS,
    PICTURES,
    lines,
    make_task,
    note,
    scores_like,
)

IMAGES = Path(__file__).parent / "images"

#: The root mean square of the difference of all pixels, of 255 levels. The same version of
#: matplotlib draws the same picture except for the last bit of anti-aliasing. A curve that moves by
#: its own width makes a difference of more than 5.
TOLERANCE = 1.0


def groups_of(num_items):
    """The first and the last place of each group of items, counted from one."""
    ends = _ends_of_groups(num_items)
    return list(zip([1, *(end + 1 for end in ends)], ends, strict=False))


def other(metrics="recall@5", **options):
    return evaluate(scores_like(0.1), make_task(11), metrics, **options)


class TestWhatIsShown:
    def test_a_metric_at_every_k_with_its_interval(self, results):
        drawn = {"three": Runs(list(results.values())), **results}
        picture = plot.metric_at_k(drawn, "recall", level=0.9)
        assert note(picture).startswith(
            "mean over 53 users and runs, 90% confidence band; intervals may"
        )
        axes = picture.axes
        for (name, result), band in zip(drawn.items(), axes.collections, strict=True):
            x, y = lines(axes)[name].get_data()
            assert list(x) == list(range(1, 11))
            corners = band.get_paths()[0].vertices
            for k, value in zip(x, y, strict=True):
                mean = result.mean(f"recall@{k}", 0.9)
                ends = corners[corners[:, 0] == k, 1]
                assert (ends.min(), value, ends.max()) == pytest.approx(
                    (mean.low, mean.value, mean.high)
                )

    def test_the_long_tail_of_a_sample_is_scaled_up_to_all_users(self):
        users = torch.arange(20_000)
        truth = torch.stack([users[:18_000], users[:18_000] % 5])
        seen = torch.stack([users, 5 + users % 3])
        task = RankingTask(truth, seen=seen, num_users=20_000, num_items=8)
        # All have the same two items, so that each of these is in as many lists as there are users.
        result = evaluate(8.0 - torch.arange(8), task, "recall@2", margin=0.03, keep_items=True)
        picture = plot.long_tail({"sample": result}, k=2)
        sizes = [last - first + 1 for first, last in groups_of(8)]
        drawn = lines(picture.axes)["sample"].get_ydata()
        assert drawn @ sizes == pytest.approx(2 * 20_000, rel=2e-3)
        counted = f"{result.user_counts.num_with_list:,}"
        assert note(picture) == f"top 2 of {counted} users, scaled up to all 20,000"


class TestManners:
    @pytest.mark.parametrize("name", PICTURES)
    def test_figures_axes_labels_and_legends(self, results, name):
        before = dict(matplotlib.rcParams)
        figure, axes = PICTURES[name](results)
        assert axes.figure is figure
        assert dict(matplotlib.rcParams) == before
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert {*results} <= {text.get_text() for text in axes.get_legend().get_texts()}
        assert len({lines(axes)[model].get_color() for model in results}) == len(results)
        own = Figure().subplots()
        assert PICTURES[name](results, ax=own) == (own.figure, own)

    @pytest.mark.parametrize("name", PICTURES)
    def test_a_single_result_needs_no_legend(self, results, name):
        _, axes = PICTURES[name](results["Good"])
        assert (axes.get_legend() is None) == (name != "long_tail")

    def test_odd_names_are_shown(self, results):
        odd = {"_hidden": results["Good"], "$x$ & 5%": results["Fair"]}
        figure, axes = plot.metric_at_k(odd)
        FigureCanvasAgg(figure).draw()
        shown = [text.get_text().strip() for text in axes.get_legend().get_texts()]
        assert shown == ["_hidden", r"\$x\$ & 5%"]

    @pytest.mark.parametrize(
        ("draw", "error", "message"),
        [
            (lambda it: plot.metric_at_k(it, ax="axes"), TypeError, r"axes of a figure \(got str"),
            (lambda it: plot.metric_at_k(it, max_k=11), ValueError, "at most 10, the depth"),
            (lambda it: plot.metric_at_k(it, "ndcg@3"), ValueError, "without a cut-off"),
            (lambda it: plot.metric_at_k(other(["mean_rank"])), ValueError, "'max_k' needs"),
            (lambda it: plot.metric_by_degree(it, "f1@7"), ValueError, "one that every result has"),
            (lambda it: plot.long_tail(other()), ValueError, "'keep_items=True'"),
            (lambda it: plot.differences(3), TypeError, "to be one 'Comparison'"),
            (lambda it: plot.means(it, figure="here"), TypeError, "a figure.*got str"),
            (lambda it: plot.history({}), ValueError, "at least one 'History'"),
            (lambda it: plot.history(it), TypeError, r"'histories' needs .* 'History'"),
        ],
    )
    def test_what_is_wrong_is_named(self, results, draw, error, message):
        with pytest.raises(error, match=message):
            draw(results["Good"])

    def test_what_differs_is_not_drawn_together(self, results):
        ranked = results["Good"].ranked
        seen = ranked.with_catalogue(Catalogue(NUM_ITEMS, seen=[[0], [0]]))
        several = {
            name: EvaluationResult(x, "recall@5")
            for name, x in zip("ab", (ranked, seen), strict=True)
        }
        with pytest.raises(ValueError, match="the same seen edges"):
            plot.long_tail(several, k=5)
        varied = conventions.get("standard").with_population(Population(constant_scores=False))
        several["b"] = other(convention=varied)
        scores = scores_like(0.1).masked_fill(torch.arange(NUM_USERS).unsqueeze(1) < 40, 1.0)
        several["a"] = evaluate(scores, several["b"].task, "recall@5", convention=varied)
        with pytest.raises(ValueError, match="the same training degrees"):
            plot.metric_by_degree(several, "recall@5")


@pytest.mark.skipif(
    not matplotlib.__version__.startswith("3.11."), reason="images are those of matplotlib 3.11"
)
class TestLooks:
    @staticmethod
    def draw(picture, results, path):
        with matplotlib.rc_context(matplotlib.rcParamsDefault):
            figure, _ = picture(results)
            FigureCanvasAgg(figure).print_png(path)

    @pytest.mark.parametrize("name", PICTURES | FORESTS)
    def test_a_picture_looks_as_it_was_approved(self, results, name, tmp_path):
        draw = (PICTURES | FORESTS)[name]
        kept = IMAGES / f"{name}.png"
        if os.environ.get("PYG_RECMETRICS_NEW_IMAGES"):
            self.draw(draw, results, kept)
        self.draw(draw, results, tmp_path / "new.png")
        assert compare_images(str(kept), str(tmp_path / "new.png"), tol=TOLERANCE) is None
