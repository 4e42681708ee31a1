"""The forms of a recommender, as they are told to those who pass anything else."""

import torch

#: Every form that can be ranked, one a line.
FORMS = (
    "a model with recommend(edge_index, src_index, dst_index, k)",
    "a model of torch_geometric.nn.kge with forward(head_index, rel_type, tail_index), for a task "
    "of RankingTask.from_triples",
    "a pair (user_embedding, item_embedding), or (user_embedding, item_embedding, item_bias)",
    "floating-point scores [num_users, num_items]",
    "a function of user ids that returns their scores [len(users), num_items]",
    "PairScorer(function), which scores pairs of a user and an item",
    "floating-point scores of items [num_items], the same for everybody",
    "lists of item ids [num_users, K], integers, best first",
    "lists by the original ids of the task: a dict {user_id: [item_id, ...]}, or a data frame with "
    "the columns (user_id, item_id, rank) or (user_id, item_id, score)",
)


def unknown_form(value: object) -> TypeError:
    """Returns the error for a value that has none of the forms."""
    forms = "".join(f"\n  - {form}" for form in FORMS)
    return TypeError(
        f"'recommender' needs to be one of these (got {describe(value)}):{forms}{_remedy(value)}"
    )


def describe(value: object) -> str:
    """Returns what a value is that cannot be asked by `recommend`."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    is_module = isinstance(value, torch.nn.Module)
    return type(value).__name__ + (" without a method 'recommend'" if is_module else "")


def _remedy(value: object) -> str:
    if isinstance(value, type):
        return f"\nMake an object of the class first, as in {value.__name__}(...)"
    if isinstance(value, torch.nn.Module):
        return (
            "\nFor such a module, compute the embeddings of users and items, and write "
            "evaluate((user_embedding, item_embedding), data)"
        )
    return ""
