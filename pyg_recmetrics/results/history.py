"""History: the means of every evaluation of a training, and the best result."""

import math

import pandas as pd

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.tables import Rows, Table
from pyg_recmetrics.utils import counted


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
