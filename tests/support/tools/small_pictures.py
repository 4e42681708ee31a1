"""Small results to draw, every picture, and what is on it, all in the units of the screen."""

import itertools

import numpy as np
import torch
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from pyg_recmetrics import RankingTask, compare, evaluate, plot

NUM_USERS, NUM_ITEMS = 60, 40

PICTURES = {
    "metric_at_k": lambda results, **options: plot.metric_at_k(results, "ndcg", **options),
    "precision_recall_curve": plot.precision_recall_curve,
    "metric_by_degree": lambda results, **options: plot.metric_by_degree(
        results, "recall@5", bins=4, **options
    ),
    "long_tail": lambda results, **options: plot.long_tail(results, k=5, **options),
}

#: Those that have axes for each metric.
FORESTS = {
    "means": plot.means,
    "differences": lambda results: plot.differences(_beside_close_ones(results["Good"])),
}


def scores_like(skill):
    """Scores by a formula, which no version of a random generator can change."""
    users, items = torch.arange(NUM_USERS).unsqueeze(1), torch.arange(NUM_ITEMS)
    noise = (users * 37 + items * 101 + users * items * 13) % 97 / 97
    return noise + skill * ((users * 3 + items * 7) % 10 < 2)


def make_task(modulus=10):
    users, items = torch.arange(NUM_USERS).unsqueeze(1), torch.arange(NUM_ITEMS)
    truth = ((users * 3 + items * 7) % modulus < 2) & (users % 9 > 0)
    seen = ~truth & ((users * items * 5 + users) % 60 < 70 // (items + 1) + users // 6)
    return RankingTask(
        truth.nonzero().t(), seen=seen.nonzero().t(), num_users=NUM_USERS, num_items=NUM_ITEMS
    )


def three_results():
    """The results of two recommenders and of what is popular; users have many ties."""
    task = make_task()
    popular = torch.bincount(task.seen[1], minlength=NUM_ITEMS).float()
    recommenders = {"Good": scores_like(0.5), "Fair": scores_like(0.2), "Popular": popular}
    return {
        name: evaluate(recommender, task, ["recall@5", "ndcg@10"], keep_items=True)
        for name, recommender in recommenders.items()
    }


def many_results(number):
    """Results with long names."""
    task = make_task()
    return {
        f"LightGCN with {layer} layers, 64 dims": evaluate(
            scores_like(0.04 * layer), task, ["recall@5", "ndcg@10"], keep_items=True
        )
        for layer in range(number)
    }


def _beside_close_ones(good):
    """The differences of a result from two that are alike, and from one that is far worse."""
    skills = {"Nearly as good, under a name of 40 letters": 0.48, "Better": 0.55, "Far worse": -0.5}
    others = {
        name: evaluate(scores_like(skill), make_task(), ["recall@5", "ndcg@10"])
        for name, skill in skills.items()
    }
    return compare({"Good": good, **others}, baseline="Good", equivalence="2%").select(name="Good")


def lines(axes):
    """The lines of axes, by their names."""
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def note(picture):
    """What stands above the axes, in one line."""
    return picture.axes.get_title().replace("\n", " ")


def texts(figure):
    """All texts that are drawn, with their boxes."""
    hidden = {
        label
        for axis in figure.findobj(Axis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    shown = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in hidden
    ]
    # The labels of axes are found twice, as parts of the axes and of their ticks.
    return {text: text.get_window_extent() for text in dict.fromkeys(shown)}


def points(axes):
    """Points on all lines, bars and edges of bands, at most a pixel or so apart."""
    corners = [
        line.get_transform().transform(_as_drawn(line))
        for line in axes.lines
        if len(line.get_xdata())
    ]
    for collection in axes.collections:
        paths = (
            collection.get_segments()
            if isinstance(collection, LineCollection)
            else [path.vertices for path in collection.get_paths()]
        )
        corners += [collection.get_transform().transform(path) for path in paths]
    steps = np.linspace(0, 1, 500)[:, None, None]
    return np.concatenate(
        [
            (each[:-1] + steps * (each[1:] - each[:-1])).reshape(-1, 2)
            for each in corners
            if len(each) > 1
        ]
        + corners
    )


def assert_apart(figure):
    """Nothing runs together."""
    found = texts(figure)
    assert len(found) > 4
    for (one, box), (other, other_box) in itertools.combinations(found.items(), 2):
        shared = Bbox.intersection(box, other_box)
        assert shared is None or min(shared.width, shared.height) < 0.5, (
            one.get_text(),
            other.get_text(),
        )


def assert_inside(figure):
    """Nothing is cut off."""
    for text, box in texts(figure).items():
        assert figure.bbox.padded(1).contains(*box.min), text.get_text()
        assert figure.bbox.padded(1).contains(*box.max), text.get_text()


def _as_drawn(line):
    x, y = line.get_data()
    if line.get_drawstyle() == "steps-pre":  # first up or down, then to the right
        x, y = np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
    return np.column_stack([x, y])
