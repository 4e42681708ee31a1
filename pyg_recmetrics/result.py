"""EvaluationResult: the metrics of one evaluation, on average and per user."""

import dataclasses
import math
import textwrap
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from pyg_recmetrics import archive, conventions
from pyg_recmetrics.catalogue import Catalogue
from pyg_recmetrics.cohorts import (
    CohortMean,
    Cohorts,
    cohort_mean,
    quantile_bins,
    range_labels,
    read_groups,
    split_by,
)
from pyg_recmetrics.conventions import Convention, EmptyTargetAction
from pyg_recmetrics.extras import importing
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.statistics import Interval, IntervalMethod, interval_of_mean, normal_margin
from pyg_recmetrics.tables import Table, Tabular, format_mean
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.version import __version__

if TYPE_CHECKING:
    import pandas as pd


#: The tensors that a saved result consists of.
_SAVED = {
    "ranked": ("edge_index", "rank", "ptr", "weight", "num_candidates", "items"),
    "catalogue": ("seen", "item_embedding", "item_category"),
    "task": ("truth", "weight", "seen", "candidates", "users"),
}


class _PerUser(dict[str, Tensor]):
    """Values per user, which knows why some metrics are not in it."""

    def __missing__(self, name: str) -> Tensor:
        try:
            is_aggregate = parse(name).is_aggregate
        except ValueError as error:
            raise KeyError(str(error)) from error
        if is_aggregate:
            raise KeyError(f"{name} has one value for all users together, and none for each")
        raise KeyError(f"{name} was not evaluated per user, only {', '.join(self)}")


class EvaluationResult(Tabular, Mapping[str, float]):
    r"""The metrics of one evaluation: a mapping of `name@k` to the mean over users.

    A metric is undefined for a user without truth, and `NaN` in :attr:`per_user`. What such users
    count as in the mean is said by `empty_target_action`. Metrics of lists that need no truth,
    such as `coverage@20` and `novelty@20`, are over all users who have a list.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        metrics (sequence of str or Metric): The metrics, as `name@k`.
        task (RankingTask, optional): What was ranked: who is evaluated, and what :meth:`recipe`
            says of it. (default: `None`, all users)
        empty_target_action (str, optional): What users without truth count as: `"skip"` leaves
            them out, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
            (default: `None`, as the convention has it)
        convention (str or Convention, optional): How the metrics are defined, see
            :mod:`~pyg_recmetrics.conventions`. (default: `"standard"`)
        num_left_out (int, optional): How many users the convention does not evaluate.
            (default: `0`)

    Attributes:
        ranked (RankedEdges): The ranked ground truth, for more metrics of the same ranking.
        per_user (mapping): The same keys, but those of metrics that have one value for all users
            together, such as `coverage@20`; a tensor of shape `[num_users]` each.
        definitions (mapping): The same keys; the metric that the convention has under that name.
        num_evaluated (int): How many users have truth that can be retrieved.
        num_without_truth (int): How many of the users that were to be evaluated have none.
        num_with_few_candidates (int or None): How many evaluated users have fewer candidates than
            the largest k; `None` if candidates are not known.

    Raises:
        ValueError: If `empty_target_action` is none of these, or is `"error"` and there is a user
            without truth.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges
        >>> lists = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
        >>> ranked = RankedEdges.from_topk(lists, torch.tensor([[0, 0, 1], [1, 2, 2]]))
        >>> result = EvaluationResult(ranked, ["r_precision", "recall@1", "recall@3"])
        >>> result["recall@3"], result.per_user["recall@1"].tolist()
        (1.0, [0.5, 0.0, nan])
        >>> print(result)
        metric                                   @1              @3
        -----------------------------------------------------------
        r_precision  0.2500 ± .4900
        recall                       0.2500 ± .4900  1.0000 ± .0000
        ±: 95% confidence interval of the mean over users
        2 users evaluated, 1 without ground truth
    """

    def __init__(
        self,
        ranked: RankedEdges,
        metrics: str | Metric | Iterable[str | Metric],
        *,
        task: RankingTask | None = None,
        empty_target_action: EmptyTargetAction | None = None,
        convention: str | Convention = "standard",
        num_left_out: int = 0,
    ) -> None:
        self.convention = conventions.get(convention)
        self.empty_target_action = empty_target_action or self.convention.empty_target_action
        check_empty_target_action(self.empty_target_action)
        self.ranked = ranked
        self.task = task
        self.metrics = parse_all(metrics)
        self.definitions = MappingProxyType(resolve_all(self.metrics, self.convention))
        self.num_left_out = num_left_out
        self._is_evaluated = torch.full_like(ranked.degree, task is None, dtype=torch.bool)
        if task is not None:
            self._is_evaluated[task.users] = True
        self._count_users(self._is_evaluated)
        values = {name: self._measure(metric) for name, metric in self.definitions.items()}
        self.per_user: Mapping[str, Tensor] = MappingProxyType(
            _PerUser((name, value) for name, value in values.items() if value.dim())
        )
        self._means = {
            name: self._mean(self.definitions[name], value) for name, value in values.items()
        }

    def contributions(self, metric: str | Metric) -> Tensor:
        r"""Returns what every user contributes to the mean of a metric, of shape `[num_users]`.

        This is :attr:`per_user` with `empty_target_action` applied: `NaN` remains for users who do
        not count. The mean over the others is the mean of the metric.

        Args:
            metric (str or Metric): One of the metrics that were evaluated, or any other that the
                ranking is deep enough for, as the convention defines it.

        Raises:
            ValueError: If there is no such metric, or it has one value for all users together.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=3, num_items=3)
            >>> scores = torch.tensor([0.1, 0.3, 0.2])
            >>> result = evaluate(scores, task, "recall@2", empty_target_action="neg")
            >>> result.contributions("recall@2").tolist(), result.per_user["recall@2"].tolist()
            ([1.0, 0.0, 0.0], [1.0, 0.0, nan])
        """
        metric = parse(metric)
        name = str(metric)
        deepest = max(self.max_k or 1, metric.k or 1)
        definition = self.definitions.get(name) or self.convention.resolve(metric, deepest)
        value = self.per_user.get(name)
        if value is None:
            value = self._measure(definition)
        if not value.dim():
            raise ValueError(
                f"'metric' needs to have a value for every user (got '{name}', which has one for "
                f"all users together)"
            )
        return self._counted(definition, value)

    def confidence_interval(
        self,
        metric: str | Metric,
        level: float = 0.95,
        method: IntervalMethod = "bootstrap",
        *,
        num_samples: int = 2000,
        seed: int = 0,
    ) -> Interval:
        r"""Returns how well the mean of a metric is known, given how much users differ.

        The users are taken as a sample of all there could be. What else may vary, such as the
        initialisation of a model, is not in the interval. The denominator of micro averages is
        taken as known. To tell whether one recommender is better than another, do not look
        whether intervals overlap, but use :func:`compare`.

        Args:
            metric (str or Metric): The metric; see :meth:`contributions`.
            level (float, optional): How often such an interval shall hold the mean.
                (default: `0.95`)
            method (str, optional): `"bootstrap"` draws samples of as many users, with replacement,
                and returns the quantiles of their means; `"normal"` assumes that the mean is
                normally distributed, which takes no time and is what the printed table shows. They
                agree unless users are few. (default: `"bootstrap"`)
            num_samples (int, optional): The number of bootstrap samples. (default: `2000`)
            seed (int, optional): The seed of a generator of their own. (default: `0`)

        Returns:
            The ends `(low, high)`; `NaN` if fewer than two users count.

        Raises:
            ValueError: If there is no such metric, it has one value for all users together, or an
                option is none of these.

        Source: Efron, "Bootstrap methods: another look at the jackknife" (1979).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import datasets, evaluate, RankingTask
            >>> truth = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 0, 1, 1]])
            >>> task = RankingTask(truth, num_users=5, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, "recall@1")
            >>> result["recall@1"]
            0.4
            >>> low, high = result.confidence_interval("recall@1")
            >>> round(low, 2), round(high, 2)
            (0.0, 0.8)
        """
        return interval_of_mean(
            self._values(metric), level, method, num_samples=num_samples, seed=seed
        )

    def by(self, groups: Any, *, level: float = 0.95, method: IntervalMethod = "normal") -> Cohorts:
        r"""Measures groups of users apart: a mean tells little of those it is the mean of.

        Args:
            groups (torch.Tensor or sequence): A label for every user: integers or booleans of
                shape `[num_users]`, or a sequence of names, in which `None` stands for users who
                are left out.
            level (float, optional): The level of the confidence intervals. (default: `0.95`)
            method (str, optional): How they are found, see :meth:`confidence_interval`.
                (default: `"normal"`)

        Returns:
            Every metric with its interval and number of users, for each label. Of a micro average,
            this is the mean of what users contribute to it. What has one value for all users
            together is left out.

        Raises:
            TypeError: If `groups` holds no labels.
            ValueError: If there is not one label for every user, or an option is unknown.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> task = RankingTask(truth, num_users=4, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1", "mrr@2"])
            >>> cohorts = result.by(["new", "new", "old", None])
            >>> print(cohorts)
            group  users        recall@1           mrr@2
            --------------------------------------------
            new        2  0.5000 ± .9800  0.7500 ± .4900
            old        1          1.0000          1.0000
            ±: 95% confidence interval of the mean over users
            >>> cohorts["new"]["recall@1"].value
            0.5
        """
        group, labels = read_groups(groups, self.ranked.num_users)
        return self._cohorts(group, labels, "group", level, method)

    def by_degree(
        self, bins: int = 5, *, level: float = 0.95, method: IntervalMethod = "normal"
    ) -> Cohorts:
        r"""Measures users of different training degree apart: those of few and of many seen edges.

        The bounds are quantiles of the degree over the users who count. Users of the same degree
        are never torn apart, so that groups may be of different size, and fewer than `bins`.

        Args:
            bins (int, optional): The number of groups. (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)
            method (str, optional): See :meth:`by`. (default: `"normal"`)

        Returns:
            The groups from the smallest to the largest degree, labelled by their range, such as
            `"3-7"`.

        Raises:
            ValueError: If seen edges are not known, or an option is wrong.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> seen = torch.tensor([[1, 2, 2, 3, 3, 3], [2, 2, 3, 2, 3, 4]])
            >>> task = RankingTask(truth, num_users=4, num_items=5, seen=seen)
            >>> list(evaluate(torch.rand(5), task, "recall@1").by_degree(bins=2))
            ['0-1', '2-3']
        """
        task = self._known_task("by_degree")
        degree = torch.bincount(task.seen[0], minlength=task.num_users)
        counts = self._is_evaluated
        if self.empty_target_action == "skip":
            counts = counts & (self.ranked.degree > 0)
        bin_of_user = quantile_bins(degree[counts], bins)
        group = torch.full_like(degree, -1)
        group[counts] = bin_of_user
        labels = range_labels(degree[counts], bin_of_user)
        return self._cohorts(group, labels, "training degree", level, method)

    def recall_by_popularity(
        self,
        k: int = 20,
        bins: int = 5,
        *,
        level: float = 0.95,
        method: IntervalMethod = "normal",
    ) -> Cohorts:
        r"""Measures how many of the relevant items are found, for popular and other items apart.

        The popularity of an item is its number of seen edges, and the catalogue is cut at its
        quantiles; items of the same popularity are never torn apart, so that buckets may be of
        different size, and fewer than `bins`. The recall of a user in a bucket is the fraction of
        its relevant items in that bucket that are among the top `k` of the whole catalogue. The
        mean is over users who have any, whatever `empty_target_action` is.

        Args:
            k (int, optional): The cut-off. (default: `20`)
            bins (int, optional): The number of buckets. (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)
            method (str, optional): See :meth:`by`. (default: `"normal"`)

        Returns:
            The buckets from the least to the most popular, labelled by their range of popularity.

        Raises:
            ValueError: If seen edges are not known, `k` is deeper than was ranked, or an option is
                wrong.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 0, 1], [1, 2, 2]])
            >>> seen = torch.tensor([[1, 2, 2], [1, 1, 0]])
            >>> task = RankingTask(truth, num_users=3, num_items=3, seen=seen)
            >>> most_popular = torch.bincount(seen[1], minlength=3).float()
            >>> result = evaluate(most_popular, task, "recall@1")
            >>> buckets = result.recall_by_popularity(k=1, bins=3)
            >>> {label: means["recall@1"].value for label, means in buckets.items()}
            {'0': 0.0, '1': nan, '2': 1.0}
        """
        task = self._known_task("recall_by_popularity")
        popularity = torch.bincount(task.seen[1], minlength=task.num_items)
        shared = task.candidates is not None and task.candidates.dim() == 1
        items = task.candidates if shared else torch.arange(task.num_items, device=task.device)
        bin_of_item = quantile_bins(popularity[items], bins)
        bucket = torch.full_like(popularity, -1)
        bucket[items] = bin_of_item
        bucket_of_edge = bucket[self.ranked.edge_index[1]]
        metric = Metric("recall", k)
        means = {
            label: {
                str(metric): cohort_mean(
                    metric(self.ranked.select_edges(bucket_of_edge == place)), level, method
                )
            }
            for place, label in enumerate(range_labels(popularity[items], bin_of_item))
        }
        return Cohorts(means, "popularity", level)

    def to_dict(self) -> dict[str, float]:
        """Returns the means as a plain dictionary, as all that logs numbers takes them.

        Such as `writer.add_scalars("test", result.to_dict(), epoch)` of TensorBoard, or
        `self.log_dict(result.to_dict())` of Lightning.
        """
        return dict(self._means)

    def to_pandas(self) -> "pd.DataFrame":
        """Returns the means as a data frame with a row per metric, and its name and k apart.

        Raises:
            ImportError: If pandas is not installed.
        """
        with importing("pandas", "examples", "to_pandas"):
            import pandas as pd
        rows = [(metric.label, metric.k, self[metric]) for metric in self.metrics]
        frame = pd.DataFrame(rows, columns=["metric", "k", "value"], index=list(self))
        return frame.astype({"k": "Int64"})

    def save(self, path: str | Path) -> None:
        """Writes all that the result was computed from, see :meth:`load`.

        The file holds arrays and JSON in NumPy's `.npz` format. Edges that a model propagates over
        are not written.

        Args:
            path (str or Path): Where to write it.
        """
        parts: dict[str, Any] = {"ranked": self.ranked}
        header: dict[str, Any] = {
            "version": __version__,
            "metrics": [str(metric) for metric in self.metrics],
            "convention": dataclasses.asdict(self.convention),
            "empty_target_action": self.empty_target_action,
            "num_left_out": self.num_left_out,
            "depth": self.ranked.depth,
            "user_ids": self.ranked.user_ids,
            "item_ids": self.ranked.item_ids,
        }
        if self.task is not None:
            parts["task"] = self.task
            header |= {"num_users": self.task.num_users, "num_items": self.task.num_items}
        if self.ranked.catalogue is not None:
            parts["catalogue"] = self.ranked.catalogue
            header["catalogue_size"] = self.ranked.catalogue.num_items
        tensors = {
            f"{part}.{name}": value
            for part, owner in parts.items()
            for name in _SAVED[part]
            if (value := getattr(owner, name)) is not None
        }
        archive.write(path, tensors, header)

    @classmethod
    def load(cls, path: str | Path) -> "EvaluationResult":
        r"""Reads a result that was saved: the same numbers, and the same ranking for more of them.

        Nothing in the file is ever run, so that files of others can be read.

        Args:
            path (str or Path): The file.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is no saved result, or one of a later version.

        Example:
            >>> import tempfile
            >>> import torch
            >>> from pyg_recmetrics import EvaluationResult, RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@2")
            >>> path = Path(tempfile.mkdtemp()) / "result.npz"
            >>> result.save(path)
            >>> EvaluationResult.load(path)
            EvaluationResult(recall@2: 0.5000)
        """
        tensors, header = archive.read(path)
        parts: dict[str, dict[str, Any]] = {
            part: {name: tensors.get(f"{part}.{name}") for name in names}
            for part, names in _SAVED.items()
        }
        for name in ("user_ids", "item_ids"):
            parts["ranked"][name] = None if header[name] is None else tuple(header[name])
        if "catalogue_size" in header:
            parts["ranked"]["catalogue"] = Catalogue(header["catalogue_size"], **parts["catalogue"])
        task = None
        if "num_users" in header:
            sizes = {name: header[name] for name in ("num_users", "num_items")}
            task = RankingTask(**parts["task"], **sizes)
        return cls(
            RankedEdges(**parts["ranked"], depth=header["depth"]),
            header["metrics"],
            task=task,
            empty_target_action=header["empty_target_action"],
            convention=conventions.from_dict(header["convention"]),
            num_left_out=header["num_left_out"],
        )

    def to_trec(self, run: str | Path, qrels: str | Path) -> None:
        """Writes the lists and the ground truth, see :meth:`RankedEdges.to_trec`.

        Raises:
            ValueError: If lists were not kept: evaluate with `keep_items=True`.
        """
        self.ranked.to_trec(run, qrels)

    def to_ranx(self) -> tuple[Any, Any]:
        """Returns the ground truth and the lists for ranx, see :meth:`RankedEdges.to_ranx`.

        Raises:
            ImportError: If ranx is not installed.
            ValueError: If lists were not kept: evaluate with `keep_items=True`.
        """
        return self.ranked.to_ranx()

    def recipe(self) -> str:
        r"""Says in a paragraph for a paper what exactly was measured.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> print(evaluate(torch.rand(3), task, "recall@2").recipe())
            Metrics: recall@2 (divided by R, averaged over users), where R is the number of relevant
            items of a user. Population: all 2 users with ground truth. Ranking: all 3 items; equal
            scores rank the lower item id first. Computed with pyg_recmetrics 0.1.0, convention
            'standard' (torch_geometric.metrics 2.8).
        """
        metrics = "; ".join(metric.words for metric in self.definitions.values())
        text = (
            f"Metrics: {metrics}, where R is the number of relevant items of a user. "
            f"Population: {self._words_on_population()}. "
            f"Ranking: {self._words_on_ranking()}. "
            f"Computed with pyg_recmetrics {__version__}, convention '{self.convention.name}' "
            f"({self.convention.source})."
        )
        return textwrap.fill(text, width=88)

    def _words_on_population(self) -> str:
        treated = {"skip": "are left out", "neg": "count as zero", "pos": "count as one"}
        text = f"all {self.num_evaluated:,} users with ground truth"
        if self.num_without_truth:
            action = treated.get(self.empty_target_action, "")
            text += f" ({self.num_without_truth:,} without {action})"
        of_lists = [str(m) for m in self.definitions.values() if not m.needs_truth]
        if of_lists:
            num_lists = int((self._is_evaluated & self.ranked.has_list).sum())
            text += f", and for {', '.join(of_lists)} all {num_lists:,} users with a list"
        if wanted := self.convention.population.words:
            text += f", if they have {' and '.join(wanted)} ({self.num_left_out:,} are left out)"
        return text

    def _words_on_ranking(self) -> str:
        ties = "equal scores rank the lower item id first"
        if self.task is None:
            return f"as given; {ties}"
        if self.task.candidates is None:
            items = f"all {self.task.num_items:,} items"
        elif self.task.candidates.dim() == 1:
            items = f"{self.task.candidates.numel():,} of {self.task.num_items:,} items"
        else:
            items = "candidates of each user's own"
        if num_seen := self.task.seen.size(1):
            items += f" but those that the user is connected to by {num_seen:,} seen edges"
        return f"{items}; {ties}"

    def __getitem__(self, metric: str | Metric) -> float:
        try:
            name = str(parse(metric))
        except ValueError as error:
            raise KeyError(str(error)) from error
        if name not in self._means:
            raise KeyError(f"{name} was not evaluated, only {', '.join(self)}")
        return self._means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._means)

    def __len__(self) -> int:
        return len(self._means)

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: {mean:.4f}" for name, mean in self.items())
        return f"{type(self).__name__}({means})"

    def _count_users(self, population: Tensor) -> None:
        has_truth = population & (self.ranked.degree > 0)
        self.num_evaluated = int(has_truth.sum())
        self.num_without_truth = int(population.sum()) - self.num_evaluated
        check_num_without_truth(self.num_without_truth, self.empty_target_action)
        self.max_k = max((metric.k for metric in self.metrics if metric.k), default=None)
        self.num_with_few_candidates: int | None = None
        if self.ranked.num_candidates is not None:
            has_few = self.ranked.num_candidates < (self.max_k or 0)
            self.num_with_few_candidates = int((has_truth & has_few).sum())

    def _cohorts(
        self,
        group: Tensor,
        labels: list[Hashable],
        name: str,
        level: float,
        method: IntervalMethod,
    ) -> Cohorts:
        means: dict[Hashable, dict[str, CohortMean]] = {label: {} for label in labels}
        for metric in self.per_user:
            values = self.contributions(metric)
            parts = split_by(values, group.to(values.device), len(labels))
            for label, part in zip(labels, parts, strict=True):
                means[label][metric] = cohort_mean(part, level, method)
        return Cohorts(means, name, level)

    def _known_task(self, needed_by: str) -> RankingTask:
        if self.task is None:
            raise ValueError(
                f"'{needed_by}' needs the seen edges of a task (got a result without a task)"
            )
        return self.task

    def _values(self, metric: str | Metric) -> Tensor:
        """What a metric is the mean of: the values of the users who count."""
        value = self.contributions(metric)
        return value[~value.isnan()]

    def _measure(self, metric: Metric) -> Tensor:
        if metric.is_aggregate:
            is_all = bool(self._is_evaluated.all())
            return metric(self.ranked if is_all else self.ranked.with_lists_of(self._is_evaluated))
        is_defined = self.convention.population.is_defined(metric, self.ranked)
        return metric(self.ranked).masked_fill(~is_defined, torch.nan)

    def _mean(self, metric: Metric, value: Tensor) -> float:
        return float(self._counted(metric, value).nanmean()) if value.dim() else float(value)

    def _counted(self, metric: Metric, value: Tensor) -> Tensor:
        """What users count as in the mean: `[num_users]`, `NaN` for those who do not."""
        if metric.needs_truth:
            value = fill_without_truth(value, self.ranked.degree, self.empty_target_action)
        return value.masked_fill(~self._is_evaluated, torch.nan)

    def _table(self) -> Table:
        """Metrics down and k across."""
        labels = list(dict.fromkeys(metric.label for metric in self.metrics))
        cut_offs = sorted({metric.k or 0 for metric in self.metrics})
        margins = {str(metric): self._margin(metric) for metric in self.metrics}
        cells = {
            (metric.label, metric.k or 0): format_mean(self[metric], margins[str(metric)])
            for metric in self.metrics
        }
        notes = [self._population()]
        if not all(math.isnan(margin) for margin in margins.values()):
            notes.insert(0, "±: 95% confidence interval of the mean over users")
        return Table(
            head=["metric", *(f"@{k}" if k else "" for k in cut_offs)],
            rows=[[label, *(cells.get((label, k), "") for k in cut_offs)] for label in labels],
            notes=tuple(notes),
        )

    def _margin(self, metric: Metric) -> float:
        """Half the width of the interval of a mean, `NaN` where there is no mean over users."""
        if str(metric) not in self.per_user:
            return math.nan
        return normal_margin(self._values(metric), level=0.95)

    def _population(self) -> str:
        parts = [f"{self.num_evaluated:,} users evaluated"]
        if self.num_without_truth:
            treated = {"neg": " (count as 0)", "pos": " (count as 1)"}
            action = treated.get(self.empty_target_action, "")
            parts.append(f"{self.num_without_truth:,} without ground truth{action}")
        if self.num_with_few_candidates:
            parts.append(
                f"{self.num_with_few_candidates:,} with fewer than {self.max_k} candidates"
            )
        if self.num_left_out:
            parts.append(f"{self.num_left_out:,} left out by the convention")
        if self.convention.name != "standard":
            parts.append(f"convention {self.convention.name}")
        return ", ".join(parts)


def resolve_all(metrics: tuple[Metric, ...], convention: Convention) -> dict[str, Metric]:
    """Returns what a convention computes under the names that are asked for together."""
    deepest = max((metric.k for metric in metrics if metric.k), default=None)
    return {str(metric): convention.resolve(metric, deepest) for metric in metrics}


def check_empty_target_action(action: str) -> None:
    """Raises if `action` is not known."""
    if action not in get_args(EmptyTargetAction):
        raise ValueError(
            f"'empty_target_action' needs to be one of {list(get_args(EmptyTargetAction))} "
            f"(got {action!r})"
        )


def check_num_without_truth(num_without_truth: int, action: EmptyTargetAction) -> None:
    """Raises if there are users without truth where this is an error."""
    if action == "error" and num_without_truth:
        raise ValueError(
            f"'empty_target_action' needs every user to have ground truth if it is 'error' "
            f"(got {num_without_truth} without)"
        )


def fill_without_truth(value: Tensor, degree: Tensor, action: EmptyTargetAction) -> Tensor:
    """Returns what every user counts as in a mean, `NaN` if it is left out."""
    without_truth = {"skip": torch.nan, "neg": 0.0, "pos": 1.0, "error": torch.nan}
    return value.masked_fill(degree == 0, without_truth[action])
