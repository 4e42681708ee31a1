"""Random worlds through every door: the same numbers, and no error but one that says what to do."""

import json
import math
import random
import warnings
from contextlib import redirect_stdout
from functools import partial
from io import StringIO

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import HeteroData

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    PairScorer,
    RankedEdges,
    RankingTask,
    evaluate,
    merge,
)
from pyg_recmetrics.command.main import main
from tests.support.references.world import NAMES, draw_world

#: Warnings that random worlds may well give.
EXPECTED = "|".join(
    (
        "taken out of the truth",
        "depending on the order of ties",
        "are no candidates",
        "more than once",
        "have fewer than",
        "has no list for",
        "places? holds? no item",
        "count as relevant",
        "gives too few items",
        "that 'train' does not have",
        "hold every item once",
        "all descend",
        "numbers of 1 to",
    )
)


class Model:
    """A model with PyG's `recommend`, whose items come behind its users."""

    def __init__(self, scores):
        self.scores = scores

    def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
        return self.scores[src_index].topk(k).indices + dst_index[0]


class Doors:
    """One world, and all ways in: each method evaluates it with options of `evaluate`."""

    def __init__(self, world, folder):
        self.world, self.folder = world, folder
        self.metrics = [*(f"{name}@{world.k}" for name in NAMES), "r_precision"]
        self.row = {user: row for row, user in enumerate(world.users)}
        self.column = {item: column for column, item in enumerate(world.items)}
        self.counts = {"num_users": len(world.users), "num_items": len(world.items)}
        self.seen = self.edges(sorted(world.seen, key=str))
        self.truth = self.edges(world.grade)
        self.weight = torch.tensor([*world.grade.values()])
        scores = [[world.score[user, item] for item in world.items] for user in world.users]
        self.scores = torch.tensor(scores)

    def edges(self, pairs):
        edges = [[self.row[user] for user, _ in pairs], [self.column[item] for _, item in pairs]]
        return torch.tensor(edges, dtype=torch.long).view(2, -1)

    def task(self, **ids):
        given = {"weight": self.weight, "seen": self.seen, "exclude_seen": self.world.exclude_seen}
        return RankingTask(self.truth, **given, **self.counts, **ids)

    def frames(self):
        world = self.world
        test = [(user, item, grade) for (user, item), grade in world.grade.items()]
        return RankingTask.from_frames(
            train=pd.DataFrame(sorted(world.seen, key=str), columns=["user", "movieId"])
            if world.seen
            else None,
            test=pd.DataFrame(test, columns=["user", "movieId", "rating"])[::-1],
            rating="rating",
            users=world.users,
            items=world.items,
            exclude_seen=world.exclude_seen,
        )

    # Of scores.

    def score_matrix(self, **options):
        return evaluate(self.scores, self.task(), self.metrics, **options)

    def score_array(self, **options):
        return evaluate(self.scores.double().numpy(), self.task(), self.metrics, **options)

    def score_function(self, **options):
        return evaluate(lambda users: self.scores[users], self.task(), self.metrics, **options)

    def score_embeddings(self, **options):
        pair = self.scores, torch.eye(len(self.world.items))
        return evaluate(pair, self.task(), self.metrics, **options)

    def score_pairs(self, **options):
        scorer = PairScorer(lambda user, item: self.scores[user, item])
        return evaluate(scorer, self.task(), self.metrics, **options)

    def score_ids(self, **options):
        known = [*self.world.items, *self.world.strangers]
        one_hot = torch.eye(len(known)).tolist()
        users = {user: [self.world.score[user, x] for x in known] for user in self.world.users}
        pair = users, dict(zip(known, one_hot, strict=True))
        return evaluate(pair, self.frames(), self.metrics, **options)

    def score_parts(self, **options):
        num_parts = min(3, len(self.world.users))
        parts = [self.task().part(number, num_parts) for number in range(num_parts)]
        results = (evaluate(self.scores, x, self.metrics, **options) for x in parts if len(x.users))
        return merge(results)

    def score_twice(self, **options):
        evaluator = Evaluator(self.task(), self.metrics, **options)
        evaluator(-self.scores)
        return evaluator(self.scores)

    def score_file(self, **options):
        self.score_matrix(**options).save(self.folder / "result.npz")
        return EvaluationResult.load(self.folder / "result.npz")

    def score_graph(self, **options):
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = self.counts.values()
        data["user", "rates", "item"].edge_index = self.seen
        data["user", "rates", "item"].edge_label_index = self.truth
        data["user", "rates", "item"].edge_label = self.weight
        options["exclude_seen"] = self.world.exclude_seen
        return evaluate(self.scores, data, self.metrics, **options)

    def score_sparse(self, **options):
        shape = tuple(self.counts.values())
        test = sp.csr_matrix((self.weight.numpy(), self.truth.numpy()), shape)
        train = sp.csr_matrix((np.ones(self.seen.size(1)), self.seen.numpy()), shape)
        exclude_seen = self.world.exclude_seen
        task = RankingTask.from_matrix(train=train, test=test, exclude_seen=exclude_seen)
        return evaluate(self.scores, task, self.metrics, **options)

    def score_model(self, **options):
        # Which of equal scores come first is for the model to say.
        options.pop("ties", None)
        if len({*self.scores.flatten().tolist()}) < self.scores.numel():
            return None
        edge_index = torch.empty(2, 0, dtype=torch.long)  # which it does not look at
        return evaluate(
            Model(self.scores), self.task(), self.metrics, edge_index=edge_index, **options
        )

    # Of lists.

    def list_matrix(self, **options):
        return evaluate(self.padded(), self.task(), self.metrics, **options)

    def list_ids(self, **options):
        if self.plain_lists() is None:
            return None
        return evaluate(self.plain_lists(), self.frames(), self.metrics, **options)

    def list_frame(self, **options):
        rows = [
            (user, item, place)
            for user, own in (self.plain_lists() or {}).items()
            for place, item in enumerate(own, 1)
        ]
        frame = pd.DataFrame(rows, columns=["userId", "item_id", "rank"])
        if not rows:
            return None
        if len(rows) % 2:
            frame["score"] = -frame.pop("rank")
        return evaluate(frame[::-1], self.frames(), self.metrics, **options)

    def list_topk(self, **options):
        world = self.world
        kept = [[x for x in own if self.pair_is_left(user, x)] for user, own in world.lists.items()]
        rows = dict(zip(world.lists, kept, strict=True))
        width = max(1, *map(len, kept))
        numbers = [self.numbers(rows.get(user, []), width) for user in world.users]
        left = [pair for pair in world.grade if self.pair_is_left(*pair)]
        weight = torch.tensor([world.grade[pair] for pair in left])
        ranked = RankedEdges.from_topk(torch.tensor(numbers), self.edges(left), weight)
        action = options.get("empty_target_action", "skip")
        return EvaluationResult(ranked, self.metrics, empty_target_action=action)

    def padded(self):
        width = max(map(len, self.world.lists.values()))
        width += width == len(self.world.items)  # else they are refused if some repeat
        rows = [self.numbers(self.world.lists.get(user, []), width) for user in self.world.users]
        return torch.tensor(rows)

    def numbers(self, own, width):
        """A list of numbers, in which an item that the task does not know is none."""
        return [self.column.get(x, -1) for x in own] + [-1] * (width - len(own))

    def pair_is_left(self, user, item):
        return not (self.world.exclude_seen and (user, item) in self.world.seen)

    def plain_lists(self):
        """The lists, if they have items at all places and none twice."""
        lists = self.world.lists
        is_plain = all(None not in own and len({*own}) == len(own) for own in lists.values())
        is_known = any(not self.column.keys().isdisjoint(own) for own in lists.values())
        return lists if is_plain and is_known else None

    def list_command(self, empty_target_action="skip", **_):
        """The means that the command prints as JSON. It does not know who has no interaction."""
        if self.plain_lists() is None or empty_target_action != "skip":
            return None
        known = {user for user, _ in {*self.world.grade, *self.world.seen}}
        lists = [own for user, own in self.world.lists.items() if user in known]
        if all(self.column.keys().isdisjoint(own) for own in lists):
            return None
        tables = {
            "test": [(*pair, grade) for pair, grade in self.world.grade.items()],
            "train": sorted(self.world.seen, key=str),
            "lists": [
                (user, item, place)
                for user, own in self.world.lists.items()
                for place, item in enumerate(own, 1)
            ],
        }
        columns = {"test": ["user", "item", "rating"], "train": ["user", "item"]}
        suffix = ["csv", "tsv", "parquet", "jsonl"][self.world.k % 4]
        line = ["evaluate", "--quiet", "--json", "--metrics", *self.metrics]
        line += ["--rating-column", "rating"]
        line += [] if self.world.exclude_seen else ["--include-seen"]
        for name, rows in tables.items():
            if rows:
                frame = pd.DataFrame(rows, columns=columns.get(name, ["user", "item", "rank"]))
                path = self.folder / f"{name}.{suffix}"
                WRITERS[suffix](frame, path)
                line += [f"--{name}", str(path)]
        (self.folder / "items.txt").write_text("".join(f"{x}\n" for x in self.world.items))
        line += ["--item-ids", str(self.folder / "items.txt")]
        with redirect_stdout(StringIO()) as out:
            assert main(line) == 0
        means = json.loads(out.getvalue())["metrics"]
        return {name: mean["mean"] for name, mean in means.items()}


#: How a frame becomes a file.
WRITERS = {
    "csv": partial(pd.DataFrame.to_csv, index=False),
    "tsv": partial(pd.DataFrame.to_csv, index=False, sep="\t"),
    "parquet": pd.DataFrame.to_parquet,
    "jsonl": partial(pd.DataFrame.to_json, orient="records", lines=True),
}

DOORS = [name for name in vars(Doors) if name.startswith(("score_", "list_"))]


def draw_options(world, door, seed):
    """Options that change no number of this world, and those that it has."""
    draw = random.Random(seed)
    options = {"empty_target_action": world.action}
    if door.startswith("score_"):
        options["ties"] = world.ties
    if draw.random() < 0.3:
        options["batch_size"] = draw.choice([1, 2, 5])
    if draw.random() < 0.3:
        options["keep_items"] = draw.choice([True, 1, 7])
    return options


def check(door, seed, folder):
    """Evaluates a world through a door, and compares every number with the reference."""
    world = draw_world(seed)
    doors, by = Doors(world, folder), door.split("_")[0]
    if not any(item in world.candidates(user) for user, item in world.grade):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=f".*({EXPECTED})")
        found = getattr(doors, door)(**draw_options(world, door, seed))
    if found is None:
        return False
    if door in ("list_matrix", "list_topk"):
        world = world.without_strangers()
    for name, values in world.measure(by).items():
        wanted = world.mean(values)
        assert found[name] == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), (name, seed)
        if isinstance(found, EvaluationResult):
            own = [math.nan if value is None else value for value in values.values()]
            assert found.per_user[name].tolist() == pytest.approx(own, nan_ok=True), (name, seed)
    return True


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_leads_to_the_same_numbers(door, tmp_path):
    assert sum(check(door, seed, tmp_path) for seed in range(40)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_thousands_of_worlds(door, tmp_path):
    for seed in range(1000, 2000 if door == "list_command" else 3000):
        check(door, seed, tmp_path)
