"""What is known of a mean while users are still being ranked, one random batch after the other."""

from pyg_recmetrics.sequential.confidence_sequence import ConfidenceSequence
from pyg_recmetrics.sequential.forecast import FEW_USERS, FIRST_BATCH, Forecast, forecast
from pyg_recmetrics.sequential.order import UserOrder

__all__ = ["FEW_USERS", "FIRST_BATCH", "ConfidenceSequence", "Forecast", "UserOrder", "forecast"]
