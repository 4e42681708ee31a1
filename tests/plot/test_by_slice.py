"""The picture of slices."""

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, plot
from pyg_recmetrics.plot.picture import description_of

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def result():
    """A result that is bad for a fourth of the users, and very bad for a tenth."""
    user = torch.arange(2000)
    task = RankingTask(torch.stack([user, user % 7]), num_users=2000, num_items=7)
    generator = torch.Generator().manual_seed(0)
    is_bad = (user % 4 == 0) & (torch.rand(2000, generator=generator) < 0.6) | (user % 10 == 1)
    scores = torch.nn.functional.one_hot(user % 7, 7) * (~is_bad[:, None])
    return evaluate(scores.float(), task, "recall@2", ties="worst")


@pytest.fixture(scope="module")
def names():
    return ["a long name and one more" if user % 10 == 1 else "$_x" for user in range(2000)]


@pytest.fixture(scope="module")
def slices(result, names):
    fourth = [user % 4 == 0 for user in range(2000)]
    return result.slices("recall@2", {"fourth": fourth, "name": names})


def test_a_bar_is_as_long_as_the_difference_and_as_thick_as_the_share(slices):
    assert {row.conditions for row in slices} == {
        "fourth = True",
        "name = a long name and one more",
    }
    _, axes = plot.slices(slices)
    largest = max(row.share for row in slices)
    for place, (row, bar) in enumerate(zip(slices, axes.patches, strict=True)):
        assert bar.get_width() == pytest.approx(row.difference)
        assert bar.get_height() == pytest.approx(0.8 * row.share / largest)
        assert bar.get_y() + bar.get_height() / 2 == pytest.approx(place)
        line = next(line for line in axes.lines if list(line.get_ydata()) == [place, place])
        assert list(line.get_xdata()) == [row.low, row.high]
        for mark in (bar, line):
            text = description_of(mark).text
            assert text.startswith(f"{row.conditions}: {row.difference:.4f} ± ")
            assert text.endswith(f", {100 * row.share:.0f}%, mean {row.mean:.3f}")
    assert axes.get_xlabel() == "recall@2, difference from all users"
    lowest, highest = axes.get_ylim()
    assert lowest > highest  # the first one is on top


def test_colours_say_the_direction(result, names):
    scores = torch.nn.functional.one_hot(result.task.truth[1]).float()
    perfect = evaluate(scores, result.task, "recall@2", ties="worst")
    for first, second in ((result, perfect), (perfect, result)):
        found = first.slices("recall@2", {"name": names}, against=second)
        _, axes = plot.slices(found)
        colors = {bar.get_facecolor() for bar in axes.patches}
        signs = {row.difference > 0 for row in found}
        assert len(colors) == len(signs) > 0
        assert axes.get_xlabel() == "recall@2, a - b, difference from all users"


def test_names_are_shown_as_they_are(result):
    dollars = ["$a_1$" if user % 10 == 1 else "b" for user in range(2000)]
    _, axes = plot.slices(result.slices("recall@2", {"_x": dollars}))
    (label, *_) = (text.get_text() for text in axes.get_yticklabels())
    assert label == r" _x = \$a_1\$"


def test_on_given_axes(slices):
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert plot.slices(slices, ax=left) == (figure, left)
    plot.slices(slices, ax=right)
    figure.canvas.draw()
    ends = [text.get_window_extent().x1 for text in left.texts]
    starts = [text.get_window_extent().x0 for text in right.get_yticklabels()]
    assert max(ends) <= min(starts)


def test_what_cannot_be_drawn_is_named(result):
    with pytest.raises(TypeError, match=r"'slices' needs to be 'Slices' \(got EvaluationResult"):
        plot.slices(result)
    with pytest.raises(ValueError, match="needs to hold a slice"):
        plot.slices(result.slices("recall@2", min_users=900))
