"""The section of a report on whom and what a recommender fails, and for whom it is better."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from pyg_recmetrics import plot
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.by_slice import height
from pyg_recmetrics.reporting.contents import Contents
from pyg_recmetrics.reporting.parts import Grid, Missing, Part, Remarks, drawing
from pyg_recmetrics.results import Slice, Slices

#: What keeps slices from being looked for. The error says in plain words what it needs.
_REASONS = (ImportError, ValueError)


class _Question(NamedTuple):
    """What to ask.

    Attributes:
        title: What the slices are of.
        find: Finds them.
        say: Says what was found in a sentence.
    """

    title: str
    find: Callable[[], Slices]
    say: Callable[[str, Slices], str]


def weak_spots(contents: Contents, data_set: str = "") -> Iterator[Part]:
    """A sentence for each question, and below them what was found.

    Args:
        contents (Contents): What the report is about.
        data_set (str, optional): One of several data sets, of which there are no pictures, to keep
            the page short. (default: `""`, there is only one)
    """
    if not contents.metrics:
        yield Missing("Weak spots", "they need a metric of single users that all results have")
        return
    texts: list[str] = []
    found: dict[str, Slices] = {}
    for title, find, say in _questions(contents, f" on {data_set}" if data_set else ""):
        try:
            slices = find()
        except _REASONS as error:
            yield Missing(f"Groups in {title}", str(error))
            continue
        if not slices.num_candidates:
            yield Missing(f"Groups in {title}", slices.nothing)
            continue
        texts.append(say(title, slices))
        if slices:
            found[title] = slices
    if texts:
        yield Remarks(texts, "claims")
    for part in (_numbers,) if data_set else (_picture, _numbers):
        yield from (part(title, slices) for title, slices in found.items())


def _questions(contents: Contents, on: str) -> Iterator[_Question]:
    """Asks for users and items of the best recommender, and of it beside the second."""
    best, metric, recall = contents.best, contents.main_metric, Metric("recall", contents.k)
    recommender, of = contents.recommenders[best], f"{f' of {best}' if best else ''}{on}"
    yield _Question(f"{metric}{of}", partial(recommender.slices, metric), _on_mean)
    yield _Question(f"{recall}{of}", partial(recommender.item_slices, recall), _on_mean)
    if len(contents.recommenders) > 1:
        second = contents.best_but(best)
        find = partial(recommender.slices, metric, against=contents.recommenders[second])
        yield _Question(f"{best} - {second} in {metric}{on}", find, _on_difference)


def _picture(title: str, slices: Slices) -> Part:
    caption = (
        f"{title}, for groups of {slices.question.unit} that were looked for on one half of them, "
        f"and measured on the other. The higher a bar, the larger its group."
    )
    draw = partial(plot.slices, slices)
    return drawing(title, caption, draw, height=height(len(slices)), kind="forest")


def _numbers(title: str, slices: Slices) -> Part:
    fold = f"Numbers on {title}, by group of {slices.question.unit}"
    return Grid(f"{title}, the largest effect first.", slices.table(), fold=fold)


def _on_mean(title: str, slices: Slices) -> str:
    """Says whom, or what, a recommender fails."""
    if not slices:
        return f"{title}: {slices.nothing}."
    first, unit = slices[0], slices.question.unit
    side = "below" if first.difference < 0 else "above"
    never = f", of which {100 * first.zeros:.0f}% are never found" if unit == "items" else ""
    return (
        f"{title} is {side} its mean for {unit} with {_who(first)}{never}: {first.mean:.3f}, where "
        f"all {unit} have {slices.mean:.3f}."
    )


def _on_difference(title: str, slices: Slices) -> str:
    """Says for whom one recommender is ahead of another."""
    if not slices:
        return f"{title}: {slices.nothing}."
    first, unit = slices[0], slices.question.unit
    return (
        f"{title} is {first.mean:+.3f} for {unit} with {_who(first)}, where it is "
        f"{slices.mean:+.3f} for all {unit}."
    )


def _who(row: Slice) -> str:
    return f"{row.conditions} ({100 * row.share:.0f}%)"
