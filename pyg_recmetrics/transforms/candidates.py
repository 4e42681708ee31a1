"""Sampled candidates, for published protocols that rank only a few items."""

import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType

from pyg_recmetrics.checks import check_finite_number, check_natural_number, check_positive_integer
from pyg_recmetrics.task.edges import coalesce_edges
from pyg_recmetrics.task.graph import UserItemEdges, find_truth, read_data
from pyg_recmetrics.utils import warn

#: The largest number of random numbers that are drawn at once.
_MAX_DRAWS = 2**24


@dataclass(eq=False)
class SampledCandidates(BaseTransform):
    r"""Lets each user's truth compete with a few sampled items instead of all items.

    Many publications rank the truth of a user among, for example, 99 sampled items. Use this
    transform to reproduce their numbers, and rank all items otherwise. Krichene and Rendle,
    `"On Sampled Metrics for Item Recommendation" <https://doi.org/10.1145/3394486.3403226>`_ (KDD
    2020), show that a sampled metric differs from the same metric of the full ranking even in
    expectation, and that it can put recommenders into another order. With few samples, all
    sampled metrics lose sight of the top of the list and come to say the same as the area under
    the ROC curve. Without this transform, :func:`~pyg_recmetrics.evaluate` ranks all items, and is
    fast.

    Each user with truth gets a sample of its own, without replacement, of the items that it has
    neither a message-passing edge nor a truth edge with in this part of the split. The sample is
    smaller if there are not enough such items. The sample and the truth itself are the candidates
    of the user, edges from users to items in `candidate_edge_index`, which
    :meth:`RankingTask.from_data` reads. Apply the transform to one part of a split, or in a
    :class:`~torch_geometric.transforms.Compose` to all of them.

    Args:
        num_negatives (int): The number of items to sample for each user. (default: `99`)
        popularity (float): The exponent of popularity. The probability of an item is proportional
            to its number of message-passing edges to the power of this exponent: `0.0` samples
            uniformly, `1.0` by popularity. Items without such edges are only sampled with `0.0`.
            (default: `0.0`)
        seed (int): Equal seeds give equal samples, on every device and whatever the order of
            the edges. (default: `0`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth; of opposite ones, that from `"user"`
            nodes)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`, the `num_users` of the data)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, or the data has no ground truth.

    Example:
        >>> from pyg_recmetrics import RankingTask, datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, SampledCandidates
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=5)
        >>> *_, test = LeaveLastOut()(data)
        >>> task = RankingTask.from_data(SampledCandidates(num_negatives=9)(test))
        >>> task.num_candidates.unique()
        tensor([10])
    """

    num_negatives: int = 99
    popularity: float = 0.0
    seed: int = 0
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.num_negatives = check_positive_integer(self.num_negatives, "num_negatives")
        self.popularity = check_finite_number(self.popularity, "popularity")
        self.seed = check_natural_number(self.seed, "seed")

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the data with its candidates."""
        edges = read_data(data, self.edge_type, self.num_users)
        sampled = self._sample(edges)
        num_sampled = torch.bincount(sampled[0], minlength=edges.num_users)
        is_short = num_sampled[edges.truth[0].unique().cpu()] < self.num_negatives
        if bool(is_short.any()):
            warn(
                f"{self} finds fewer items than it is to sample for {int(is_short.sum())} of "
                f"{is_short.numel()} users"
            )
        candidates = torch.cat([edges.truth.cpu(), sampled], dim=1)
        if isinstance(data, Data):
            candidates[1] += edges.num_users
        data = copy.copy(data)
        find_truth(data, self.edge_type)["candidate_edge_index"] = candidates.to(edges.truth.device)
        return data

    def _sample(self, edges: UserItemEdges) -> Tensor:
        # All on the CPU: random numbers, and the order of equal ones, differ by device.
        truth, seen = edges.truth.cpu(), edges.seen.cpu()
        num_items = edges.num_items
        weight = self._weight(coalesce_edges(seen, num_items)[1], num_items)
        users = truth[0].unique()
        excluded = coalesce_edges(torch.cat([truth, seen], dim=1), num_items)
        excluded = excluded[:, torch.isin(excluded[0], users)]
        excluded[0] = torch.searchsorted(users, excluded[0])  # the row of each user in `users`
        generator = torch.Generator().manual_seed(self.seed)
        num_rows = max(1, _MAX_DRAWS // num_items)
        sampled = []
        for start in range(0, users.numel(), num_rows):
            chunk = users[start : start + num_rows]
            bounds = torch.tensor([start, start + chunk.numel()], device="cpu")
            first, end = torch.searchsorted(excluded[0].contiguous(), bounds)
            # The earliest of exponential arrivals with these rates are a sample without
            # replacement (Efraimidis and Spirakis, "Weighted random sampling with a reservoir").
            uniform = torch.rand(chunk.numel(), num_items, generator=generator, device="cpu")
            arrival = uniform.log_().neg_().div_(weight)
            arrival[excluded[0, first:end] - start, excluded[1, first:end]] = torch.inf
            num_sampled = min(self.num_negatives, num_items)
            earliest = arrival.topk(num_sampled, dim=1, largest=False)
            is_sampled = earliest.values.isfinite()
            user = chunk[:, None].expand_as(is_sampled)[is_sampled]
            sampled.append(torch.stack([user, earliest.indices[is_sampled]]))
        return torch.cat([truth[:, :0], *sampled], dim=1)

    def _weight(self, item: Tensor, num_items: int) -> Tensor:
        """Returns how likely each item is relative to others, of shape `[num_items]`."""
        degree = torch.bincount(item, minlength=num_items).float()
        if self.popularity == 0:
            return torch.ones_like(degree)
        return torch.where(degree > 0, degree**self.popularity, 0)
