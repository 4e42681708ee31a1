"""The words of results: the paragraph for a paper, and all notes below tables.

Sentences stand in `words.jinja`. What is said of a comparison in numbers stands here.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import (
    ONE_SCORE_PER_ITEM,
    TIES_IN_WORDS,
    RankedEdges,
    candidates_of,
)
from pyg_recmetrics.results.statistics import FEW_HITS, FEW_RUNS, FEW_USERS, Mean
from pyg_recmetrics.results.verdicts import PairedDifference, Verdict
from pyg_recmetrics.tables import format_level, p_in_words
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import all_items, counted, list_some, verb
from pyg_recmetrics.version import __version__

#: How a table of means marks what is significantly better or worse.
MARKS: Mapping[Verdict | None, str] = {"better": "†", "worse": "‡"}

#: How the sentences of a recipe begin, in their order.
RECIPE = ("Metrics", "Population", "Ranking", "Computed", "Training", "Runs", "Caution")

#: How wide a recipe is printed.
_NUM_COLUMNS = 88

#: Above what a mean is too good to go without a question.
TOO_GOOD = 0.99

#: How many seen edges are enough to learn from, and how many hits are enough to tell chance from
#: three times as many.
_ENOUGH_SEEN, _ENOUGH_HITS = 100, 10


#: The line ends and spaces of `words.jinja`, which are others than those in names.
_END, _SPACE = "\x1e", "\x1f"


class _Layout(Extension):
    """Marks the line ends and spaces of sentences, to tell them from those in names."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Replaces them in all that is written out."""
        marks = str.maketrans({"\n": _END, " ": _SPACE})
        for number, kind, text in stream:
            yield Token(number, kind, text.translate(marks) if kind == "data" else text)


def _lines_of(text: str) -> list[str]:
    """Returns the lines of a text, of which an indented one goes on with the one before."""
    filled = _END.join(line for line in text.split(_END) if line.strip())
    joined = re.sub(f"{_END}{_SPACE}*(?=[,.;:)])", "", filled)
    spaced = re.sub(f" *(?:{_END}?{_SPACE})+ *", " ", joined)
    return spaced.strip(f" {_END}").split(_END)


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


def as_sentence(text: str, names: Iterable[str] = ()) -> str:
    """Ends a text, and begins it with a capital letter, unless a name begins it."""
    starts = tuple(f"{name}{end}" for name in names for end in " :,")
    begin = text[0] if text.startswith(starts) else text[0].upper()
    return f"{begin}{text[1:]}{'' if text.endswith('?') else '.'}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _in_words(definitions: Iterable[Metric]) -> str:
    """Returns what the metrics are, with one definition for all cut-offs of a metric."""
    cut_offs: dict[tuple[str, str, bool], list[str]] = {}
    for metric in definitions:
        # A metric without a cut-off, such as "mrr", is no cut-off of "mrr@10".
        same = cut_offs.setdefault((metric.name, metric.variant, metric.k is None), [])
        same.append("" if metric.k is None else f"@{metric.k}")
    said = []
    for (name, variant, _), same in cut_offs.items():
        # Two metrics may differ in an argument that has no effect.
        spelled = name + _listed(dict.fromkeys(same))
        said.append(f"{spelled} ({variant})" if variant else spelled)
    return "; ".join(said)


_environment = Environment(
    extensions=[_Layout],
    line_statement_prefix="%",
    trim_blocks=True,
    undefined=StrictUndefined,
    finalize=lambda value: "" if value is None else value,
)
_environment.filters |= {
    "counted": counted,
    "in_words": _in_words,
    "joined": lambda text, sign=", ": sign.join(_lines_of(text)),
    "level": format_level,
    "lift": lift_in_words,
    "listed": _listed,
    "lines": _lines_of,
    "n": lambda number, form="": format(number, f",{form}"),
    "p": p_in_words,
    "sentence": as_sentence,
    "num_different": lambda values: len(np.unique(values)),
    "some": list_some,
    "verb": verb,
}
_environment.globals |= {
    "FEW_RUNS": FEW_RUNS,
    "NOT_RETRIEVED": NOT_RETRIEVED,
    "LARGEST_LIFT": _LARGEST_LIFT,
    "all_items": all_items,
    "marks": MARKS,
    "TIES_IN_WORDS": TIES_IN_WORDS,
    "TOO_GOOD": TOO_GOOD,
    "version": __version__,
}
_sentences = (files(__package__) / "words.jinja").read_text(encoding="utf-8")
_words = _environment.from_string(_sentences).module


def lines(name: str, *values: Any, **more: Any) -> list[str]:
    """Returns the lines that a macro of `words.jinja` writes."""
    return [*filter(None, _lines_of(getattr(_words, name)(*values, **more)))]


def paragraph(text: str) -> str:
    """Returns a text in lines of one width."""
    return textwrap.fill(" ".join(text.split()), _NUM_COLUMNS, break_on_hyphens=False)


def line(name: str, *values: Any, **more: Any) -> str | None:
    """Returns the only line that a macro of `words.jinja` writes; `None` if there is none."""
    return next(iter(lines(name, *values, **more)), None)


def caution(
    of: Iterable[tuple[str, Mean]],
    means: str = "users",
    drawn: str = "users",
    *,
    are_differences: bool = False,
) -> str | None:
    """Returns what makes some intervals too narrow; `None` if nothing does.

    Args:
        of (iterable): Each metric with the mean, or the mean difference, that the interval is of.
        means (str, optional): What means are over. (default: `"users"`)
        drawn (str, optional): What is drawn. (default: `"users"`)
        are_differences (bool, optional): Whether they are intervals of differences, and not of
            means. (default: `False`)
    """
    known = [(metric, mean) for metric, mean in of if mean.num_drawn > 1]
    if not known:
        return None
    means_of = [mean for _, mean in known]
    fewest = min(means_of, key=lambda mean: mean.num_persons or mean.num_drawn)
    few_persons = line("few_persons", fewest, drawn) if fewest.has_few_persons else None
    if few_persons is None and fewest.num_drawn < FEW_USERS:
        return line(
            "caution", line("few_users", fewest, means if fewest.num_persons is None else drawn)
        )
    # Results that are the same differ in nothing, and not for few users.
    least = 1 if are_differences else 0
    can_be_skewed = are_differences or fewest.num_persons is not None
    skewed = [x for x in known if can_be_skewed and x[1].num_drawn < x[1].num_needed]
    doubts = lines(
        "doubts",
        few_persons,
        _metrics_of(x for x in known if least <= x[1].num_hits < FEW_HITS),
        _metrics_of(skewed),
        max((mean.num_needed for _, mean in skewed), default=0),
        _metrics_of(x for x in known if x[1].is_one_sided),
        means,
        drawn,
        are_differences,
    )
    return line("caution", ", and ".join(doubts))


def _metrics_of(means: Iterable[tuple[str, Mean]]) -> list[str]:
    return [*dict.fromkeys(metric for metric, _ in means)]


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
    yield lines("best", first)[0], [first]
    beaten = [row for row in others if row.verdict == "better"]
    if beaten:
        yield lines("also_better", first, beaten)[0], beaten
    if len(beaten) < len(others):
        yield lines("is_open", first, [row for row in others if row not in beaten])[0], ()


def once(remarks: Iterable[str]) -> list[str]:
    """Returns the remarks of runs, and those that differ in numbers alone once.

    Cut-offs and arguments of metrics are no numbers.
    """
    found: dict[str, list[str]] = {}
    for remark in remarks:
        found.setdefault(re.sub(r"(?<![@=.\w])[\d.,]*\d", "", remark), []).append(remark)
    return [
        said[0] if len({*said}) == 1 else f"in one of {len(said)} such runs, {said[0]}"
        for said in found.values()
    ]


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
        for note in dict.fromkeys(of_one):
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

    It looks at the top `k`, or `R` if a user has more relevant items and ranks are known so deep.
    Of all orders of `n` candidates, `k / n` have a relevant item in the top `k`. Hits are level
    with chance if they are less than twice as many, and not more by two standard errors. These are
    those of sums over items, as a wrong order gives many users the same items.
    """
    num_tied = ranked.num_tied
    is_own = ranked.origin.ranked_by != ONE_SCORE_PER_ITEM
    if num_tied is None or not is_own or task.excluded.size(1) < _ENOUGH_SEEN:
        return None
    user, item = ranked.edge_label_index
    can_be_hit = ranked._is_evaluated[user] & (num_tied >= 0)
    if not bool(can_be_hit.any()):
        return None
    user, item, rank = user[can_be_hit], item[can_be_hit], ranked.rank[can_be_hit]
    most = int(candidates_of(ranked).max())
    depth = min(ranked.depth or most, most // 10)
    # What has scores is ranked down to the number of relevant items of each user, too.
    is_deeper = ranked.origin.listed is None and int(ranked.degree.max()) > depth == ranked.depth
    k = ranked.degree[user].clamp(min=depth) if is_deeper else depth
    is_hit = (rank <= k).double()
    chance = (k / candidates_of(ranked)[user].double()).clamp(max=1)
    hits = int(is_hit.sum())
    expected = float(chance.sum())
    error = float(torch.bincount(item.cpu(), (is_hit - chance).cpu()).norm())
    if expected < _ENOUGH_HITS or hits >= expected + min(expected, 2 * error):
        return None
    is_tenth = depth < (ranked.depth or most)
    return line("chance", hits, rank.numel(), depth, is_deeper, is_tenth, expected)
