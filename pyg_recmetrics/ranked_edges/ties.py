r"""How ties are broken: the ranks of relevant items that score the same as other candidates.

Let `a` candidates of a user score higher than a relevant item, let `g` of them score the same (the
item itself among them), and let `m` of these `g` be relevant. The `m` relevant items take `m` of
the ranks from `a + 1` to `a + g`. They never share a rank: the `j`-th of them has a rank of at
least `a + j`.
"""

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice, check_natural_number
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.kernels.exact.runs import find_runs

#: How equal scores are ranked.
Ties: TypeAlias = Literal["index", "best", "worst", "mean", "random"]

#: What a recipe says about each way to rank equal scores.
TIES_IN_WORDS: dict[str, str] = {
    "index": "equal scores rank the lower item id first",
    "best": "equal scores rank relevant items first",
    "worst": "equal scores rank relevant items last",
    "mean": "equal scores share the mean of their best and their worst rank",
    "random": "equal scores rank in random order",
}


def check_ties(ties: object, seed: object) -> int:
    """Returns `seed` if there is such a way to rank ties, and it is a non-negative integer."""
    check_choice(ties, "ties", get_args(Ties))
    return check_natural_number(seed, "seed")


def break_ties(
    edge_label_index: Tensor,
    weight: Tensor | None,
    num_above: Tensor,
    num_tied: Tensor,
    ties: Ties,
    seed: int,
) -> Tensor:
    """Returns the ranks of relevant items, of shape `[num_edges]`.

    Args:
        edge_label_index (torch.Tensor): The truth, of shape `[2, num_edges]`.
        weight (torch.Tensor, optional): The weights. Heavier items have the better ranks with
            `"best"`, and the worse ones with `"worst"` and `"mean"`.
        num_above (torch.Tensor): How many candidates score higher than each relevant item.
        num_tied (torch.Tensor): How many other candidates have the same score.
        ties (str): Any of `"best"`, `"worst"`, `"mean"` and `"random"`.
        seed (int): The seed of `"random"`.
    """
    user, item = edge_label_index
    generator = torch.Generator("cpu").manual_seed(seed) if ties == "random" else None
    order = item.argsort(stable=True)
    if generator is not None:
        shuffled = torch.randperm(order.numel(), generator=generator, device="cpu")
        order = order[shuffled.to(order.device)]
    elif weight is not None:
        order = order[weight[order].argsort(descending=ties == "best", stable=True)]
    for key in (num_above, user):
        order = order[key[order].argsort(stable=True)]
    above, tied = num_above[order], num_tied[order]
    first, num_relevant = find_runs(user[order], above)
    place = torch.arange(first.numel(), device=first.device) - first
    shift = _shift(place, num_relevant, tied + 1 - num_relevant, ties, generator)
    is_known = above < NOT_RETRIEVED
    rank = (above.masked_fill(~is_known, 0) + 1 + place + shift).masked_fill_(
        ~is_known, NOT_RETRIEVED
    )
    return torch.empty_like(rank).scatter_(0, order, rank)


def _shift(
    place: Tensor,
    num_relevant: Tensor,
    num_others: Tensor,
    ties: Ties,
    generator: torch.Generator | None,
) -> Tensor:
    """Returns how many of the tied items that are not relevant rank above each relevant one."""
    if generator is not None:
        others = _draw(place.cpu(), num_relevant.cpu(), num_others.cpu(), generator)
        return others.to(place.device)
    if ties == "mean":
        return num_others.double() / 2
    return num_others if ties == "worst" else torch.zeros_like(num_others)


def _draw(
    place: Tensor, num_relevant: Tensor, num_others: Tensor, generator: torch.Generator
) -> Tensor:
    """Draws how many other items rank above each relevant one, in a random order of all of them.

    Place by place, each group draws how many other items come before its next relevant item. If
    `q` relevant items are left, the next one is the first of `q` uniform numbers. Each other item
    that is left comes before it with that probability.
    """
    num_above = torch.zeros_like(num_others)
    num_left = num_others.clamp(min=0)
    first = torch.arange(place.numel(), device="cpu") - place
    for at in _places(place, num_others):
        left = (num_relevant - place)[at].double()
        uniform = torch.rand(at.numel(), dtype=torch.float64, generator=generator, device="cpu")
        chance = 1 - uniform.pow(1 / left)
        group = first[at]
        drawn = torch.binomial(num_left[group].double(), chance, generator=generator).long()
        num_left[group] -= drawn
        num_above[at] = num_others[at] - num_left[group]
    return num_above


def _places(place: Tensor, num_others: Tensor) -> tuple[Tensor, ...]:
    """Returns the first relevant items of all groups, then the second ones, and so on."""
    tied = (num_others > 0).nonzero().squeeze(1)
    tied = tied[place[tied].argsort(stable=True)]
    groups: tuple[Tensor, ...] = tied.split(torch.bincount(place[tied]).tolist())
    return groups
