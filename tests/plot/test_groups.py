"""Pictures of trade-offs."""

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

import torch
from matplotlib.colors import same_color

from pyg_recmetrics import Runs, evaluate, plot
from tests.support.cases.random_tasks import random_scores, random_task

METRICS = ["ndcg@3", "coverage@3", "mean_rank"]


@pytest.fixture(scope="module")
def results():
    task = random_task(100, 30, truth_share=0.1, seen_share=0.1)

    def run(skill, spread, seed):
        scores = spread * random_scores(task, seed) + torch.linspace(0, 1, 30)
        scores[tuple(task.truth)] += skill
        return evaluate(scores, task, METRICS, keep_items=3)

    return {
        "accurate": Runs([run(1.0, 0.2, seed) for seed in range(2)]),
        "wide": run(0.2, 3.0, 3),
        "between": run(0.5, 1.0, 4),
        "neither": run(0.0, 0.1, 5),
    }


def points(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def naive_front(places):
    """The names of what no other is at least as good as in both, by a loop."""
    front = set()
    for name, (x, y) in places.items():
        others = [place for other, place in places.items() if other != name]
        if not any(a >= x and b >= y and (a > x or b > y) for a, b in others):
            front.add(name)
    return front


def is_filled(line):
    return not same_color(line.get_markerfacecolor(), "white")


def mean(result, metric):
    return result.mean(metric).value if isinstance(result, Runs) else result[metric]


@pytest.mark.parametrize(
    ("metric", "against", "signs"),
    [
        ("ndcg@3", "coverage@3", (1, 1)),
        ("ndcg@3", "mean_rank", (-1, 1)),
        ("mean_rank", "ndcg@3", (1, -1)),
    ],
)
def test_points_are_means_and_the_front_is_filled(results, metric, against, signs):
    _, axes = plot.pareto(results, metric, against)
    found = points(axes)
    assert list(found) == list(results)
    places = {}
    for name, line in found.items():
        place = mean(results[name], against), mean(results[name], metric)
        assert line.get_xydata()[0] == pytest.approx(place)
        places[name] = tuple(sign * x for sign, x in zip(signs, place, strict=True))
    filled = {name for name, line in found.items() if is_filled(line)}
    assert filled == naive_front(places)
    labels = axes.get_xlabel(), axes.get_ylabel()
    assert labels == (plot.picture.label_of(against), plot.picture.label_of(metric))


def test_intervals_go_both_ways(results):
    _, axes = plot.pareto(results, "ndcg@3", "mean_rank", level=0.9)
    segments = [x.get_segments()[0] for x in axes.collections]
    for place, metric in enumerate(("mean_rank", "ndcg@3")):
        wanted = pytest.approx(list(results["wide"].confidence_interval(metric, 0.9)))
        assert sum(segment[:, place].tolist() == wanted for segment in segments) == 1


@pytest.mark.parametrize("against", ["coverage@3", "mean_rank"])
def test_the_stairs_are_where_no_point_on_the_front_is_beaten(results, against):
    _, axes = plot.pareto(results, "ndcg@3", against)
    (stairs,) = (line for line in axes.lines if line.get_drawstyle() != "default")
    front = [line.get_xydata()[0].tolist() for line in points(axes).values() if is_filled(line)]
    assert stairs.get_xydata().tolist() == sorted(front)
    is_higher = against == "coverage@3"
    assert stairs.get_drawstyle() == ("steps-pre" if is_higher else "steps-post")


def test_what_is_wrong_is_named(results):
    with pytest.raises(TypeError, match="'results' needs to be results by name"):
        plot.pareto(results["wide"], "ndcg@3", "coverage@3")
    with pytest.raises(ValueError, match="'level' needs to be"):
        plot.pareto(results, "ndcg@3", "coverage@3", level=2)
