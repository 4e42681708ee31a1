"""Recommenders of the literature in a few lines each, with what to search for above each of them.

They are examples of what can be evaluated, and the baselines of `benchmark.py`. Each is a generator
that learns from the edges that users have seen, and yields what `evaluate` ranks by. Two of them
descend a gradient, and yield their embeddings every ten epochs without an end. The others yield
once. `RECOMMENDERS` holds all of them by name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from itertools import count, pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.stats import loguniform, uniform
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch_geometric.nn import LightGCN
from torch_geometric.utils import to_torch_csr_tensor

from pyg_recmetrics import RankingTask

DIM = 64  # of embeddings
EPOCHS_PER_CHECKPOINT = 10

Settings: TypeAlias = dict[str, Any]
Embeddings: TypeAlias = tuple[Tensor, Tensor]
Scores: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Recommender:
    """A generator function, and its search space: a list or a distribution for each argument."""

    train: Callable[..., Iterator[Any]]
    space: dict[str, Any]

    @property
    def has_seed(self) -> bool:
        return "seed" in signature(self.train).parameters

    def __call__(self, task: RankingTask, settings: Settings, seed: int = 0) -> Iterator[Any]:
        return self.train(task, **settings, **({"seed": seed} if self.has_seed else {}))

    def draw(self, generator: np.random.Generator) -> Settings:
        """Draws settings from the search space."""
        return {
            name: values[generator.integers(len(values))]
            if isinstance(values, list)
            else float(values.rvs(random_state=generator))
            for name, values in self.space.items()
        }


RECOMMENDERS: dict[str, Recommender] = {}


def recommender(name: str, **space: Any) -> Callable[..., Any]:
    """Adds a function to the recommenders, with its search space."""

    def add(train: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        RECOMMENDERS[name] = Recommender(train, space)
        return train

    return add


@recommender(
    "LightGCN",
    num_layers=[1, 2, 3, 4],
    learning_rate=loguniform(0.02, 0.1),
    penalty=loguniform(5e-4, 0.02),
)
def lightgcn(
    task: RankingTask, seed: int, num_layers: int, learning_rate: float, penalty: float
) -> Iterator[Embeddings]:
    """Propagates embeddings over the graph, and takes the mean of all layers.

    Source: He et al., "LightGCN: Simplifying and powering graph convolution network for
    recommendation" (2020).
    """
    torch.manual_seed(seed)
    num_nodes = task.num_users + task.num_items
    with torch.sparse.check_sparse_tensor_invariants():
        adjacency = to_torch_csr_tensor(task.edge_index, size=(num_nodes, num_nodes))
    model = LightGCN(num_nodes, DIM, num_layers)
    weight = model.embedding.weight
    torch.nn.init.normal_(weight, std=0.1)
    return descend(task, weight, lambda: model.get_embedding(adjacency), learning_rate, penalty)


@recommender("BPR-MF", learning_rate=loguniform(0.02, 0.1), penalty=loguniform(0.005, 0.2))
def matrix_factorisation(
    task: RankingTask, seed: int, learning_rate: float, penalty: float
) -> Iterator[Embeddings]:
    """Multiplies an embedding of the user with one of the item.

    Source: Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback" (2009).
    """
    torch.manual_seed(seed)
    weight = torch.nn.Parameter(0.1 * torch.randn(task.num_users + task.num_items, DIM))
    return descend(task, weight, lambda: weight, learning_rate, penalty)


def descend(
    task: RankingTask,
    weight: Tensor,
    embed: Callable[[], Tensor],
    learning_rate: float,
    penalty: float,
) -> Iterator[Embeddings]:
    """Descends the BPR loss, with a penalty on the rows of `weight` that a step uses.

    A step takes all edges at once: each seen item of a user competes with an item drawn at random,
    which may be one that the user has seen, too.
    """
    optimizer = torch.optim.Adam([weight], lr=learning_rate)
    user, item = task.seen
    liked = task.num_users + item
    for epoch in count(1):
        nodes = user, liked, task.num_users + torch.randint_like(item, task.num_items)
        embedding = embed()
        users, positives, negatives = (embedding.index_select(0, node) for node in nodes)
        difference = (users * (positives - negatives)).sum(dim=1)
        squares = weight.pow(2).sum(dim=1)
        regularization = sum(squares.index_select(0, node).mean() for node in nodes)
        optimizer.zero_grad()
        (penalty * regularization - logsigmoid(difference).mean()).backward()
        optimizer.step()
        if epoch % EPOCHS_PER_CHECKPOINT == 0:
            with torch.no_grad():
                users, items = embed().split([task.num_users, task.num_items])
            yield users, items


@recommender(
    "iALS",
    factors=[16, 32, 64, 128],
    regularization=loguniform(3, 300),
    alpha=loguniform(4, 64),
)
def ials(
    task: RankingTask, seed: int, factors: int, regularization: float, alpha: float
) -> Iterator[Any]:
    """Factorises the matrix of interactions, where what is seen has the greater weight.

    Source: Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets" (2008).
    """
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # `implicit` has threads of its own
        model = AlternatingLeastSquares(factors, regularization, alpha, random_state=seed)
        model.fit(sparse.csr_matrix(interactions(task)), show_progress=False)
    yield model


@recommender("EASE", penalty=loguniform(1, 2000))
def ease(task: RankingTask, penalty: float) -> Iterator[Scores]:
    """Solves for the weights by which a user's items predict each other, without a diagonal.

    Its memory is quadratic in the number of items.

    Source: Steck, "Embarrassingly shallow autoencoders for sparse data" (2019).
    """
    seen = interactions(task)
    gram = (seen.T @ seen).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
    weights = -inverse / inverse.diagonal()
    np.fill_diagonal(weights, 0)
    weights = weights.astype(np.float32)
    yield lambda users: torch.from_numpy(seen[users.numpy()] @ weights)


@recommender(
    "RP3beta",
    alpha=uniform(0.2, 0.6),  # from 0.2 to 0.8
    beta=uniform(0.1, 0.4),  # from 0.1 to 0.5
    num_neighbours=[100, 200, 400, 800],
)
def rp3beta(task: RankingTask, alpha: float, beta: float, num_neighbours: int) -> Iterator[Scores]:
    """Walks three random steps over the graph, and holds popular items back.

    Source: Paudel et al., "Updatable, accurate, diverse, and scalable recommendations for
    interactive applications" (2017).
    """
    seen = interactions(task)
    num_items, num_users = degrees(seen)
    to_item = sparse.diags_array(num_items**-alpha) @ seen
    to_user = sparse.diags_array(num_users**-alpha) @ seen.T
    walks = to_user @ to_item @ sparse.diags_array(num_users**-beta)
    yield scores_of_neighbours(seen, walks, num_neighbours)


@recommender("Item kNN", num_neighbours=[10, 20, 50, 100, 200, 400], shrinkage=loguniform(0.1, 100))
def item_knn(task: RankingTask, num_neighbours: int, shrinkage: float) -> Iterator[Scores]:
    """Recommends the nearest neighbours of what a user has seen, by a cosine that is shrunk.

    Source: Sarwar et al., "Item-based collaborative filtering recommendation algorithms" (2001).
    """
    seen = interactions(task)
    _, num_users = degrees(seen)
    norm = np.sqrt(num_users)
    shared = (seen.T @ seen).tocoo()
    shared.data = shared.data / (norm[shared.row] * norm[shared.col] + shrinkage)
    yield scores_of_neighbours(seen, shared, num_neighbours)


@recommender("GF-CF", num_factors=[16, 32, 64, 128], share=uniform(0, 1))
def gf_cf(task: RankingTask, num_factors: int, share: float) -> Iterator[Scores]:
    """Adds a linear filter of the graph and some share of an ideal low-pass filter.

    Source: Shen et al., "How powerful is graph convolution for recommendation?" (2021).
    """
    seen = interactions(task)
    num_items, num_users = degrees(seen)
    scaled = sparse.diags_array(num_users**-0.5)
    normalised = (sparse.diags_array(num_items**-0.5) @ seen @ scaled).tocsr()
    start = np.ones(min(seen.shape))  # so that nothing is drawn
    _, _, vectors = svds(normalised, num_factors, v0=start, tol=1e-3)
    into, out_of = scaled @ vectors.T, share * vectors * num_users**0.5

    def scores(users: Tensor) -> Tensor:
        rows = seen[users.numpy()]
        linear = (rows @ normalised.T @ normalised).toarray()
        return torch.from_numpy(linear + rows @ into @ out_of).float()

    yield scores


@recommender("Most popular")
def most_popular(task: RankingTask) -> Iterator[Tensor]:
    """Scores an item by how many users have seen it."""
    yield torch.bincount(task.seen[1], minlength=task.num_items).float()


def interactions(task: RankingTask) -> sparse.csr_array:
    """Returns the matrix of users and items that is one where a user has seen an item."""
    user, item = task.seen.numpy()
    ones = np.ones(len(user), dtype=np.float32)
    return sparse.csr_array((ones, (user, item)), shape=(task.num_users, task.num_items))


def degrees(seen: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many items each user has, and users each item, and one for those without any."""
    num_items, num_users = (np.maximum(seen.sum(axis=axis), 1.0) for axis in (1, 0))
    return num_items.astype(np.float64), num_users.astype(np.float64)


def scores_of_neighbours(
    seen: sparse.csr_array, similarity: sparse.csr_array | sparse.coo_array, num_neighbours: int
) -> Scores:
    """Scores an item by its similarities `[other, item]` to what a user has seen.

    An item counts those others alone that are most similar to it, the first of equal ones.
    """
    kept = (similarity - sparse.diags_array(similarity.diagonal())).tocsc()
    for start, end in pairwise(kept.indptr):
        furthest = np.argsort(-kept.data[start:end], kind="stable")[num_neighbours:]
        kept.data[start + furthest] = 0
    kept.eliminate_zeros()
    return lambda users: torch.from_numpy((seen[users.numpy()] @ kept).toarray()).float()
