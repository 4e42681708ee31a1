"""What tables of several recommenders or data sets have in common."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.comparison import is_higher_better, rounded
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import by_name
from pyg_recmetrics.tables import Best

#: The recommenders of one data set, by name.
Results = Mapping[str, Measured]


@contextmanager
def on(data_set: str) -> Iterator[None]:
    """Lets errors about arguments name a data set."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{data_set}: {error}" if data_set else str(error)) from error


def by_data_set(results: Any) -> dict[str, Any]:
    """Returns the results of each data set, of which one alone has no name."""
    is_nested = isinstance(results, Mapping) and any(
        isinstance(of_one, Mapping) and not isinstance(of_one, EvaluationResult)
        for of_one in results.values()
    )
    return by_name(results, Mapping, "results by name") if is_nested else {"": results}


def with_best(
    cells: Mapping[str, tuple[float, str]], names: Iterable[str], metric: str | Metric
) -> list[str]:
    """Returns a cell for each recommender, of which the best is bold if there are several means.

    Args:
        cells (mapping): The mean of each recommender that has one, and how it is printed.
        names (iterable): All recommenders.
        metric (str or Metric): The metric.

    Example:
        >>> cells = {"x": (0.3, ".3"), "y": (0.1 + 0.2, ".3"), "z": (0.2, ".2")}
        >>> [type(cell).__name__ for cell in with_best(cells, "xyz", "mrr")]
        ['Best', 'Best', 'str']
    """
    known = {name: rounded(mean) for name, (mean, _) in cells.items() if not math.isnan(mean)}
    highest = max if is_higher_better(str(metric)) else min
    best = [name for name in known if len(known) > 1 and known[name] == highest(known.values())]
    texts = {name: text for name, (_, text) in cells.items()}
    return [Best(texts[name]) if name in best else texts.get(name, "-") for name in names]
