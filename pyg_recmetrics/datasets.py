"""Interactions to evaluate on: synthetic ones, and the text format of the LightGCN papers.

Both are :class:`~torch_geometric.data.HeteroData` with `user` and `item` nodes and `rates` edges,
as PyG's own :class:`~torch_geometric.datasets.AmazonBook` has them.
"""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from pyg_recmetrics.checks import check_positive_integer


def synthetic_interactions(
    num_users: int = 1000,
    num_items: int = 500,
    *,
    mean_degree: float = 20.0,
    num_tastes: int = 8,
    seed: int = 0,
) -> HeteroData:
    r"""Makes up interactions that a recommender can learn from, and a popular item too.

    Every user and item has a latent taste vector. A user picks items without replacement with
    probability proportional to :math:`\exp(\text{taste}_u \cdot \text{taste}_i) \cdot
    \text{popularity}_i`, where popularity falls with the rank of an item by a power law, and so
    does the number of picks with the rank of a user. Times are uniform, and sorted for each user
    by pick: what a user wants most comes first.

    Args:
        num_users (int): The number of users. (default: `1000`)
        num_items (int): The number of items. (default: `500`)
        mean_degree (float): The mean number of items of a user; every user has at least three.
            (default: `20.0`)
        num_tastes (int): The dimension of the taste vectors. (default: `8`)
        seed (int): Makes the same data every time, whatever the state of the global random
            number generator, which is not touched. (default: `0`)

    Returns:
        A `HeteroData` with `data["user", "rates", "item"].edge_index` of shape `[2, num_edges]`,
        sorted by user and item and without repetitions, and `time` of shape `[num_edges]`, whole
        seconds within one year.

    Raises:
        ValueError: If a number is not positive, or there are more picks than items.

    Example:
        >>> data = synthetic_interactions(num_users=4, num_items=10, mean_degree=4)
        >>> data["user"].num_nodes, data["item"].num_nodes, data.edge_types
        (4, 10, [('user', 'rates', 'item')])
    """
    check_positive_integer(num_users, "num_users")
    check_positive_integer(num_items, "num_items")
    check_positive_integer(num_tastes, "num_tastes")
    if not 3 <= mean_degree <= num_items / 2:
        raise ValueError(
            f"'mean_degree' needs to be in [3, num_items / 2 = {num_items / 2:g}] "
            f"(got {mean_degree})"
        )
    generator = torch.Generator().manual_seed(seed)
    item_taste = torch.randn(num_items, num_tastes, generator=generator)
    popularity = _power_law(num_items, 0.8, generator)
    degree = _power_law(num_users, 0.5, generator)
    degree = (degree * mean_degree / degree.mean()).round().long().clamp(3, num_items // 2)
    edges, times = [], []
    for users in torch.arange(num_users).split(_USERS_AT_ONCE):
        user_taste = torch.randn(users.numel(), num_tastes, generator=generator)
        # Adding Gumbel noise to log-probabilities and taking the largest samples without
        # replacement (Kool et al., "Stochastic beams and where to find them", 2019).
        uniform = torch.rand(users.numel(), num_items, generator=generator)
        noise = -torch.log(-torch.log(uniform.clamp(min=1e-20, max=1 - 1e-7)))
        wish = 1.5 * user_taste @ item_taste.t() / num_tastes**0.5 + popularity.log() + noise
        picks = wish.topk(int(degree[users].max()), dim=1).indices
        is_picked = torch.arange(picks.size(1)) < degree[users].unsqueeze(1)
        row, place = is_picked.nonzero(as_tuple=True)
        edges.append(torch.stack([users[row], picks[row, place]]))
        moments = torch.randint(_SECONDS, tuple(picks.shape), generator=generator)
        moments = moments.masked_fill(~is_picked, _SECONDS).sort(dim=1).values
        times.append(moments[row, place])
    edge_index, time = torch.cat(edges, dim=1), torch.cat(times)
    order = (edge_index[0] * num_items + edge_index[1]).argsort()
    data = HeteroData()
    data["user"].num_nodes = num_users
    data["item"].num_nodes = num_items
    data["user", "rates", "item"].edge_index = edge_index[:, order]
    data["user", "rates", "item"].time = time[order]
    return data


def read_lightgcn(folder: str | Path) -> HeteroData:
    r"""Reads `train.txt` and `test.txt` of the LightGCN and NGCF papers.

    The format is one line per user: the user id, then the ids of its items. Lines without items
    exist. There are as many users and items as the largest ids say.

    Args:
        folder (str or Path): The folder with the two files.

    Returns:
        A `HeteroData` with the edges of `train.txt` as `data["user", "rates", "item"].edge_index`
        and, reversed, as `data["item", "rated_by", "user"].edge_index`, and those of `test.txt` as
        `data["user", "rates", "item"].edge_label_index`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a line holds anything but non-negative integers; file and line are named.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.txt").write_text("0 1 2\n1 0\n")
        >>> _ = (folder / "test.txt").write_text("0 3\n1\n")
        >>> data = read_lightgcn(folder)
        >>> data["user", "rates", "item"].edge_index.tolist()
        [[0, 0, 1], [1, 2, 0]]
        >>> data["user", "rates", "item"].edge_label_index.tolist(), data["item"].num_nodes
        ([[0], [3]], 4)
    """
    train, num_train_users = _read_lists(Path(folder) / "train.txt")
    test, num_test_users = _read_lists(Path(folder) / "test.txt")
    both = torch.cat([train, test], dim=1)
    if both.size(1) == 0:
        raise ValueError(f"'folder' needs to hold interactions (got none in {folder})")
    data = HeteroData()
    data["user"].num_nodes = max(num_train_users, num_test_users)
    data["item"].num_nodes = int(both[1].max()) + 1
    data["user", "rates", "item"].edge_index = train
    data["user", "rates", "item"].edge_label_index = test
    data["item", "rated_by", "user"].edge_index = train.flip([0])
    return data


_USERS_AT_ONCE = 4096
_SECONDS = 365 * 24 * 60 * 60


def _power_law(size: int, exponent: float, generator: torch.Generator) -> Tensor:
    ranks = torch.randperm(size, generator=generator) + 1
    return ranks.double().pow(-exponent).float()


def _read_lists(path: Path) -> tuple[Tensor, int]:
    users, items, num_users = [], [], 0
    with path.open() as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if not all(field.isascii() and field.isdigit() for field in fields):
                raise ValueError(
                    f"{path}, line {number} needs to hold non-negative integers, a user id and "
                    f"item ids (got {line.strip()[:60]!r})"
                )
            if not fields:
                continue
            user, *its_items = (int(field) for field in fields)
            num_users = max(num_users, user + 1)
            users += [user] * len(its_items)
            items += its_items
    return torch.tensor([users, items], dtype=torch.long), num_users
