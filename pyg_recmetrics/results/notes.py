"""The words of results: the paragraph for a paper, and all notes below tables."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from pyg_recmetrics.results.counts import RowNouns, Sampling
from pyg_recmetrics.results.statistics import FEW_HITS, FEW_RUNS, FEW_USERS, Array, Basis
from pyg_recmetrics.results.verdicts import PairedDifference, Protocol, Verdict
from pyg_recmetrics.tables import format_level, format_p
from pyg_recmetrics.utils import counted, list_some

#: What is said where a recommender has two runs.
ON_TWO_RUNS = "two runs hardly tell how much runs vary: intervals are wide, or too narrow"


def note_on_calls(num_calls: int, nouns: RowNouns) -> str | None:
    """Returns what is said of the best of several calls: its mean is too good to be expected."""
    if num_calls == 1:
        return None
    return f"the best of {num_calls:,} calls on these {nouns.users}"


def note_on_budget(num_trials: int | None, seconds: float | None) -> str | None:
    """Says how a recommender was tuned; `None` if that is not known, or there is nothing to say."""
    trials = f"tuned in {counted(num_trials, 'trials')}" if num_trials else None
    took = None if seconds is None else f"tuning and training took {seconds:,.1f} s"
    return ", ".join(filter(None, [trials, took])) or None


def note_on_copies(num_results: int, num_runs: int, name: str = "") -> str | None:
    """Returns what is said of runs whose rankings are equal; `None` if there are none."""
    if num_results == num_runs:
        return None
    of = f" of {name}" if name else ""
    same = "the same ranking" if num_runs == 1 else f"{num_runs} different rankings"
    return (
        f"{num_results} runs{of} are {same}: is the seed set inside? They count as "
        f"{'one' if num_runs == 1 else num_runs}"
    )


def note_on_near_copies(name: str, share: float) -> str:
    """Returns what is said of runs that differ for few users, as those of one seed may."""
    return (
        f"the runs of {name} hardly differ (for {100 * share:.2g}% of users with a hit): is the "
        f"seed set inside? Stars beside it are of these runs alone"
    )


def note_on_intervals(
    level: float, person: Array | None, nouns: RowNouns, num_runs: int = 1
) -> str:
    """Returns the line below a table that says what its intervals are."""
    note = f"±: {format_level(level)} confidence interval of the mean"
    if num_runs > 1:
        return f"{note} for other {nouns.drawn} and other runs"
    if person is None:
        return f"{note} over {nouns.means}"
    num_drawn = len(np.unique(person))
    return f"{note} over {nouns.means}, for other {nouns.drawn} ({num_drawn:,} behind all rows)"


def note_on_bounds(sampling: Sampling, nouns: RowNouns) -> str:
    """Returns the line below a table that says what its bounds are."""
    together = " for all metrics together" if len(sampling.bounds) > 1 else ""
    return (
        f"±: the mean over {_who_counts(sampling, nouns)} is within it, with "
        f"{format_level(sampling.level)} confidence{together}"
    )


def note_on_sampling(sampling: Sampling, nouns: RowNouns) -> str:
    """Returns the line below a table that says why no more users were ranked."""
    if sampling.is_complete:
        return f"all {nouns.users} were ranked"
    until = "as many as 'max_users', before" if sampling.stopped == "max_users" else "until"
    return (
        f"{sampling.num_ranked:,} of {sampling.num_users:,} {nouns.users} with ground truth were "
        f"drawn (seed {sampling.seed}), {until} {_wanted(sampling)}"
    )


def describe_sampling(sampling: Sampling, nouns: RowNouns) -> str:
    """Returns which users were ranked, in words for a recipe."""
    if sampling.is_complete:
        return f"all {sampling.num_users:,} {nouns.users} with ground truth"
    bounds = (
        f"{name} from {low:.4f} to {high:.4f}" for name, (low, high) in sampling.bounds.items()
    )
    return (
        f"{note_on_sampling(sampling, nouns)}, by a betting confidence sequence without "
        f"replacement of level {sampling.level:g} for the mean over "
        f"{_who_counts(sampling, nouns)} ({', '.join(bounds)})"
    )


def _who_counts(sampling: Sampling, nouns: RowNouns) -> str:
    """Returns which users the means with bounds are over."""
    numbers = {sampling.num_counted[name] for name in sampling.bounds}
    if len(numbers) == 1 and max(numbers) >= sampling.num_users:
        return f"all {numbers.pop():,} {nouns.users}"
    return f"all {nouns.users} with a value"


def _wanted(sampling: Sampling) -> str:
    margins = sampling.margins
    if len(set(margins.values())) == 1 and len(margins) == len(sampling.num_counted):
        return f"every mean is known to ± {next(iter(margins.values())):g}"
    each = ", ".join(f"{name} ± {margin:g}" for name, margin in margins.items())
    return f"means are known to their margins ({each})"


def describe_samples(
    samples: Mapping[str, Sampling | None], nouns: RowNouns, purpose: str = "are compared"
) -> str | None:
    """Returns whose users stand for all of the task; `None` if none do.

    Args:
        samples (mapping): How users were drawn, by the name of the result; `None` if all were.
        nouns (RowNouns): What users are called.
        purpose (str, optional): What the users are needed for that all results have ranked.
    """
    drawn = {name: sample for name, sample in samples.items() if sample is not None}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    sizes = [f"{sample.num_ranked:,} for {name}" for name, sample in drawn.items()]
    return (
        f"of {first.num_users:,} {nouns.users}, a 'margin' drew {list_some(sizes)}; only users "
        f"ranked in every result {purpose}"
    )


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


def notes_on_comparison(
    protocol: Protocol, rows: Sequence[PairedDifference], are_from_best: bool
) -> Iterator[str]:
    """Says how some of the differences were tested."""
    yield _on_intervals(protocol, rows)
    if are_from_best:
        yield "reference: the best mean of a metric; p-values are adjusted for all pairs"
    if any(not math.isnan(row.p_value) for row in rows):
        yield from _on_tests(protocol)
    if protocol.has_runs:
        counts = ", ".join(f"{number} of {name}" for name, number in protocol.num_runs.items())
        yield f"runs: {counts}; wins are averaged over pairs of runs"
    yield from notes_on_limits(protocol, rows, "(*): for these trained models")
    yield from protocol.remarks


#: How a table of means marks what is significantly better or worse.
MARKS: Mapping[Verdict | None, str] = {"better": "†", "worse": "‡"}


def note_on_marks(
    protocol: Protocol, rows: Sequence[PairedDifference], are_of_best: bool
) -> Iterator[str]:
    """Says what the marks in a table of means stand for, as far as there are any."""
    if all(math.isnan(row.p_value) for row in rows):
        return
    verdicts = {row.verdict for row in rows}
    said = [f"{x}: significantly {kind} than" for kind, x in MARKS.items() if kind in verdicts]
    none = f"no {'best' if are_of_best else 'proposed'} mean differs significantly from"
    other = "the next in a column" if are_of_best else "the best baseline"
    yield (
        f"{'; '.join(said) or none} {other} (paired t-test, {_on_correction(protocol)}, at "
        f"most {1 - protocol.level:.4g})"
    )
    yield from _on_looks(protocol)


def notes_on_limits(
    protocol: Protocol, rows: Sequence[PairedDifference], trained: str
) -> Iterator[str]:
    """Says what significant differences do not cover, and why intervals may be too narrow."""
    starred = [row for row in rows if row.p_adjusted <= protocol.alpha]
    compared = {name for row in starred for name in (row.a, row.b)}
    if single := [name for name in protocol.uncovered if name in compared]:
        yield f"{trained}; other seeds of {', '.join(single)} are not covered"
    if FEW_RUNS in protocol.num_runs.values():
        yield ON_TWO_RUNS
    if protocol.caution:
        yield protocol.caution


def _on_intervals(protocol: Protocol, rows: Sequence[PairedDifference]) -> str:
    if all(math.isnan(row.low) for row in rows):
        return "difference: from the reference; an interval and a test need values of two users"
    drawn = f", for other {protocol.nouns.drawn}"
    if protocol.has_runs:
        drawn += " and other runs"
    return (
        f"difference: from the reference, over {protocol.nouns.means}, ± its "
        f"{format_level(protocol.level)} confidence interval{drawn}"
    )


def _on_tests(protocol: Protocol) -> Iterator[str]:
    yield (f"p: paired t-test, {_on_correction(protocol)}; *: at most {1 - protocol.level:.4g}")
    if protocol.num_tests > 1:
        yield "intervals are not corrected for several tests"
    yield from _on_looks(protocol)
    if protocol.equivalence is not None:
        yield (
            f"equivalent: the difference is smaller than {protocol.equivalence}"
            f"{' of the other mean' if protocol.equivalence.is_share else ''}, by two one-sided "
            f"tests"
        )


def _on_looks(protocol: Protocol) -> Iterator[str]:
    """Says that several metrics, cut-offs or data sets were looked at."""
    numbers = {"metrics": protocol.num_tested_metrics, "data sets": protocol.num_data_sets}
    if looked := [counted(number, what) for what, number in numbers.items() if number > 1]:
        yield f"{' and '.join(looked)} were looked at: decide by what was chosen before"


def _on_correction(protocol: Protocol) -> str:
    if protocol.num_tests == 1:
        return "a single test"
    metrics = counted(protocol.num_tested_metrics, "metrics")
    where = f" on {protocol.num_data_sets} data sets" if protocol.num_data_sets > 1 else ""
    return f"adjusted for {protocol.num_tests} tests of {metrics}{where} by Holm's method"
