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
    "a fitted model of implicit, LightFM, Cornac, Surprise, RecBole or a pipeline of LensKit, or a "
    "pair (user_embedding, index) with an index of faiss",
)

#: The line for any other model.
_FUNCTION = (
    "For any other model, write a function that returns the scores of all items for some users, "
    "as in evaluate(lambda users: model.predict(users), data)"
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
            f"\n{_FUNCTION}"
            f"\nFor two towers and the like, compute the embeddings of users and items, and write "
            f"evaluate((user_embedding, item_embedding), data)"
        )
    return "" if type(value).__module__ == "builtins" else f"\n{_FUNCTION}"
