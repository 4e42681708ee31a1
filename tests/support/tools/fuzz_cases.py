"""Random rankings of scores and embeddings, each with what the oracle needs to rank the same.

Lists, scored pairs and models that are asked by `recommend` come through the doors of
:mod:`tests.support.tools.doors`.
"""

import math
import random
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pyg_recmetrics import PairScorer, RankingTask, rank
from pyg_recmetrics.kernels.exact import ranks, scores
from pyg_recmetrics.kernels.fast import bounded_counting, rounded_items, searching, stored_scores
from pyg_recmetrics.ranking import algorithms, recommenders as ranked_embeddings
from tests.support.cases import embeddings
from tests.support.references import exact_scores, oracle

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


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
class Input:
    """What is ranked, and the scores that the oracle ranks instead.

    Attributes:
        words: What it is.
        recommender: What the package takes.
        scores: The scores of all pairs.
        can_be_searched: Whether ranks can be found by a search.
        can_be_counted: Whether ranks can be counted in scores with a bound.
        patches: What to replace in the package: an object, a name and a value.
        tensors: The tensors that have to stay what they are.
        error: The start of the error that is due; `None` for none.
    """

    words: str
    recommender: Any
    scores: list
    can_be_searched: bool = False
    can_be_counted: bool = False
    patches: list = field(default_factory=list)
    tensors: list = field(default_factory=list)
    error: str | None = None


@dataclass
class Case:
    """One ranking.

    Attributes:
        given: What is ranked.
        task: The task in plain Python.
        tensors: The arguments of the task.
        options: The options of `rank`.
        depth: How deep users are ranked.
        width: How many items of each list are kept; `None` for none.
        error: The start of the error that is due; `None` for none.
        algorithms: Those that can rank it: each is another way through the kernels.
    """

    given: Input
    task: oracle.Task
    tensors: dict
    options: dict
    depth: int
    width: int | None
    error: str | None
    algorithms: list

    def compute(self, **others):
        """Computes the ranking with the package."""
        return rank(self.given.recommender, RankingTask(**self.tensors), **self.options | others)

    @property
    def candidates(self):
        """The candidates of each user, without those that a score of `-inf` is known to mask."""
        asked = [
            bool(relevant) or (self.width is not None and user in self.task.evaluated)
            for user, relevant in enumerate(self.task.relevant)
        ]
        return [
            oracle.scored(self.task, self.given.scores, user) if asked[user] else items
            for user, items in enumerate(self.task.candidates)
        ]

    def __str__(self):
        words = {**vars(self.task), **self.options}
        words["patched"] = [name for _, name, _ in self.given.patches]
        parts = (
            f"{name}={len(part) if isinstance(part, list) else part}"
            for name, part in words.items()
        )
        return f"{self.given.words}, " + ", ".join(parts)


#: How often there are how many users and items.
SIZES = {
    ((1, 6), (1, 12)): 7,
    ((1, 12), (13, 150)): 9,
    ((30, 90), (2, 12)): 1,
    ((1, 4), (257, 900)): 3.5,  # more items than a group
    ((1, 2), (4097, 4700)): 0.15,  # more items than the sieve
}


def draw_task(draw):
    """A task, in which hardly ever no truth is left."""
    while True:
        task = draw_any_task(draw)
        if task.has_truth or draw.chance(0.2):
            return task


def draw_any_task(draw):
    size = num_users, num_items = [draw.randint(*ends) for ends in draw.pick(SIZES)]
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


def score_matrix(draw, task):
    return function_of_users(draw, task, {"scores": lambda matrix: matrix})


def pair_scorer(draw, task):
    matrix = draw_masked_scores(draw, task)
    scorer = PairScorer(
        lambda user, item: matrix[user, item], batch_size=draw.choice([1, 3, 100, 2**16])
    )
    words = f"pairs of {matrix.dtype}, {scorer.batch_size} at once"
    return Input(words, scorer, matrix.tolist(), tensors=[matrix])


FUNCTIONS = {
    "rows": lambda matrix: lambda users: matrix[users],
    "columns": lambda matrix: lambda users: matrix.t()[:, users].t(),
    "doubles": lambda matrix: lambda users: matrix[users].double(),
}


def function_of_users(draw, task, functions=FUNCTIONS):
    matrix = draw_masked_scores(draw, task)
    error = spoil(draw, task, matrix)
    kind = draw.choice(list(functions))
    words, recommender = f"{kind} of {matrix.dtype}", functions[kind](matrix)
    table = matrix.tolist()
    return Input(words, recommender, table, can_be_searched=True, tensors=[matrix], error=error)


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


INPUTS = {
    score_matrix: 4,
    pair_scorer: 1.5,
    function_of_users: 2,
    item_scores: 1.5,
    embedding_pair: 14,
    tiled_embeddings: 3,
}


def draw_case(seed, device="cpu"):
    """The case of a seed."""
    draw = Draw(seed, device)
    tensors, task = task_tensors(draw, draw_task(draw))
    given = draw.pick(INPUTS)(draw, task)
    given.patches += draw_patches(draw, task)
    given.tensors += [value for value in tensors.values() if torch.is_tensor(value)]
    k = draw.pick({1: 2, 2: 2, 3: 2, draw.randint(1, task.num_items): 3, 1000: 1})
    depths = {"k": {"k": k}, "full": {"full": True}, "default": {}}
    width = draw.randint(1, 12)
    widths = {"none": {}, "all": {"keep_items": True}, "some": {"keep_items": width}}
    options = {
        "ties": draw.pick({"index": 4, "best": 1, "worst": 1, "mean": 1, "random": 1}),
        "seed": draw.randrange(1000),
        "batch_size": draw.choice([None, None, 1, 2, 5]),
        **draw.pick({"k": 14, "full": 4, "default": 2}, depths),
        **draw.pick({"none": 8, "all": 1, "some": 1}, widths),
    }
    keep_items = options.get("keep_items", False)
    depth = task.num_items
    if "full" not in options:
        depth = max(options.get("k", task.max_degree), int(keep_items))
    allowed = [wanted for wanted in ALGORITHMS if _applies(wanted, given, task, depth, options)]
    options["algorithm"] = draw.choice(allowed if draw.chance(0.96) else ALGORITHMS)
    width = min(depth if keep_items is True else keep_items, task.num_items)
    error = given.error
    if not task.has_truth:
        error = _error_without_truth(task)
    elif options["algorithm"] not in allowed:
        error = "'algorithm' needs to be 'auto' or 'dense' "
    return Case(given, task, tensors, options, depth, width or None, error, allowed)


def _error_without_truth(task):
    """The error of a task in which no user has truth."""
    if not task.weighted_truth:
        needs = "to be positive" if task.threshold is None else "to be reached"
        return f"'{'weight' if task.threshold is None else 'threshold'}' needs {needs}"
    if not any(user in task.evaluated for user, _, _ in task.weighted_truth):
        return "'users' (or the 'eval_mask' of data) needs to hold a user with ground truth"
    return "'truth' needs to hold an edge that can be retrieved"


#: The algorithms, of which those that are hard to get right are drawn more often.
ALGORITHMS = (*["auto"] * 2, "dense", *["count"] * 2, *["search"] * 8)


def _applies(algorithm, given, task, depth, options):
    """Whether an algorithm can rank an input, as the documentation says."""
    if algorithm in ("auto", "dense"):
        return True
    if task.own is not None:
        return False
    if algorithm == "search":
        return given.can_be_searched and depth < task.num_items
    return given.can_be_counted and ("keep_items" not in options or "full" in options)


def draw_patches(draw, task):
    """Smaller chunks, tiles and blocks than those of the package, so that few items fill many."""
    has_fast_bfloat16 = draw.choice([True, False])
    patches = [(algorithms, "has_fast_bfloat16", lambda: has_fast_bfloat16)]
    if draw.chance(0.6):
        patches += [(algorithms, "_MAX_ITEMS_STORED", 0)]
    if draw.chance(0.5):
        scale = _scale(task)
        patches += [
            (algorithms, "_NUM_IN_DOUBLE", draw.choice([1, 40 * scale])),
            (algorithms, "_NUM_STORED", draw.choice([1, 40 * scale])),
            (stored_scores, "_NUM_SETTLED", draw.choice([0, 2**21])),
            (algorithms, "_BYTES_OF_LARGEST", draw.choice([1, 3000])),
        ]
    if draw.chance(0.5):
        stretch = draw.choice([8, 16])
        patches += [
            (bounded_counting, "STRETCH", stretch),
            (algorithms, "_ITEMS_PER_LISTED", 1),
            (stored_scores, "SPARE", 1),
            (bounded_counting, "NUM_SCORES_IN_TILE", draw.choice([1, 50, 400])),
            (bounded_counting, "NUM_COMPARISONS_AT_ONCE", draw.choice([1, 300])),
        ]
    if draw.chance(0.75):
        block = draw.choice([1, 1, 2, 4])
        patches += [
            (searching, "BLOCK_SIZE", block),
            (searching, "MAX_COLUMNS", block * draw.choice([1, 4, 99, 99]) * _scale(task)),
            (searching, "NUM_VALUES", draw.choice([1, 100, 1000]) * _scale(task)),
            (searching, "MAX_ROWS", draw.choice([1, 3, 2048])),
            (searching, "NUM_FOUND", draw.choice([1, 2**20])),
            (searching, "_PART_IN_SIEVE", draw.choice([1, 1, 2])),
        ]
    if draw.chance(0.3):  # users with few close items are left unsettled
        patches += [
            (bounded_counting, "_max_close", lambda depth, num_items: depth + 2),
            (stored_scores, "_MAX_CLOSE", 1),
            (searching, "_max_found", lambda depth: depth + 2),
        ]
    if draw.chance(0.3):
        patches += [
            (ranks, "NUM_COMPARISONS", draw.choice([1, 7, 100]) * _scale(task)),
            (scores, "_NUM_PRODUCTS", draw.choice([1, 20])),
            (rounded_items, "_ITEMS_AT_ONCE", draw.choice([1, 5]) * _scale(task)),
            (rounded_items, "_MAX_BYTES", draw.choice([0, 2**29])),
            (algorithms, "SCRATCH_BYTES", draw.choice([1, 3000])),
        ]
    return patches


def _scale(task):
    """How many times larger patches are, so that a case of many items does not take long."""
    return 1 + task.num_items // 100
