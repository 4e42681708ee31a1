"""Interactions to evaluate on: synthetic data, and the text format of the LightGCN papers.

Both functions return :class:`~torch_geometric.data.HeteroData` with `user` and `item` nodes and
`rates` edges, as PyG's own :class:`~torch_geometric.datasets.AmazonBook` does.
"""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.utils import coalesce

from pyg_recmetrics.checks import check_finite_number, check_natural_number, check_positive_integer

__all__ = ["read_lightgcn", "synthetic_interactions"]
__dir__ = __all__.copy  # what completion shows

#: The number of users whose interactions are drawn at once, which bounds the memory.
_NUM_USERS_AT_ONCE = 4096

#: One year, in seconds.
_SECONDS_PER_YEAR = 365 * 24 * 60 * 60

#: The smallest number of items of a user.
_MIN_DEGREE = 3

#: The exponents of the power laws by which popularity falls with the rank of an item, and the
#: number of items with the rank of a user.
_ITEM_EXPONENT, _USER_EXPONENT = 0.8, 0.5

#: The dimension of the taste vectors.
_NUM_TASTES = 8

#: The weight of taste against popularity and noise.
_TASTE_STRENGTH = 1.5


def synthetic_interactions(
    num_users: int = 1000,
    num_items: int = 500,
    *,
    mean_degree: float = 20.0,
    seed: int = 0,
) -> HeteroData:
    r"""Generates interactions that a model or a popularity baseline can learn.

    Every user and every item has a latent taste vector. A user picks items without replacement,
    with probability proportional to :math:`\exp(c \, \text{taste}_u \cdot \text{taste}_i) \cdot
    \text{popularity}_i` for a constant `c`. The popularity of items follows a power law, and so
    does the number of picks of users. Times are uniform within one year. The times of a user are
    sorted by pick: the item that the user wants most comes first.

    Args:
        num_users (int): The number of users. (default: `1000`)
        num_items (int): The number of items. (default: `500`)
        mean_degree (float): The approximate mean number of items per user. Every user has at least
            three items and at most half of all items. (default: `20.0`)
        seed (int): The seed of the random numbers. The same seed gives the same data. The global
            random number generator is neither used nor changed. (default: `0`)

    Returns:
        A `HeteroData`. Its `data["user", "rates", "item"].edge_index` has shape `[2, num_edges]`,
        is sorted by user and item, and has no repeated edges. Its
        `data["user", "rates", "item"].time` has shape `[num_edges]` and holds whole seconds within
        one year.

    Raises:
        ValueError: If `num_users` or `num_items` is not a positive integer, or if
            `mean_degree` is less than three or more than half of `num_items`, or if `seed` is not
            a non-negative integer.

    Example:
        >>> from pyg_recmetrics.datasets import synthetic_interactions
        >>> data = synthetic_interactions(num_users=4, num_items=10, mean_degree=4)
        >>> data["user"].num_nodes, data["item"].num_nodes, data.edge_types
        (4, 10, [('user', 'rates', 'item')])
    """
    num_users = check_positive_integer(num_users, "num_users")
    num_items = check_positive_integer(num_items, "num_items")
    seed = check_natural_number(seed, "seed")
    check_finite_number(mean_degree, "mean_degree")
    if not _MIN_DEGREE <= mean_degree <= num_items / 2:
        raise ValueError(
            f"'mean_degree' needs to be in [{_MIN_DEGREE}, num_items / 2 = {num_items / 2:g}] "
            f"(got {mean_degree})"
        )
    generator = torch.Generator().manual_seed(seed)
    item_taste = torch.randn(num_items, _NUM_TASTES, generator=generator, device="cpu")
    popularity = _power_law(num_items, _ITEM_EXPONENT, generator)
    degree = _power_law(num_users, _USER_EXPONENT, generator)
    degree = (degree * mean_degree / degree.mean()).round().long()
    degree = degree.clamp(_MIN_DEGREE, num_items // 2)
    edges, times = [], []
    for users in torch.arange(num_users, device="cpu").split(_NUM_USERS_AT_ONCE):
        user_taste = torch.randn(users.numel(), _NUM_TASTES, generator=generator, device="cpu")
        # With Gumbel noise added to log-probabilities, the largest sums are a sample without
        # replacement (Kool et al., "Stochastic beams and where to find them", 2019).
        uniform = torch.rand(users.numel(), num_items, generator=generator, device="cpu")
        noise = -torch.log(-torch.log(uniform.clamp(min=1e-20, max=1 - 1e-7)))
        affinity = _TASTE_STRENGTH * user_taste @ item_taste.t() / _NUM_TASTES**0.5
        wish = affinity + popularity.log() + noise
        picks = wish.topk(int(degree[users].max()), dim=1).indices
        is_picked = torch.arange(picks.size(1), device="cpu") < degree[users].unsqueeze(1)
        row, _ = is_picked.nonzero(as_tuple=True)
        edges.append(torch.stack([users[row], picks[is_picked]]))
        # Sorted per user, with the unused ones last.
        moments = torch.randint(
            _SECONDS_PER_YEAR, tuple(picks.shape), generator=generator, device="cpu"
        )
        moments = moments.masked_fill(~is_picked, _SECONDS_PER_YEAR).sort(dim=1).values
        times.append(moments[is_picked])
    data = HeteroData()
    data["user"].num_nodes = num_users
    data["item"].num_nodes = num_items
    store = data["user", "rates", "item"]
    store.edge_index, store.time = coalesce(torch.cat(edges, dim=1), torch.cat(times))
    return data


def read_lightgcn(folder: str | Path) -> HeteroData:
    r"""Reads `train.txt` and `test.txt` in the format of the LightGCN and NGCF papers.

    Each line holds a user id, followed by the ids of its items, if any. The number of users is the
    largest user id plus one, and the number of items is the largest item id plus one.

    Args:
        folder (str or Path): The folder with the two files.

    Returns:
        A `HeteroData`. The edges of `train.txt` are `data["user", "rates", "item"].edge_index`, of
        shape `[2, num_train_edges]`, and reversed they are
        `data["item", "rated_by", "user"].edge_index`. The edges of `test.txt` are
        `data["user", "rates", "item"].edge_label_index`, of shape `[2, num_test_edges]`.

    Raises:
        FileNotFoundError: If `train.txt` or `test.txt` is missing.
        ValueError: If a line holds anything but non-negative integers (the error names the file and
            the line), or if the two files hold no interactions.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyg_recmetrics.datasets import read_lightgcn
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
    store = data["user", "rates", "item"]
    store.edge_index, store.edge_label_index = train, test
    data["item", "rated_by", "user"].edge_index = train.flip([0])
    return data


def _power_law(size: int, exponent: float, generator: torch.Generator) -> Tensor:
    """Positive numbers in random order, of which the one of rank `r` is `r ** -exponent`."""
    ranks = torch.randperm(size, generator=generator, device="cpu") + 1
    return ranks.double().pow(-exponent).float()


def _read_lists(path: Path) -> tuple[Tensor, int]:
    """Reads edges of shape `[2, num_edges]` and the number of users."""
    users, items, num_users = [], [], 0
    with path.open() as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if not all(field.isascii() and field.isdigit() for field in fields):
                raise ValueError(
                    f"{path}, line {number} needs to hold non-negative integers: a user id, then "
                    f"item ids (got {line.strip()[:60]!r})"
                )
            if not fields:
                continue
            user, *items_of_user = map(int, fields)
            num_users = max(num_users, user + 1)
            users += [user] * len(items_of_user)
            items += items_of_user
    return torch.tensor([users, items], dtype=torch.long, device="cpu"), num_users
