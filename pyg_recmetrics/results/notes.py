"""The words of results: the paragraph for a paper, and all notes below tables.

Sentences stand in `words.jinja`. What is said of a comparison in numbers stands here.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, StrictUndefined

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import (
    ONE_SCORE_PER_ITEM,
    RankedEdges,
    candidates_of,
    evaluated_mask,
)
from pyg_recmetrics.results.statistics import FEW_HITS, FEW_RUNS, FEW_USERS, Basis
from pyg_recmetrics.results.verdicts import PairedDifference, Verdict
from pyg_recmetrics.tables import format_level, format_p
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import all_items, counted, list_some, verb
from pyg_recmetrics.version import __version__

#: How a table of means marks what is significantly better or worse.
MARKS: Mapping[Verdict | None, str] = {"better": "†", "worse": "‡"}

#: Above what a mean is too good to go without a question.
TOO_GOOD = 0.99

#: How many seen edges are enough to learn from, and how many hits are enough to tell chance from
#: three times as many.
_ENOUGH_SEEN, _ENOUGH_HITS = 100, 10


def _lines_of(text: str) -> list[str]:
    """Returns the lines of a text, of which an indented one goes on with the one before."""
    filled = [line for line in text.split("\n") if line.strip()]
    joined = re.sub(r"\n *(?=[,.;:])", "", "\n".join(filled))
    return re.sub(r" *\n +| {2,}", " ", joined).strip().split("\n")


_environment = Environment(
    line_statement_prefix="%",
    trim_blocks=True,
    undefined=StrictUndefined,
    finalize=lambda value: "" if value is None else value,
)
_environment.filters |= {
    "counted": counted,
    "joined": lambda text, sign=", ": sign.join(_lines_of(text)),
    "level": format_level,
    "lines": _lines_of,
    "n": lambda number, form="": format(number, f",{form}"),
    "num_different": lambda values: len(np.unique(values)),
    "some": list_some,
    "verb": verb,
}
_environment.globals |= {
    "FEW_RUNS": FEW_RUNS,
    "all_items": all_items,
    "marks": MARKS,
    "TOO_GOOD": TOO_GOOD,
    "version": __version__,
}
_sentences = (files(__package__) / "words.jinja").read_text(encoding="utf-8")
_words = _environment.from_string(_sentences).module


def lines(name: str, *values: Any, **more: Any) -> list[str]:
    """Returns the lines that a macro of `words.jinja` writes."""
    return [*filter(None, _lines_of(getattr(_words, name)(*values, **more)))]


def line(name: str, *values: Any, **more: Any) -> str | None:
    """Returns the only line that a macro of `words.jinja` writes; `None` if there is none."""
    return next(iter(lines(name, *values, **more)), None)


def caution(
    bases: Iterable[Basis],
    means: str = "users",
    drawn: str = "users",
    *,
    are_differences: bool = False,
) -> str | None:
    """Returns what makes some intervals too narrow; `None` if nothing does.

    Args:
        bases (iterable of Basis): What the interval of each metric rests on.
        means (str, optional): What means are over. (default: `"users"`)
        drawn (str, optional): What is drawn. (default: `"users"`)
        are_differences (bool, optional): Whether they are intervals of differences, and not of
            means. (default: `False`)
    """
    bases = [basis for basis in bases if basis.num_drawn > 1]
    if not bases:
        return None
    fewest = min(bases, key=lambda basis: basis.num_persons or basis.num_drawn)
    few_persons = fewest.few_persons(drawn)
    if few_persons is None and fewest.num_drawn < FEW_USERS:
        return _said(f"there are few {means} ({fewest.num_drawn})")
    # Results that are the same differ in nothing, and not for few users.
    least, do = (1, "differ") if are_differences else (0, "have more than zero")
    reasons = [few_persons]
    if rare := [basis for basis in bases if least <= basis.num_hits < FEW_HITS]:
        reasons.append(f"few {means} {do} in {_metrics_of(rare)}")
    what = "differences" if are_differences else f"the means of {drawn}"
    reasons.append(_skewed(bases, what, drawn))
    if one_sided := [basis for basis in bases if basis.is_one_sided]:
        reasons.append(f"all {means} who differ in {_metrics_of(one_sided)} do so in one direction")
    return _said(*reasons)


def _metrics_of(bases: Iterable[Basis]) -> str:
    return ", ".join(dict.fromkeys(basis.metric for basis in bases))


def _skewed(bases: Iterable[Basis], what: str, drawn: str) -> str | None:
    skewed = [basis for basis in bases if basis.num_drawn < basis.num_needed]
    if not skewed:
        return None
    needed = max(basis.num_needed for basis in skewed)
    return f"{what} are skewed in {_metrics_of(skewed)}, which takes {needed:,} {drawn}"


def _said(*reasons: str | None) -> str | None:
    text = ", and ".join(filter(None, reasons))
    return f"intervals may be too narrow: {text}" if text else None


#: A lift in per cent from which on it is said as a multiple.
_LARGEST_LIFT = 200


def lift_in_words(row: PairedDifference, missing: str = "") -> str:
    """Returns the lift of a difference, and something else if it has none."""
    if math.isnan(row.lift):
        return missing
    if row.lift < _LARGEST_LIFT:
        return f"{row.lift:+.1f}%"
    times = 1 + row.lift / 100
    return f"{times:.0f} x" if times >= 10 else f"{times:.1f} x"


_VERDICTS = ("better", "worse", "equivalent", "inconclusive")


def clauses(
    rows: Sequence[PairedDifference], bound: Callable[[PairedDifference], float | None]
) -> Iterator[str]:
    """Yields what the verdicts on a pair are, and in which metrics."""
    a, b = rows[0].a, rows[0].b
    of = {kind: [row for row in rows if row.verdict == kind] for kind in _VERDICTS}
    for verdict in ("better", "worse"):
        if found := of[verdict]:
            yield f"{a} is {verdict} than {b} in {_listed(map(_with_size, found))}"
    if found := of["equivalent"]:
        within = (f"{row.metric} (within ± {bound(row):.2g})" for row in found)
        yield f"{a} is as good as {b} in {_listed(within)}"
    if found := of["inconclusive"]:
        who = f" between {a} and {b}" if len(found) == len(rows) else ""
        are = "is" if len(found) == 1 else "are"
        yield f"{_listed(map(_with_p, found))} {are} undecided{who}"


def claims_on_best(
    rows: Sequence[PairedDifference],
) -> Iterator[tuple[str, Sequence[PairedDifference]]]:
    """Yields a sentence on the best recommender and the next, and one on it and all others.

    Each comes with the differences that it claims.

    Args:
        rows (sequence): The differences of the best from each of the others in one metric, in the
            order of their means.
    """
    first, *others = rows
    a, b, metric = first.a, first.b, first.metric
    means = f"{metric} {first.mean_a:.4g} and {first.mean_b:.4g}"
    if first.verdict == "better":
        yield f"{a} is best: {metric} {first.mean_a:.4g}, {_ahead(first)} {b}", [first]
    elif first.verdict == "equivalent":
        yield f"{a} is as good as {b}: {means} ({_between(first)})", [first]
    elif first.verdict is None:
        yield f"{a} has the best mean: {means} of {b}, which were not tested", [first]
    else:
        how = f"{_between(first)}, p = {format_p(first.p_adjusted)}"
        yield f"it is open whether {a} or {b} is best: {means} ({how})", [first]
    if beaten := [row for row in others if row.verdict == "better"]:
        also = " also" if first.verdict == "better" else ""
        sizes = (f"{row.b} ({lift_in_words(row, f'{row.difference:+.3g}')})" for row in beaten)
        yield f"{a} is{also} better than {_listed(sizes)}", beaten
    if open_ := [row.b for row in others if row.verdict != "better"]:
        yield f"whether {a} is better than {_listed(open_)} is open", ()


def _ahead(row: PairedDifference) -> str:
    side = "above" if row.difference > 0 else "below"
    if math.isnan(row.lift_high - row.lift_low):
        low, high = sorted((abs(row.low), abs(row.high)))
        return f"{abs(row.difference):.3g} ({low:.3g} to {high:.3g}) {side}"
    if row.lift >= _LARGEST_LIFT:
        low, high = (1 + end / 100 for end in (row.lift_low, row.lift_high))
        return f"{lift_in_words(row)} ({low:.1f} to {high:.1f}) that of"
    low, high = sorted((abs(row.lift_low), abs(row.lift_high)))
    return f"{abs(row.lift):.1f}% ({low:.1f} to {high:.1f}) {side}"


def _between(row: PairedDifference) -> str:
    if math.isnan(row.lift_high - row.lift_low):
        return f"{row.low:+.3g} to {row.high:+.3g}"
    return f"{row.lift_low:+.1f}% to {row.lift_high:+.1f}%"


def _with_size(row: PairedDifference, more: str = "") -> str:
    numbers = (f"{row.difference:+.4f}", lift_in_words(row), more)
    return f"{row.metric} ({', '.join(filter(None, numbers))})"


def _with_p(row: PairedDifference) -> str:
    return _with_size(row, f"p = {format_p(row.p_adjusted)}")


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def notes_of_all(notes: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns each note once, after the names that it is about if these are not all.

    Args:
        notes (mapping): The notes on each recommender, or on each data set.

    Example:
        >>> notes_of_all({"A": ["all", "some"], "B": ["all"]})
        ['all', 'A: some']
    """
    names: dict[str, list[str]] = {}
    for name, of_one in notes.items():
        for note in of_one:
            names.setdefault(note, []).append(name)
    return [
        note if len(about) == len(notes) else f"{', '.join(about)}: {note}"
        for note, about in names.items()
    ]


def note_on_chance(task: RankingTask, ranked: RankedEdges) -> str | None:
    """Returns a question about scores that rank no better than chance; `None` if they do.

    Such a model may number users or items in another order, or give better items lower scores. One
    that is not trained is asked about, too: hence this is a line of a result, and no warning in
    every epoch. It looks at the ranks of the truth, also where the scores of what was seen are no
    longer there to be asked about. Seen items that are not left out stand before the truth, and
    then nothing is said.

    Of all orders of `n` candidates, `k / n` have a relevant item in the top `k`. Hits are level
    with chance if they are less than twice as many, and not more by two standard errors. These are
    those of sums over items, as a wrong order gives many users the same items.
    """
    num_tied = ranked.num_tied
    is_own = ranked.origin.ranked_by != ONE_SCORE_PER_ITEM
    if num_tied is None or not is_own or task.excluded.size(1) < _ENOUGH_SEEN:
        return None
    user, item = ranked.edge_label_index
    can_be_hit = evaluated_mask(ranked)[user] & (num_tied >= 0)
    user, item, rank = user[can_be_hit], item[can_be_hit], ranked.rank[can_be_hit]
    most = int(candidates_of(ranked).max())
    k = min(ranked.depth or most, most // 10)
    is_hit = (rank <= k).double()
    chance = (k / candidates_of(ranked)[user].double()).clamp(max=1)
    hits = int(is_hit.sum())
    expected = float(chance.sum())
    error = float(torch.bincount(item.cpu(), (is_hit - chance).cpu()).norm())
    if expected < _ENOUGH_HITS or hits >= expected + min(expected, 2 * error):
        return None
    return (
        f"{hits:,} of {counted(rank.numel(), 'relevant items')} are in the top {k:,}, and "
        f"{expected:,.0f} would be by chance: is the recommender trained, are its ids in the order "
        f"of the task, and are higher scores better?"
    )


def in_words(definitions: Iterable[Metric]) -> str:
    """Says what the metrics are, with one definition for all cut-offs of a metric."""
    cut_offs: dict[tuple[str, str, bool], list[str]] = {}
    for metric in definitions:
        # A metric without a cut-off, such as "mrr", is no cut-off of "mrr@10".
        same = cut_offs.setdefault((metric.name, metric.variant, metric.k is None), [])
        cut_off = "" if metric.k is None else f"@{metric.k}"
        if cut_off not in same:  # Two metrics may differ in an argument that has no effect.
            same.append(cut_off)
    said = []
    for (name, variant, _), (*others, last) in cut_offs.items():
        spelled = name + (f"{', '.join(others)} and {last}" if others else last)
        said.append(f"{spelled} ({variant})" if variant else spelled)
    return "; ".join(said)
