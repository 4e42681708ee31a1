"""Pictures of trainings, and of groups of users; the rest is in test_plot.py."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

pytest.importorskip("matplotlib")

from pyg_recmetrics import Evaluator, evaluate, plot
from tests.support.tools.small_pictures import lines, make_task, scores_like

SKILLS = {"Fast": [0.1, 0.5, 0.4, 0.3], "Slow": [0.0, 0.1, 0.2]}


@pytest.fixture(scope="module")
def histories():
    found = {}
    for name, skills in SKILLS.items():
        evaluator = Evaluator(make_task(), ["recall@5", "mean_rank"], monitor="mean_rank")
        for skill in skills:
            evaluator(scores_like(skill))
        found[name] = evaluator.history
    return found


@pytest.mark.parametrize(
    ("metric", "every", "expected", "label"),
    [(None, None, [0, 1, 2, 3], "call"), ("recall@5", 5, [5, 10, 15, 20], "epoch")],
)
def test_lines_show_every_evaluation(histories, metric, every, expected, label):
    _, axes = plot.history(histories, metric, every=every)
    assert list(lines(axes)) == list(SKILLS)
    for name, history in histories.items():
        x, y = lines(axes)[name].get_data()
        assert list(x) == expected[: len(SKILLS[name])]
        assert list(y) == [means[metric or "mean_rank"] for means in history]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (label, metric or "mean_rank")


def test_the_mark_is_at_the_best(histories):
    _, axes = plot.history(histories)
    for line in lines(axes).values():
        (marked,) = line.get_markevery()
        assert line.get_ydata()[marked] == min(line.get_ydata())  # a rank is better if it is lower
    # Of another metric, the mark still shows the evaluation that was chosen.
    _, axes = plot.history(histories, "recall@5")
    assert lines(axes)["Fast"].get_markevery() == [1]


def test_a_training_that_has_just_begun_is_drawn():
    evaluator = Evaluator(make_task(), "recall@5")
    for number in range(2):
        figure, axes = plot.history(evaluator.history)
        FigureCanvasAgg(figure).draw()
        assert [len(line.get_xdata()) for line in axes.lines] == [number]
        evaluator(scores_like(0.1))
    assert axes.get_legend() is None


def test_only_what_was_evaluated_is_drawn(histories):
    with pytest.raises(ValueError, match=r"'metric' needs to be one that was evaluated \(got 'n"):
        plot.history(histories, "ndcg@5")


def test_groups_beyond_their_number_of_relevant_items(results):
    options = {"same_degree": True, "level": 0.9}
    _, axes = plot.metric_by_degree(results, "recall@5", bins=4, **options)
    for (name, result), bars in zip(results.items(), axes.collections, strict=True):
        means = [of["recall@5"] for of in result.by_degree(4, **options).values()]
        assert lines(axes)[name].get_ydata() == pytest.approx([mean.value for mean in means])
        ends = [segment[:, 1] for segment in bars.get_segments()]
        assert ends == [pytest.approx(mean[1:3]) for mean in means]
    title = axes.get_title().replace("\n", " ")
    assert "groups differ by the mean difference of users with as many" in title


def test_a_recommender_without_a_hit_is_drawn():
    nothing = evaluate(-scores_like(9.0), make_task(), "recall@5")
    assert nothing["recall@5"] == 0
    _, axes = plot.precision_recall_curve(nothing)
    assert [text.get_text() for text in axes.texts] == ["k = 1", "5"]
