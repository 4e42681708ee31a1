"""How many observations stand behind means with propensities, and the warning if they are few."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.metrics import Metric, definition
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.sums import exact_sums

#: A mean over users who have fewer observations than that is too biased to tell recommenders apart.
_FEWEST = 5

#: How many metrics a warning names.
_MAX_NAMED = 4

#: The parameters that say how much each observation counts.
_OF_WEIGHTS = frozenset({"propensity", "gamma", "clip"})


class EffectiveNumber(NamedTuple):
    """How many observations of equal weight vary as much as those of different weights.

    Attributes:
        per_user: The mean over users of the number of each.
        total: The number of all observations together, on which a micro average rests.
    """

    per_user: float
    total: float

    @classmethod
    def of(cls, ranked: RankedEdges, weight: Tensor) -> "EffectiveNumber":
        """Returns it for the users who are evaluated, from a weight per edge, `[num_edges]`."""
        is_counted = ranked.is_evaluated & (ranked.degree > 0)
        sums, squares = (ranked.sum(value)[is_counted] for value in (weight, weight.square()))
        each, *both = exact_sums(sums.square() / squares, sums, squares)
        total, squared = map(float, both)
        return cls(each.mean, total**2 / squared if squared else math.nan)

    def __str__(self) -> str:
        return f"{self.per_user:.2f} per user on average, {self.total:,.0f} in total"


class Observations:
    """How many observations the means rest on that weigh them by propensities.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        definitions (mapping): What is computed under the name of each metric.
    """

    def __init__(self, ranked: RankedEdges, definitions: Mapping[str, Metric]) -> None:
        self.ranked = ranked
        self.weighted = {
            name: metric for name, metric in definitions.items() if _is_weighted(metric)
        }

    @cached_property
    def numbers(self) -> dict[str, EffectiveNumber]:
        """The effective number of observations by how they are weighted, as that is spelled."""
        by_weighting = {_weighting(metric): metric for metric in self.weighted.values()}
        return {
            weighting: EffectiveNumber.of(self.ranked, self._weight(metric))
            for weighting, metric in by_weighting.items()
        }

    def notes(self) -> list[str]:
        """Returns the lines below a table that say the numbers."""
        return [
            f"effective number of observations with {weighting}: {number}"
            for weighting, number in self.numbers.items()
            if not math.isnan(number.per_user)  # as it is if nobody has truth
        ]

    def warn(self) -> None:
        """Warns of means over users who have few observations each."""
        few = {
            name: self.numbers[_weighting(metric)].per_user
            for name, metric in self.weighted.items()
            if metric.all_arguments.get("average") != "micro"
            # Rounded as it is printed, so that rounding errors of five are no fewer.
            and round(self.numbers[_weighting(metric)].per_user, 2) < _FEWEST
        }
        if few:
            warn(
                f"{list_some(list(few), _MAX_NAMED)} may name the wrong winner: the estimate of a "
                f"user rests on {min(few.values()):.2f} effective observations on average, and is "
                f"biased towards what is often observed if they are fewer than {_FEWEST}. Use "
                f"'average=micro', such as '{_micro(self.weighted[next(iter(few))])}'"
            )

    def _weight(self, metric: Metric) -> Tensor:
        arguments: dict[str, Any] = {name: metric.all_arguments[name] for name in _OF_WEIGHTS}
        item = self.ranked.edge_label_index[1]
        return self.ranked.required_catalogue.inverse_propensity(item, **arguments)


def _is_weighted(metric: Metric) -> bool:
    is_taken = metric.definition.parameters.keys() >= _OF_WEIGHTS
    return is_taken and metric.all_arguments["propensity"] != "none"


def _weighting(metric: Metric) -> str:
    """Spells those arguments of a metric that say how much each observation counts."""
    return ",".join(f"{name}={value}" for name, value in metric.arguments if name in _OF_WEIGHTS)


def _micro(metric: Metric) -> Metric:
    """Returns the micro-averaged recall with the same propensities."""
    takes = definition("recall").parameters
    arguments = {name: value for name, value in metric.arguments if name in takes}
    return Metric("recall", metric.k or 20, tuple((arguments | {"average": "micro"}).items()))
