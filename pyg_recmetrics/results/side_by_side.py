"""Two recommenders side by side: how alike their lists are, and where each of them wins."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_fraction, check_positive_integer
from pyg_recmetrics.kernels.exact.ranks import find_runs
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import Lists, evaluated_mask, lists_of
from pyg_recmetrics.results.counts import Nouns
from pyg_recmetrics.results.estimates import (
    Sample,
    check_has_rows,
    interval_of_mean,
    paired_difference,
)
from pyg_recmetrics.results.frames import frame_by_id
from pyg_recmetrics.results.notes import note_on_intervals
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import by_name
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.tables import Table, Tabular, format_interval, to_data_frame

if TYPE_CHECKING:
    import pandas as pd


#: What columns of data frames are called, so that results need other names.
_COLUMNS = {"user", "item", "degree", "difference"}


class SideBySide(Tabular):
    r"""Two results of one task: how alike their lists are, and where each of them wins.

    :func:`side_by_side` returns it. It prints as a table of the mean overlap of lists.

    Attributes:
        names (tuple): The names of the two results.
        k (int): The cut-off of lists.
        p (float): The persistence of rank-biased overlap.
        jaccard (torch.Tensor): The overlap of the two lists of every user as sets, in double
            precision, of shape `[num_users]`; `NaN` for users who are not
            evaluated, or have neither list.
        rank_biased_overlap (torch.Tensor): Their overlap with weights that fall with the rank.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, side_by_side
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=4)
        >>> first, second = (
        ...     evaluate(torch.tensor(scores), task, "recall@2", keep_items=True)
        ...     for scores in ([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.3, 0.2])
        ... )
        >>> both = side_by_side({"popular": first, "fresh": second}, k=2)
        >>> both.jaccard
        tensor([0.3333, 0.3333], dtype=torch.float64)
    """

    def __init__(self, results: Mapping[str, EvaluationResult], k: int, p: float) -> None:
        self.names = tuple(results)
        self.k, self.p = k, p
        self._results = tuple(results.values())
        lists = [lists_of(result.ranked, k) for result in self._results]
        user, depth = _common(lists[0], lists[1].to(lists[0].item.device), k)
        first, second = (each.length(k).to(user.device) for each in lists)
        is_counted = evaluated_mask(self._results[0].ranked) & (torch.maximum(first, second) > 0)
        self.jaccard = _jaccard(user, first, second).masked_fill(~is_counted, torch.nan)
        overlap = _rank_biased_overlap(user, depth, first, second, p)
        self.rank_biased_overlap = overlap.masked_fill(~is_counted, torch.nan)

    def differing_users(self, metric: str | Metric, num: int = 10) -> "pd.DataFrame":
        r"""Returns the users for whom a metric differs most, the largest wins of the first on top.

        The columns are `user`, which is the original id where that is known; `degree`, the number
        of relevant items; the value of both results, under their names; and `difference`. If a
        person has several rows, each row is a user.

        Args:
            metric (str or Metric): The metric, see :meth:`EvaluationResult.contributions`.
            num (int, optional): How many users. (default: `10`)

        Raises:
            ImportError: If pandas is not installed.
            ValueError: If there is no such metric, it has one value for all users together, or
                `num` is not a positive integer.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate, side_by_side
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=4)
            >>> first, second = (
            ...     evaluate(torch.tensor(scores), task, "recall@2", keep_items=True)
            ...     for scores in ([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.3, 0.2])
            ... )
            >>> both = side_by_side({"popular": first, "fresh": second}, k=2)
            >>> both.differing_users("recall@2")
               user  degree  popular  fresh  difference
            0     0       1      0.0    1.0        -1.0
        """
        num = check_positive_integer(num, "num")
        ranked = self._results[0].ranked
        device = ranked.rank.device
        for result in self._results:
            check_has_rows(result.average_over, "differing_users")
        first, second = (result.values_of(metric)[0].to(device) for result in self._results)
        difference = paired_difference(first, second)
        user = _largest(difference.nan_to_num(0.0), num)
        columns = {
            "degree": ranked.degree[user],
            self.names[0]: first[user],
            self.names[1]: second[user],
            "difference": difference[user],
        }
        return frame_by_id("user", user, ranked.user_ids, columns, "differing_users")

    def differing_items(self, metric: str | Metric, num: int = 10) -> "pd.DataFrame":
        r"""Returns the relevant items that one result finds more often than the other.

        The columns are `item`, which is the original id where that is known; `degree`, the number
        of users for whom it is relevant; how many of them find it, for both results under their
        names; and `difference`. The largest wins of the first result are on top.

        Args:
            metric (str or Metric): Where to find an item, see :meth:`EvaluationResult.per_item`.
            num (int, optional): How many items. (default: `10`)

        Raises:
            ImportError: If pandas is not installed.
            ValueError: If it is another metric, or `num` is not a positive integer.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate, side_by_side
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=4)
            >>> first, second = (
            ...     evaluate(torch.tensor(scores), task, "recall@2", keep_items=True)
            ...     for scores in ([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.3, 0.2])
            ... )
            >>> both = side_by_side({"popular": first, "fresh": second}, k=2)
            >>> both.differing_items("recall@2", num=1)
               item  degree  popular  fresh  difference
            0     2       1        0      1          -1
        """
        num = check_positive_integer(num, "num")
        first, second = (result.per_item(metric).set_index("item") for result in self._results)
        frame = first[["degree"]].copy()
        for name, of_items in zip(self.names, (first, second), strict=True):
            frame[name] = of_items["hits"]
        frame["difference"] = frame[self.names[0]] - frame[self.names[1]]
        order = _largest(torch.tensor(frame["difference"].to_numpy()), num)
        return frame.iloc[order.tolist()].reset_index()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.names[0]!r}, {self.names[1]!r}, k={self.k})"

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for each overlap: its mean over users and its interval.

        Raises:
            ImportError: If pandas is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate, side_by_side
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=4)
            >>> first, second = (
            ...     evaluate(torch.tensor(scores), task, "recall@2", keep_items=True)
            ...     for scores in ([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.3, 0.2])
            ... )
            >>> both = side_by_side({"popular": first, "fresh": second}, k=2)
            >>> both.to_pandas().columns.tolist()
            ['overlap', 'value', 'low', 'high']
        """
        rows = [(name, sample.mean, *interval_of_mean(sample)) for name, sample in self._overlaps()]
        return to_data_frame(rows, ["overlap", "value", "low", "high"])

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [name, format_interval(sample.mean, *sample.estimate.interval(0.95))]
            for name, sample in self._overlaps()
        ]
        person = self._results[0].ranked.origin.person
        notes = (
            note_on_intervals(0.95, person, self._nouns),
            f"rank-biased overlap with p = {self.p:g}",
        )
        return Table(["overlap", " and ".join(self.names)], rows, notes)

    @property
    def _nouns(self) -> Nouns:
        nouns = self._results[0].nouns
        return nouns._replace(means=nouns.rows)

    def _overlaps(self) -> Iterator[tuple[str, Sample]]:
        person = self._results[0].ranked.origin.person
        yield f"jaccard@{self.k}", Sample.of(self.jaccard, person)
        yield f"rank-biased overlap@{self.k}", Sample.of(self.rank_biased_overlap, person)


def side_by_side(
    results: Mapping[str, EvaluationResult], *, k: int = 20, p: float = 0.9
) -> SideBySide:
    r"""Puts two results of one task side by side.

    Two recommenders with the same mean may recommend different items, and be better for different
    users. The result says how much their lists have in common, and where each of them wins.

    The Jaccard index is the number of items that both lists have, divided by the number that
    either of them has. Rank-biased overlap weighs the share of common items at every depth `d` by
    :math:`p^{d - 1}`, so that the top counts most. It is extrapolated beyond the end of the lists
    from what these have in common. Both are one for equal lists, and zero for lists that have
    nothing in common.

    Args:
        results (dict): Two results with lists, by name.
        k (int, optional): The cut-off of the lists. (default: `20`)
        p (float, optional): The persistence, in :math:`(0, 1)`: how likely it is to look at one
            more item. (default: `0.9`)

    Raises:
        TypeError: If `results` does not hold an `EvaluationResult` under each name.
        ValueError: If there are not two results, they are of different tasks, a result is called
            like a column of the data frames, lists were not kept down to `k` (evaluate with
            `keep_items=k`), `k` is not a positive integer, or `p` is not in (0, 1).

    Sources: Webber, Moffat and Zobel, "A similarity measure for indefinite rankings" (2010), whose
    extrapolated overlap this is; Jaccard, "The distribution of the flora in the alpine zone"
    (1912).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, side_by_side
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=4)
        >>> first, second = (
        ...     evaluate(torch.tensor(scores), task, "recall@2", keep_items=True)
        ...     for scores in ([0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.4, 0.2])
        ... )
        >>> both = side_by_side({"popular": first, "fresh": second}, k=2)
        >>> both.jaccard.tolist()
        [0.3333333333333333, 0.3333333333333333]
        >>> both.differing_users("recall@2")
           user  degree  popular  fresh  difference
        0     1       1      1.0    0.0         1.0
        1     0       1      0.0    1.0        -1.0
    """
    k, p = check_positive_integer(k, "k"), check_fraction(p, "p")
    found = by_name(results, EvaluationResult, "'EvaluationResult'")
    if len(found) != 2:
        raise ValueError(f"'results' needs to hold two results (got {len(found)})")
    if taken := sorted(_COLUMNS & set(found)):
        raise ValueError(
            f"'results' needs to have other names than {sorted(_COLUMNS)} (got {taken})"
        )
    check_same_task(found)
    return SideBySide(found, k, p)


def _largest(difference: Tensor, num: int) -> Tensor:
    """Returns where the largest differences are, in descending order, and no zeros."""
    order = difference.abs().argsort(descending=True, stable=True)[:num]
    order = order[difference[order] != 0]
    return order[difference[order].argsort(descending=True, stable=True)]


def _common(first: Lists, second: Lists, k: int) -> tuple[Tensor, Tensor]:
    """Finds what the top `k` of two lists have in common.

    Returns:
        The user of each common item, and the depth from which on both lists have it.
    """
    (user, rank, item), (other_user, other_rank, other_item) = (
        _without_gaps(*lists.places(k)) for lists in (first, second)
    )
    items, number = torch.cat([item, other_item]).unique(return_inverse=True)
    number, other_number = number.split([item.numel(), other_item.numel()])
    key = user * items.numel() + number
    other_key, order = (other_user * items.numel() + other_number).sort()
    place = torch.searchsorted(other_key, key)
    is_common = place < other_key.numel()
    is_common[is_common.clone()] = other_key[place[is_common]] == key[is_common]
    other = other_rank[order[place[is_common]]]
    return user[is_common], torch.maximum(rank[is_common], other)


def _without_gaps(user: Tensor, rank: Tensor, item: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Ranks the items of each list anew, so that places without an item do not count."""
    first, _ = find_runs(user)
    return user, 1 + torch.arange(user.numel(), device=user.device) - first, item


def _jaccard(user: Tensor, length: Tensor, other_length: Tensor) -> Tensor:
    num_common = torch.bincount(user, minlength=length.numel()).double()
    return num_common / (length + other_length - num_common)


def _rank_biased_overlap(
    user: Tensor, depth: Tensor, length: Tensor, other_length: Tensor, p: float
) -> Tensor:
    """Returns the extrapolated rank-biased overlap of every user: equation 32 of Webber et al."""
    num_users = length.numel()
    shorter, longer = torch.minimum(length, other_length), torch.maximum(length, other_length)
    deepest = int(longer.max()) if num_users else 0
    ranks = torch.arange(1, deepest + 1, dtype=torch.double, device=length.device)
    # Sums of p^d / d and of p^d, up to each depth.
    of_share, of_power = (
        torch.cat([ranks.new_zeros(1), terms.cumsum(0)]) for terms in (p**ranks / ranks, p**ranks)
    )
    # An item that both have at some depth counts at all that are deeper.
    added = of_share[longer[user]] - of_share[depth - 1]
    total = added.new_zeros(num_users).index_add_(0, user, added)
    num_common = torch.bincount(user, minlength=num_users).double()
    num_shorter = torch.bincount(user[depth <= shorter[user]], minlength=num_users).double()
    share = num_shorter / shorter.clamp(min=1)
    missing = (of_power[longer] - of_power[shorter]) - shorter * (
        of_share[longer] - of_share[shorter]
    )
    beyond = (num_common - num_shorter) / longer.clamp(min=1) + share
    return (1 - p) / p * (total + share * missing) + beyond * p ** longer.double()
