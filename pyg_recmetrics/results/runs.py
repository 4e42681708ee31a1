"""Several results: the runs of a recommender, recommenders by name, and those of a training."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import notes
from pyg_recmetrics.results.result import (
    EvaluationResult,
    Measured,
    frame_of_means,
    has_rows,
    largest,
)
from pyg_recmetrics.tables import Rows, Table, format_error
from pyg_recmetrics.task.edges import coalesce_truth
from pyg_recmetrics.utils import counted, list_some, warn


def check_alike(facts: Mapping[str, Mapping[str, object]], need: str) -> None:
    """Raises if some results differ from the first.

    Args:
        facts (mapping): What results must have in common, by their names.
        need (str): What they need to be, as the error says.
    """
    (first_name, first), *others = facts.items()
    for name, other in others:
        if differing := differing_keys(first, other):
            raise ValueError(
                f"'results' needs to {need} (got '{first_name}' and '{name}', which differ in "
                f"{', '.join(differing)})"
            )


def differing_keys(first: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Returns the keys that both have, and whose values differ."""
    both = first.keys() & other.keys()
    return sorted(key for key in both if not is_same(first[key], other[key]))


def how_measured(result: EvaluationResult) -> dict[str, object]:
    """Returns what moves the numbers of a result, whatever its task is."""
    return {
        "convention": result.convention,
        "empty_target_action": result.empty_target_action,
        "per": (result.average_over, result.ranked.origin.user_of_row is None),
    }


def _facts(result: EvaluationResult) -> dict[str, object]:
    """Returns what two results must have in common, if both have it, for their users to be pairs.

    The edges and ids of a task are sorted and unique, so equal tasks have equal tensors. Lists know
    no ties, and facts about items count if a metric looks at them.
    """
    ranked = result.ranked
    task = result.task
    facts = how_measured(result) | {"num_users": ranked.num_users, "task": task is None}
    if task is not None:
        facts |= task.to_dict()
        # Tasks have the same pairs if they have the same truth, whatever it was selected from.
        for name in ("threshold", "part_of", "knows_seen"):
            del facts[name]
    else:
        edges = ranked.edge_label_index
        num_items = int(edges[1].max()) + 1 if edges.numel() else 1
        facts["truth"], facts["weight"] = coalesce_truth(edges, ranked.weight, num_items)
        facts["user_ids"] = ranked.user_ids
        facts["rows"] = ranked.origin.user_of_row
    facts["person"] = ranked.origin.person
    for metric in result.definitions.values():
        for need in metric.needs:
            if need != "items":
                name = "seen" if need == "popularity" else need
                facts[f"{name} of the catalogue"] = getattr(ranked.catalogue, name)
    if ranked.num_tied is not None:
        facts |= {"ties": ranked.ties, "seed of ties": ranked.origin.seed}
    return facts


def is_same(first: object, second: object) -> bool:
    """Returns whether two values are equal, on whatever devices tensors are."""
    if first is second:
        return True
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.equal(first, second.to(first.device))
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return False
    return first == second


def check_comparable(results: Mapping[str, EvaluationResult]) -> None:
    """Raises if results are of different tasks, or measured in a way that moves their numbers.

    Also if there is no user that all have ranked.
    """
    facts = {name: _facts(result) for name, result in results.items()}
    check_alike(facts, "be of the same task, with the same ids in the same order")
    masks = [result.ranked._is_evaluated.cpu() for result in results.values()]
    if not bool(torch.stack(masks).all(dim=0).any()):
        raise ValueError(
            f"'results' needs to have users that all have ranked (got none for "
            f"{list_some(results)}; with a 'margin', the same 'seed' draws the same users)"
        )


#: One result of a recommender, or several.
Runnable: TypeAlias = Measured | Sequence[EvaluationResult]


class Runs(Measured, Rows[EvaluationResult]):
    r"""The results of several runs of one recommender on one task, such as one for each seed.

    A mean over users and runs has two sources of variance: other users might have been evaluated,
    and the recommender might have been trained with other seeds. The table shows the mean with an
    interval that accounts for both, how much the means of runs vary, and the standard error that
    comes from each source. With few runs, the interval takes Cochran's quantile: in simulations of
    three and five runs, 95% intervals contain the true mean in 93 to 97% of cases, and the usual
    mean ± t over seeds does so in 33 to 95%.

    Results whose rankings are equal, such as one that was loaded twice, or those of a recommender
    without a seed, count as one run.

    Args:
        results (sequence of EvaluationResult): The results, at least two.

    Attributes:
        metrics (tuple of Metric): The metrics that all results have.
        runs (tuple of EvaluationResult): The results, without those that repeat a ranking.
        num_tied (float or None): The mean over runs of :attr:`EvaluationResult.num_tied`; `None` if
            one has none.
        num_trials (int or None): The largest number of trials of a result, see
            :meth:`EvaluationResult.with_trials`; `None` if none has one.
        seconds (float or None): The largest number of seconds, likewise.

    Raises:
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If there are fewer than two results, they are of different tasks, conventions or
            actions for users without truth, or they have no metric in common.

    Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Cochran, "Approximate
    significance levels of the Behrens-Fisher test" (1964).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, Runs, evaluate
        >>> generator = torch.Generator().manual_seed(0)
        >>> truth = torch.stack([torch.arange(50), torch.randint(20, (50,), generator=generator)])
        >>> task = RankingTask(truth, num_users=50, num_items=20)
        >>> models = [torch.rand(50, 20, generator=generator) for seed in range(3)]
        >>> runs = Runs([evaluate(model, task, "recall@5") for model in models])
        >>> print(runs)
        metric              mean  sd of runs  se users  se runs
        -------------------------------------------------------
        recall@5  0.2733 ± .0596       .0577     .0296        -
        ±: 95% confidence interval of the mean for other users and other runs
        intervals may be too narrow: there are few users (50)
        3 runs; sd: standard deviation of their means; se: standard error
        -: 3 runs do not tell it from zero
    """

    def __init__(self, results: Iterable[EvaluationResult]) -> None:
        self._rows = _read_results(results)
        if len(self) < 2:
            raise ValueError(f"'results' needs to hold at least two (got {len(self)})")
        check_comparable({f"run {i}": result for i, result in enumerate(self, start=1)})
        self.metrics = metrics_in_common(self)
        self._runs: list[EvaluationResult] = []
        for result in self:
            if not any(_is_copy(result, other) for other in self._runs):
                self._runs.append(result)
        self.num_trials = largest(result.num_trials for result in self)
        self.seconds = largest(result.seconds for result in self)
        counts = [run.num_tied for run in self.runs]
        self.num_tied = None if None in counts else sum(filter(None, counts)) / len(counts)
        for note in notes.lines("copies", len(self), len(self.runs)):
            warn(note)

    @property
    def runs(self) -> tuple[EvaluationResult, ...]:
        """The results without those whose ranking was there before."""
        return tuple(self._runs)

    def to_pandas(self, level: float = 0.95) -> pd.DataFrame:
        """Returns a data frame with a row for every metric.

        Its columns are `metric`, `k`, and what :meth:`mean` returns.

        Raises:
            ValueError: If `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> runs.to_pandas().columns.tolist()[2:]
            ['value', 'low', 'high', 'num_users', 'deviation', 'user_error', 'run_error']
        """
        return frame_of_means({x: self.mean(x, level)._asdict() for x in self.metrics})

    def with_trials(self, trials: int, seconds: float | None = None) -> "Runs":
        """Returns these runs, each with a budget, see :meth:`EvaluationResult.with_trials`.

        Args:
            trials (int): How many settings of hyperparameters were tried.
            seconds (float, optional): How long tuning, and the training of one run, took together.
                (default: `None`, which is not known)

        Raises:
            ValueError: If `trials` is not a non-negative integer, or `seconds` is not a
                non-negative number.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> scores = torch.tensor([[[0.1, 0.3, 0.2]] * 2, [[0.3, 0.1, 0.2]] * 2])
            >>> runs = Runs([evaluate(each, task, "mrr") for each in scores])
            >>> runs.with_trials(20, seconds=3.5).num_trials
            20
        """
        return Runs(result.with_trials(trials, seconds) for result in self)

    def __repr__(self) -> str:
        means = ", ".join(f"{metric}: {self.mean(metric).value:.4f}" for metric in self.metrics)
        return f"{type(self).__name__}({len(self)} runs, {means})"

    def table(self) -> Table:
        """Returns the printed table."""
        unit = self[0].nouns.drawn
        head = ["metric", "mean", "sd of runs", f"se {unit}", "se runs"]
        means = {str(metric): self.mean(metric) for metric in self.metrics}
        rows = []
        for name, mean in means.items():
            errors = (mean.deviation, mean.user_error, mean.run_error or math.nan)
            rows.append([name, self.cell(name), *map(format_error, errors)])
        said = notes.lines(
            "below_runs",
            self,
            num_runs=len(self.runs),
            is_zero=not all(mean.run_error for mean in means.values()),
            of_all=[name for name in means if not has_rows(self, name)],
        )
        return Table(head, rows, (*said, *self._on_sample(), *self._on_protocol()))


def _read_results(results: Any) -> tuple[EvaluationResult, ...]:
    """Returns the results of a recommender, which may be a single one."""
    is_one = isinstance(results, Mapping) or not isinstance(results, Iterable)
    found: tuple[EvaluationResult, ...] = (results,) if is_one else tuple(results)
    for result in found:
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"'results' needs to hold 'EvaluationResult' (got {type(result).__name__}); write "
                f"Runs([a, b]) for runs of one recommender, and compare({{'A': a, 'B': b}}) for two"
            )
    if not found:
        raise ValueError("'results' needs to hold at least one run of a recommender (got none)")
    return found


def _is_copy(result: EvaluationResult, other: EvaluationResult) -> bool:
    """Returns whether two results of one task rank every edge alike, and hold the same lists."""
    ranks = _ranks_of_both(result, other)
    if not ranks.a.equals(ranks.b):
        return False
    one = result.ranked
    another = other.ranked.to(result.ranked.rank.device)
    if one.lists is None or another.lists is None:
        return True
    users = (one._is_evaluated & another._is_evaluated).nonzero().squeeze(1)
    width = min(one.lists.width, another.lists.width)
    places = torch.stack(one.lists.places(width, users))
    return is_same(places, torch.stack(another.lists.places(width, users)))


def have_same_values(one: Measured, other: Measured, metrics: Iterable[str]) -> bool:
    """Returns whether all users have the same values of some metrics in the runs of both."""
    return all(
        np.array_equal(one.array_of(metric), other.array_of(metric), equal_nan=True)
        for metric in metrics
    )


#: Runs that differ for a smaller share of users than this hardly differ.
LEAST_DIFFERING = 0.2


def share_of_differing(runs: Sequence[EvaluationResult]) -> float:
    """Returns for which share of users two runs differ, of the pair that differs least.

    These are the users who have a hit in either run down to the largest cut-off. Runs stand beside
    the next.
    """
    shares = []
    for one, other in pairwise(runs):
        ranks = _ranks_of_both(one, other, one.max_k)
        hits = ranks[ranks[["a", "b"]].min(axis=1) < NOT_RETRIEVED]
        is_differing = (hits.a != hits.b).groupby(hits.user).any()
        shares.append(float(is_differing.mean()) if len(is_differing) else 1.0)
    return min(shares)


def _ranks_of_both(
    one: EvaluationResult, other: EvaluationResult, max_k: int | None = None
) -> pd.DataFrame:
    """Returns the ranks `a` and `b` of every edge of the users that two results have.

    What is below the depth that both have, or below `max_k`, is not retrieved.
    """
    known = [x for x in (one.ranked.depth, other.ranked.depth, max_k) if x is not None]
    depth = min(known, default=NOT_RETRIEVED - 1)
    frames = []
    for name, ranked in (("a", one.ranked), ("b", other.ranked)):
        user, item = ranked.edge_label_index.cpu().numpy()
        rank = ranked.rank.masked_fill(ranked.rank > depth, NOT_RETRIEVED).cpu()
        frames.append(pd.DataFrame({"user": user, "item": item, name: rank}))
    return frames[0].merge(frames[1])


def every_run(recommenders: Mapping[str, Measured]) -> dict[str, EvaluationResult]:
    """Returns all runs, by a name that tells the runs of a recommender apart."""
    return {
        name if len(recommender.runs) == 1 else f"{name}, run {number}": run
        for name, recommender in recommenders.items()
        for number, run in enumerate(recommender.runs, start=1)
    }


def budgets_of(recommenders: Mapping[str, Measured]) -> dict[str, dict[str, str]]:
    """Returns what tables show of the tuning of recommenders: nothing, if none of them says it.

    Returns:
        The trials and the seconds of each recommender, by the names of their columns.
    """
    trials = {name: each.num_trials for name, each in recommenders.items()}
    seconds = {name: each.seconds for name, each in recommenders.items()}
    columns = {}
    if any(trials.values()):
        columns["trials"] = {x: "-" if n is None else f"{n:,}" for x, n in trials.items()}
    if largest(seconds.values()) is not None:
        columns["seconds"] = {x: "-" if s is None else f"{s:,.1f}" for x, s in seconds.items()}
    return columns


def notes_on_budgets(recommenders: Mapping[str, Measured]) -> list[str]:
    """Returns which recommenders unequal budgets of tuning favour, and which have no known budget.

    A recommender without anything to tune, such as one score per item, has zero trials. All
    others are trainable.
    """
    trials = {name: each.num_trials for name, each in recommenders.items()}
    known = {name: number for name, number in trials.items() if number}
    unknown = [name for name, number in trials.items() if number is None]
    return notes.lines("budgets", known, unknown if budgets_of(recommenders) else [])


def remarks_on(recommenders: Mapping[str, Measured], metrics: Sequence[str]) -> list[str]:
    """Returns what results know of themselves and of some metrics, for every table of several."""
    runs = every_run(recommenders)
    copies = []
    for (a, first), (b, second) in combinations(recommenders.items(), 2):
        if have_same_values(first, second, metrics):
            copies += notes.lines("same", a, b)
    of_each = {}
    for name, each in recommenders.items():
        said = chain.from_iterable(run._remarks_on(metrics) for run in each.runs)
        of_each[name] = notes.once(said)
        if isinstance(each, Runs):
            copies += notes.lines("copies", len(each), len(each.runs), name)
    drawn = {name: run._sampled for name, run in runs.items() if run._sampled}
    samples = notes.lines("samples", drawn, next(iter(runs.values())).nouns)
    return [*copies, *notes.notes_of_all(of_each), *samples, *notes_on_budgets(recommenders)]


def in_brief(remark: str) -> str:
    """Returns a remark without its reasons and advice, which stand behind a colon."""
    return remark.partition(": ")[0]


def remarks_of_runs(measured: Measured, about: Iterable[str], *, has_intervals: bool) -> list[str]:
    """Returns what runs know against themselves and some metrics.

    Remarks that differ in numbers alone stand once, see :func:`~notes.once`.

    Args:
        measured (Measured): The runs of a recommender.
        about (iterable): The metrics, each with or without its cut-off.
        has_intervals (bool): Whether intervals of their means are shown.
    """
    asked = {*about}
    said: list[str | None] = []
    for run in measured.runs:
        metrics = [str(metric) for metric in run.metrics if {str(metric), metric.label} & asked]
        said += [*run._remarks_on(metrics), run._caution(*metrics) if has_intervals else None]
    return notes.once(filter(None, said))


def remarks_in_brief(
    recommenders: Mapping[str, Measured], about: Collection[str], *, has_intervals: bool
) -> list[str]:
    """Returns how the remarks of each recommender begin, as for a picture."""
    of_each = {}
    for name, each in recommenders.items():
        remarks = remarks_of_runs(each, about, has_intervals=has_intervals)
        of_each[name] = map(in_brief, remarks)
    return notes.notes_of_all(of_each)


def common_metrics(results: Sequence[EvaluationResult]) -> tuple[Metric, ...]:
    """Returns the metrics that all results have, in the order of the first."""
    first, *others = results
    return tuple(
        metric for metric in first.metrics if all(str(metric) in other for other in others)
    )


def metrics_in_common(results: Sequence[EvaluationResult]) -> tuple[Metric, ...]:
    """Returns the metrics that all results have, and raises if there are none."""
    if not (common := common_metrics(results)):
        raise ValueError(
            f"'results' needs to have metrics in common (got {list(map(list, results))})"
        )
    return common


#: What a recommender may be called. A number is the name that it prints as.
Name: TypeAlias = str | int | float


def read_name(name: Name, argument: str, names: Sequence[str]) -> str:
    """Returns a name as results have it, by which they may be numbers.

    Raises:
        ValueError: If it is none of `names`.
    """
    return check_choice(str(name) if isinstance(name, Name) else name, argument, names)


def by_name(
    results: Any, kinds: Any, what: str, argument: str = "results", *, or_one: bool = False
) -> dict[str, Any]:
    """Returns what a mapping holds by name.

    Args:
        results (Any): What the caller gave.
        kinds (type or types.UnionType): What the mapping has to hold.
        what (str): What the error calls these types.
        argument (str): The name of the argument.
        or_one (bool, optional): Whether it may be a single object, which has no name.
            (default: `False`)

    Raises:
        TypeError: If it is no mapping, a name is neither a string nor a number, or something has
            another type.
        ValueError: If it is empty, or two names print alike.
    """
    if or_one and isinstance(results, kinds):
        return {"": results}
    if not isinstance(results, Mapping) or isinstance(results, EvaluationResult):
        raise TypeError(
            f"'{argument}' needs to be {f'one {what}, or ' if or_one else ''}{argument} by name, "
            f"as in {{'A': a, 'B': b}} (got {type(results).__name__})"
        )
    if not results:
        raise ValueError(f"'{argument}' needs to hold at least one {what} (got none)")
    for name, result in results.items():
        if not isinstance(name, Name):
            raise TypeError(f"'{argument}' needs strings or numbers as names (got {name!r})")
        if not isinstance(result, kinds) or isinstance(result, str):
            raise TypeError(
                f"'{argument}' needs to hold {what} (got {type(result).__name__} as '{name}')"
            )
    named = {str(name): result for name, result in results.items()}
    if len(named) < len(results):
        raise ValueError(f"'{argument}' needs a name of its own for each (got {list(results)})")
    return named


def recommenders_by_name(
    results: Runnable | Mapping[str, Runnable], *, or_one: bool = False
) -> dict[str, Measured]:
    """Returns recommenders with one run or several by name; a single one has no name.

    Raises:
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If one has no run, its runs have no metric in common, or results cannot be
            compared: whatever shows several side by side compares them.
    """
    what = "'EvaluationResult' or 'Runs', as evaluate(...) and Runs([a, b]) return them"
    found = by_name(results, Measured | Sequence, what, or_one=or_one)
    for name, runs in found.items():
        if not isinstance(runs, Measured):
            read = _read_results(runs)
            found[name] = read[0] if len(read) == 1 else Runs(read)
    check_comparable(every_run(found))
    return found


class History(Rows[dict[str, float]]):
    r"""The means of every evaluation of a training so far, and the whole result of the best.

    An evaluation is the best if its monitored metric is better than that of all before. An
    evaluation whose metric is undefined (`NaN`) is no improvement.

    Args:
        monitor (Metric): The metric that decides.
        patience (int, optional): How many evaluations in a row without improvement to wait for
            before stopping. (default: `None`, never stop)

    Attributes:
        best (EvaluationResult or None): The best so far, which says of how many it is the best;
            `None` before the first evaluation.
        best_index (int or None): The index of the best among the evaluations.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Evaluator, RankingTask
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> evaluator = Evaluator(task, ["recall@1", "mrr@3"], monitor="mrr@3", patience=2)
        >>> for shift in range(5):
        ...     result = evaluator(torch.tensor([1.0, 3.0, 2.0]).roll(shift))
        ...     if evaluator.should_stop:
        ...         break
        >>> print(evaluator.history)
        call  recall@1   mrr@3
        ----------------------------
        0       0.0000  0.4167
        1       0.5000  0.7500  best
        2       0.5000  0.6667
        3       0.0000  0.4167
    """

    def __init__(self, monitor: Metric, patience: int | None = None) -> None:
        self.monitor = monitor
        self.patience = patience
        self.best: EvaluationResult | None = None
        self.best_index: int | None = None
        self._rows: list[dict[str, float]] = []

    def append(self, result: EvaluationResult) -> None:
        """Adds an evaluation."""
        # By its name, which need not be parsed.
        if self._is_improvement(result[str(self.monitor)]):
            self.best = result
            self.best_index = len(self._rows)
        self._rows.append(dict(result))
        if self.best is not None:
            self.best = self.best._with(num_calls=len(self._rows))

    @property
    def is_best(self) -> bool:
        """Whether the last evaluation is the best so far."""
        return self.best_index == len(self) - 1

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations were no improvement."""
        best = -1 if self.best_index is None else self.best_index
        return self.patience is not None and len(self) - 1 - best >= self.patience

    def to_pandas(self) -> pd.DataFrame:
        """Returns the means as a data frame with a row for every call and a column per metric.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Evaluator, RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> evaluator = Evaluator(task, ["recall@1", "mrr"])
            >>> _ = [evaluator(torch.tensor([0.1, x, 0.2])) for x in (0.3, 0.0)]
            >>> evaluator.history.to_pandas()
               recall@1       mrr
            0       0.0  0.416667
            1       0.5  0.750000
        """
        return pd.DataFrame(self._rows)

    def _is_improvement(self, value: float) -> bool:
        if self.best is None:
            return not math.isnan(value)
        best = self.best[str(self.monitor)]
        return value > best if self.monitor.definition.higher_is_better else value < best

    def __str__(self) -> str:
        return super().__str__() if self else "no evaluation so far"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), 'evaluations')}, monitor={self.monitor})"

    def table(self) -> Table:
        """Returns the printed table."""
        rows = []
        for index, means in enumerate(self):
            mark = "best" if index == self.best_index else ""
            rows.append([str(index), *(f"{mean:.4f}" for mean in means.values()), mark])
        return Table(["call", *self.to_pandas(), ""], rows)
