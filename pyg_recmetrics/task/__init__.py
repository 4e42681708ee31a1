"""The task: who is ranked, over what, what is relevant and what is seen, read from PyG data.

This package may import `distributed` and the layers below it. It knows neither recommenders nor
ranks.
"""

from pyg_recmetrics.task.catalogue import Catalogue
from pyg_recmetrics.task.task import RankingTask

__all__ = ["Catalogue", "RankingTask"]
