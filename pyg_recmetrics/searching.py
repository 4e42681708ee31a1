r"""The ranks of few items among many, from half-precision scores and a bound on their error.

A metric needs the ranks of a user's few relevant items, not a sorted list. A matrix product in
`bfloat16` costs a fraction of one in single precision, and tells of nearly every item whether it
ranks above a relevant one. What it does not tell is looked at exactly.

**The bound.** The product of two `bfloat16` numbers is exact in single precision, in which they are
added up: :mod:`pyg_recmetrics.bounds` says how far this sum :math:`x` can be from the exact score.
Call that :math:`\alpha_u`. The sum is returned rounded once more, as :math:`s = \text{bf16}(x)`.
Rounding is monotone: from :math:`x \leq y` follows :math:`s \leq \text{bf16}(y)`. So for a relevant
item with exact score :math:`c`,

- :math:`s > \text{bf16}(c + \alpha_u)` proves that an item ranks above it,
- :math:`s < \text{bf16}(c - \alpha_u)` proves that it ranks below it,

and the last rounding costs nothing.

**The search.** Items are cut into strided blocks. If as many blocks as the user's depth have a
maximum above :math:`\text{bf16}(c + \alpha_u)`, as many items rank above, and the relevant item is
not retrieved. For those that are left, only blocks with a maximum of at least
:math:`\text{bf16}(c - \alpha_u)` can hold an item that matters: most of these items are proved to
rank above, and the few in between are compared by their exact scores, and by item id where these
are equal. All of this compares the bits of `bfloat16` as 16-bit integers, which agree with the
order of the numbers as long as these are positive. Where a threshold is not, or where too many
items are close (as if all had the same embedding), the user is left to the exact path.
"""

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.bounds import NUM_SCORES, BoundedRanking, ErrorBound, UserItems, most_close
from pyg_recmetrics.ranked_edges import NOT_RETRIEVED
from pyg_recmetrics.scores import inner_products, scaled_by_row
from pyg_recmetrics.topk import Scratch

#: How many items a block has.
BLOCK_SIZE = 16

#: How many blocks are put together to find out which relevant items are not retrieved.
GROUP_SIZE = 4

_LARGEST = torch.iinfo(torch.int16).max
_MASKED = -1  # less than the bits of any number that is not negative


class BoundedSearch(BoundedRanking):
    """Finds exact ranks among all items by their half-precision scores."""

    dtype = torch.bfloat16
    group_size = BLOCK_SIZE * GROUP_SIZE

    def batch_size(self, depth: int) -> int:
        # Each relevant item of a user, up to its depth, is compared with all that is close.
        most = 4 * NUM_SCORES // (depth * most_close(depth))
        return max(1, min(NUM_SCORES // self.item.size(0), most))

    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        row, item = relevant
        user = scaled_by_row(self.user[users])
        rounded = user.bfloat16()
        score = inner_products(user, row, self.item, item)
        bound = ErrorBound(user, rounded.double(), rounding_of_sum=user.size(1) * 2.0**-22)
        low, high = _thresholds(score, bound.of_any(self.bound)[row])
        blocks = self._rounded_scores(rounded, seen, scratch)
        best = blocks.amax(dim=1)
        is_open = ~_is_beyond(best, depth, row, high)
        lowest = torch.full_like(users, _LARGEST, dtype=torch.int16)
        lowest.scatter_reduce_(0, row[is_open], low[is_open], "amin")
        is_close = best >= lowest.unsqueeze(1)
        unsettled = (lowest <= 0) | (is_close.count_nonzero(dim=1) > most_close(depth))
        is_close.masked_fill_(unsettled.unsqueeze(1), False)
        left = (is_open & ~unsettled[row]).nonzero().squeeze(1)
        rank = torch.full_like(item, NOT_RETRIEVED)
        if left.numel() == 0:
            return rank, unsettled
        row, item, score, low, high = (x[left] for x in (row, item, score, low, high))
        value, candidate, is_cut = _candidates(blocks, is_close, lowest, most_close(depth))
        unsettled |= is_cut
        values = value[row]
        is_above = values > high.unsqueeze(1)
        num_above = is_above.sum(dim=1)
        edge, place = (is_above ^ (values >= low.unsqueeze(1))).nonzero(as_tuple=True)
        row, other, value = row[edge], candidate[row[edge], place], values[edge, place]
        # The same once more with the bound for the item at hand, which leaves a fraction.
        low, high = _thresholds(score[edge], bound.of_pairs(row, self.bound, other))
        num_above += torch.bincount(edge[value > high], minlength=left.numel())
        close = ((value >= low) & (value <= high) & (other != item[edge])).nonzero().squeeze(1)
        edge, other = edge[close], other[close]
        wins = self.wins(user, row[close], other, item[edge], score[edge])
        rank[left] = 1 + num_above + torch.bincount(edge[wins], minlength=left.numel())
        return rank, unsettled

    def _rounded_scores(self, user: Tensor, seen: UserItems, scratch: Scratch) -> Tensor:
        """The bits of all scores, of shape `[num_rows, BLOCK_SIZE, num_blocks]`."""
        shape = (user.size(0), self.rounded.size(0))
        scores = scratch("rounded", shape, torch.bfloat16)
        torch.mm(user, self.rounded.t(), out=scores)
        bits = scores.view(torch.int16)
        bits[:, self.item.size(0) :] = _MASKED
        row, item = seen
        bits.view(-1).index_fill_(0, row * shape[1] + item, _MASKED)
        return bits.view(user.size(0), BLOCK_SIZE, self.num_groups * GROUP_SIZE)


def has_fast_bfloat16() -> bool:
    """Whether the processor has instructions for products in `bfloat16`."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def _thresholds(score: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
    """The bits below and above which a rounded score proves its order."""
    low, high = score - bound, (score + bound).clamp(min=0)
    return low.bfloat16().view(torch.int16), high.bfloat16().view(torch.int16)


def _is_beyond(best: Tensor, depth: Tensor, row: Tensor, high: Tensor) -> Tensor:
    """Whether as many blocks as a user is deep hold an item above `high`: `[num_relevant]`.

    Blocks are looked at in groups, of which there are fewer to sort.
    """
    num_groups = best.size(1) // GROUP_SIZE
    best = best.view(-1, GROUP_SIZE, num_groups).amax(dim=1)
    depth = depth.clamp(max=num_groups + 1)
    deepest = min(int(depth.max()), num_groups)
    best = best.topk(deepest, dim=1).values
    at_depth = best.gather(1, depth.clamp(max=deepest).unsqueeze(1) - 1).squeeze(1)
    return (at_depth[row] > high) & (depth <= num_groups)[row]


def _candidates(
    blocks: Tensor, is_close: Tensor, lowest: Tensor, most: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Collects what reaches the lowest threshold in close blocks, but no more than `most` a row.

    Returns:
        The bits and the item ids, of shape `[num_rows, most]` each, padded with what is masked,
        and which rows had more.
    """
    num_rows, _, num_blocks = blocks.shape
    block_row, block = is_close.nonzero(as_tuple=True)
    taken = blocks[block_row, :, block]
    pair, place = (taken >= lowest[block_row].unsqueeze(1)).nonzero(as_tuple=True)
    found_row = block_row[pair]
    ptr = index2ptr(found_row, num_rows)
    slot = torch.arange(found_row.numel()) - ptr[found_row]
    num_found = ptr.diff()
    is_cut = num_found > most
    if is_cut.any():
        is_kept = slot < most[found_row]
        slot, pair, place, found_row = (x[is_kept] for x in (slot, pair, place, found_row))
    shape = (num_rows, min(int(num_found.max()), int(most.max())))
    value = torch.full(shape, _MASKED, dtype=torch.int16)
    value[found_row, slot] = taken[pair, place]
    candidate = torch.zeros(shape, dtype=torch.long)
    candidate[found_row, slot] = place * num_blocks + block[pair]
    return value, candidate, is_cut
