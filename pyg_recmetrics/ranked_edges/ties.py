r"""How ties are broken: the ranks of relevant items that score the same as other candidates.

Let `a` candidates of a user score higher than a relevant item, let `g` of them score the same (the
item itself among them), and let `m` of these `g` be relevant. The `m` relevant items take `m` of
the ranks from `a + 1` to `a + g`. They never share a rank: the `j`-th of them has a rank of at
least `a + j`.
"""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice, check_natural_number
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED, find_runs

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

#: What SplitMix64 adds, and by how many bits it shifts before it multiplies by what.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_MIXERS = (30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64)


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
    keys: tuple[Tensor, ...],
    hits: tuple[int, int] | None = None,
) -> Tensor:
    """Returns the ranks of relevant items, of shape `[num_edges]`.

    Args:
        edge_label_index (torch.Tensor): The truth, of shape `[2, num_edges]`.
        weight (torch.Tensor, optional): The weights. Heavier items have the better ranks with
            `"best"`, and the worse ones with `"worst"` and `"mean"`.
        num_above (torch.Tensor): How many candidates score higher than each relevant item.
        num_tied (torch.Tensor): How many other candidates have the same score.
        ties (str): Any of `"best"`, `"worst"`, `"mean"` and `"random"`.
        seed (int): The seed of `"random"`. What is drawn for a user depends on nothing but this
            seed and the user: neither on other users nor on the order of edges.
        keys (tuple of torch.Tensor): What says of each edge which user (or row) it is of.
        hits (tuple, optional): A cut-off `k`, and how many relevant items of a run of equal scores
            that `k` cuts are to be in the top `k`, as far as that can be. They rank first or last
            among those of the run in the top `k`, and the others among those behind, as `ties`
            says: `"best"` or `"worst"`. (default: `None`, as many as `ties` puts there)
    """
    user, item = edge_label_index
    order = item.argsort(stable=True)
    if ties == "random":
        key = _draw(seed, "order", *keys, item)
        order = order[key[order].argsort(stable=True)]
    elif weight is not None:
        order = order[weight[order].argsort(descending=ties == "best", stable=True)]
    for key in (num_above, user):
        order = order[key[order].argsort(stable=True)]
    above, tied = num_above[order], num_tied[order]
    first, num_relevant = find_runs(user[order], above)
    place = torch.arange(first.numel(), device=first.device) - first
    num_others = tied + 1 - num_relevant
    if ties == "random":
        uniform = _draw(seed, "places", *(key[order] for key in keys), above + place)
        shift = _random_shift(place, num_relevant, num_others, uniform)
    elif ties == "mean":
        shift = num_others.double() / 2
    elif hits is not None:
        k, num_hits = hits
        num_places = (k - above).clamp(min=0).minimum(tied + 1)
        num_in_top = num_places.minimum(num_relevant).clamp(max=num_hits)
        num_in_top = num_in_top.maximum(num_places - num_others)
        others_in_top, none = num_places - num_in_top, torch.zeros_like(num_others)
        first, last = (none, others_in_top) if ties == "best" else (others_in_top, num_others)
        shift = torch.where(place < num_in_top, first, last)
    else:
        shift = num_others if ties == "worst" else torch.zeros_like(num_others)
    is_known = above < NOT_RETRIEVED
    rank = (above.masked_fill(~is_known, 0) + 1 + place + shift).masked_fill_(
        ~is_known, NOT_RETRIEVED
    )
    return torch.empty_like(rank).scatter_(0, order, rank)


def _random_shift(
    place: Tensor, num_relevant: Tensor, num_others: Tensor, uniform: Tensor
) -> Tensor:
    r"""Returns how many other items rank above each relevant one, in a random order of all.

    Place by place, each group finds how many other items come before its next relevant item. Of
    :math:`n` other items and :math:`q` relevant ones that are left, :math:`g` or more others come
    first with a probability of :math:`\binom{n - g + q}{q} / \binom{n + q}{q}`.

    Args:
        place (torch.Tensor): The place of each relevant item in its group, from `0` on.
        num_relevant (torch.Tensor): How many relevant items its group has.
        num_others (torch.Tensor): How many other items have the same score.
        uniform (torch.Tensor): A number from `0` to `1` for each.
    """
    device = place.device  # on a CPU, so that all devices round alike
    place, num_relevant, num_others, uniform = (
        x.cpu() for x in (place, num_relevant, num_others, uniform)
    )
    num_above = torch.zeros_like(num_others)
    num_left = num_others.clamp(min=0)
    first = torch.arange(place.numel(), device="cpu") - place
    for at in _places(place, num_others):
        group = first[at]
        drawn = _num_before(num_left[group], (num_relevant - place)[at], uniform[at])
        num_left[group] -= drawn
        num_above[at] = num_others[at] - num_left[group]
    return num_above.to(device)


def _num_before(num_others: Tensor, num_relevant: Tensor, uniform: Tensor) -> Tensor:
    """Returns a random number of others that come first, by bisection of its distribution."""
    n, q = num_others.double(), num_relevant.double()
    of_all = torch.lgamma(n + 1) - torch.lgamma(n + q + 1)
    low, high = torch.zeros_like(num_others), num_others
    for _ in range(int(num_others.max()).bit_length()):
        middle = (low + high + 1) // 2
        left = (num_others - middle).double()
        chance = (torch.lgamma(left + q + 1) - torch.lgamma(left + 1) + of_all).exp()
        is_enough = chance > uniform
        low, high = torch.where(is_enough, middle, low), torch.where(is_enough, high, middle - 1)
    return torch.minimum(low, high)


def _places(place: Tensor, num_others: Tensor) -> tuple[Tensor, ...]:
    """Returns the first relevant items of all groups, then the second ones, and so on."""
    tied = (num_others > 0).nonzero().squeeze(1)
    tied = tied[place[tied].argsort(stable=True)]
    groups: tuple[Tensor, ...] = tied.split(torch.bincount(place[tied]).tolist())
    return groups


def keys_of(user_ids: Sequence[Hashable]) -> Tensor:
    """Returns a number for each user, which its id alone decides."""
    keys = [
        id_
        if type(id_) is int and -(2**63) <= id_ < 2**63
        else int.from_bytes(blake2b(repr(id_).encode(), digest_size=8).digest(), "big", signed=True)
        for id_ in user_ids
    ]
    return torch.tensor(keys, dtype=torch.long, device="cpu")


def _draw(seed: int, what: str, *keys: Tensor) -> Tensor:
    """Returns a number from `0` to `1` for each element, which its keys alone decide.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
    """
    content = blake2b(f"{seed} {what}".encode(), digest_size=8).digest()
    mixed = torch.full_like(keys[0], int.from_bytes(content, "big", signed=True))
    for key in keys:
        mixed = mixed.bitwise_xor(key) + _STEP
        for bits, factor in _MIXERS:
            mixed = mixed.bitwise_xor(_shifted(mixed, bits)) * factor
        mixed = mixed.bitwise_xor(_shifted(mixed, 31))
    return _shifted(mixed, 11).double() * 2.0**-53


def _shifted(value: Tensor, bits: int) -> Tensor:
    """Shifts to the right, and zeros in from the left."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
