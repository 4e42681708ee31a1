"""The task: who is ranked, over what, what is relevant and what is seen, read from PyG data.

Imports only the checks and `distributed`. It knows neither recommenders nor ranks.
"""

from pyg_recmetrics.task.catalogue import Catalogue
from pyg_recmetrics.task.task import RankingTask

__all__ = ["Catalogue", "RankingTask"]
