"""Sampled candidates, for the protocols of the literature that rank few items."""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType
from torch_geometric.utils import coalesce
from tqdm import tqdm

from pyg_recmetrics.checks import check_finite_number, check_natural_number, check_positive_integer
from pyg_recmetrics.task.graph import UserItemEdges, find_truth, read_data


class SampledCandidates(BaseTransform):
    r"""Lets each user's truth compete with a few sampled items instead of all items.

    Much of the literature ranks the truth of a user among, for example, 99 sampled items. Ranking
    all items is to be preferred wherever nobody else's number has to be reproduced: Krichene and
    Rendle, `"On Sampled Metrics for Item Recommendation"
    <https://doi.org/10.1145/3394486.3403226>`_ (KDD 2020), show that sampled metrics are not even
    in expectation those of the full ranking, that they can put recommenders into another order,
    and that with few samples all of them lose sight of the top of the list and come to say the
    same as the area under the ROC curve. Full ranking is what :func:`~pyg_recmetrics.evaluate`
    does without this transform, and is fast.

    Each user who has truth gets a sample of its own, without replacement, of the items that it has
    no message-passing or truth edge with in this part of the split; fewer if there are not as
    many. The candidates are these and the truth itself, from users to items in
    `candidate_edge_index`, which :meth:`RankingTask.from_data` reads. The transform is applied to
    one part of a split, or in a :class:`~torch_geometric.transforms.Compose` to all of them.

    Args:
        num_negatives (int): The number of items to sample for each user. (default: `99`)
        popularity (float): The probability of an item is proportional to its number of
            message-passing edges to the power of this: `0.0` samples uniformly, `1.0` by
            popularity. Except with `0.0`, items without such edges are not sampled.
            (default: `0.0`)
        seed (int): Makes the same sample every time, on every device and whatever the order of
            the edges. (default: `0`)
        progress (bool): Whether to show a progress bar. (default: `False`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth)
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

    def __init__(
        self,
        num_negatives: int = 99,
        popularity: float = 0.0,
        seed: int = 0,
        progress: bool = False,
        edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        self.num_negatives = check_positive_integer(num_negatives, "num_negatives")
        self.popularity = check_finite_number(popularity, "popularity")
        self.seed = check_natural_number(seed, "seed")
        self.progress = progress
        self.edge_type = edge_type
        self.num_users = num_users

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the data with candidates."""
        edges = read_data(data, self.edge_type, self.num_users)
        candidates = torch.cat([edges.truth.cpu(), self._sample(edges)], dim=1)
        if isinstance(data, Data):
            candidates[1] += edges.num_users
        data = copy.copy(data)
        find_truth(data, self.edge_type)["candidate_edge_index"] = candidates.to(edges.truth.device)
        return data

    def _sample(self, edges: UserItemEdges) -> Tensor:
        # All on the CPU: random numbers, and which of equal ones comes first, differ by device.
        truth, seen = edges.truth.cpu(), edges.seen.cpu()
        num_nodes = max(edges.num_users, edges.num_items)
        weight = self._weight(coalesce(seen, num_nodes=num_nodes)[1], edges.num_items)
        users = truth[0].unique()
        known = coalesce(torch.cat([truth, seen], dim=1), num_nodes=num_nodes)
        known = known[:, torch.isin(known[0], users)]
        known[0] = torch.searchsorted(users, known[0])  # now sorted by row
        generator = torch.Generator().manual_seed(self.seed)
        num_rows = max(1, _NUMBERS_AT_ONCE // edges.num_items)
        sampled = []
        for start in tqdm(
            range(0, users.numel(), num_rows), desc="Sampling", disable=not self.progress
        ):
            chunk = users[start : start + num_rows]
            bounds = torch.tensor([start, start + chunk.numel()])
            first, end = torch.searchsorted(known[0].contiguous(), bounds)
            # The earliest of exponential arrivals with these rates are a sample without
            # replacement (Efraimidis and Spirakis, "Weighted random sampling with a reservoir").
            uniform = torch.rand(chunk.numel(), edges.num_items, generator=generator)
            arrival = uniform.log_().neg_().div_(weight)
            arrival[known[0, first:end] - start, known[1, first:end]] = torch.inf
            num_sampled = min(self.num_negatives, edges.num_items)
            earliest = arrival.topk(num_sampled, dim=1, largest=False)
            row, place = earliest.values.isfinite().nonzero(as_tuple=True)
            sampled.append(torch.stack([chunk[row], earliest.indices[row, place]]))
        return torch.cat([torch.empty(2, 0, dtype=torch.long), *sampled], dim=1)

    def _weight(self, item: Tensor, num_items: int) -> Tensor:
        """How likely each item is, of shape `[num_items]`."""
        degree = torch.bincount(item, minlength=num_items).float()
        if self.popularity == 0:
            return torch.ones_like(degree)
        return torch.where(degree > 0, degree**self.popularity, 0)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_negatives={self.num_negatives}, "
            f"popularity={self.popularity}, seed={self.seed})"
        )


_NUMBERS_AT_ONCE = 2**24
