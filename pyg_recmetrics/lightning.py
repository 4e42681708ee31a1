"""The callback for Lightning. Only this module imports Lightning."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.result import Separator, spell

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer


class RecommenderEvaluator(Protocol):
    """Whatever evaluates a recommender, and knows when to stop."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics that are evaluated."""

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations did not improve the monitored metric."""

    def __call__(self, recommender: Any) -> EvaluationResult:
        """Evaluates a recommender."""

    def to(self, device: torch.device | str) -> "RecommenderEvaluator":
        """Returns the same on another device."""


def make_callback(
    evaluator: RecommenderEvaluator,
    recommender: Callable[[Any], Any] | None,
    every_n_epochs: int,
    sep: Separator,
) -> "Callback":
    """Returns a callback, see :meth:`~pyg_recmetrics.Evaluator.as_callback`."""
    with requires_extra("Lightning", None, "as_callback"):
        from lightning.pytorch import Callback
    every_n_epochs = check_positive_integer(every_n_epochs, "every_n_epochs")
    spell(evaluator.metrics, sep)  # which raises now, and not after the first epoch
    if recommender is not None and not callable(recommender):
        raise TypeError(
            f"'recommender' needs to be a function of the module (got {type(recommender).__name__})"
        )

    class EvaluatorCallback(Callback):
        def on_train_epoch_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
            if (trainer.current_epoch + 1) % every_n_epochs:
                return
            evaluated = pl_module if recommender is None else recommender(pl_module)
            result = evaluator.to(pl_module.device)(evaluated)
            # The processes of a trainer rank together, so they already agree.
            pl_module.log_dict(result.to_dict(sep), sync_dist=True)
            trainer.should_stop = trainer.should_stop or evaluator.should_stop

    return EvaluatorCallback()
