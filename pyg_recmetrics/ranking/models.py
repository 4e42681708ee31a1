"""Models that are asked by their `recommend`, in whatever form it is written."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.typing import Adj

from pyg_recmetrics import processes
from pyg_recmetrics.checks import check_device, check_integers
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.evaluation_mode import method_owner
from pyg_recmetrics.ranking.recommenders import ListRecommender, name_users_in_errors
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.task import RankingTask

#: The `recommend` of a model: a method of a module or of another object, or a function.
Recommend: TypeAlias = Callable[..., Tensor]

#: What `recommend` is given by name. Edges come first, whatever they are called.
_NAMED = ("edge_weight", "src_index", "dst_index", "k")

#: What the scores of a model take at most, which it computes for all items.
_BYTES_PER_SCORE = 8

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


class HasRecommend(Protocol):
    """An object that recommends as PyG's :class:`~torch_geometric.nn.models.LightGCN` does."""

    @property
    def recommend(self) -> Recommend:
        """Returns the best items of users, in the numbering of a homogeneous graph."""


def find_recommend(value: object) -> Recommend | None:
    """Returns the `recommend` of a model, or `None` if `value` is no model.

    A model is an object with a method `recommend`, whatever its class; a wrapper that PyTorch puts
    around one; or a function of this name that takes `src_index`.
    """
    if isinstance(value, Tensor | tuple | list | type):
        return None
    recommend: Recommend | None = getattr(_unwrapped(value), "recommend", None)
    if callable(recommend):
        return recommend
    if callable(value) and _name(value) == "recommend" and _takes(value, "src_index"):
        return value
    return None


def takes_edges(recommend: Recommend) -> bool:
    """Returns whether `recommend` wants to be given message-passing edges."""
    return _takes_edges_first(recommend) or _takes(recommend, "edge_index")


def with_edges(
    recommend: Recommend, edge_index: Adj | None, edge_weight: Tensor | None
) -> Recommend:
    """Returns a `recommend` that has been given its message-passing edges, if it wants any.

    Raises:
        TypeError: If it cannot be asked by the names `src_index`, `dst_index` and `k`.
        ValueError: If edges have weights, and it does not take them.
    """
    given: dict[str, Any] = {}
    if takes_edges(recommend) and _wants_weight(recommend, edge_weight):
        given["edge_weight"] = edge_weight
    if _takes_edges_first(recommend):
        asked: Recommend = functools.partial(recommend, edge_index, **given)
    elif takes_edges(recommend):
        asked = functools.partial(recommend, edge_index=edge_index, **given)
    else:
        asked = recommend
    try:
        inspect.Signature([*_parameters(asked).values()]).bind(src_index=0, dst_index=0, k=1)
    except TypeError as error:
        raise TypeError(
            f"'recommender.recommend()' needs to take edges first, and 'src_index', 'dst_index' "
            f"and 'k' by name (got {_describe(recommend)}: {error})"
        ) from None
    return asked


def lightgcn_of(recommend: Recommend) -> LightGCN | None:
    """Returns the LightGCN whose `recommend` this is, unless a class or an instance replaced it."""
    is_original = getattr(recommend, "__func__", None) is LightGCN.recommend
    return method_owner(recommend) if is_original else None


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`, which numbers its items from `num_users` on.

    Args:
        recommend (callable): The `recommend`, with its edges.
        task (RankingTask): The task.
    """

    def __init__(self, recommend: Recommend, task: RankingTask) -> None:
        max_excluded = int((task.num_items - task.num_candidates[task.users]).max())
        super().__init__(task, max_excluded)
        # A model may propagate whenever it is asked, so the fewer calls, the better.
        self.bytes_per_pair += _BYTES_PER_SCORE
        self.recommend = recommend
        self.num_users = task.num_users
        items = torch.arange(task.num_items, device=task.device)
        if task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + task.num_users
        self.num_candidates = task.num_candidates
        self.device = task.device
        # Answers that are shorter than was asked for: how many items were asked for at most, how
        # many came at least, and whether anybody has fewer than are needed because of that.
        self.most_asked, self.fewest_returned = 0, task.num_items
        self.is_short = torch.zeros((), dtype=torch.bool, device=task.device)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        num_left_out = self.num_items - self.dst_index.numel()
        num_asked = min(chunk.num_needed - num_left_out, self.dst_index.numel())
        answer = self._ask(chunk.users, num_asked)
        lists = self.best_allowed(answer, chunk, k)
        if answer.size(1) < num_asked:
            self.most_asked = max(self.most_asked, num_asked)
            self.fewest_returned = min(self.fewest_returned, answer.size(1))
            num_needed = chunk.depth.minimum(self.num_candidates[chunk.users])
            self.is_short |= ((lists >= 0).sum(dim=1) < num_needed).any()
        return lists

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            last = self.num_users + self.num_items
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{self.num_users}, {last}) "
                f"or -1 (got {num_wrong} others)"
            )

    def warn(self) -> None:
        seen_here = [int(self.is_short), self.most_asked, -self.fewest_returned]
        seen = torch.tensor(seen_here, device=self.device)
        processes.take_largest(seen)
        is_short, most_asked, fewest_returned = seen.tolist()
        if is_short:
            warn(
                f"'recommender.recommend()' returned only {-fewest_returned} of {most_asked} items "
                f"that it was asked for, which is too few (for the largest k, or the largest R, "
                f"besides seen items); all others count as not retrieved"
            )

    def _ask(self, users: Tensor, k: int) -> Tensor:
        """Returns local ids of items: `[len(users), ?]`."""
        with name_users_in_errors(users):
            # A model may overwrite what it is given.
            answer = self.recommend(src_index=users.clone(), dst_index=self.dst_index.clone(), k=k)
        answer = check_integers(answer, "recommender.recommend()")
        if answer.dim() != 2 or answer.size(0) != users.numel() or answer.size(1) == 0:
            raise ValueError(
                f"'recommender.recommend()' needs to return shape [{users.numel()}, k] with k > 0 "
                f"(got {list(answer.shape)})"
            )
        check_device(answer, "recommender.recommend()", users.device, "task")
        # The id of a user is as wrong as one past the last item; -1 stays what it is.
        items = (answer - self.num_users).masked_fill_(answer < self.num_users, self.num_items)
        return items.masked_fill_(answer == -1, -1)


def _unwrapped(value: object) -> object:
    """Returns the module that others are wrapped around, or the outermost that has `recommend`."""
    while isinstance(value, torch.nn.Module) and not hasattr(value, "recommend"):
        is_wrapper = isinstance(value, DataParallel | DistributedDataParallel | AveragedModel)
        # `torch.compile` keeps the original under this name.
        inner = value.module if is_wrapper else getattr(value, "_orig_mod", None)
        if inner is None:
            break
        value = inner
    return value


def _wants_weight(recommend: Recommend, edge_weight: Tensor | None) -> bool:
    if edge_weight is None:
        parameter = _parameters(recommend).get("edge_weight")
        return parameter is not None and parameter.default is parameter.empty
    if not _takes(recommend, "edge_weight"):
        raise ValueError(
            f"'recommender.recommend()' needs to take 'edge_weight', as the edges have weights "
            f"(got {_describe(recommend)})"
        )
    return True


def _takes_edges_first(recommend: Recommend) -> bool:
    first = next(iter(_parameters(recommend).values()), None)
    return first is not None and first.kind in _POSITIONAL and first.name not in _NAMED


def _takes(recommend: Recommend, name: str) -> bool:
    """Returns whether a function takes an argument by name."""
    if isinstance(recommend, functools.partial) and name in recommend.keywords:
        return False  # it has been given already
    parameters = _parameters(recommend)
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _parameters(function: Recommend) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # compiled functions may have none
        return inspect.signature(functools.partial(LightGCN.recommend, None)).parameters


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", "")


def _describe(recommend: Recommend) -> str:
    return f"recommend({', '.join(_parameters(recommend))})"
