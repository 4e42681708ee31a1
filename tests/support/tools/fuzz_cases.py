"""Random rankings of every kind, each with what the oracle needs to rank the same."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch_geometric.nn.models import LightGCN

from pyg_recmetrics import PairScorer, RankedEdges, RankingTask, rank
from pyg_recmetrics.kernels.exact import counting, scores
from pyg_recmetrics.kernels.exact import scores as scores_module
from pyg_recmetrics.kernels.fast import bounded_counting, rounded_items, searching
from pyg_recmetrics.kernels.fast.searching import Blocks
from pyg_recmetrics.ranking import algorithms
from pyg_recmetrics.ranking import recommenders as ranked_embeddings
from tests.support.cases import embeddings
from tests.support.cases.recommender_forms import PlainModel, RecordingModel
from tests.support.references import exact_scores, oracle

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
TIES = ("index", "best", "worst", "mean", "random")


class Draw(random.Random):
    """Random choices, and a generator of random tensors, which one seed decides.

    The generator is on the CPU, and what the package is given on a device.
    """

    def __new__(cls, seed, device="cpu"):
        return super().__new__(cls)  # in Python 3.10, it takes a single argument

    def __init__(self, seed, device="cpu"):
        super().__init__(seed)
        self.device = device
        self.generator = torch.Generator().manual_seed(self.getrandbits(60))

    def chance(self, probability):
        return self.random() < probability

    def pick(self, weights, values=None):
        """Picks a key of a dictionary of weights, or what `values` have for it."""
        key = self.choices(list(weights), list(weights.values()))[0]
        return key if values is None else values[key]

    def tensor(self, values, dtype=None):
        """A tensor on the device."""
        return torch.as_tensor(values, dtype=dtype).to(self.device)

    def pairs(self, num_users, num_items, num_pairs):
        return [(self.randrange(num_users), self.randrange(num_items)) for _ in range(num_pairs)]


@dataclass
class Case:
    """One ranking, what it has to be, and how to compute it.

    Attributes:
        form: What is ranked, in words.
        task: The task in plain Python.
        compute: Computes the ranking with the package.
        scores: The scores of all pairs, as the oracle ranks them; `None` for lists.
        lists: The lists of all users; `None` for scores.
        depth: How deep users are ranked; infinite if all there is was given.
        ties: How ties are broken.
        width: How many items of each list are kept; `None` for none.
        error: The start of the error that is due; `None` for none.
        inputs: The tensors that are passed in, which have to stay what they are.
        patches: What to replace in the package: an object, a name and a value.
        options: The options in words.
        recommender: What `evaluate` takes, or `None`.
        needs: What else the recommender needs.
        tensors: The arguments of the task.
        is_asked_of_all: Whether the scores of users without truth are looked at, too.
    """

    form: str
    task: oracle.Task
    compute: Callable[[], RankedEdges] | None = None
    scores: list | None = None
    lists: list | None = None
    depth: float = math.inf
    ties: str = "index"
    width: int | None = None
    error: str | None = None
    inputs: list = field(default_factory=list)
    patches: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    recommender: Any = None
    needs: dict = field(default_factory=dict)
    tensors: dict = field(default_factory=dict)
    is_asked_of_all: bool = False

    @property
    def candidates(self):
        """The candidates of each user, without those that a score of `-inf` is known to mask."""
        asked = [
            self.is_asked_of_all
            or bool(relevant)
            or (self.width is not None and user in self.task.evaluated)
            for user, relevant in enumerate(self.task.relevant)
        ]
        return [
            oracle.scored(self.task, self.scores, user) if self.scores and asked[user] else items
            for user, items in enumerate(self.task.candidates)
        ]

    @property
    def is_complete(self):
        """Whether the depth is that of the longest ranking, and of the longest list."""
        return self.depth >= max([*map(len, self.candidates), _width(self.recommender)])

    def places(self):
        """The places of the relevant items of each user."""
        if self.scores is None:
            return oracle.rank_by_lists(self.task, self.lists, self.depth)
        return oracle.rank_by_scores(self.task, self.scores, self.ties, self.depth)

    def depth_of(self, user):
        return max(self.depth, len(self.task.relevant[user]))

    def __str__(self):
        task = self.task
        parts = {
            "users": task.num_users,
            "items": task.num_items,
            "truth": len(task.truth),
            "weights": task.weights is not None,
            "seen": len(task.seen),
            "candidates": "shared" if task.shared is not None else task.own is not None and "own",
            "evaluated": len(task.evaluated),
            "threshold": task.threshold,
            "exclude_seen": task.exclude_seen,
            "missing": task.missing,
            **self.options,
            "patched": [name for _, name, _ in self.patches],
        }
        return f"{self.form}, " + ", ".join(f"{name}={part}" for name, part in parts.items())


SIZES = {
    "small": 7,
    "medium": 9,
    "many users": 1,
    "more items than a group": 3.5,
    "more items than the sieve": 0.15,
}


def draw_size(draw):
    return {
        "small": lambda: (draw.randint(1, 6), draw.randint(1, 12)),
        "medium": lambda: (draw.randint(1, 12), draw.randint(13, 150)),
        "many users": lambda: (draw.randint(30, 90), draw.randint(2, 12)),
        "more items than a group": lambda: (draw.randint(1, 4), draw.randint(257, 900)),
        "more items than the sieve": lambda: (draw.randint(1, 2), draw.randint(4097, 4700)),
    }[draw.pick(SIZES)]()


def draw_task(draw):
    """A task, in which hardly ever no truth is left."""
    while True:
        task = draw_any_task(draw)
        if task.has_retrievable_truth or draw.chance(0.2):
            return task


def draw_any_task(draw):
    num_users, num_items = draw_size(draw)
    size = (num_users, num_items)
    truth = draw.pairs(*size, draw.randint(1, 3 * num_users))
    if draw.chance(0.3):  # a user with many relevant items
        user = draw.randrange(num_users)
        num_relevant = draw.randint(1, min(num_items, 60))
        truth += [(user, item) for item in draw.sample(range(num_items), num_relevant)]
    truth += draw.choices(truth, k=draw.choice([0, 0, len(truth) // 2]))
    draw.shuffle(truth)
    seen = draw.pairs(*size, draw.choice([0, 0, num_users, num_users * num_items // 3]))
    if draw.chance(0.1):  # a user who has seen everything, at times but for the truth
        user, keep = draw.randrange(num_users), draw.chance(0.5)
        everything = [(user, item) for item in range(num_items)]
        seen += [pair for pair in everything if not keep or pair not in truth]
    shared = own = users = None
    match draw.pick({"all": 8, "shared": 2, "own": 2}):
        case "shared":
            shared = draw.choices(range(num_items), k=draw.randint(1, num_items))
            shared += draw.choices([item for _, item in truth], k=draw.randint(0, 3))
        case "own":
            own = draw.pairs(*size, draw.randint(1, num_users * min(num_items, 30)))
            own += [pair for pair in truth if draw.chance(0.8)]
            draw.shuffle(own)
    if draw.chance(0.3):
        users = draw.choices(range(num_users), k=draw.randint(1, num_users))
    weights = draw_weights(draw, len(truth))
    threshold = None
    if weights is not None and max(weights) > 0 and draw.chance(0.2):
        threshold = float(draw.choice([weight for weight in weights if weight > 0]))
    exclude_seen = draw.chance(0.9)
    missing = draw.pick({None: 4, "count": 1, "drop": 1})
    return oracle.Task(
        *size, truth, weights, seen, shared, own, users, threshold, exclude_seen, missing
    )


def draw_weights(draw, num_weights):
    kinds = {"integers": 4, "numbers": 2, "counts": 2, "any size": 1, "large integers": 1}
    kind = draw.pick({"none": 12, **kinds})
    if kind == "none":
        return None
    number = {
        "integers": lambda: draw.randint(-1, 4),
        "numbers": lambda: draw.choice([0.0, -0.5, draw.uniform(0.1, 5), draw.uniform(0.1, 5)]),
        "any size": lambda: draw.choice([1, 1, 1, -1, 0]) * 10 ** draw.uniform(-30, 30),
        "counts": lambda: draw.randint(1, 5000),
        "large integers": lambda: draw.randint(2**53, 2**63 - 1),
    }[kind]
    return [number() for _ in range(num_weights)]


def as_edges(draw, pairs):
    """Edges in one of the dtypes and layouts that are allowed."""
    edges = draw.tensor(pairs, torch.long).reshape(-1, 2).t()
    edges = edges.to(draw.pick({torch.long: 8, torch.int: 1, torch.int16: 1}))
    return edges.contiguous() if draw.chance(0.5) else edges


def task_tensors(draw, task):
    """The arguments of a task of the package; and the task with weights as they are rounded."""
    tensors = {
        "truth": as_edges(draw, task.truth),
        "num_users": task.num_users,
        "num_items": task.num_items,
    }
    if task.seen or draw.chance(0.2):
        tensors["seen"] = as_edges(draw, task.seen)
    if task.weights is not None:
        tensors["weight"] = weight = as_weight(draw, task.weights)
        task = replace(task, weights=weight.double().tolist())
    if task.threshold is not None:
        tensors["threshold"] = task.threshold
        # A threshold is rounded like the weights, so that the weight it is equal to reaches it.
        dtype = weight.dtype if weight.is_floating_point() else torch.double
        task = replace(task, threshold=torch.tensor(task.threshold, dtype=dtype).item())
    if not task.exclude_seen:
        tensors["exclude_seen"] = False
    if task.missing is not None:
        tensors["missing"] = task.missing
    if task.shared is not None:
        tensors["candidates"] = draw.tensor(task.shared)
    if task.own is not None:
        tensors["candidates"] = as_edges(draw, task.own)
    if task.users is not None:
        tensors["users"] = draw.tensor(task.users)
    return tensors, task


def as_weight(draw, weights):
    if all(isinstance(weight, int) for weight in weights) and draw.chance(0.7):
        return draw.tensor(weights)
    return draw.tensor(weights, draw.pick({torch.double: 3, torch.float: 1}))


#: Random scores of a shape and a dtype, by what is special about them.
SCORES = {
    "of few levels": lambda shape, dtype, g: torch.randint(-2, 3, shape, generator=g).to(dtype),
    "normal": lambda shape, dtype, g: torch.randn(shape, generator=g).to(dtype),
    "near-ties": lambda shape, dtype, g: (
        1 + torch.finfo(dtype).eps * torch.randint(0, 3, shape, generator=g).to(dtype)
    ),
    "huge": lambda shape, dtype, g: (
        torch.finfo(dtype).max * (torch.rand(shape, generator=g, dtype=torch.double) - 0.5)
    ).to(dtype),
    "denormal": lambda shape, dtype, g: (
        torch.finfo(dtype).smallest_normal
        * torch.finfo(dtype).eps
        * torch.randint(-2, 3, shape, generator=g).to(dtype)
    ),
    "zeros of both signs": lambda shape, dtype, g: (
        torch.randint(-1, 2, shape, generator=g).to(dtype) * 0.0
    ),
    "constant": lambda shape, dtype, g: torch.full(shape, 0.1, dtype=dtype),
    "close in double precision": lambda shape, dtype, g: (
        1 + 2.0**-40 * torch.randint(0, 4, shape, generator=g, dtype=torch.double)
    ),
}


def draw_score_matrix(draw, shape):
    kind = draw.pick(dict.fromkeys(SCORES, 1) | {"close in double precision": 2})
    return draw.tensor(SCORES[kind](shape, draw.choice(DTYPES), draw.generator))


def draw_masked_scores(draw, task):
    """Scores of which some may be `-inf`, but one of each user who has a candidate."""
    matrix = draw_score_matrix(draw, (task.num_users, task.num_items))
    if draw.chance(0.3):
        shape, share = tuple(matrix.shape), draw.choice([0.05, 0.5, 0.95])
        is_masked = draw.tensor(torch.rand(shape, generator=draw.generator) < share)
        for user, items in enumerate(task.candidates):
            is_masked[user, items[:1]] = False
        matrix = matrix.masked_fill(is_masked, -math.inf)
    return matrix


def spoil(draw, task, matrix):
    """Makes a score NaN or infinite that somebody is ranked by, at times, and returns the error."""
    asked = [user for user, items in enumerate(task.candidates) if items and task.relevant[user]]
    if not asked or draw.chance(0.95):
        return None
    user = draw.choice(asked)
    # Nobody is ranked by the score of an item that is no candidate, relevant or not.
    items = task.candidates[user]
    relevant = [item for item in task.relevant[user] if item in items]
    item = draw.choice(draw.choice([relevant or items, items]))
    matrix[user, item] = draw.choice([math.nan, math.inf])
    return "'recommender' needs to give scores that are finite, or '-inf' for items"


#: Embeddings for which a bound on the error of a score decides least.
KINDS_OF_CLOSE_SCORES = (
    "near-ties below the precision of bfloat16",
    "near-ties below single precision",
    "halfway between two numbers of bfloat16",
)


def draw_embeddings(draw, task):
    """User and item embeddings, and biases or `None`: finite in their dtypes."""
    dim = draw.pick({1: 1, 2: 2, 3: 2, 8: 4, 33: 1})
    weights = dict.fromkeys(embeddings.KINDS, 1) | dict.fromkeys(KINDS_OF_CLOSE_SCORES, 3)
    kinds = [draw.pick(weights), draw.pick(weights)]
    if draw.chance(0.4):
        kinds = [kinds[0]] * 2
    makers = [embeddings.KINDS[kind] for kind in kinds]
    if draw.chance(0.25):
        kinds = [draw.choice(list(exact_scores.KINDS))]
        makers = exact_scores.KINDS[kinds[0]]
    tables = [
        draw.tensor(_in_some_dtype(draw, make((num_rows, dim), draw.generator)))
        for make, num_rows in zip(makers, (task.num_users, task.num_items), strict=True)
    ]
    user, item = tables
    words = f"embeddings ({' times '.join(kinds)}, {user.dtype} and {item.dtype}, dim={dim})"
    if not draw.chance(0.3):
        return words, user, item, None
    bias = _in_some_dtype(draw, draw_score_matrix(draw, (task.num_items,)))
    largest = [float(table.abs().max()) for table in (user, item, bias)]
    if largest[0] * largest[1] * dim + largest[2] > 1e38:
        return words, user, item, None
    return f"{words} with biases ({bias.dtype})", user, item, bias


def _in_some_dtype(draw, table):
    rounded = table.to(draw.pick({table.dtype: 3} | dict.fromkeys(DTYPES, 1)))
    return rounded if bool(rounded.isfinite().all()) else table


def rounded_scores(user, item, bias=None):
    biases = None if bias is None else bias.tolist()
    return oracle.inner_products(user.tolist(), item.tolist(), biases)


@dataclass
class Input:
    """What is ranked, and what the oracle ranks instead.

    Attributes:
        words: What it is.
        recommender: What the package takes.
        scores: The scores, or `None`.
        lists: The lists, or `None`.
        can_be_searched: Whether ranks can be found by a search.
        can_be_counted: Whether ranks can be counted in scores with a bound.
        is_asked: Whether it is a model that is asked by its own `recommend`.
        patches: What to replace in the package.
        tensors: The tensors that have to stay what they are.
        needs: What else the recommender needs.
        error: The start of the error that is due; `None` for none.
    """

    words: str
    recommender: Any
    scores: list | None = None
    lists: list | None = None
    can_be_searched: bool = False
    can_be_counted: bool = False
    is_asked: bool = False
    patches: list = field(default_factory=list)
    tensors: list = field(default_factory=list)
    needs: dict = field(default_factory=dict)
    error: str | None = None


def score_matrix(draw, task):
    matrix = draw_masked_scores(draw, task)
    return _given(f"scores of {matrix.dtype}", matrix, matrix, spoil(draw, task, matrix))


def _given(words, recommender, matrix, error):
    table = matrix.tolist()
    return Input(words, recommender, table, can_be_searched=True, tensors=[matrix], error=error)


def pair_scorer(draw, task):
    matrix = draw_masked_scores(draw, task)
    scorer = PairScorer(
        lambda user, item: matrix[user, item], batch_size=draw.choice([1, 3, 100, 2**16])
    )
    words = f"pairs of {matrix.dtype}, {scorer.batch_size} at once"
    return Input(words, scorer, matrix.tolist(), tensors=[matrix])


def function_of_users(draw, task):
    matrix = draw_masked_scores(draw, task)
    error = spoil(draw, task, matrix)
    functions = {
        "rows": lambda users: matrix[users],
        "columns": lambda users: matrix.t()[:, users].t(),
        "doubles": lambda users: matrix[users].double(),
    }
    kind = draw.choice(list(functions))
    words = f"a function that returns {kind} of {matrix.dtype}"
    return _given(words, functions[kind], matrix, error)


def item_scores(draw, task):
    values = draw_score_matrix(draw, (task.num_items,))
    if draw.chance(0.2):
        is_needed = {items[0] for items in task.candidates if items}
        for item in set(range(task.num_items)) - is_needed:
            if draw.chance(0.3):
                values[item] = -math.inf
    table = [values.tolist()] * task.num_users
    words = f"one score per item of {values.dtype}"
    return Input(words, values, table, can_be_searched=True, tensors=[values])


def embedding_pair(draw, task):
    words, user, item, bias = draw_embeddings(draw, task)
    tables = [table for table in (user, item, bias) if table is not None]
    recommender = draw.choice([tuple, list])(tables)
    table = rounded_scores(user, item, bias)
    return Input(
        words, recommender, table, can_be_searched=True, can_be_counted=True, tensors=tables
    )


def tiled_embeddings(draw, task):
    taken = embedding_pair(draw, task)
    taken.words = f"tiles of {taken.words}"
    width = draw.choice([1, 2, 5, 64]) * _scale(task)
    taken.patches = [
        (ranked_embeddings, "MAX_BYTES_OF_ITEMS", 0),
        (ranked_embeddings, "ITEMS_IN_TILE", width),
    ]
    return taken


def light_gcn(draw, task):
    edge_index = draw_message_passing(draw, task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw.getrandbits(30))
        model = LightGCN(task.num_users + task.num_items, draw.choice([1, 4]), num_layers=1)
    if draw.chance(0.3):  # many scores are equal
        model.embedding.weight.data.mul_(4).round_()
    model = model.to(draw.device).train(draw.chance(0.5))
    with torch.no_grad():
        embedding = model.get_embedding(edge_index)
    user, item = embedding.split([task.num_users, task.num_items])
    table = rounded_scores(user, item)
    needs = {"edge_index": edge_index}
    return Input("a LightGCN", model, table, can_be_searched=True, can_be_counted=True, needs=needs)


def draw_message_passing(draw, task):
    """Edges in both directions, with items numbered after the users."""
    edges = torch.tensor(draw.pairs(task.num_users, task.num_items, 2 * task.num_users)).t()
    edges = edges + torch.tensor([[0], [task.num_users]])
    return draw.tensor(torch.cat([edges, edges.flip([0])], dim=1))


def given_lists(draw, task):
    lists = draw_lists(draw, task.num_users, task.num_items, [1, 3, task.num_items // 2 + 1])
    if len(lists[0]) == task.num_items and any(oracle.without_repeats(own) != own for own in lists):
        lists = [[*own, -1] for own in lists]  # as wide as the catalogue, they would be scores
    dtype = draw.pick({torch.long: 3, torch.int: 1, torch.int16: 1})
    matrix = draw.tensor(lists, dtype).reshape(task.num_users, -1)
    return Input("lists", matrix, lists=lists, tensors=[matrix])


def draw_lists(draw, num_users, num_items, widths):
    """Lists of one width, with padding anywhere and repeated items."""
    width = draw.choice([*widths, num_items])
    kind = draw.pick({"whole": 2, "padded": 1, "with gaps and repeats": 2})
    lists = []
    for _ in range(num_users):
        items = draw.sample(range(num_items), min(width, num_items))
        if kind == "padded":
            items = items[: draw.randint(0, width)]
        if kind == "with gaps and repeats":
            items = draw.choices([-1, *items, *items], k=len(items))
        lists.append(oracle.padded(items, width))
    return lists


def model_with_recommend(draw, task):
    # The model breaks ties in a way of its own, so all of its scores differ.
    order = [
        torch.randperm(task.num_items, generator=draw.generator) for _ in range(task.num_users)
    ]
    scores = draw.tensor(torch.stack(order).double())
    model = draw.choice([RecordingModel, PlainModel])(scores, task.num_users)
    lists = torch.stack(order).argsort(dim=1, descending=True).tolist()
    needs = {"edge_index": draw_message_passing(draw, task)}
    recommender = model if draw.chance(0.7) else model.recommend
    return Input("a model", recommender, lists=lists, is_asked=True, needs=needs)


INPUTS = {
    score_matrix: 4,
    pair_scorer: 1.5,
    function_of_users: 2,
    item_scores: 1.5,
    embedding_pair: 14,
    tiled_embeddings: 3,
    light_gcn: 0.5,
    given_lists: 2,
    model_with_recommend: 1,
}


def draw_ranking(draw):
    """A case of :func:`rank`."""
    tensors, task = task_tensors(draw, draw_task(draw))
    made = draw.pick(INPUTS)(draw, task)
    options = {
        "ties": draw.pick({"index": 4, "best": 1, "worst": 1, "mean": 1, "random": 1}),
        "seed": draw.randrange(1000),
        "batch_size": draw.choice([None, None, 1, 2, 5]),
        **draw.pick({"k": 14, "full": 4, "default": 2}, draw_depth(draw, task)),
        **draw.pick({"none": 8, "all": 1, "some": 1}, draw_width(draw)),
    }
    if made.scores is None and draw.chance(0.95):
        options["ties"] = "index"
    depth = _depth(task, options)
    keep_items = options.get("keep_items", False)
    deepest = max(task.num_items, _width(made.recommender))
    depth = deepest if "full" in options else max(depth, int(keep_items))
    allowed = [wanted for wanted in ALGORITHMS if _applies(wanted, made, task, depth, options)]
    options["algorithm"] = draw.choice(allowed if draw.chance(0.96) else ALGORITHMS)
    if isinstance(made.recommender, LightGCN) and options["algorithm"] == "recommend":
        options["algorithm"] = "auto"  # since its own scores are rounded in another way
    width = min(depth if keep_items is True else keep_items, deepest)
    case = Case(
        form=made.words,
        task=task,
        scores=made.scores,
        lists=made.lists,
        depth=depth,
        ties=options["ties"],
        width=width or None,
        inputs=made.tensors + [value for value in tensors.values() if torch.is_tensor(value)],
        patches=made.patches + draw_patches(draw, task),
        options=options,
        recommender=made.recommender,
        needs=made.needs,
        tensors=tensors,
    )
    if not task.has_retrievable_truth:
        case.error = _error_without_truth(task)
    elif options["algorithm"] not in allowed:
        case.error = "'algorithm' needs to be 'auto' or 'dense' "
        if options["algorithm"] == "recommend":
            case.error = "'recommender' needs to be a model with a method 'recommend'"
    elif made.scores is None and case.ties != "index":
        case.error = "'ties' needs to be 'index' where scores are not known"
    else:
        case.error = made.error
    case.compute = lambda **others: rank(
        made.recommender, RankingTask(**tensors), **made.needs, **options | others
    )
    return case


def _error_without_truth(task):
    """The error of a task in which no user has truth, or `None`."""
    if task.has_retrievable_truth:
        return None
    if not task.weighted_truth:
        needs = "to be positive" if task.threshold is None else "to be reached"
        return f"'{'weight' if task.threshold is None else 'threshold'}' needs {needs}"
    if not any(user in task.evaluated for user, _, _ in task.weighted_truth):
        return "'users' (or the 'eval_mask' of data) needs to hold a user with ground truth"
    return "'truth' needs to hold an edge that can be retrieved"


#: The algorithms, of which those that are hard to get right are drawn more often.
ALGORITHMS = (*["auto"] * 2, "dense", "recommend", *["count"] * 2, *["search"] * 8)


def draw_depth(draw, task):
    return {
        "k": {"k": draw.pick({1: 2, 2: 2, 3: 2, draw.randint(1, task.num_items): 3, 1000: 1})},
        "full": {"full": True},
        "default": {},
    }


def draw_width(draw):
    return {"none": {}, "all": {"keep_items": True}, "some": {"keep_items": draw.randint(1, 12)}}


def _width(recommender):
    """How long given lists are."""
    is_lists = torch.is_tensor(recommender) and not recommender.is_floating_point()
    return recommender.size(1) if is_lists else 0


def _depth(task, options):
    return task.num_items if "full" in options else options.get("k", task.max_degree)


def _applies(algorithm, made, task, depth, options):
    """Whether an algorithm can rank an input, as the documentation says."""
    if algorithm in ("auto", "dense"):
        return True
    if algorithm == "recommend":
        return made.is_asked
    if task.own is not None:
        return False
    if algorithm == "search":
        return made.can_be_searched and depth < task.num_items
    return made.can_be_counted and ("keep_items" not in options or "full" in options)


def draw_patches(draw, task):
    """Smaller chunks, tiles and blocks than those of the package, so that few items fill many."""
    has_fast_bfloat16 = draw.choice([True, False])
    patches = [(algorithms, "has_fast_bfloat16", lambda device: has_fast_bfloat16)]
    if draw.chance(0.5):
        stretch = draw.choice([8, 16])
        patches += [
            (bounded_counting, "STRETCH", stretch),
            (bounded_counting, "STRETCH", stretch),
            (bounded_counting, "NUM_SCORES_IN_TILE", draw.choice([1, 50, 400])),
            (bounded_counting, "NUM_COMPARISONS_AT_ONCE", draw.choice([1, 300])),
        ]
    if draw.chance(0.75):
        block, joined = draw.choice([1, 1, 2, 4]), draw.choice([1, 2, 4])
        multiple = block * joined
        patches += [
            (Blocks, "block_size", block),
            (searching, "MAX_JOINED", joined),
            (searching, "NUM_MAXIMA", draw.choice([1, 20, 160])),
            (searching, "MAX_COLUMNS", multiple * draw.choice([1, 4, 99, 99]) * _scale(task)),
            (searching, "NUM_VALUES", draw.choice([1, 100, 1000]) * _scale(task)),
            (searching, "MAX_ROWS", draw.choice([1, 3, 2048])),
            (searching, "NUM_FOUND", draw.choice([1, 2**20])),
            (searching, "_PART_IN_SIEVE", draw.choice([1, 1, 2])),
        ]
    if draw.chance(0.3):  # users with few close items are left unsettled
        patches += [
            (bounded_counting, "_max_close", lambda depth, num_items: depth + 2),
            (searching, "_max_found", lambda depth: depth + 2),
        ]
    if draw.chance(0.3):
        patches += [
            (counting, "NUM_COMPARISONS", draw.choice([1, 7, 100]) * _scale(task)),
            (scores, "_NUM_PRODUCTS", draw.choice([1, 20])),
            (scores_module, "_NUM_NUMBERS", draw.choice([1, 50])),
            (scores_module, "_MAX_BYTES", draw.choice([0, 2**28])),
            (rounded_items, "_ITEMS_AT_ONCE", draw.choice([1, 5]) * _scale(task)),
            (rounded_items, "_MAX_BYTES", draw.choice([0, 2**29])),
            (algorithms, "SCRATCH_BYTES", draw.choice([1, 3000])),
        ]
    return patches


def _scale(task):
    """How many times larger patches are, so that a case of many items does not take long."""
    return 1 + task.num_items // 100


def draw_pairs_of_others(draw):
    """A case of :meth:`RankedEdges.from_pairs`: the pairs are items, each of one query."""
    num_pairs = draw.randint(1, 40)
    names = draw.sample(range(-50, 2**40), draw.randint(1, 6))
    queries = draw.choices(names, k=num_pairs)
    values = draw_score_matrix(draw, (num_pairs,))
    target = draw.tensor([draw.choice([0, 1, 1, 3, -2]) for _ in range(num_pairs)])
    target = draw.choice([target > 0, target, target * 0.25, target.clamp(max=1)])
    rows = {query: row for row, query in enumerate(sorted(set(queries)))}
    weights = [float(value) for value in target.tolist()]
    is_binary = max(weights) <= 1 and all(weight.is_integer() for weight in weights)
    pairs = [(rows[query], pair) for pair, query in enumerate(queries)]
    task = oracle.Task(len(rows), num_pairs, pairs, weights, own=pairs)
    if is_binary:
        relevant = [pair for pair, weight in zip(pairs, weights, strict=True) if weight > 0]
        task = replace(task, truth=relevant, weights=None)
    if draw.chance(0.2):
        first_of_query = [queries.index(query) for query in set(queries)]
        is_masked = draw.tensor(torch.rand(num_pairs, generator=draw.generator) < 0.4)
        is_masked[first_of_query] = False
        values = values.masked_fill(is_masked, -math.inf)
    options = {"ties": draw.choice(TIES), "seed": draw.randrange(1000)}
    indexes = draw.tensor(queries)
    return Case(
        form=f"from_pairs of {values.dtype}",
        task=task,
        compute=lambda: RankedEdges.from_pairs(values, target, indexes, **options),
        scores=[values.tolist()] * len(rows),
        ties=options["ties"],
        inputs=[values, target, indexes],
        options=options,
        is_asked_of_all=True,
    )


SOURCES = {
    draw_ranking: 20,
    draw_pairs_of_others: 1,
}


def draw_case(seed, device="cpu"):
    """The case of a seed, and the random choices that are left for the metrics."""
    draw = Draw(seed, device)
    return draw.pick(SOURCES)(draw), draw
