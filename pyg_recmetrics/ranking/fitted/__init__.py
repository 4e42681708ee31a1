"""Fitted models of other libraries, one small adapter for each library.

An adapter reads what a model has learned, as embeddings, a function or lists, and says in words
what that is. None of them imports its library: a model is known by the module of its class.
"""

from pyg_recmetrics.ranking.fitted.find import ADAPTERS, is_fitted, read_fitted

__all__ = ["ADAPTERS", "is_fitted", "read_fitted"]
