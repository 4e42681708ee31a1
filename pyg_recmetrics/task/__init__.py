"""The task: who is ranked, over what, what is relevant and what is seen, read from PyG data.

This package may import the kernels and the layers below them. It knows neither recommenders nor
ranks.
"""

from pyg_recmetrics.task.edges import TruthByUser
from pyg_recmetrics.task.task import Catalogue, RankingTask, as_task

__all__ = ["Catalogue", "RankingTask", "TruthByUser", "as_task"]
