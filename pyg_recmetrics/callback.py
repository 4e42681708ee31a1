"""The adapter that makes an Evaluator a callback of Lightning, which is imported here alone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import importing

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer

    from pyg_recmetrics.evaluation import Evaluator


def make_callback(
    evaluator: "Evaluator", recommender: Callable[[Any], Any] | None, every_n_epochs: int
) -> "Callback":
    """Returns a callback, see :meth:`~pyg_recmetrics.Evaluator.as_callback`."""
    with importing("Lightning", "lightning", "as_callback"):
        from lightning.pytorch import Callback
    check_positive_integer(every_n_epochs, "every_n_epochs")

    class EvaluatorCallback(Callback):
        def on_train_epoch_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
            if (trainer.current_epoch + 1) % every_n_epochs:
                return
            evaluated = pl_module if recommender is None else recommender(pl_module)
            result = evaluator.to(pl_module.device)(evaluated)
            # The processes of a trainer rank together, and so they already agree.
            pl_module.log_dict(result.to_dict(), sync_dist=True)
            trainer.should_stop = trainer.should_stop or evaluator.should_stop

    return EvaluatorCallback()
