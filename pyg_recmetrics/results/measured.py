"""What a result is, for modules below it that look at several of them."""

from collections.abc import Mapping
from typing import Protocol

from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.results.averages import AverageOver
from pyg_recmetrics.task import RankingTask


class Measured(Protocol):
    """A result, of which these are the attributes that do not change."""

    @property
    def ranked(self) -> RankedEdges:
        """The ranked ground truth."""

    @property
    def task(self) -> RankingTask | None:
        """What was ranked."""

    @property
    def definitions(self) -> Mapping[str, Metric]:
        """What is computed under the name of each metric."""

    @property
    def convention(self) -> Convention:
        """How the metrics are defined."""

    @property
    def empty_target_action(self) -> str:
        """What users without truth count as."""

    @property
    def average_over(self) -> AverageOver:
        """What the means are over."""
