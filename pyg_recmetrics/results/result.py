"""EvaluationResult: the metrics of one evaluation, on average and for every user."""

import copy
import math
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.utils import index_to_mask

from pyg_recmetrics import conventions
from pyg_recmetrics.checks import (
    as_values,
    check_boolean,
    check_choice,
    check_finite_number,
    check_labels,
    check_level,
    check_natural_number,
    check_positive_integer,
    read_labels,
)
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.metrics.beyond_accuracy import exposure
from pyg_recmetrics.metrics.curves import at_every_k
from pyg_recmetrics.metrics.registry import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    check_ranked,
    fill_without_truth,
)
from pyg_recmetrics.ranked_edges import (
    ONE_SCORE_PER_ITEM,
    RankedEdges,
    Ties,
    candidates_of,
    catalogue_of,
    count_irrelevant,
    describe_lack,
    fields_of,
    from_fields,
    has_constant_scores,
    lists_of,
    select_users,
)
from pyg_recmetrics.results import archive, notes
from pyg_recmetrics.results.cohorts import (
    Cohorts,
    group_by_degree,
    note_on_degrees,
)
from pyg_recmetrics.results.counts import (
    AverageOver,
    RowNouns,
    Sampling,
    UserCounts,
    check_has_rows,
    check_means_of_persons,
    means_of_persons,
    num_persons,
)
from pyg_recmetrics.results.statistics import (
    Array,
    Interval,
    Mean,
    MetricMean,
    mean_of_runs,
    mean_of_users,
)
from pyg_recmetrics.sums import Numbers, exact_mean, on_host
from pyg_recmetrics.tables import Table, Tabular, format_interval
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.edges import contains
from pyg_recmetrics.task.task import check_has
from pyg_recmetrics.utils import (
    Frozen,
    FrozenDict,
    list_some,
    made_of,
    set_attributes,
    singular,
    warn,
)
from pyg_recmetrics.version import __version__

V = TypeVar("V")
N = TypeVar("N", int, float)

#: What may stand between the parts of a name. MLflow's files allow no `/`: it makes folders.
SEPARATORS = ("@", "_", "-", ".")


#: From how many users on a mean may be too good to go without a question.
_MANY_USERS = 100

#: The ways to rank ties that may flatter a recommender.
_FLATTERING: tuple[Ties, ...] = ("index", "best")

#: The lowest and the highest order of equal scores, for what falls with every rank.
_ENDS: tuple[Ties, ...] = ("worst", "best")


class TieRange(NamedTuple):
    """The lowest and the highest mean of a metric, over all orders of equal scores."""

    low: float
    high: float

    def __str__(self) -> str:
        digits = (n for n in range(4, 17) if round(self.low, n) != round(self.high, n))
        n = next(digits, 4)
        low = f"{self.low:.{n}f}".removeprefix("0")
        high = f"{self.high:.{n}f}".removeprefix("0")
        return f"{low} to {high}"


class ByMetric(FrozenDict[str, V]):
    """A mapping of `name@k` to a value, which says why a metric is not in it.

    A key is a :class:`~pyg_recmetrics.metrics.Metric`, or a string that `metrics.parse` reads as
    the same metric: spaces and the order of arguments do not matter.
    """

    def __getitem__(self, metric: str | Metric) -> V:
        if isinstance(metric, str) and metric in self._items:
            return self._items[metric]
        try:
            metric = parse(metric)
        except (TypeError, ValueError) as error:
            raise KeyError(str(error)) from error
        if str(metric) not in self._items:
            raise KeyError(f"'{metric}' was not evaluated: there is {', '.join(self)}")
        return self._items[str(metric)]

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        # Without this, pandas would make a column of the names.
        raise TypeError(
            "a mapping of metrics is not a number, an array or a data frame: use "
            "result['recall@20'], 'result.to_pandas(per_user=True)', or 'result.to_pandas()' for "
            "the means"
        )

    __float__ = __array__


class Measured(Tabular):
    """One run of a recommender, or several: a value for every row in every run."""

    metrics: tuple[Metric, ...]
    num_tied: float | None
    num_trials: int | None
    seconds: float | None

    @property
    @abstractmethod
    def runs(self) -> "tuple[EvaluationResult, ...]":
        """The runs. Those whose rankings are equal are one."""

    def values_of(self, metric: str | Metric) -> Tensor:
        r"""Returns what every row contributes to the mean of a metric in every run.

        This is :attr:`per_user` after `empty_target_action` was applied. The mean of a run is the
        mean of its row, without those that are `NaN`, who do not count.

        Args:
            metric (str or Metric): One of the metrics that were evaluated, or any other metric of
                the convention that the ranking is deep enough for.

        Returns:
            A double-precision tensor of shape `[num_runs, num_users]`. A result is one run. There
            is a column for every edge with `per="edge"`, and for every person with `per="person"`.

        Raises:
            ValueError: If there is no such metric, or it has one value for all users together.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=3, num_items=3)
            >>> scores = torch.tensor([0.1, 0.3, 0.2])
            >>> result = evaluate(scores, task, "recall@2", empty_target_action="neg")
            >>> result.values_of("recall@2").tolist(), result.per_user["recall@2"].tolist()
            ([[1.0, 0.0, 0.0]], [1.0, 0.0, nan])
        """
        device = self.runs[0].ranked.rank.device
        values = [run._averaged(run._contributions(metric)) for run in self.runs]
        return torch.stack([of_run.to(device) for of_run in values])

    def array_of(self, metric: str | Metric) -> Array:
        """Returns :meth:`values_of` with users as rows: `[num_users, num_runs]`.

        A metric of all users together has a single row.

        Raises:
            ValueError: If there is no such metric, or only some runs have it.
        """
        if not has_rows(self, metric):
            if not all(metric in run for run in self.runs):
                raise ValueError(f"'metric' needs to be a metric of all results (got '{metric}')")
            return np.array([[run[metric] for run in self.runs]])
        values: Array = self.values_of(metric).double().cpu().numpy().T
        return values

    @property
    def person(self) -> Array | None:
        """The person that each row belongs to; `None` if each is one of its own."""
        first = self.runs[0]
        person = first.ranked.origin.person if first.average_over == "user" else None
        return None if person is None else person.cpu().numpy()

    def estimate_of(self, metric: str | Metric) -> Mean:
        """Returns the mean of a metric over rows and runs, and what each adds to its error.

        A metric of all users together varies by runs alone.

        Raises:
            ValueError: If there is no such metric, or only some runs have it.
        """
        values = self.array_of(metric)
        if has_rows(self, metric):
            return mean_of_users(values, self.person)
        return mean_of_runs(values[0])

    def mean(self, metric: str | Metric, level: float = 0.95) -> MetricMean:
        """Returns the mean of a metric over users and runs, with its interval.

        Args:
            metric (str or Metric): A metric that all results have, or any other metric of the
                convention that the rankings are deep enough for.
            level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)

        Returns:
            The mean. If a metric has one value for all users together, the interval is for other
            runs alone, and `user_error` is `NaN`.

        Raises:
            ValueError: If there is no such metric, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> round(runs.mean("mrr").value, 4)
            0.5472
        """
        first = self.runs[0]
        mean = self.estimate_of(metric).of_metric(first._resolve(metric), check_level(level))
        if has_rows(self, metric):
            return mean
        users = first.user_counts
        return mean._replace(num_users=users.num_with_list or users.num_evaluated)

    def by(self, groups: Any, *, same_degree: bool = False, level: float = 0.95) -> Cohorts:
        r"""Measures groups of users separately, since a mean may hide large differences.

        Args:
            groups (torch.Tensor or sequence): A label for every user (or person, if means are over
                persons): integers or booleans of shape `[num_users]`, or a sequence of names. Users
                whose name is `None` are left out.
            same_degree (bool, optional): Whether to compare groups only among users with equally
                many relevant items. Most metrics depend on that number, so groups that differ in it
                differ in their means whatever the recommender does. The mean of a group is then
                that of all users plus the difference of its group from the average group; `NaN`
                for a group that shares no number of relevant items with others. (default: `False`)
            level (float, optional): The level of the confidence intervals. (default: `0.95`)

        Returns:
            Every metric with its interval and number of users, for each label. A ratio of sums,
            such as a micro average, is that of the sums over the group. Metrics that have one value
            for all users together are left out.

        Raises:
            TypeError: If `groups` does not hold labels, or `same_degree` is not a boolean.
            ValueError: If there is not one label for every user, `same_degree` is asked for values
                that are not those of single users, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> task = RankingTask(truth, num_users=4, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1", "mrr@2"])
            >>> cohorts = result.by(["new", "new", "old", None])
            >>> print(cohorts)
            group  users        recall@1                      mrr@2
            -------------------------------------------------------
            new        2  0.5000 ± .5000  0.7500 (0.0000 to 1.0000)
            old        1          1.0000                     1.0000
            ±: 95% confidence interval of the mean over users
            1 user is in no group, as it has no label
            intervals may be too narrow: there are few users in some groups (2)
            >>> cohorts["new"]["recall@1"].value
            0.5
        """
        first = self.runs[0]
        origin = first.ranked.origin
        num_labels = first.ranked.num_users
        if first.average_over == "person":
            num_labels = num_persons(origin.person)
        elif origin.user_of_row is None:
            check_labels(groups, "groups", first.ranked.user_ids)
        group, labels = read_labels(groups, "groups", singular(first.nouns.means), num_labels)
        return self._by_groups(group, labels, "group", level, same_degree)

    def by_degree(
        self, bins: int = 5, *, same_degree: bool = False, level: float = 0.95
    ) -> Cohorts:
        r"""Measures users with few and with many seen edges separately.

        The degree of a user is its number of seen edges. The groups are bounded by quantiles of
        the degree over the evaluated users. Users of the same degree are always in the same group,
        so groups may differ in size, and there may be fewer than `bins`. If a task has no seen
        edges, there is one group.

        Args:
            bins (int, optional): The number of groups. (default: `5`)
            same_degree (bool, optional): Whether to compare users with as many relevant items, see
                :meth:`by`. (default: `False`)
            level (float, optional): See :meth:`by`. (default: `0.95`)

        Returns:
            The groups from the smallest to the largest degree, labelled by their range, such as
            `"3-7"`.

        Raises:
            ValueError: If the result has no task, its means are over persons, `bins` is not a
                positive integer, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> seen = torch.tensor([[1, 2, 2, 3, 3, 3], [2, 2, 3, 2, 3, 4]])
            >>> task = RankingTask(truth, num_users=4, num_items=5, seen=seen)
            >>> list(evaluate(torch.rand(5), task, "recall@1").by_degree(bins=2))
            ['0-1', '2-3']
        """
        first = self.runs[0]
        check_has_rows(first.average_over, "by_degree")
        if first.task is None:
            raise ValueError(
                "'by_degree' needs the seen edges of a task (got a result without a task)"
            )
        degree = torch.bincount(first.task.seen[0], minlength=first.task.num_users)
        user_of_row = first.ranked.origin.user_of_row
        if user_of_row is not None:
            degree = degree[user_of_row]
        is_counted = torch.stack([run._is_counted.cpu() for run in self.runs]).all(dim=0)
        group, labels = group_by_degree(degree.cpu().numpy(), is_counted.numpy(), bins)
        of_users = torch.from_numpy(group)
        return self._by_groups(of_users, labels, "training degree", level, same_degree)

    def tie_range(self, metric: str | Metric) -> TieRange:
        r"""Returns the lowest and the highest mean of a metric, over all orders of equal scores.

        Both are the mean itself if nothing ties with a relevant item, or scores are not known. For
        several runs, each is its mean over the runs.

        Args:
            metric (str or Metric): The metric; see :meth:`values_of`.

        Raises:
            ValueError: If there is no such metric, it has one value for all users together, or its
                range is not known: that of `r_precision(users=hit)`, and of
                `ndcg(ideal=retrieved)` with weights.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.7, 0.3]])
            >>> result = evaluate(scores, task, "mrr@3")
            >>> result["mrr@3"], result.tie_range("mrr@3")
            (0.75, TieRange(low=0.5, high=0.75))
        """
        ends = [run._ends(metric) for run in self.runs]
        return TieRange(*np.mean(ends, axis=0).tolist())

    def recipe(self) -> str:
        r"""Returns a paragraph for a paper that says what exactly was measured.

        What only you can say stands in square brackets: how candidates were drawn, and in what runs
        differ. What single runs know against themselves is that of the first.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> print(evaluate(torch.rand(3), task, "recall@2").recipe())
            Metrics: recall@2 (divided by R, averaged over users), where R is the number of relevant
            items of a user. Population: all 2 users with ground truth. Ranking: all 3 items, by one
            score per item; equal scores rank the lower item id first. Computed with pyg_recmetrics
            0.5.0, convention 'standard' (torch_geometric.metrics 2.8).
        """
        return notes.paragraph(" ".join(self.recipe_of(self.metrics)))

    def recipe_of(self, metrics: Sequence[Metric], begin: str = "") -> list[str]:
        """Returns the sentences of :meth:`recipe` about some metrics, each of which begins so."""
        first = self.runs[0]
        masked = first.ranked.origin.num_masked
        num_masked = 0 if masked is None else int(masked[first.ranked._is_evaluated].sum())
        definitions = [first._resolve(metric) for metric in metrics]
        said = notes.lines("recipe", first, definitions, num_masked, len(self.runs))
        return [sentence for sentence in said if sentence.startswith(begin)]

    def cell(self, metric: str | Metric) -> str:
        """Returns the mean of a metric with its interval, as tables show it."""
        return format_interval(*self._shown(metric))

    def _shown(self, metric: str | Metric) -> tuple[float, float, float]:
        """Returns the mean that is printed, and its interval; `NaN` if there is none."""
        return self.mean(metric)[:3]

    def _caution(self, *metrics: str | Metric) -> str | None:
        """Returns what makes the intervals of some means too narrow; `None` if nothing does."""
        means = [(str(metric), self.estimate_of(metric)) for metric in metrics]
        nouns = self.runs[0].nouns
        return notes.caution(means, nouns.means, nouns.drawn)

    def _on_sample(self) -> list[str]:
        """Returns whose users stand for all of the task; nothing if none do."""
        drawn = {f"run {n}": run._sampled for n, run in enumerate(self.runs, 1) if run._sampled}
        return notes.lines("samples", drawn, self.runs[0].nouns, "count")

    def _on_protocol(self) -> list[str]:
        """Returns what is unusual about how users were evaluated, in some runs or all."""
        return notes.notes_of_all(
            {f"run {n}": run._remarks_on([*run.per_user]) for n, run in enumerate(self.runs, 1)}
        )

    def _by_groups(
        self, group: Tensor, labels: Sequence[Any], name: str, level: float, same_degree: bool
    ) -> Cohorts:
        first = self.runs[0]
        level = check_level(level)
        nouns = first.nouns
        names = [str(metric) for metric in self.metrics if has_rows(self, metric)]
        metrics = {name: first.definitions[name] for name in names}
        numbers = group.cpu().numpy()
        degree = first.ranked.degree.cpu().numpy()
        remarks = [*self._on_sample(), *self._on_protocol()]
        if first.average_over == "user":
            is_left = first._is_counted.cpu().numpy() & (numbers < 0)
            remarks += notes.lines("without_group", int(is_left.sum()), nouns)
        if check_boolean(same_degree, "same_degree"):
            check_has_rows(first.average_over, "same_degree")
            if pooled := [name for name, metric in metrics.items() if metric.is_pooled]:
                raise ValueError(f"'same_degree' needs means over rows (got {', '.join(pooled)})")
            remarks += notes.lines("same_degree", nouns)
        elif first.average_over == "user":
            remarks += note_on_degrees(numbers, degree, metrics.values(), nouns)
        return Cohorts(
            {name: self._array_of_groups(name, group, len(labels)) for name in names},
            metrics,
            numbers,
            labels,
            name=name,
            person=self.person,
            level=level,
            nouns=nouns,
            remarks=tuple(remarks),
            degree=degree if same_degree else None,
        )

    def _array_of_groups(self, name: str, group: Tensor, num_groups: int) -> Array:
        """Returns what every user contributes to the mean of its group, `[num_users, num_runs]`."""
        metric = self.runs[0].definitions[name]
        values = self.array_of(name)
        if not metric.is_pooled:
            return values
        # The value of a user depends on all others, who are those of its group.
        values[:] = math.nan
        for place, run in enumerate(self.runs):
            for number in range(num_groups):
                is_in = (group == number).to(run.ranked.rank.device)
                own = run._contribute(metric, select_users(run.ranked, is_in))
                values[is_in.cpu().numpy(), place] = own[is_in].cpu().numpy()
        return values


def has_rows(measured: Measured, metric: str | Metric) -> bool:
    """Returns whether a metric has a value for every row, or one for all together."""
    first = measured.runs[0]
    is_known = metric in first
    return metric in first.per_user if is_known else not first._resolve(metric).is_aggregate


def exposure_of(measured: Measured, k: int) -> Tensor:
    """Counts for each item how many lists hold it in their top `k`, on average over runs.

    Where some users stand for all, counts are scaled up, so that samples of different sizes can
    be compared.

    Returns:
        A double-precision tensor of shape `[num_items]`, on the CPU.

    Raises:
        ValueError: If a result does not hold lists down to `k`.
    """
    counts = []
    for run in measured.runs:
        # A sample has users without ground truth in the same proportion.
        drawn = run.sampling
        share = drawn.num_users / drawn.num_ranked if drawn else 1.0
        counts.append(exposure(run.ranked, k).cpu() * share)
    return torch.stack(counts).mean(dim=0)


def common_popularity(runs: "Iterable[EvaluationResult]", needed_by: str) -> Tensor:
    """Returns how many users have seen each item, of shape `[num_items]`, on the CPU.

    Raises:
        ValueError: If a result does not know the seen edges, or theirs are not the same. The error
            says that `needed_by` needs them.
    """
    counts = []
    for run in runs:
        check_has(run.ranked.catalogue, "popularity", needed_by)
        counts.append(catalogue_of(run.ranked).popularity.cpu())
    if not all(torch.equal(count, counts[0]) for count in counts):
        raise ValueError("'results' needs to be of tasks with the same seen edges")
    return counts[0]


def largest(values: Iterable[N | None]) -> N | None:
    """Returns the largest of the values that are known; `None` if none is."""
    return max((value for value in values if value is not None), default=None)


class EvaluationResult(Frozen, ByMetric[float], Measured):
    r"""The metrics of one evaluation, as a mapping of `name@k` to the mean over users.

    A metric is undefined for a user without truth, and is then `NaN` in :attr:`per_user`.
    `empty_target_action` says what such users count as in the mean. Metrics of lists that need no
    truth, such as `coverage@20` and `novelty@20`, are over all users who have a list.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        metrics (sequence of str or Metric): The metrics, as `name@k`.
        task (RankingTask, optional): What was ranked, which :meth:`recipe` describes.
            (default: `None`)
        empty_target_action (str, optional): What users without truth count as: `"skip"` leaves
            them out, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
            (default: `None`, as the convention says)
        convention (str or Convention, optional): How the metrics are defined, see
            :mod:`~pyg_recmetrics.conventions`. (default: `"standard"`)
        num_left_out (int, optional): How many users the convention does not evaluate.
            (default: `0`)
        average_over (str, optional): What the means are over: `"user"`, or `"person"` for the mean
            over persons of the mean over the rows of each. (default: `"user"`)
        sampling (Sampling, optional): How the users were drawn, if they stand for all users of the
            task. (default: `None`, they are all there are)
        num_calls (int, optional): How many calls of an :class:`Evaluator` it is the best of.
            (default: `1`)

    Attributes:
        ranked (RankedEdges): The ranked ground truth, from which more metrics can be measured.
        per_user (mapping): A tensor of shape `[num_users]` for every metric, except for those
            that have one value for all users together, such as `coverage@20`. Of a ratio of sums,
            such as `roc_auc(average=candidates)`, it is what each user contributes.
        definitions (mapping): What the convention computes under the name of each metric.
        num_tied (int or None): The number of ground-truth edges that have the same score as another
            candidate. A ranking down to a depth only counts edges with fewer candidates of higher
            score than its depth, or than R if R is larger. `None` if scores are not known, as for
            lists.
        sampling (Sampling or None): How many users were ranked to know means to a `margin`, and why
            no more; `None` without a margin.
        max_k (int or None): The largest cut-off of the metrics; `None` if none has a cut-off.
        num_trials (int or None): How many settings of hyperparameters were tried, see
            :meth:`with_trials`; zero if there is nothing to tune, as for one score per item, and
            `None` if it is not known.
        seconds (float or None): How long tuning and training took together; `None` if it is not
            known.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If there is no such metric, convention or `empty_target_action`, the action is
            `"error"` and there is a user without truth, or `average_over` is `"person"` and
            persons are not known or a metric is no mean over rows.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import EvaluationResult, RankedEdges
        >>> lists = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
        >>> ranked = RankedEdges.from_topk(lists, torch.tensor([[0, 0, 1], [1, 2, 2]]))
        >>> result = EvaluationResult(ranked, ["r_precision", "recall@1", "recall@3"])
        >>> result["recall@3"], result.per_user["recall@1"].tolist()
        (1.0, [0.5, 0.0, nan])
        >>> print(result)
        metric                                                         @1      @3
        -------------------------------------------------------------------------
        r_precision  0.2500 (0.0000 to 1.0000)
        recall                                  0.2500 (0.0000 to 1.0000)  1.0000
        ±: 95% confidence interval of the mean over users
        intervals may be too narrow: there are few users (2)
        2 users evaluated, 1 without ground truth
    """

    _INSTEAD = "make another one of its 'ranked'"

    num_tied: int | None

    #: Known of a result :meth:`with_trials`.
    seconds: float | None = None

    def __init__(
        self,
        ranked: RankedEdges,
        metrics: str | Metric | Iterable[str | Metric],
        *,
        task: RankingTask | None = None,
        empty_target_action: EmptyTargetAction | None = None,
        convention: str | Convention = "standard",
        num_left_out: int = 0,
        average_over: AverageOver = "user",
        sampling: Sampling | None = None,
        num_calls: int = 1,
    ) -> None:
        check_ranked(ranked)
        if task is not None and not isinstance(task, RankingTask):
            raise TypeError(f"'task' needs to be a 'RankingTask' (got {type(task).__name__})")
        self._num_left_out = check_natural_number(num_left_out, "num_left_out")
        self.convention = conventions.get(convention)
        if empty_target_action is None:
            empty_target_action = self.convention.empty_target_action
        self.empty_target_action = check_empty_target_action(empty_target_action)
        self.task = task
        self.ranked = _of_task(task, ranked)
        self.average_over = check_choice(average_over, "average_over", get_args(AverageOver))
        self.metrics = parse_all(metrics)
        self.definitions = ByMetric(
            self.convention.resolve_all(self.metrics, knows_ties=ranked.num_tied is not None)
        )
        self.sampling = sampling
        self._sampled = None if sampling is None or sampling.is_complete else sampling
        self.num_calls = check_positive_integer(num_calls, "num_calls")
        self.num_trials = 0 if ranked.origin.ranked_by == ONE_SCORE_PER_ITEM else None
        if empty_target_action == "error":
            check_num_without_truth(self.user_counts.num_without_truth)
        if self.average_over == "person":
            check_means_of_persons(self.ranked.origin.person, self.definitions.values())
        self._measure_all()
        self._moved_by_ties = self._find_ties() if self.num_tied else {}
        if note := self._note_on_ties(self.per_user):
            remedy = ". See 'ties', which may be 'mean' or 'worst'"
            warn(note if self.ranked.ties == "mean" else note + remedy)
        self._freeze()

    def _measure_all(self) -> None:
        values, counted = {}, []
        for name, metric in self.definitions.items():
            value = values[name] = self.convention.population.measure(metric, self.ranked)
            if value.dim():
                value = self._averaged(self._counted(metric, value))
            counted.append(value)
        self.per_user = ByMetric({name: value for name, value in values.items() if value.dim()})
        if self.ranked.num_tied is not None:
            counted.append((self.ranked.num_tied > 0).sum())
        # All numbers come to the host in one copy.
        numbers = on_host(counted)
        self.num_tied = None if self.ranked.num_tied is None else int(numbers.pop()[0])
        self._items = dict(zip(values, map(self._mean, values, numbers), strict=True))

    @cached_property
    def user_counts(self) -> UserCounts:
        """How many users stand behind the result."""
        ranked = self.ranked
        is_evaluated = ranked._is_evaluated
        num_evaluated = int(self._has_truth.sum())
        few = listed = None
        if ranked.num_candidates is not None:
            has_few = ranked.num_candidates < (self.max_k or 0)
            few = int((self._has_truth & has_few).sum())
        if ranked.lists is not None:
            has_list = ranked.lists.length(ranked.lists.width) > 0
            listed = int((is_evaluated & has_list).sum())
        if self.sampling is None:
            num_without_truth = int(is_evaluated.sum()) - num_evaluated
        else:  # they are counted among all users
            num_without_truth = self.sampling.num_without_truth
        return UserCounts(num_evaluated, num_without_truth, self._num_left_out, few, listed)

    @cached_property
    def _orders_of_tied(self) -> list[RankedEdges]:
        """The worst and the best order, of the users who have an edge that ties."""
        # Truth that is no candidate ties with nothing, and has a negative number.
        is_tied = cast("Tensor", self.ranked.num_tied) > 0
        tied = select_users(self.ranked, self.ranked.sum(is_tied) > 0)
        return [tied.with_ties(ties) for ties in _ENDS]

    def _find_ties(self) -> dict[str, str]:
        """Returns the metrics whose mean depends more on the order of ties than on the users."""
        is_constant = has_constant_scores(self.ranked)[self.ranked.edge_label_index[0]]
        is_all_tied = bool(is_constant.all())
        found: dict[str, str] = {}
        if self.ranked.ties not in _FLATTERING and not is_all_tied:
            return found
        for name in self.per_user:
            with suppress(ValueError):  # the range of some metrics is not known
                low, high = span = self.tie_range(name)
                width = 0.0 if is_all_tied else 2 * self.estimate_of(name).margin(0.95)
                # A single user has no interval.
                if low < high and not high - low <= width:
                    found[name] = f"{name} is {span}"
        return found

    def _note_on_ties(self, names: Iterable[str]) -> str | None:
        """Returns what the order of ties does to some metrics; `None` if it does not matter."""
        if not self._moved_by_ties:
            return None
        are_own = self.definitions.keys() >= {*names}
        of_ties = self._moved_by_ties.items()
        moved = [span for name, span in of_ties if name in names or not are_own]
        return notes.line("movable", moved, notes.line("ties", self))

    def _mean(self, name: str, numbers: Numbers) -> float:
        """Returns the mean of a metric over all users, or its value for all of them together."""
        if name not in self.per_user:
            return float(numbers[0])
        if self._sampled is None:
            return exact_mean(numbers)
        # A sample has not quite the share of users without truth that there is among all.
        mean = exact_mean(numbers[(self.ranked.degree > 0).cpu().numpy()])
        return self._sampled.mean_over_all(name, mean, self.empty_target_action)

    @cached_property
    def max_k(self) -> int | None:
        """The largest cut-off of a metric; `None` if there is none."""
        return largest(metric.k for metric in self.metrics)

    @cached_property
    def nouns(self) -> RowNouns:
        """What its rows are called, such as `"queries"`."""
        users = "users" if self.task is None or self.task.query is None else "queries"
        person = self.ranked.origin.person
        row = self.ranked.origin.user_of_row
        rows = users if row is None else "edges"
        drawn = users if person is None or (row is not None and person.equal(row)) else "persons"
        return RowNouns(users, rows, rows if self.average_over == "user" else drawn, drawn)

    @property
    def runs(self) -> tuple["EvaluationResult", ...]:
        """The result itself, which is one run."""
        return (self,)

    def curve(self, metric: str, max_k: int) -> Tensor:
        r"""Measures a metric at every cut-off from one to `max_k`, as the convention defines it.

        Unlike :func:`metrics.curve`, which takes a ranking, this measures what the result does
        under the same names: column `k - 1` is `per_user` of `metric@k`.

        Args:
            metric (str): The metric, spelled without a cut-off.
            max_k (int): The largest cut-off.

        Returns:
            A double-precision tensor of shape `[num_users, max_k]`, or `[max_k]` for a metric with
            one value for all users together; `NaN` where the metric is undefined.

        Raises:
            TypeError: If `metric` is not a string.
            ValueError: If there is no metric of that name, if it has no cut-off or is spelled with
                one, or if `max_k` is not a positive integer or is larger than the depth of the
                ranking.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 0], [2, 0]]), num_users=1, num_items=3)
            >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "map@2", convention="ranx")
            >>> result.curve("map", max_k=2)
            tensor([[0.0000, 0.2500]], dtype=torch.float64)
        """
        measure = self.convention.population.measure
        values = [measure(self._resolve(at_k), self.ranked) for at_k in at_every_k(metric, max_k)]
        return torch.stack(values, dim=-1).flip(-1)

    def _ends(self, metric: str | Metric) -> list[float]:
        """Returns the ends of :meth:`tie_range`."""
        resolved = self._resolve(metric)
        low = high = self._contributions(metric)
        for order in self._orders(resolved):
            # Users without ties are left out of an order, and keep their value.
            moved = self._contribute(resolved, order)
            low = torch.fmin(low, moved)
            high = torch.fmax(high, moved)
        return [exact_mean(self._averaged(end)) for end in (low, high)]

    def _orders(self, metric: Metric) -> Iterator[RankedEdges]:
        """Yields the orders of equal scores that may be the lowest or the highest of a metric.

        Raises:
            ValueError: If they are not known.
        """
        if not self.num_tied or not metric.needs_truth:
            return
        given = metric.all_arguments
        k = metric.depth_of_hits
        has_grades = self.ranked.weight is not None and given.get("gain") != "binary"
        is_graded = has_grades and metric.depends_on_weight
        # It would take all orders.
        if given.get("users") == "hit" or (k is not None and is_graded):
            raise ValueError(
                f"'metric' needs to be one of which the orders of equal scores that are lowest and "
                f"highest are known (got '{metric}')"
            )
        if metric.is_pooled:  # so that other users count, too
            yield from map(self.ranked.with_ties, _ENDS)
        else:
            yield from self._orders_of_tied
        if k is not None:
            # More hits can lower it, so all numbers of hits in the top k are tried.
            tied = self._orders_of_tied[0]
            most = min(k, int(tied.degree.max()))
            for num_hits in range(most + 1):
                for ties in _ENDS:
                    yield tied._with_ties(ties, hits=(k, num_hits))

    def bounds(self, metric: str | Metric) -> Interval:
        r"""Returns the bounds on the mean of a metric over all users of the task.

        This says what the users who were ranked tell about the *others of the task*, if the result
        has a `margin`: the bounds of all metrics hold together, with the level that was given to
        :func:`evaluate`, whenever the ranking stopped. Where all users were ranked, both ends are
        the mean. :meth:`confidence_interval` is about other users than those of the task.

        Args:
            metric (str or Metric): One of the metrics that have a margin, or any of a result for
                which all users were ranked.

        Raises:
            KeyError: If the metric was not evaluated.
            ValueError: If it has no margin, and some users were not ranked.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(9000), torch.arange(9000) % 7])
            >>> task = RankingTask(truth, num_users=9000, num_items=7)
            >>> result = evaluate(torch.arange(7.0), task, "recall@2", margin=0.05)
            >>> result.sampling.num_ranked, round(result["recall@2"], 3)
            (578, 0.272)
            >>> [round(end, 3) for end in result.bounds("recall@2")]
            [0.233, 0.317]
        """
        mean = self[metric]
        if self._sampled is None:
            return Interval(mean, mean)
        bounds = self._sampled.bounds
        name = str(parse(metric))
        if name not in bounds:
            raise ValueError(
                f"'metric' needs to have a margin, as {list(bounds)} have (got '{name}')"
            )
        return bounds[name]

    def confidence_interval(
        self,
        metric: str | Metric,
        level: float = 0.95,
    ) -> Interval:
        r"""Returns a confidence interval of the mean of a metric, by Student's t-distribution.

        It regards the users as a sample of all possible users, or of persons if the task knows the
        persons of its rows: persons are then drawn with all of their rows. It does not cover what
        else may vary, such as the initialisation of a model, and it treats the denominator of a
        micro-average as fixed. If a `margin` decided how many users were ranked, it is about other
        users all the same: :meth:`bounds` is about the users of the task. Whether the intervals of
        two recommenders overlap does not say whether one is better than the other: use
        :func:`compare`.

        Args:
            metric (str or Metric): The metric; see :meth:`values_of`.
            level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)

        Returns:
            The ends `(low, high)`; `NaN` if fewer than two users count.

        Raises:
            ValueError: If there is no such metric, it has one value for all users together, or
                `level` is not between 0 and 1.

        Source: Student, "The probable error of a mean" (1908).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 0, 1, 1]])
            >>> task = RankingTask(truth, num_users=5, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, "recall@1")
            >>> result["recall@1"]
            0.4
            >>> low, high = result.confidence_interval("recall@1")
            >>> round(low, 2), round(high, 2)
            (0.0, 1.0)
        """
        self._contributions(metric)  # which raises for a value of all users together
        # With few hits, a margin stops early, and more so if they are too few.
        is_doubtful = self.person is not None or self._sampled is not None
        if is_doubtful and (note := self._caution(metric)):
            warn(note)
        return Interval(*self.mean(metric, level)[1:3])

    def top_k(self, k: int, users: Iterable[Any] | None = None) -> pd.DataFrame:
        r"""Returns the recommended items, as a data frame with a row for each of them.

        Its columns are `user`, `rank`, `item`, and `is_relevant`, which says whether the item
        belongs to the ground truth. Users and items have their original ids where these are known.
        Users without any item have no row, and neither have items that the task does not have.
        Items of equal score are in the order of the lists, the lower number first, whatever `ties`
        says.

        Args:
            k (int): How many items of each list.
            users (sequence, optional): The ids of some users, in the order of their rows.
                (default: `None`, all who are evaluated)

        Raises:
            TypeError: If `users` is not a sequence.
            ValueError: If `k` is not a positive integer, lists were not kept down to `k` (evaluate
                with `keep_items=k`), or `users` holds others than those who are evaluated.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
            >>> result = evaluate(scores, task, "recall@2", keep_items=True)
            >>> result.top_k(2)
               user  rank  item  is_relevant
            0     0     1     1        False
            1     0     2     2         True
            2     1     1     0         True
            3     1     2     2        False
        """
        ranked = self.ranked
        lists = lists_of(ranked, check_positive_integer(k, "k"))
        user, rank, item = lists.places(k, _numbers_of(users, ranked))
        edges = torch.stack([user, item])
        recommended = pd.MultiIndex.from_arrays([*edges.cpu().numpy()])
        truth = pd.MultiIndex.from_arrays([*ranked.edge_label_index.cpu().numpy()])
        return _frame(
            user=named_ids(user, ranked.user_ids),
            rank=rank,
            item=named_ids(item, ranked.item_ids),
            is_relevant=recommended.isin(truth),
        )

    def per_item(self, metric: str | Metric) -> pd.DataFrame:
        r"""Returns which relevant items are found, as a data frame with a row for each of them.

        Its columns are `item`, with its original id where that is known; `degree`, the number of
        users that the item is relevant to; `hits`, for how many of them it is retrieved; and a
        column named after the metric with `hits / degree`. If seen edges are known, `popularity` is
        the number of users who have seen the item. The users are those who count in the mean of the
        metric, and the items are those that are relevant to any of them.

        Args:
            metric (str or Metric): Where to find an item: `recall@k` and `hit_rate@k` look at the
                top `k`, and `r_precision` looks at the top `R` of a user who has `R` relevant
                items.

        Raises:
            ValueError: If it is another metric, or `k` is deeper than was ranked.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 1, 2], [2, 0, 2, 2]])
            >>> task = RankingTask(truth, num_users=3, num_items=3)
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3], [0.3, 0.2, 0.1]])
            >>> evaluate(scores, task, "recall@2").per_item("recall@2")
               item  degree  hits  recall@2
            0     0       1     1  1.000000
            1     2       3     2  0.666667
        """
        check_has_rows(self.average_over, "per_item")
        resolved = self._resolve(metric)
        if resolved.name not in ("recall", "hit_rate", "r_precision"):
            raise ValueError(
                f"'metric' needs to be 'recall@k', 'hit_rate@k' or 'r_precision', which say where "
                f"an item has to be found (got '{resolved}')"
            )
        ranked = self.ranked
        user, item = ranked.edge_label_index
        is_counted = ~self._contributions(metric).isnan()[user]
        is_hit = ranked.is_hit(ranked.degree if resolved.k is None else resolved.k)
        edges = _frame(item=item[is_counted], hit=is_hit[is_counted]).groupby("item")
        found = edges.hit.agg(degree="size", hits="sum").reset_index()
        found[str(parse(metric))] = found.hits / found.degree
        items = item[is_counted].unique()
        if ranked.catalogue is not None and ranked.catalogue.seen is not None:
            found["popularity"] = ranked.catalogue.popularity[items].cpu().numpy()
        return found.assign(item=named_ids(items, ranked.item_ids))

    def to_dict(self, sep: str = "@") -> dict[str, float]:
        r"""Returns the means as a plain dictionary, which everything that logs numbers takes.

        For example, `writer.add_scalars("test", result.to_dict("_"), epoch)` of TensorBoard,
        `mlflow.log_metrics(result.to_dict("_"), epoch)`, or `self.log_dict(result.to_dict("_"))`
        of Lightning.

        Args:
            sep (str, optional): What stands between the parts of a name: `"@"` for `name@k` as
                everywhere, or `"_"`, `"-"` or `"."` instead of `@` and brackets, which some
                trackers do not take. (default: `"@"`)

        Raises:
            ValueError: If there is no such separator, or two metrics would have one name.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
            >>> result = evaluate(scores, task, ["recall@1", "dcg(gain=exponential)@1"])
            >>> result.to_dict("_")
            {'recall_1': 0.5, 'dcg_gain_exponential_1': 0.5}
        """
        check_choice(sep, "sep", SEPARATORS)
        named: dict[str, float] = {}
        for name, mean in self.items():
            spelled = name if sep == "@" else sep.join(re.findall(r"[A-Za-z0-9_]+", name))
            if spelled in named:
                raise ValueError(
                    f"'sep' needs to give each metric a name of its own (got {sep!r}, which makes "
                    f"{spelled!r} of {name!r} and of another)"
                )
            named[spelled] = mean
        return named

    def to_pandas(self, *, per_user: bool = False) -> pd.DataFrame:
        r"""Returns the means as a data frame, with the columns `metric`, `k` and `value`.

        Args:
            per_user (bool, optional): Whether to return the values of every user instead, with the
                columns `user`, which is the original id where that is known; `degree`, the number
                of relevant items; and one for every metric, `NaN` where it is undefined. There is
                a row for every user who is evaluated, with or without ground truth, and no column
                for metrics that have one value for all users together. If rows are edges, `item`
                takes the place of `degree`. The columns of queries follow their user.
                (default: `False`)

        Raises:
            TypeError: If `per_user` is not a boolean.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=3, num_items=3)
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3], [0.3, 0.1, 0.2]])
            >>> evaluate(scores, task, ["recall@1", "mrr"]).to_pandas(per_user=True)
               user  degree  recall@1  mrr
            0     0       1       0.0  0.5
            1     1       1       1.0  1.0
            2     2       0       NaN  NaN
        """
        if not check_boolean(per_user, "per_user"):
            return frame_of_means({metric: {"value": self[metric]} for metric in self.metrics})
        ranked = self.ranked
        query = None if self.task is None else self.task.query
        rows = _evaluated(ranked)
        user_of_row = ranked.origin.user_of_row
        users = rows if user_of_row is None else user_of_row[rows]
        columns = {"user": named_ids(users, ranked.user_ids)}
        if query is not None:
            for number, column in enumerate(query.unbind(1)):
                columns[f"query_{number}"] = column[users]
        if user_of_row is None:
            columns["degree"] = ranked.degree[rows]
        else:
            columns["item"] = named_ids(ranked.edge_label_index[1], ranked.item_ids)
        values = {name: value[rows] for name, value in self.per_user.items()}
        return _frame(**columns, **values)

    def save(self, path: str | Path) -> None:
        """Saves everything that the result was computed from, for :meth:`load`.

        The file holds arrays and JSON in NumPy's `.npz` format. It does not hold the edges that a
        model propagates over.

        Args:
            path (str or Path): The file to write. If it exists, it is replaced once the new file
                is complete: nothing that happens meanwhile can harm it.

        Raises:
            OSError: If the file cannot be written, such as `PermissionError`.
        """
        fields = {
            "version": __version__,
            "ranked": fields_of(self.ranked),
            "metrics": [str(metric) for metric in self.metrics],
            "task": self.task and self.task.to_dict(),
            "convention": self.convention.to_dict(),
            "sampling": self.sampling and self.sampling.to_dict(),
            "num_left_out": self._num_left_out,
            "empty_target_action": self.empty_target_action,
            "average_over": self.average_over,
            "num_calls": self.num_calls,
            "budget": {"num_trials": self.num_trials, "seconds": self.seconds},
        }
        archive.write(path, fields)

    @classmethod
    def load(cls, path: str | Path) -> "EvaluationResult":
        r"""Loads a saved result: the same numbers, and the same ranking to measure more from.

        Loading never runs code from the file, so it is safe to read the files of others. A checksum
        tells whether the file is as it was saved.

        Args:
            path (str or Path): The file.

        Raises:
            OSError: If the file cannot be opened, such as `FileNotFoundError`.
            ValueError: If `path` is not a saved result, is damaged, or is of another format, such
                as that of 0.4.0.

        Example:
            >>> import tempfile
            >>> import torch
            >>> from pathlib import Path
            >>> from pyg_recmetrics import EvaluationResult, RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@2")
            >>> path = Path(tempfile.mkdtemp()) / "result.npz"
            >>> result.save(path)
            >>> EvaluationResult.load(path)
            EvaluationResult(recall@2: 0.5000)
        """
        return archive.read(path, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "EvaluationResult":
        """Returns the result of which a file holds these fields.

        Raises:
            KeyError: If a field is missing.
        """
        objects = {
            "ranked": from_fields(fields["ranked"]),
            "task": fields["task"] and RankingTask.from_dict(fields["task"]),
            "convention": Convention.from_dict(fields["convention"]),
            "sampling": fields["sampling"] and Sampling.from_dict(fields["sampling"]),
        }
        return made_of(cls, fields | objects)._with(**fields["budget"])

    def with_trials(self, trials: int, seconds: float | None = None) -> "EvaluationResult":
        """Returns a copy of this result with the budget of its tuning and training.

        Tables and the recipe state it. Tables of several recommenders say which of them unequal
        budgets favour, and which trainable ones have no known budget. A recommender counts as
        trainable unless it has zero trials.

        Args:
            trials (int): How many settings of hyperparameters were tried. Zero says that there is
                nothing to tune, which is known of one score per item.
            seconds (float, optional): How long tuning and training took together. It replaces what
                was known before. (default: `None`, which is not known)

        Raises:
            ValueError: If `trials` is not a non-negative integer, or `seconds` is not a
                non-negative number.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")
            >>> tuned = result.with_trials(20, seconds=3.5)
            >>> tuned.num_trials, tuned.seconds
            (20, 3.5)
        """
        if seconds is not None and (seconds := check_finite_number(seconds, "seconds")) < 0:
            raise ValueError(f"'seconds' needs to be a non-negative number (got {seconds})")
        return self._with(num_trials=check_natural_number(trials, "trials"), seconds=seconds)

    def _with(self, **changes: Any) -> "EvaluationResult":
        changed = copy.copy(self)
        set_attributes(changed, **changes)
        return changed

    if not TYPE_CHECKING:  # which would take any name for right

        def __getattr__(self, name):
            """Raises an error that says how a metric is written, which is no attribute."""
            known = vars(self).get("metrics", ())
            like_it = [f"result['{metric}']" for metric in known if name.startswith(metric.name)]
            remedy = f"; write {' or '.join(like_it)}" if like_it else ""
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'{remedy}")

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: {mean:.4f}" for name, mean in self.items())
        return f"{type(self).__name__}({means})"

    @property
    def _is_counted(self) -> Tensor:
        """Which users count if a metric needs truth, a mask of shape `[num_users]`.

        Of a sample, these are also those that it stands for, so that their groups are the same.
        """
        is_evaluated = self.ranked._is_evaluated
        degree = self.ranked.degree
        if self.sampling is not None and self.task is not None:
            is_evaluated = index_to_mask(self.task.users, self.task.num_users)
            degree = self.task.degree
        return is_evaluated & (degree > 0) if self.empty_target_action == "skip" else is_evaluated

    def _resolve(self, metric: str | Metric) -> Metric:
        """Returns what the convention computes under the name of a metric."""
        metric = parse(metric, "metric")
        if str(metric) in self.definitions:
            return self.definitions[str(metric)]
        return self.convention.resolve(metric, self.max_k, knows_ties=self.num_tied is not None)

    def _contributions(self, metric: str | Metric) -> Tensor:
        """Returns what every row counts as, of shape `[num_users]`, see :meth:`values_of`."""
        resolved = self._resolve(metric)
        value = self.per_user.get(str(parse(metric)))
        if value is None:
            value = self.convention.population.measure(resolved, self.ranked)
        if not value.dim():
            raise ValueError(
                f"'metric' needs to have a value for every user (got '{parse(metric)}', which has "
                f"one for all users together)"
            )
        return self._counted(resolved, value)

    def _contribute(self, metric: Metric, ranked: RankedEdges) -> Tensor:
        """Returns what every user would contribute to a mean if ties were in another order."""
        return self._counted(metric, self.convention.population.measure(metric, ranked))

    def _averaged(self, counted: Tensor) -> Tensor:
        """Returns the values that a mean is over: those of rows, or the mean of each person."""
        if self.average_over == "user" or self.ranked.origin.person is None:
            return counted
        return means_of_persons(counted, self.ranked.origin.person)

    def _counted(self, metric: Metric, value: Tensor) -> Tensor:
        """Returns what users count as in the mean, `[num_users]`; `NaN` for those who do not."""
        # A metric is NaN already where it needs truth and there is none.
        if metric.needs_truth and self.empty_target_action in ("neg", "pos"):
            value = fill_without_truth(value, self.ranked.degree, self.empty_target_action)
        if self.ranked.users is None:
            return value
        return value.masked_fill(~self.ranked._is_evaluated, torch.nan)

    def table(self) -> Table:
        """Returns the printed table: metrics down and k across."""
        labels = list(dict.fromkeys(metric.label for metric in self.metrics))
        cut_offs = sorted({metric.k or 0 for metric in self.metrics})
        cells = {(metric.label, metric.k or 0): self.cell(metric) for metric in self.metrics}
        has_interval = any(not math.isnan(self._shown(metric)[1]) for metric in self.metrics)
        said = notes.lines("below_result", self, has_interval)
        return Table(
            head=["metric", *(f"@{k}" if k else "" for k in cut_offs)],
            rows=[[label, *(cells.get((label, k), "") for k in cut_offs)] for label in labels],
            notes=tuple(said),
        )

    def _shown(self, metric: str | Metric) -> tuple[float, float, float]:
        if self._sampled is None:
            return super()._shown(metric)
        mean = self[metric]
        low, high = self._sampled.bounds.get(str(metric), (math.nan, math.nan))
        reach = max(mean - low, high - mean)
        return mean, mean - reach, mean + reach

    def cautions(self) -> list[str]:
        """Returns what makes the numbers doubtful, or not comparable with those of others.

        These are intervals that may be too narrow, lists that lack items, and the protocol: sampled
        candidates, ground truth that a model may have propagated over, users without training
        edges, means that are too good, and scores that rank no better than chance, of which the
        line asks whether ids are in another order. The printed table has these lines, too.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr").cautions()
            ['intervals may be too narrow: there are few users (2)']
        """
        of_intervals = self._caution(*self.per_user) if self._sampled is None else None
        return [*filter(None, [of_intervals]), *self._doubts(self.per_user)]

    def _doubts(self, names: Iterable[str]) -> list[str]:
        """Returns what makes the means of some metrics doubtful, or not comparable."""
        return [*filter(None, [self._lack_of_lists]), *self._on_metrics(names), *self._protocol]

    def _remarks_on(self, names: Sequence[str]) -> list[str]:
        """Returns what tables of several results say of some metrics of this one, too."""
        said = [notes.line("calls", self), *self._doubts(names), self._note_on_ties(names)]
        return [*filter(None, said)]

    def _on_sample(self) -> list[str]:
        """Returns whose users stand for all of the task; nothing if none do."""
        return notes.lines("drawn", self._sampled, self.nouns) if self._sampled else []

    @cached_property
    def _has_truth(self) -> Tensor:
        """Whether each user is evaluated and has truth, `[num_users]`."""
        return self.ranked._is_evaluated & (self.ranked.degree > 0)

    @cached_property
    def _lack_of_lists(self) -> str | None:
        """What lists lack, in words; `None` if nothing, or if there are none."""
        ranked = self.ranked
        metrics = self.definitions.values()
        if ranked.origin.listed is None:
            return None
        depths = [metric.depth for metric in metrics]
        return describe_lack(
            ranked.origin.listed,
            ranked.degree,
            candidates_of(ranked),
            None if None in depths else largest(depths),
            any(metric.k is None for metric in metrics),
            ranked.user_ids,
            self.nouns.users,
            ranked.origin.user_of_row,
        )

    @cached_property
    def _protocol(self) -> list[str]:
        """What is unusual about how users were evaluated, so that numbers do not compare."""
        ranked, task = self.ranked, self.task
        known: dict[str, Any] = {"too_good": self._too_good()}
        if ranked.origin.listed is not None:
            listed = ranked.origin.listed[ranked._is_evaluated]
            known["listed"] = listed.clamp(min=0).sum(dim=0).tolist()
            metrics = self.definitions.values()
            known["of_catalogue"] = [str(x) for x in metrics if x.definition.state is exposure]
        if task is not None:
            known["num_leaked"] = _num_leaked(task)
            known["num_cold"] = _num_cold(task)
            known["chance"] = notes.note_on_chance(task, ranked)
        return notes.lines("protocol", self, **known)

    def _on_metrics(self, names: Iterable[str]) -> list[str]:
        """Returns what is unusual about some metrics, whatever the protocol is."""
        own = [name for name in names if name in self.per_user]
        undefined = {x: int((self.per_user[x].isnan() & self._has_truth).sum()) for x in own}
        num_with_truth = self.user_counts.num_evaluated
        ratios = [x for x in own if self.definitions[x].is_pooled and num_with_truth > 1]
        return notes.lines("on_metrics", ratios, undefined, num_with_truth, self.nouns)

    @cached_property
    def _num_others(self) -> list[int]:
        """The fewest and the most irrelevant candidates of a user, if each has its own."""
        if not self._has_own_candidates or not bool(self._has_truth.any()):
            return []
        return [int(end) for end in count_irrelevant(self.ranked)[self._has_truth].aminmax()]

    @property
    def _has_own_candidates(self) -> bool:
        """Whether each user has other candidates, such as sampled ones."""
        candidates = None if self.task is None else self.task.candidates
        return candidates is not None and candidates.dim() == 2

    def _too_good(self) -> list[str]:
        """Returns which means of shares of the top are nearly one, for many users."""
        found = []
        for name in self.per_user:
            defined = self.definitions[name].definition
            is_share = defined.range == (0.0, 1.0) and defined.higher_is_better
            is_of_top = defined.depends_on_order and not defined.needs_all_ranks
            if is_share and is_of_top and defined.needs_truth and self[name] > notes.TOO_GOOD:
                found.append(name)
        return found if self.user_counts.num_evaluated >= _MANY_USERS else []


def _frame(**columns: Any) -> pd.DataFrame:
    """Returns a data frame of tensors and other columns."""
    return pd.DataFrame(
        {name: x.cpu().numpy() if isinstance(x, Tensor) else x for name, x in columns.items()}
    )


def frame_of_means(means: Mapping[Metric, Mapping[str, float]]) -> pd.DataFrame:
    """Returns a row for every metric: `metric`, `k`, and what is given by name."""
    rows = [{"metric": metric.label, "k": metric.k, **mean} for metric, mean in means.items()]
    return pd.DataFrame(rows, index=list(map(str, means))).astype({"k": "Int64"})


def named_ids(numbers: Tensor, ids: Sequence[Any] | None) -> Any:
    """Returns the original ids of users or items, a column of the type that these have."""
    rows = numbers.cpu().numpy()
    return rows if ids is None else pd.Index(ids, tupleize_cols=False)[rows]


def _evaluated(ranked: RankedEdges) -> Tensor:
    """Returns the row numbers of the users who are evaluated."""
    return ranked._is_evaluated.nonzero().squeeze(1)


def _numbers_of(users: Iterable[Any] | None, ranked: RankedEdges) -> Tensor:
    """Returns the row numbers of users, in the order in which they are asked for."""
    evaluated = _evaluated(ranked)
    if users is None:
        return evaluated
    if getattr(users, "ndim", 1) == 0:
        raise TypeError("'users' needs to be a sequence of user ids (got a single one)")
    if isinstance(users, Set | Mapping):
        users = list(users)
    wanted = pd.Index(as_values(users, "users", "user ids"), tupleize_cols=False)
    known = pd.Index(named_ids(evaluated, ranked.user_ids), tupleize_cols=False)
    place = known.get_indexer(wanted)
    if unknown := list(map(repr, wanted[place < 0].tolist())):
        raise ValueError(f"'users' needs to hold ids of evaluated users (got {list_some(unknown)})")
    return evaluated[torch.from_numpy(place).to(evaluated.device)]


def _num_leaked(task: RankingTask) -> int:
    """Counts relevant items that a model may have propagated over."""
    if task.exclude_seen or task.query is not None:
        return 0
    return int(contains(task.seen, task.truth, task.num_items).sum())


def _num_cold(task: RankingTask) -> int:
    """Counts users with truth who have no training edges, where others have some."""
    if task.query is not None or not task.seen.size(1):
        return 0
    degree = torch.bincount(task.seen[0], minlength=task.num_users)
    return int((degree[task.users_with_truth] == 0).sum())


def _of_task(task: RankingTask | None, ranked: RankedEdges) -> RankedEdges:
    """Returns a ranking with the catalogue and the users of its task, if it knows no others."""
    if task is None:
        return ranked
    if ranked.catalogue is None:
        ranked = ranked.with_catalogue(task.catalogue)
    if ranked.origin.user_of_row is not None:
        return ranked
    if ranked.origin.person is None and task.person is not None:
        ranked = ranked.with_person(task.person)
    if ranked.users is not None or task.users.numel() == task.num_users:
        return ranked
    return select_users(ranked, index_to_mask(task.users, ranked.num_users))
