"""Conventions: how other libraries define the same names, to reproduce their numbers.

A convention spells every metric that a library offers in the arguments of ours, says what users
without ground truth count as, and who is evaluated at all. What is a plain bug of a library is not
reproduced.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric, Value, definition, names, parse
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.tables import format_table
from pyg_recmetrics.task import RankingTask

#: What a user without truth counts as in a mean, in torchmetrics' words.
EmptyTargetAction: TypeAlias = Literal["skip", "neg", "pos", "error"]

#: Metrics that do not look at the order within the top k.
_SET_METRICS = ("precision", "truncated_precision", "recall", "f1", "hit_rate")


@dataclass(frozen=True)
class Population:
    """Which users are evaluated, in the words of recometrics.

    Args:
        min_pos_test (int, optional): The least number of relevant items. (default: `1`)
        min_items_pool (int, optional): The least number of candidates. (default: `1`)
        consider_cold_start (bool, optional): Whether users who have seen nothing are evaluated.
            (default: `True`)
        constant_scores (bool, optional): Whether users are evaluated all of whose candidates have
            the same score. (default: `True`)
        few_candidates (str, optional): `"count"`, or `"undefined"`: a metric at `k` is then
            undefined for users with fewer than `k` candidates, with just `k` candidates if it
            does not look at their order (such as recall), and with more but relevant ones alone
            (unless it is the NDCG). (default: `"count"`)

    Raises:
        ValueError: If a number is no positive integer, or `few_candidates` is none of these.
    """

    min_pos_test: int = 1
    min_items_pool: int = 1
    consider_cold_start: bool = True
    constant_scores: bool = True
    few_candidates: Literal["count", "undefined"] = "count"

    def __post_init__(self) -> None:
        check_positive_integer(self.min_pos_test, "min_pos_test")
        check_positive_integer(self.min_items_pool, "min_items_pool")
        if self.few_candidates not in ("count", "undefined"):
            raise ValueError(
                f"'few_candidates' needs to be 'count' or 'undefined' (got {self.few_candidates!r})"
            )

    def is_eligible(self, task: RankingTask) -> Tensor:
        """Returns which users of a task may be evaluated, of shape `[num_users]`.

        What depends on scores is not asked here. Users without ground truth are only left out if
        more than one relevant item is wanted: else, they are the business of
        `empty_target_action`.
        """
        eligible = task.num_candidates >= self.min_items_pool
        if self.min_pos_test > 1:
            eligible &= task.degree >= self.min_pos_test
        if not self.consider_cold_start:
            eligible &= torch.bincount(task.seen[0], minlength=task.num_users) > 0
        return eligible

    def is_defined(self, metric: Metric, ranked: RankedEdges) -> Tensor:
        """Returns for which users a metric is defined, as far as candidates go: `[num_users]`."""
        if self.few_candidates == "count" or ranked.num_candidates is None:
            return torch.ones_like(ranked.degree, dtype=torch.bool)
        k = metric.k or 0
        can_differ = ranked.num_candidates > ranked.degree
        if metric.name == "ndcg":
            can_differ = torch.ones_like(can_differ)
        is_defined = can_differ & (ranked.num_candidates > k)
        if metric.name in _SET_METRICS:
            return is_defined
        return is_defined | (ranked.num_candidates == k)

    @property
    def words(self) -> list[str]:
        """What is said about it in a recipe, if it is not the default."""
        said = []
        if self.min_pos_test > 1:
            said.append(f"at least {self.min_pos_test} relevant items")
        if self.min_items_pool > 1:
            said.append(f"at least {self.min_items_pool} candidates")
        if not self.consider_cold_start:
            said.append("something they have seen")
        if not self.constant_scores:
            said.append("scores that are not all equal")
        if self.few_candidates == "undefined":
            said.append("enough candidates for the metric")
        return said


#: Stands for the largest cut-off of all metrics that are asked for together.
DEEPEST = "deepest"


@dataclass(frozen=True)
class Convention:
    """The definitions of one library.

    Args:
        name (str): Its name, as :func:`~pyg_recmetrics.evaluate` takes it.
        source (str): The library, and the version whose definitions these are.
        metrics (dict or None): The arguments of every metric that it offers; `None` for all
            metrics as they are by default.
        without_cut_off (tuple, optional): Metrics that it does not cut off at k. (default: `()`)
        other_names (dict, optional): Names of ours that it uses for another of our metrics.
            (default: `{}`)
        empty_target_action (str, optional): What users without ground truth count as.
            (default: `"skip"`)
        population (Population, optional): Who is evaluated. (default: everybody)
        note (str, optional): What to know about it. (default: `""`)
    """

    name: str
    source: str
    metrics: dict[str, dict[str, Value]] | None
    without_cut_off: tuple[str, ...] = ()
    other_names: dict[str, str] = field(default_factory=dict)
    empty_target_action: EmptyTargetAction = "skip"
    population: Population = field(default_factory=Population)
    note: str = ""

    def resolve(self, asked: str | Metric, deepest: int | None = None) -> Metric:
        """Returns the metric that the library computes under the name that is asked for.

        Arguments that are spelled out have precedence over those of the convention.

        Args:
            asked (str or Metric): The metric, such as `"ndcg@10"`.
            deepest (int, optional): The largest cut-off of all metrics that are asked for, on
                which the NDCG of `ngcf` depends. (default: `None`, that of the metric)

        Raises:
            ValueError: If the library does not offer the metric; those it does are listed.

        Example:
            >>> from pyg_recmetrics import conventions
            >>> conventions.get("rectools").resolve("ndcg@10")
            ndcg(gain=binary,ideal=k)@10
            >>> conventions.get("trec_eval").resolve("mrr@10")
            mrr
        """
        asked = parse(asked)
        if self.metrics is None:
            return asked
        if asked.name not in self.metrics:
            other = self.other_names.get(asked.name)
            hint = f"; what it calls '{asked.name}' is '{other}'" if other else ""
            raise ValueError(
                f"'metrics' needs to name metrics of the convention '{self.name}', "
                f"{list(self.metrics)} (got '{asked}'{hint})"
            )
        arguments = {
            name: max(deepest or 1, asked.k or 1) if value == DEEPEST else value
            for name, value in self.metrics[asked.name].items()
        }
        arguments |= dict(asked.arguments)
        k = None if asked.name in self.without_cut_off else asked.k
        return Metric(asked.name, k, tuple(arguments.items()))


def get(convention: str | Convention) -> Convention:
    """Looks up a convention by its name.

    Raises:
        ValueError: If there is none of that name; all are listed.
    """
    if isinstance(convention, Convention):
        return convention
    if convention not in CONVENTIONS:
        raise ValueError(
            f"'convention' needs to be one of {list(CONVENTIONS)} (got {convention!r})"
        )
    return CONVENTIONS[convention]


def from_dict(values: dict[str, Any]) -> Convention:
    """Makes a convention of its fields, as `dataclasses.asdict` and JSON have them."""
    return Convention(
        **{
            **values,
            "without_cut_off": tuple(values["without_cut_off"]),
            "population": Population(**values["population"]),
        }
    )


def _metrics(*like_ours: str, **different: dict[str, Value]) -> dict[str, dict[str, Value]]:
    """The metrics that a library offers, and the arguments of those it defines differently."""
    return {name: different.get(name, {}) for name in names() if name in {*like_ours, *different}}


_DIVIDED_BY_R: dict[str, Value] = {"normalizer": "R"}
_BINARY: dict[str, Value] = {"gain": "binary"}

_ALL = [
    Convention(
        "standard",
        "torch_geometric.metrics 2.8",
        None,
        note="PyG's definitions, right also where lists are padded or edges are repeated. "
        "R-precision is that of the literature; PyG has none.",
    ),
    Convention(
        "trec_eval",
        "trec_eval, through pytrec_eval-terrier 0.5.11",
        _metrics(
            "precision", "recall", "ndcg", "mrr", "r_precision", "hit_rate", map=_DIVIDED_BY_R
        ),
        without_cut_off=("mrr",),
        note="Its reciprocal rank has no cut-off. It orders equal scores by document id, "
        "descending as strings; here, they are ordered by item id.",
    ),
    Convention(
        "torchmetrics",
        "torchmetrics 1.9.0",
        _metrics(
            "precision",
            "recall",
            "ndcg",
            "mrr",
            "r_precision",
            "hit_rate",
            "roc_auc",
            map={"normalizer": "hits"},
        ),
        empty_target_action="neg",
        note="In precision, recall, MAP and MRR it takes relevant items with a score of zero or "
        "less for missed: this is a bug and not reproduced. It averages the NDCG over the orders "
        "of equal scores.",
    ),
    Convention(
        "recbole",
        "RecBole 1.2.1",
        _metrics(
            "precision",
            "recall",
            "map",
            "mrr",
            "hit_rate",
            "coverage",
            "gini",
            "popularity",
            ndcg=_BINARY,
        ),
        note="Its number of items includes the padding, by which coverage and Gini index differ a "
        "little: this is a bug and not reproduced.",
    ),
    Convention(
        "rectools",
        "RecTools 0.19.0",
        _metrics(
            "precision",
            "recall",
            "f1",
            "mrr",
            "hit_rate",
            "truncated_precision",
            "coverage",
            "popularity",
            "novelty",
            "serendipity",
            map=_DIVIDED_BY_R,
            ndcg={"gain": "binary", "ideal": "k"},
        ),
        other_names={"r_precision": "truncated_precision"},
        note="What it calls r_precision is truncated_precision. Its options divide_by_k and "
        "divide_by_achievable are map(normalizer=k) and ndcg(ideal=relevant).",
    ),
    Convention(
        "lenskit",
        "LensKit 2025.6",
        _metrics(
            "mrr",
            "map",
            "hit_rate",
            "gini",
            precision={"normalizer": "length"},
            recall={"normalizer": "min"},
            ndcg={"discount": "lenskit"},
        ),
        note="Its precision counts users without ground truth as zero, its average precision "
        "divides by zero there.",
    ),
    Convention(
        "recommenders",
        "Microsoft recommenders 1.2.1",
        _metrics(
            "precision",
            "recall",
            "r_precision",
            map=_DIVIDED_BY_R,
            ndcg=_BINARY,
        ),
        note="Its map_at_k is map(normalizer=min). It leaves users who score zero out of the mean "
        "R-precision: this is a bug and not reproduced, but can be had as r_precision(users=hit).",
    ),
    Convention(
        "recometrics",
        "recometrics 0.1.6",
        _metrics(
            "precision",
            "truncated_precision",
            "recall",
            "ndcg",
            "mrr",
            "hit_rate",
            "roc_auc",
            "pr_auc",
            map=_DIVIDED_BY_R,
        ),
        population=Population(min_items_pool=2, constant_scores=False, few_candidates="undefined"),
        note="Its TAP@K is map(normalizer=min). Its cumulative NDCG is wrong below rank R, PR-AUC, "
        "Hit and RR are if they are asked for alone, and at k = 1, or where the top k have equal "
        "scores, all is undefined: these bugs are not reproduced.",
    ),
    Convention(
        "ranx",
        "ranx 0.3.21",
        _metrics(
            "precision",
            "recall",
            "f1",
            "mrr",
            "ndcg",
            "r_precision",
            "hit_rate",
            map=_DIVIDED_BY_R,
        ),
        empty_target_action="neg",
    ),
    Convention(
        "replay",
        "RePlay 0.22.0",
        _metrics("precision", "recall", "map", "mrr", "hit_rate", ndcg=_BINARY),
    ),
    Convention(
        "implicit",
        "implicit 0.7.3",
        _metrics(
            "map",
            precision={"normalizer": "min", "average": "micro"},
            ndcg=_BINARY,
        ),
        note="It reads past the end of lists that are shorter than k: this is a bug and not "
        "reproduced.",
    ),
    Convention(
        "rectorch",
        "rectorch 0.0.9b",
        _metrics("mrr", "hit_rate", recall={"normalizer": "min"}, ndcg=_BINARY),
    ),
    Convention(
        "ngcf",
        "the evaluation of the NGCF paper and of notebooks after it",
        _metrics(
            "precision",
            "recall",
            "hit_rate",
            ndcg={"gain": "binary", "ideal": "retrieved", "ideal_k": DEEPEST},
        ),
        note="Its NDCG compares a list with its own best order instead of the best possible one: "
        "relevant items that were not retrieved cost nothing, so values are inflated, and NDCG@5 "
        "depends on the largest k that is evaluated. For reproducing published numbers only.",
    ),
]

#: All conventions by their name.
CONVENTIONS: dict[str, Convention] = {convention.name: convention for convention in _ALL}


def table(k: int = 3) -> str:
    r"""Compares all conventions on one toy ranking of four users.

    The first user has five relevant items, retrieved at ranks 1, 3, 6, 8 and 9; the second has one,
    at rank 2; the third has two, at ranks 5 and 6; the fourth has none. A dash stands for what a
    library does not offer, and a star for what it offers under that name, but is another metric.

    Args:
        k (int, optional): The cut-off. (default: `3`)

    Raises:
        ValueError: If `k` is no positive integer.

    Example:
        >>> from pyg_recmetrics import conventions
        >>> print(conventions.table().split("\n")[2])
        standard            .3333     .4667        .1333  .3519   .4449  .5000       .6667
    """
    check_positive_integer(k, "k")
    columns = ("precision", "recall", "r_precision", "map", "ndcg", "mrr", "hit_rate")
    head = [f"{name}@{k}" if definition(name).has_cut_off else name for name in columns]
    rows = [
        [name, *(_toy_cell(convention, column, k) for column in columns)]
        for name, convention in CONVENTIONS.items()
    ]
    return "\n".join(format_table(["convention", *head], rows))


def _toy() -> RankedEdges:
    lists = torch.arange(10).repeat(4, 1)
    truth = [(0, 0), (0, 2), (0, 5), (0, 7), (0, 8), (1, 1), (2, 4), (2, 5)]
    return RankedEdges.from_topk(lists, torch.tensor(truth).t())


def _toy_cell(convention: Convention, name: str, k: int) -> str:
    other = convention.other_names.get(name, name)
    if convention.metrics is not None and other not in convention.metrics:
        return "-"
    metric = Metric(other, k if definition(other).has_cut_off else None)
    value = convention.resolve(metric, deepest=k)(_toy())
    if convention.empty_target_action == "neg":
        value = value.nan_to_num(0.0)
    return f"{float(value.nanmean()):.4f}{'' if other == name else '*'}".removeprefix("0")
