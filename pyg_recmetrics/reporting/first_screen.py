"""What a report says first: which recommender is better, and what to look at before trusting it."""

from collections.abc import Iterator, Sequence

from pyg_recmetrics import plot
from pyg_recmetrics.plot.forest import height
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.reporting.contents import Contents
from pyg_recmetrics.reporting.parts import Part, Remarks, drawing
from pyg_recmetrics.results import Comparison, EvaluationResult
from pyg_recmetrics.results.cautions import caution
from pyg_recmetrics.results.inference import Sample
from pyg_recmetrics.task.catalogue import check_has


def first_screen(contents: Contents) -> Iterator[Part]:
    """The claims, what makes them doubtful, and a forest of means and of differences."""
    comparison = contents.main_comparison
    if comparison is not None and (claims := comparison.claims()):
        yield Remarks(claims, "claims")
    if warnings := list(_warnings(contents)):
        yield Remarks(warnings, "warnings")
    if contents.split is not None and not contents.split.has_leaks:
        yield Remarks(["The split has no leaks."], "good")
    yield from _forest(contents)


def _forest(contents: Contents) -> Iterator[Part]:
    metrics = [str(metric) for metric in contents.small_metrics]
    if not metrics:
        return
    runs = " Ticks are single runs." if contents.several else ""
    # The table below has bounds on the mean over all users of the task.
    others = f" for other {contents.first.nouns.drawn}" if contents.num_sampled_from else ""
    yield drawing(
        "Means",
        f"The mean of every metric, with its 95% confidence interval{others}.{runs}",
        lambda ax: plot.means(contents.recommenders, metrics, ax=ax),
        height=height(len(metrics), len(contents.recommenders)),
        kind="forest",
    )
    comparison = contents.main_comparison
    compared = {
        row.metric for row in comparison or () if row.verdict is not None or row.low < row.high
    }
    metrics = [metric for metric in metrics if metric in compared]
    if comparison is None or not metrics:
        return
    shown = comparison.select(metrics)
    num_pairs = len({(row.a, row.b) for row in shown})
    zone = " The grey zone is too small to matter." if comparison.protocol.equivalence else ""
    yield drawing(
        "Differences",
        f"The paired difference of {_who(shown, list(contents.recommenders))}, with its "
        f"{'simultaneous ' if shown.protocol.are_together else ''}confidence interval: user by "
        f"user, so that what users have in common cancels out. A filled mark is significant.{zone}",
        lambda ax: plot.differences(shown, ax=ax),
        height=height(len(metrics), num_pairs),
        kind="forest",
    )


def _who(comparison: Comparison, names: Sequence[str]) -> str:
    """Says which recommenders are compared with which."""
    pairs = {(row.a, row.b) for row in comparison}
    common = set.intersection(*map(set, pairs))
    if len(names) == 2:
        return "the two recommenders"
    if len(pairs) == 1:
        return " and ".join(*pairs)
    if len(common) == 1:
        return f"{', '.join(common)} and each of the other recommenders"
    return "every two recommenders"


def _warnings(contents: Contents) -> Iterator[str]:
    """What may make the numbers of the page say less than they seem to."""
    comparison, first, largest = contents.comparison, contents.first, contents.largest
    if comparison is not None and (names := comparison.protocol.uncovered):
        those = "Its" if len(names) == 1 else "Their"
        yield f"One run of {', '.join(names)}. {those} other seeds may give other numbers."
    samples = {str(x): Sample.of(first.contributions(x), first.person) for x in contents.metrics}
    if note := caution(samples, first.nouns):
        yield f"{note[0].upper()}{note[1:]}."
    if contents.split is not None and contents.split.has_leaks:
        yield "The split leaks: see its checks below."
    if num_cold := _count_cold(largest.ranked):
        yield f"{num_cold:,} relevant items of users have no training edge."
    if num_tied := max(result.num_tied or 0 for result in contents.every):
        yield f"Up to {num_tied:,} relevant items have the same score as another candidate."
    if num_short := _count_short(largest, contents.k):
        yield f"{num_short:,} users have fewer than {contents.k} recommended items."


def _count_short(result: EvaluationResult, k: int) -> int:
    """Returns how many users with ground truth have a shorter list than `k`."""
    ranked = result.ranked
    if ranked.lists is None:
        return result.num_with_few_candidates or 0
    is_short = ranked.lists.length(k) < k
    return int((is_short & ranked.is_evaluated & (ranked.degree > 0)).sum())


def _count_cold(ranked: RankedEdges) -> int:
    """Returns how many ground-truth edges lead to items that nobody has seen."""
    try:
        check_has(ranked.catalogue, "popularity", "report")
    except ValueError:
        return 0
    popularity = ranked.required_catalogue.popularity
    return int((popularity[ranked.edge_label_index[1].to(popularity.device)] == 0).sum())
