"""Models that are asked by their `recommend`: its forms, its edges, and its eval mode."""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy
from torch.optim.swa_utils import AveragedModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_recmetrics.checks import check_device, check_integers
from pyg_recmetrics.inputs import as_tensor, to_coordinates
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.recommenders import ListRecommender, name_users_in_errors
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.task import RankingTask


@dataclass
class _Mode:
    """The mode in which a module was found, and how many rankings it is part of."""

    was_training: bool
    num_rankings: int = 0


#: The modules that are being ranked. Threads may rank one module, or modules that share others.
_modes: dict[torch.nn.Module, _Mode] = {}
_lock = threading.Lock()


@contextmanager
def evaluation_mode(recommender: object) -> Iterator[None]:
    """Puts a model in eval mode without gradients, and leaves it as it was found.

    Where several threads rank a module at once, the last of them restores its mode.

    Args:
        recommender (object): What is ranked: a module, a method of a module, or an object that
            has modules as its attributes. Modules behind anything else are not known.
    """
    roots = list(_modules_behind(recommender))
    modules = list(dict.fromkeys(module for root in roots for module in root.modules()))
    _find(modules)
    try:
        for root in roots:
            root.eval()
        with torch.no_grad():
            yield
    finally:
        _restore(modules)


def bound_object(function: object) -> object:
    """Returns the object whose method a function is, or else the function (or object) itself."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        function = inspect.unwrap(function)
    return getattr(function, "__self__", function)


def state_of(recommender: object) -> dict[str, Tensor] | None:
    """Returns the state of all modules that are known of a recommender; `None` if they have none.

    Args:
        recommender (object): See :func:`evaluation_mode`.
    """
    state = {
        f"{number}.{name}": value
        for number, module in enumerate(_modules_behind(recommender))
        for name, value in module.state_dict().items()
        if isinstance(value, Tensor) and not is_lazy(value)
    }
    return state or None


def _modules_behind(recommender: object) -> Iterator[torch.nn.Module]:
    if isinstance(recommender, Tensor | tuple):
        return
    source = bound_object(recommender)
    # An object may have been given the method of another one, and a scorer of pairs its function.
    given = (getattr(source, name, None) for name in ("recommend", "function"))
    for candidate in (source, *map(bound_object, given)):
        if isinstance(candidate, torch.nn.Module):
            yield candidate
        else:
            attributes = getattr(candidate, "__dict__", {}).values()
            yield from (value for value in attributes if isinstance(value, torch.nn.Module))


def _find(modules: list[torch.nn.Module]) -> None:
    with _lock:
        for module in modules:
            _modes.setdefault(module, _Mode(module.training)).num_rankings += 1


def _restore(modules: list[torch.nn.Module]) -> None:
    with _lock:
        for module in modules:
            mode = _modes[module]
            mode.num_rankings -= 1
            if mode.num_rankings == 0:
                module.training = mode.was_training
                del _modes[module]


#: The `recommend` of a model: a method of a module or of another object, or a function.
Recommend: TypeAlias = Callable[..., Tensor]

#: What `recommend` takes, in each of its forms. Where there are edges, there may be weights, too.
RECOMMEND_FORMS = (
    ("edge_index", "src_index", "dst_index", "k"),
    ("src_index", "dst_index", "k"),
    ("edge_index", "src_index", "k"),
    ("src_index", "k"),
    ("edge_index", "k"),
    ("k",),
)

#: What people call these arguments, that of PyG first.
_NAMES = {
    "edge_index": ("edge_index", "adj_t", "adj"),
    "edge_weight": ("edge_weight",),
    "src_index": ("src_index", "users", "user", "user_ids", "user_index"),
    "dst_index": ("dst_index", "items", "item_ids", "item_index"),
    "k": ("k", "top_k", "topk"),
}
_MEANINGS = {name: argument for argument, names in _NAMES.items() for name in names}


@dataclass(frozen=True)
class RecommendForm:
    """How a `recommend` is asked. All arguments have PyG's names here.

    Attributes:
        arguments (tuple of str): What it takes besides weights, one of :data:`RECOMMEND_FORMS`.
        by_position (tuple of str): What it is given by position, in this order.
        by_name (mapping): What it is given by name, with its own names.
        needs_weight (bool): Whether it takes weights without a default.
    """

    arguments: tuple[str, ...]
    by_position: tuple[str, ...]
    by_name: Mapping[str, str]
    needs_weight: bool

    @property
    def takes_weight(self) -> bool:
        """Whether it takes the weights of edges."""
        return "edge_weight" in (*self.by_position, *self.by_name)

    def ask(self, recommend: Recommend, **given: Any) -> Tensor:
        """Returns the answer of a `recommend`, which is given what it takes."""
        by_name = {name: given[argument] for argument, name in self.by_name.items()}
        if "edge_weight" in self.by_name and given["edge_weight"] is None and not self.needs_weight:
            del by_name[self.by_name["edge_weight"]]
        return recommend(*(given[argument] for argument in self.by_position), **by_name)

    def __str__(self) -> str:
        return f"recommend({', '.join(self.arguments)})"


def read_form(recommend: Recommend) -> RecommendForm:
    """Returns the form of a `recommend`, by the names of what it takes.

    Edges that come first may have any name. If it takes four things by position, as the first form
    does, all of them may.

    Raises:
        TypeError: If it has none of the forms.
    """
    parameters = _with_passed_on(parameters_of(recommend))
    named = {_MEANINGS[each.name]: each for each in parameters if each.name in _MEANINGS}
    unnamed = [
        each
        for index, each in enumerate(parameters)
        if each.name not in _MEANINGS and (_is_required(each) or (index == 0 and _is_first(each)))
    ]
    for arguments in RECOMMEND_FORMS:
        missing = [argument for argument in arguments if argument not in named]
        takes_more = named.keys() - {*arguments, "edge_weight"}
        if takes_more or len(missing) != len(unnamed):
            continue
        meanings = _MEANINGS | {
            each.name: argument for each, argument in zip(unnamed, missing, strict=True)
        }
        places = [meanings[each.name] for each in parameters if each.name in meanings]
        is_edges = missing == ["edge_index"] and parameters[0] is unnamed[0]
        without_weight = tuple(place for place in places if place != "edge_weight")
        is_in_order = arguments == RECOMMEND_FORMS[0] == without_weight
        if not unnamed or (is_edges and "src_index" in named) or is_in_order:
            form = _form(arguments, parameters, meanings, unnamed)
            if form is not None:
                return form
    raise _unknown_form(recommend)


def parameters_of(recommend: Recommend) -> list[Parameter]:
    """Returns what a `recommend` takes, but for edges and weights that it was given already."""
    try:
        parameters = inspect.signature(recommend).parameters
    except (TypeError, ValueError):  # compiled functions may have no signature
        parameters = inspect.signature(functools.partial(LightGCN.recommend, None)).parameters
    given = recommend.keywords if isinstance(recommend, functools.partial) else {}
    return [
        each
        for each in parameters.values()
        if not (each.name in given and _MEANINGS.get(each.name) in ("edge_index", "edge_weight"))
    ]


def is_asked_by_name(function: Recommend) -> bool:
    """Returns whether a function takes users and `k` by names that are known."""
    parameters = _with_passed_on(parameters_of(function))
    return {"src_index", "k"} <= {_MEANINGS.get(each.name) for each in parameters}


def _with_passed_on(parameters: list[Parameter]) -> list[Parameter]:
    """Returns parameters and, if there is a `**kwargs`, those of PyG that it passes on."""
    own = [each for each in parameters if each.kind is not Parameter.VAR_KEYWORD]
    if len(own) == len(parameters):
        return own
    known = {_MEANINGS.get(each.name) for each in own}
    if own and own[0].name not in _MEANINGS and _is_first(own[0]):
        known.add("edge_index")
    return own + [
        Parameter(argument, Parameter.KEYWORD_ONLY, default=None)
        for argument in _NAMES
        if argument not in known
    ]


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL


def _is_first(parameter: Parameter) -> bool:
    return parameter.kind is not parameter.KEYWORD_ONLY


def _form(
    arguments: tuple[str, ...],
    parameters: list[Parameter],
    meanings: Mapping[str, str],
    unnamed: list[Parameter],
) -> RecommendForm | None:
    """Returns how it is asked; `None` if it takes something else in between."""
    last = max(
        (
            index
            for index, each in enumerate(parameters, start=1)
            if each in unnamed or (each.kind is each.POSITIONAL_ONLY and each.name in meanings)
        ),
        default=0,
    )
    if any(each.name not in meanings for each in parameters[:last]):
        return None
    known = [each for each in parameters[last:] if each.name in meanings]
    return RecommendForm(
        arguments,
        by_position=tuple(meanings[each.name] for each in parameters[:last]),
        by_name={meanings[each.name]: each.name for each in known},
        needs_weight=any(
            _is_required(each) for each in known if meanings[each.name] == "edge_weight"
        ),
    )


def describe_signature(recommend: Recommend) -> str:
    """Returns what a `recommend` takes, in words."""
    return f"recommend({', '.join(each.name for each in parameters_of(recommend))})"


def _unknown_form(recommend: Recommend) -> TypeError:
    forms = "".join(f"\n  - recommend({', '.join(arguments)})" for arguments in RECOMMEND_FORMS)
    model, remedy = getattr(recommend, "__self__", None), ""
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        remedy = "\nIts embeddings can be ranked: (model.user_factors, model.item_factors)"
    return TypeError(
        f"'recommender.recommend()' needs to have one of these forms, where users and items may "
        f"also be called 'users' and 'items' (got {describe_signature(recommend)}):{forms}{remedy}"
    )


class HasRecommend(Protocol):
    """An object that recommends as PyG's :class:`~torch_geometric.nn.models.LightGCN` does."""

    @property
    def recommend(self) -> Recommend:
        """Returns the best items of users, in the numbering of a homogeneous graph."""


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A model with all that is known about its `recommend`, which is looked at only once.

    Attributes:
        recommend (callable): The `recommend`.
        bound_object (object): The object whose method it is, or else the function itself.
        lightgcn (LightGCN or None): The LightGCN whose method it is, unless a class or an instance
            replaced the method.
        form (RecommendForm): How it is asked.
    """

    recommend: Recommend
    bound_object: object
    lightgcn: LightGCN | None
    form: RecommendForm

    @property
    def name(self) -> str:
        """The name of the class, or of the function."""
        model = self.bound_object
        return getattr(model, "__name__", type(model).__name__)

    @property
    def takes_edges(self) -> bool:
        """Whether it takes message-passing edges."""
        return "edge_index" in self.form.arguments

    def with_edges(self, edge_index: Adj | None, edge_weight: Tensor | None) -> Recommend:
        """Returns a `recommend` with its edges, to be asked by the other names of PyG.

        Raises:
            ValueError: If edges have weights, and it does not take them.
        """
        if self.takes_edges and edge_weight is not None and not self.form.takes_weight:
            raise ValueError(
                f"'recommender.recommend()' needs to take 'edge_weight', as the edges have weights "
                f"(got {describe_signature(self.recommend)})"
            )
        edges = {"edge_index": edge_index, "edge_weight": edge_weight}
        return functools.partial(self.form.ask, self.recommend, **edges)


def find_model(value: object) -> FoundModel | None:
    """Returns all that is known about a model, or `None` if `value` is no model.

    A model is an object with a method `recommend`, whatever its class; a wrapper that PyTorch puts
    around one; or a function of this name that takes users and `k`.

    Raises:
        TypeError: If `recommend` has none of the forms in which it can be asked.
    """
    recommend = _find_recommend(value)
    if recommend is None:
        return None
    model = bound_object(recommend)
    is_original = getattr(recommend, "__func__", None) is LightGCN.recommend
    return FoundModel(
        recommend=recommend,
        bound_object=model,
        lightgcn=model if is_original else None,
        form=read_form(recommend),
    )


def unwrapped(value: object) -> object:
    """Returns the module that others are wrapped around, or the outermost that has `recommend`."""
    while isinstance(value, torch.nn.Module) and not hasattr(value, "recommend"):
        is_wrapper = isinstance(value, DataParallel | DistributedDataParallel | AveragedModel)
        # `torch.compile` keeps the original under this name.
        inner = value.module if is_wrapper else getattr(value, "_orig_mod", None)
        if inner is None:
            break
        value = inner
    return value


def _find_recommend(value: object) -> Recommend | None:
    if isinstance(value, Tensor | tuple | list | type):
        return None
    recommend: Recommend | None = getattr(unwrapped(value), "recommend", None)
    if callable(recommend):
        return recommend
    if callable(value) and _name(value) == "recommend" and is_asked_by_name(value):
        return value
    return None


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", "")


class _Counts(NamedTuple):
    """How many edges of each kind there are, leaving out self-loops."""

    user_to_item: int
    item_to_user: int
    between_users: int
    between_items: int


def find_doubt(edge_index: Adj, num_users: int) -> str | None:
    """Returns what is odd about message-passing edges, and how to mend it; `None` if nothing is.

    Users and items exchange messages over edges in both directions. Edges between users, or between
    items, may be meant. Far more often, ids are in another numbering.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges.
        num_users (int): The number of users, who come first. Items come after them.
    """
    edges = _to_edges(edge_index)
    if edges is None or edges.size(1) == 0:
        return None
    counts = _count(edges, num_users)
    problems, remedies = [], []
    if problem := _numbering_problem(counts):
        problems.append(problem)
        remedies.append("number users from 0 on, and add 'num_users' to item ids")
    if problem := _direction_problem(counts):
        problems.append(problem)
        remedies.append("add the reverse edges, as PyG's 'ToUndirected' does")
    if not problems:
        return None
    return (
        f"'edge_index' looks odd: {', and '.join(problems)}. A model such as LightGCN expects "
        f"edges between users and items in both directions, with items numbered from "
        f"'num_users' ({num_users}) on. To mend this, {'; and '.join(remedies)}"
    )


def _to_edges(edge_index: Adj) -> Tensor | None:
    if is_sparse(edge_index):
        transposed, _ = to_coordinates(edge_index)  # as PyG's adjacency matrices are
        return transposed.flip([0])
    return as_tensor(edge_index, "edge_index") if isinstance(edge_index, Tensor) else None


def _count(edges: Tensor, num_users: int) -> _Counts:
    source, target = edges
    is_edge = source != target
    from_item, to_item = source >= num_users, target >= num_users
    counts = [
        ~from_item & to_item,
        from_item & ~to_item,
        ~from_item & ~to_item & is_edge,
        from_item & to_item & is_edge,
    ]
    return _Counts(*torch.stack([mask.sum() for mask in counts]).tolist())


def _numbering_problem(counts: _Counts) -> str | None:
    found = [
        f"{number} of {sum(counts)} edges connect {kind} with {kind}"
        for number, kind in ((counts.between_users, "users"), (counts.between_items, "items"))
        if number
    ]
    return " and ".join(found) or None


def _direction_problem(counts: _Counts) -> str | None:
    if 2 * counts.item_to_user < counts.user_to_item:
        return f"{counts.item_to_user or 'no'} edges run from items to users"
    if 2 * counts.user_to_item < counts.item_to_user:
        return f"{counts.user_to_item or 'no'} edges run from users to items"
    return None


#: What the scores of a model take at most, which it computes for all items.
_BYTES_PER_SCORE = 8


#: How many items a model is asked for, to tell it from another.
_NUM_ASKED = 10

#: What is noted about answers besides repeats. Of answers that are shorter than was asked for:
#: whether anybody has fewer items than are needed because of that, how many were asked for at most,
#: and how many came at least. Of all answers: the lowest id of an item. What counts is the largest,
#: and what counts by its smallest is noted with a minus.
_IS_SHORT, _MOST_ASKED, _FEWEST_RETURNED, _LOWEST = range(1, 5)


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`.

    If it is given items, it numbers them from `num_users` on, as they are given. If not, it numbers
    them from zero on, as lists do. If it is not given users, it is asked once about all of them.

    Args:
        recommend (callable): The `recommend`, with its edges.
        task (RankingTask): The task.
        takes_users (bool, optional): Whether it is given users. (default: `True`)
        takes_items (bool, optional): Whether it is given items. (default: `True`)
    """

    def __init__(
        self,
        recommend: Recommend,
        task: RankingTask,
        *,
        takes_users: bool = True,
        takes_items: bool = True,
    ) -> None:
        num_excluded = task.num_items - task.num_candidates[task.users]
        self.max_excluded = int(num_excluded.max()) if num_excluded.numel() else 0
        super().__init__(task, self.max_excluded)
        # A model may propagate whenever it is asked, so the fewer calls, the better.
        self.bytes_per_pair += _BYTES_PER_SCORE
        self.recommend = recommend
        self.num_users = task.num_users
        self.first_item = task.num_users if takes_items else 0
        items = torch.arange(task.num_items, device=task.device)
        if takes_items and task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + self.first_item
        self.takes_users = takes_users
        #: What came when all users were asked about at once, and how many items were asked for.
        self.of_all_users, self.num_asked_of_all = items.new_empty(self.num_users, 0), 0
        self.num_candidates = task.num_candidates
        self.device = task.device
        noted = [0, 0, 0, -task.num_items, -task.num_items]
        self.noted = torch.tensor(noted, device=task.device)

    def answer(self, users: Tensor) -> object:
        k = min(_NUM_ASKED, self.dst_index.numel())
        return self._ask(users, k) if self.takes_users else self._ask_about_all(k)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        num_left_out = self.num_items - self.dst_index.numel()
        num_asked = min(chunk.num_needed - num_left_out, self.dst_index.numel())
        answer = self._answer(chunk, num_asked)
        lists = self.best_allowed(answer, chunk, k)
        if answer.size(1) < num_asked:
            num_needed = self.num_candidates[chunk.users].minimum(chunk.depth)
            num_needed = num_needed.clamp_(max=self.needed_depth)
            self.note(_IS_SHORT, ((lists >= 0).sum(dim=1) < num_needed).any())
            self.note(_MOST_ASKED, num_asked)
            self.note(_FEWEST_RETURNED, -answer.size(1))
        return lists

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            first, end = self.first_item, self.first_item + self.num_items
            since = (
                "items are numbered from 'num_users' on"
                if first
                else "a model that is not given items numbers them from 0 on"
            )
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{first}, {end}), since "
                f"{since}, or -1 (got {num_wrong} ids outside)"
            )

    def warn(self) -> None:
        super().warn()
        _, is_short, most_asked, fewest_returned, lowest = self.noted.tolist()
        if is_short:
            warn(
                f"'recommender.recommend()' returned {-fewest_returned} of {most_asked} requested "
                f"items. Missing items count as not retrieved, so values for the largest k or R "
                f"are too low"
            )
        if self.first_item == 0 and self.num_users <= -lowest < self.num_items:
            warn(
                f"'recommender.recommend()' returned no item below {self.num_users}, the number of "
                f"users. A model that is not given items numbers them from 0 on: subtract "
                f"'num_users' if it numbers them from there on"
            )

    def _answer(self, chunk: Chunk, k: int) -> Tensor:
        """Returns local ids of items for the users of a chunk: `[num_rows, ?]`."""
        if self.takes_users:
            return self._ask(chunk.users, k)
        if k > self.num_asked_of_all:
            # Of users who are ranked together, the first chunk is the deepest.
            self.num_asked_of_all = min(chunk.max_depth + self.max_excluded, self.num_items)
            self.of_all_users = self._ask_about_all(self.num_asked_of_all)
        return self.of_all_users[chunk.users, :k]

    def _ask_about_all(self, k: int) -> Tensor:
        return self._ask(torch.arange(self.num_users, device=self.device), k)

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
        items = (answer - self.first_item).masked_fill_(answer < self.first_item, self.num_items)
        self.note(_LOWEST, -items.amin())
        return items.masked_fill_(answer == -1, -1)
