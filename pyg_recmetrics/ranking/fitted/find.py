"""Finds the adapter of a fitted model by the module of its class."""

from collections.abc import Callable
from typing import Any

from pyg_recmetrics.ranking.fitted import (
    cornac,
    faiss,
    implicit,
    lenskit,
    lightfm,
    recbole,
    surprise,
)
from pyg_recmetrics.ranking.fitted.reading import Reading
from pyg_recmetrics.task import RankingTask

#: The adapter of each library, by the name of its package.
ADAPTERS: dict[str, Callable[[Any, RankingTask], Reading]] = {
    "cornac": cornac.read,
    "faiss": faiss.read,
    "implicit": implicit.read,
    "lenskit": lenskit.read,
    "lightfm": lightfm.read,
    "recbole": recbole.read,
    "surprise": surprise.read,
}


def is_fitted(value: object) -> bool:
    """Returns whether `value` is a model of a library that has an adapter."""
    return _library_of(value) is not None


def read_fitted(value: object, task: RankingTask) -> Reading | None:
    """Reads a fitted model, or returns `None` if `value` is none.

    Args:
        value (object): The model, or a pair of user embeddings and an index of items.
        task (RankingTask): The task.

    Raises:
        TypeError: If the library is known, but models of this class cannot be read.
        ValueError: If the model does not fit the task.
    """
    library = _library_of(value)
    return None if library is None else ADAPTERS[library](value, task)


def _library_of(value: object) -> str | None:
    if isinstance(value, tuple):
        is_pair = len(value) == 2 and _library_of(value[1]) == "faiss"
        return "faiss" if is_pair else None
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in ADAPTERS), None)
