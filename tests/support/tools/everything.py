"""All that a result says and knows, to compare results to the last bit."""

from collections.abc import Mapping

import torch

from pyg_recmetrics.ranked_edges import fields_of


def everything(result):
    """All of a result by name, in words that tell any two values apart."""
    return in_words(
        {
            "names": list(result),
            "means": result,
            "per user": result.per_user,
            "definitions": result.definitions,
            "convention": result.convention,
            "ranked": fields_of(result.ranked),
            "task": result.task and result.task.to_dict(),
            "table": str(result),
            "recipe": result.recipe(),
        }
    )


def in_words(value):
    if isinstance(value, Mapping):
        return {name: in_words(part) for name, part in value.items()}
    return f"{value.dtype} {value.tolist()}" if torch.is_tensor(value) else repr(value)
