"""A page that reports on results. It stands on results and their pictures, and ranks nothing."""

from pyg_recmetrics.reporting.page import report

__all__ = ["report"]
