"""Random worlds through every door: the same numbers, and no error but one that says what to do.

python -m tests.support.tools.doors 17        # checks the call of a seed, and shows it if it fails
python -m tests.support.tools.doors 0 100000  # checks all calls from the one to the other
"""

import json
import math
import random
import re
import statistics
import sys
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import torch
from torch_geometric.data import HeteroData

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    Margin,
    PairScorer,
    RankedEdges,
    RankingTask,
    evaluate,
    merge,
    modules,
    rank,
)
from pyg_recmetrics.__main__ import main as command
from tests.support.cases.recommender_forms import PlainModel
from tests.support.cases.worlds import (
    draw_metrics,
    draw_triples,
    draw_world,
    needs_all_ranks,
    spelling,
    without_strangers,
)
from tests.support.references.libraries import CONVENTIONS, resolve
from tests.support.tools.seeds import check_seeds

#: Arguments of metrics that do not fall with every rank.
NOT_MONOTONE = [("normalizer", "hits"), ("ideal", "retrieved"), ("users", "hit")]

#: The metrics whose values have no bound.
UNBOUNDED = {"dcg", "mean_rank", "median_rank", "adjusted_mean_rank", "adjusted_mean_rank_index"}

#: Warnings that random worlds may well give.
EXPECTED = "|".join(
    (
        "taken out of the truth",
        "depending on the order of ties",
        "are no candidates",
        "more than once",
        "places? holds? no item",
        "count as relevant",
        "gives too few items",
        "that 'train' does not have",
        "hold every item once",
        "all descend",
        "holds scores that fall",
        "numbers of 1 to",
        "rating of zero or less",
        "are negative and count",
        "not among the candidates",
        "lists of .* items, but .* are needed",
    )
)


class Doors:
    """One world, and all ways in: each method evaluates it with options of `evaluate`."""

    def __init__(self, world, metrics, folder, draw):
        self.world, self.metrics, self.folder, self.draw = world, metrics, folder, draw
        self.names = [spelling(metric) for metric in metrics]
        self.row = {user: row for row, user in enumerate(world.users)}
        self.column = {item: column for column, item in enumerate(world.items)}
        self.counts = {"num_users": len(world.users), "num_items": len(world.items)}
        self.how = {"exclude_seen": world.exclude_seen, "threshold": world.threshold}
        self.seen = self.edges(sorted(world.seen, key=str))
        self.truth = self.edges(world.grade)
        self.weight = torch.tensor([*world.grade.values()])
        scores = [[world.score[user, item] for item in world.items] for user in world.users]
        self.scores = torch.tensor(scores)

    def edges(self, pairs):
        edges = [[self.row[user] for user, _ in pairs], [self.column[item] for _, item in pairs]]
        return torch.tensor(edges, dtype=torch.long).view(2, -1)

    def task(self):
        world = self.world
        return RankingTask(
            self.truth,
            weight=self.weight,
            seen=self.seen,
            candidates=self.candidates(self.edges),
            missing=world.missing,
            person=world.person and [world.person[user] for user in world.users],
            **self.counts,
            **self.how,
        )

    def candidates(self, of_pairs):
        """The candidates, if they are not all items, where a function writes pairs."""
        world = self.world
        if world.own is not None:
            return of_pairs(sorted(world.own, key=str))
        return world.shared and torch.tensor([self.column[item] for item in world.shared])

    def tables(self):
        """What is relevant, what was seen and what is recommended, as data frames."""
        world = self.world
        lists = [(u, x, place) for u, own in world.lists.items() for place, x in enumerate(own, 1)]
        grades = [(*pair, grade) for pair, grade in world.grade.items()]
        return {
            "test": pd.DataFrame(grades, columns=["user", "movieId", "rating"]),
            "train": pd.DataFrame(sorted(world.seen, key=str), columns=["user", "movieId"]),
            "lists": pd.DataFrame(lists, columns=["userId", "item_id", "rank"]),
        }

    def frames(self):
        tables = self.tables()
        return RankingTask.from_frames(
            train=tables["train"] if self.world.seen else None,
            test=tables["test"][::-1],
            rating="rating",
            users=self.world.users,
            items=self.world.items,
            **self.how,
        )

    # Of scores.

    def score_matrix(self, **options):
        return evaluate(self.scores, self.task(), self.names, **options)

    def score_array(self, **options):
        return evaluate(self.scores.double().numpy(), self.task(), self.names, **options)

    def score_function(self, **options):
        scores = self.draw.choice([self.scores, self.scores.double(), self.scores.numpy()])
        return evaluate(lambda users: scores[users.tolist()], self.task(), self.names, **options)

    def score_everybody(self, **options):
        """A function that ignores its users is right, or of a wrong shape."""
        try:
            return evaluate(lambda users: self.scores, self.task(), self.names, **options)
        except ValueError as error:
            if "[len(users), num_items] of shape" in str(error):
                return None
            raise

    def score_embeddings(self, **options):
        pair = self.scores, torch.eye(len(self.world.items))
        return evaluate(pair, self.task(), self.names, **options)

    def score_pairs(self, **options):
        scorer = PairScorer(lambda user, item: self.scores[user, item])
        return evaluate(scorer, self.task(), self.names, **options)

    def score_ids(self, **options):
        known = [*self.world.items, *self.world.strangers][::-1]
        one_hot = torch.eye(len(known)).tolist()
        users = {user: [self.world.score[user, x] for x in known] for user in reversed(self.row)}
        pair = users, dict(zip(known, one_hot, strict=True))
        return evaluate(pair, self.frames(), self.names, **options)

    def score_parts(self, **options):
        return self.merged(self.scores, **options)

    def merged(self, recommender, **options):
        num_parts = self.draw.randint(1, min(3, len(self.world.users)))
        parts = [self.task().part(number, num_parts) for number in range(num_parts)]
        results = [evaluate(recommender, x, self.names, **options) for x in parts]
        for lost in range(num_parts if num_parts > 1 else 0):
            try:
                merge(results[:lost] + results[lost + 1 :])
            except ValueError as error:
                assert "all parts of a task" in str(error)  # noqa: PT017
            else:
                raise AssertionError("a lost part is not noticed")
        return merge(results)

    def score_rank(self, **options):
        measured = {x: options.pop(x) for x in ("empty_target_action", "convention")}
        scores = self.scores
        if self.draw.random() < 0.5:
            scores = scores, torch.eye(len(self.world.items))
        depths = [k for name, k, _ in self.resolved if not needs_all_ranks(name)]
        is_full = None in depths or len(depths) < len(self.metrics)
        depth = {"full": True} if is_full else {"k": max(depths)}
        fitting = ["auto", "dense", *(["count"] if is_full else ["search", "direct"])]
        try:
            ranked = rank(
                scores, self.task(), **depth, **options, algorithm=self.draw.choice(fitting)
            )
        except ValueError as error:
            if not str(error).startswith("'algorithm' needs"):
                raise
            ranked = rank(scores, self.task(), **depth, **options)
        return EvaluationResult(ranked, self.names, **measured)

    def score_margin(self, **options):
        size = self.draw.choice([0.01, 0.9])
        result = evaluate(self.scores, self.task(), self.names, margin=Margin(size), **options)
        for name in self.names:
            low, high = result.bounds(name)
            assert low == high == result[name] or math.isnan(low), "bounds of all users"
        return result

    def score_queries(self, **options):
        world = self.world
        columns = {user: (row // 2 * 10**18, row % 2, 7) for user, row in self.row.items()}

        def queries(pairs):
            rows = torch.tensor([columns[user] for user, _ in pairs], dtype=torch.long).view(-1, 3)
            items = torch.tensor([self.column[item] for _, item in pairs], dtype=torch.long)
            return (rows if self.draw.random() < 0.5 else [*rows.t()]), items

        query, item = queries([*world.grade])
        task = RankingTask.from_queries(
            query,
            item,
            num_items=len(world.items),
            seen=queries(sorted(world.seen, key=str)),
            candidates=self.candidates(queries),
            missing=world.missing,
            weight=self.weight,
            person=world.person and [world.person[user] for user, _ in world.grade],
            **self.how,
        )
        return evaluate(self.scores, task, self.names, **options)

    def score_triples(self, **options):
        test, known, how, _ = self.triples
        known = torch.tensor(known, dtype=torch.long).view(-1, 3).t()
        task = RankingTask.from_triples(torch.tensor(test).t(), known, **how)
        return evaluate(self.scores, task, self.names, **options)

    def score_pairs_of_others(self, empty_target_action, convention, ties, **_):
        world = self.world
        pairs = [(user, item) for user in world.users for item in world.candidates(user)]
        target = [world.truth(user).get(item, 0.0) for user, item in pairs]
        if not pairs:
            return None
        ranked = RankedEdges.from_pairs(
            torch.tensor([world.score[pair] for pair in pairs]),
            torch.tensor(target),
            torch.tensor([self.row[user] for user, _ in pairs]),
            ties=ties,
        )
        return EvaluationResult(
            ranked, self.names, empty_target_action=empty_target_action, convention=convention
        )

    def score_twice(self, **options):
        evaluator = Evaluator(self.task(), self.names, **options)
        evaluator(-self.scores)
        return evaluator(self.scores)

    def score_file(self, **options):
        self.score_matrix(**options).save(self.folder / "result.npz")
        return EvaluationResult.load(self.folder / "result.npz")

    def score_graph(self, **options):
        task = RankingTask.from_data(self.graph(), **self.how)
        return evaluate(self.scores, task, self.names, **options)

    def graph(self):
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = self.counts.values()
        data[RATES].edge_index = self.seen
        data[RATES].edge_label_index = self.truth
        data[RATES].edge_label = self.weight
        return data

    def score_relations(self, **options):
        """A graph with other relations, of which those that have truth are named."""
        world, data, wanted = self.world, self.graph(), []
        truth = {(user, item) for user in world.users for item in world.truth(user)}
        pairs = [(user, item) for user in world.users for item in world.items]
        relations = [self.draw.choice(REVERSE), *RELATIONS]
        for key in self.draw.sample(relations, self.draw.randint(1, len(relations))):
            own = set(self.draw.sample(pairs, self.draw.randint(0, len(pairs))))
            own -= truth if self.draw.random() < 0.4 else set()
            edges = self.edges(sorted(own, key=str))
            if key[0] == key[2]:
                edges = edges[:1].repeat(2, 1)
            data[key].edge_index = edges if key[0] == "user" else edges.flip([0])
            num_leaks = len(own & truth - (set() if world.exclude_seen else world.seen))
            if num_leaks and key[0] != key[2]:
                said = f"{num_leaks} of {len(truth)} ground-truth edges leak: they are among the "
                wanted.append(f"{said}edges {key}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", message=".*leak")
            task = RankingTask.from_data(data, RATES, **self.how)
        leaks = [text for text in map(str, (x.message for x in caught)) if "leak" in text]
        found = [text.partition(", which")[0] for text in leaks]
        assert sorted(found) == sorted(wanted), f"{leaks} instead of {wanted}"
        return evaluate(self.scores, task, self.names, **options)

    def score_sparse(self, **options):
        shape = tuple(self.counts.values())
        test = sp.csr_matrix((self.weight.numpy(), self.truth.numpy()), shape)
        train = sp.csr_matrix((np.ones(self.seen.size(1)), self.seen.numpy()), shape)
        task = RankingTask.from_matrix(train=train, test=test, **self.how)
        return evaluate(self.scores, task, self.names, **options)

    def score_model(self, **options):
        # Which scores are equal, and which of these come first, is for the model to say.
        options.pop("ties")
        is_half = any("half" in args.values() for _, _, args in self.resolved)
        if is_half or len({*self.scores.flatten().tolist()}) < self.scores.numel():
            return None
        edge_index = torch.empty(2, 0, dtype=torch.long)  # which it does not look at
        model = PlainModel(self.scores, len(self.scores))
        return evaluate(model, self.task(), self.names, edge_index=edge_index, **options)

    # Of lists.

    def list_parts(self, **options):
        return self.merged(self.padded(), **options)

    def list_matrix(self, **options):
        lists = self.padded()
        lists = lists if self.draw.random() < 0.5 else lists.int().numpy()
        return evaluate(lists, self.task(), self.names, **options)

    def list_ids(self, **options):
        if self.plain_lists() is None:
            return None
        return evaluate(self.plain_lists(), self.frames(), self.names, **options)

    def list_frame(self, **options):
        frame = self.tables()["lists"]
        if self.plain_lists() is None:
            return None
        if len(frame) % 2:
            frame["score"] = -frame.pop("rank")
        form = self.draw.choice([pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
        return evaluate(form(frame[::-1]), self.frames(), self.names, **options)

    def list_topk(self, **options):
        return EvaluationResult(
            RankedEdges.from_topk(*self.lists_without_seen()), self.names, **options
        )

    def list_classes(self, empty_target_action, **_):
        """Each metric as a class, over mini-batches of users."""
        lists, truth, weight = self.lists_without_seen()
        size, found = self.draw.randint(1, len(lists)), {}
        for name, k, arguments in self.metrics:
            kind = getattr(modules, modules.class_name(name))
            given = arguments if k is None else {"k": k, **arguments}
            metric = kind(**given, empty_target_action=empty_target_action)
            for first in range(0, len(lists), size):
                own = (truth[0] >= first) & (truth[0] < first + size)
                shift = torch.tensor([[first], [0]])
                metric.update(lists[first : first + size], truth[:, own] - shift, weight[own])
            found[spelling((name, k, arguments))] = float(metric.compute())
        return found

    def lists_without_seen(self):
        """Lists, ground truth and grades of what no user has seen."""
        world = self.world
        kept = {
            user: [x for x in own if not world.is_seen(user, x)]
            for user, own in world.lists.items()
        }
        width = max(1, *map(len, kept.values()))
        numbers = [self.numbers(kept.get(user, []), width) for user in world.users]
        left = {(u, x): grade for u in world.users for x, grade in world.truth(u).items()}
        return torch.tensor(numbers), self.edges(left), torch.tensor([*left.values()])

    def padded(self):
        width = max(map(len, self.world.lists.values()))
        width += width == len(self.world.items)  # else they are refused if some repeat
        rows = [self.numbers(self.world.lists.get(user, []), width) for user in self.world.users]
        return torch.tensor(rows)

    def numbers(self, own, width):
        """A list of numbers, in which an item that the task does not know is none."""
        return [self.column.get(x, -1) for x in own] + [-1] * (width - len(own))

    def plain_lists(self):
        """The lists, if they have items at all places and none twice."""
        lists = self.world.lists
        is_plain = all(None not in own and len({*own}) == len(own) for own in lists.values())
        is_known = any(not self.column.keys().isdisjoint(own) for own in lists.values())
        return lists if is_plain and is_known else None

    def list_quotes(self, **options):
        """Files with titles, of which some have quotes that close nothing: they lose no row."""
        strays = self.draw.choice([0, 1, 2, 2, 3])

        def write(frame, path):
            titles = self.draw.choices(TITLES[:-1] if strays else TITLES, k=len(frame))
            place = self.draw.randint(0, frame.shape[1])
            if not strays:
                frame.insert(place, "title", titles)
                return frame.to_csv(path, index=False)
            for row in self.draw.sample(range(len(frame)), min(strays, len(frame))):
                titles[row] = self.draw.choice(['"{}', '{}"', '"{}"']).format("Low")
            frame.insert(place, "title", titles)
            lines = [frame.columns, *frame.astype(str).to_numpy()]
            return path.write_text("".join(",".join(line) + "\n" for line in lines))

        try:
            return self.by_command("csv", write, **options)
        except ValueError as error:
            if strays and "needs to close the quote" in str(error):
                return None
            raise

    def list_command(self, **options):
        suffix = ["csv", "tsv", "parquet", "jsonl"][self.draw.randrange(4)]
        return self.by_command(suffix, WRITERS[suffix], **options)

    def by_command(self, suffix, write, empty_target_action, convention, **_):
        """The means that the command prints as JSON. It does not know who has no interaction."""
        known = {user for user, _ in {*self.world.grade, *self.world.seen}}
        if self.plain_lists() is None or len(known) < len(self.world.users):
            return None
        lists = [own for user, own in self.world.lists.items() if user in known]
        if all(self.column.keys().isdisjoint(own) for own in lists):
            return None
        line = ["evaluate", "--json", "--metrics", *self.names]
        line += ["--convention", convention, "--empty-target-action", empty_target_action]
        line += ["--rating-column", "rating"]
        if self.world.threshold is not None:
            line += ["--threshold", str(self.world.threshold)]
        line += [] if self.world.exclude_seen else ["--include-seen"]
        for name, frame in self.tables().items():
            if len(frame):
                path = self.folder / f"{name}.{suffix}"
                write(frame, path)
                line += [f"--{name}", str(path)]
        (self.folder / "items.txt").write_text("".join(f"{x}\n" for x in self.world.items))
        line += ["--item-ids", str(self.folder / "items.txt")]
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as error:
            code = command(line)
        if code:
            raise ValueError(error.getvalue())
        means = json.loads(out.getvalue())["metrics"]
        return {name: math.nan if x["mean"] is None else x["mean"] for name, x in means.items()}


#: The relation that is ranked, others beside it, and those of them that are it in reverse.
RATES = ("user", "rates", "item")
REVERSE = [("item", "rev_rates", "user"), ("item", "rated_by", "user")]
RELATIONS = [
    ("item", "rev_views", "user"),
    ("user", "views", "item"),
    ("user", "knows", "user"),
]

#: What the titles of items may be.
TITLES = ["", "Low", "It is 1", 'a 5" disc', 'a "Hero"', 'The "Up", "It" and "Ok"']

#: How a frame becomes a file.
WRITERS = {
    "csv": partial(pd.DataFrame.to_csv, index=False),
    "tsv": partial(pd.DataFrame.to_csv, index=False, sep="\t"),
    "parquet": pd.DataFrame.to_parquet,
    "jsonl": partial(pd.DataFrame.to_json, orient="records", lines=True),
}

DOORS = [name for name in vars(Doors) if name.startswith(("score_", "list_"))]

#: Those where every user has all items for candidates.
PLAIN = ["ids", "graph", "relations", "sparse", "topk", "classes", "frame", "command", "quotes"]
PLAIN += ["triples"]

#: Those that take no `per`, `batch_size` and `keep_items`.
OF_RANKED = ["score_rank", "score_pairs_of_others", "list_topk", "list_classes", "list_command"]
OF_RANKED += ["list_quotes"]


class DoorError(AssertionError):
    """A call that differs from the reference. The message starts with its seed."""


def only_users(world, users):
    """Leaves only some users in a world."""
    world.users = [user for user in world.users if user in users]
    world.grade = {pair: grade for pair, grade in world.grade.items() if pair[0] in users}
    world.seen = {pair for pair in world.seen if pair[0] in users}
    world.own = world.own and {pair for pair in world.own if pair[0] in users}


class Call:
    """A world, a door, metrics and options: all that a seed says."""

    def __init__(self, seed, door, folder):
        draw = random.Random(seed)
        self.door = door or draw.choice(DOORS)
        self.by, self.way = self.door.split("_", 1)
        triples = draw_triples(seed) if self.way == "triples" else None
        world = triples[-1] if triples else draw_world(seed, is_plain=self.way in PLAIN)
        if self.way == "queries":
            only_users(world, {user for user, _ in world.grade})
            # What is relevant is ranked, although it was seen.
            world.seen -= {pair for pair, grade in world.grade.items() if world.is_grade(grade)}
        if self.way == "pairs_of_others":
            only_users(world, {user for user in world.users if world.candidates(user)})
            world.missing = "drop"
        self.convention = draw.choice(["standard", "standard", *CONVENTIONS])
        if self.way == "classes":
            self.convention = "standard"
        metrics = draw_metrics(draw, self.convention, self.by)
        self.action = draw.choice(["skip", "skip", "neg", "pos", "error"])
        self.options = {"empty_target_action": self.action, "convention": self.convention}
        if self.by == "score":
            self.options["ties"] = world.ties
        if draw.random() < 0.3 and self.door not in OF_RANKED[1:]:
            self.options["batch_size"] = draw.choice([1, 2, 5])
        self.per = "user"
        if self.door not in OF_RANKED:
            self.per = draw.choice(["user", "user", "edge", *(["person"] if world.person else [])])
            if self.per != "user" or self.way == "triples":
                self.options["per"] = self.per
            if draw.random() < 0.2:
                self.options["keep_items"] = draw.choice([True, 1, 7])
        deepest = max((k for _, k, _ in metrics if k), default=1)
        resolve_all = [
            (spelling(x), resolve(x, self.convention, deepest, self.by == "score")) for x in metrics
        ]
        self.resolved = dict(resolve_all)
        self.doors = Doors(world, metrics, folder, draw)
        self.doors.triples, self.doors.resolved = triples, [*self.resolved.values()]
        self.world = world
        if self.way in ("matrix", "parts", "topk", "classes") and self.by == "list":
            self.world = without_strangers(world)

    def reasons(self):
        """Why a call has to raise an error: what its message says."""
        world, metrics = self.world, [*self.resolved.values()]
        truth = {user: world.truth(user) for user in world.users}
        pooled = {"micro", "candidates", "relevant"}
        is_pooled = [
            args.get("average", "micro" if name.startswith("adjusted") else "macro") in pooled
            for name, _, args in metrics
        ]
        grades = [grade for own in truth.values() for grade in own.values()]
        is_missed = any(not world.is_candidate(user, x) for user, own in truth.items() for x in own)
        is_of_few = self.per == "edge" or world.person is not None
        is_of_few |= any(name in UNBOUNDED for name, _, _ in metrics)
        reasons = {
            "at least one": self.way == "queries" and not world.users,
            "truth|relevant|threshold|'weight' needs to be positive": self.way
            not in ("pairs_of_others", "topk", "classes")
            and not any(truth.values()),
            "needs every user to have ground truth": self.action == "error"
            and self.per != "edge"
            and not all(truth.values()),
            "needs? (to hold )?the rank": is_missed
            and any(needs_all_ranks(name) for name, _, _ in metrics),
            "max_grade": any(
                name == "err" and max(grades, default=0) > args.get("max_grade", 4)
                for name, _, args in metrics
            ),
            "'keep_items' needs per='user'": self.per == "edge" and "keep_items" in self.options,
            "per='person'|a margin needs|'average' needs to be 'macro'": any(is_pooled)
            and (self.per == "person" or self.way in ("margin", "classes")),
            "a margin needs": self.way == "margin" and is_of_few,
            "'ideal' can only be 'k' if 'k' is given": any(
                k is None and args.get("ideal") == "k" for _, k, args in metrics
            ),
            "lists of at least": self.by == "list" and self.per == "edge",
            "candidates": self.way in ("topk", "classes")
            and any(name == "fall_out" for name, _, _ in metrics),
        }
        return [name for name, is_so in reasons.items() if is_so]

    def run(self):
        """Evaluates the world, and compares every number; returns whether there was one."""
        reasons = self.reasons()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", message=f".*({EXPECTED})")
                found = getattr(self.doors, self.door)(**self.options)
        except (ValueError, TypeError, AttributeError) as error:
            if any(re.search(reason, str(error)) for reason in reasons):
                return False
            raise
        if found is None:
            return False
        assert {*reasons} <= {"lists of at least"}, f"no error, but {reasons}"
        self.compare(found)
        return True

    def compare(self, found):
        tolerance = 1e-6 if self.way == "classes" else 1e-9
        for name, metric in self.resolved.items():
            values = self.world.values(metric, self.by, self.per)
            wanted = self.world.mean(values, self.action, self.per)
            is_pooled = metric[0] == "median_rank" and self.per == "edge"
            if is_pooled:
                counted = [value for value in values if value is not None]
                wanted = statistics.median(counted) if counted else math.nan
                assert name not in found.per_user
            _close(name, found[name], wanted, tolerance)
            if isinstance(found, EvaluationResult) and not is_pooled:
                for one, other in zip(found.per_user[name].tolist(), values, strict=True):
                    _close(f"{name} of a row", one, math.nan if other is None else other, tolerance)
            has_ties = self.way in ("array", "pairs_of_others") and self.per == "user"
            # A further hit can lower these, of which all orders are tried elsewhere.
            has_ties &= metric[2].items().isdisjoint(NOT_MONOTONE)
            if has_ties and "ties" not in metric[2]:
                self.compare_ties(found, name, metric)

    def compare_ties(self, found, name, metric):
        """Compares how far the order of equal scores moves a mean."""
        worlds = [replace(self.world, ties=ties) for ties in ("best", "worst")]
        ends = sorted(world.mean(world.values(metric, "score"), self.action) for world in worlds)
        if not any(map(math.isnan, ends)):
            for one, other in zip(found.tie_range(name), ends, strict=True):
                _close(f"an end of {name}", one, other, 1e-9)


def _close(name, one, other, tolerance):
    is_close = math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 100)
    assert is_close or (math.isnan(one) and math.isnan(other)), f"{name}: {one} instead of {other}"


def check(seed, folder, door=None):
    """Checks the call of a seed, and returns whether it led to numbers.

    Raises:
        DoorError: If a number is wrong, or an error is raised that is not due, or not clear.
    """
    call = Call(seed, door, Path(folder))
    try:
        return call.run()
    except Exception as error:
        said = f"seed {seed}, {call.door}: {type(error).__name__}: {error}"
        raise DoorError(f"{said}\n{call.resolved}\n{call.options}\n{call.world}") from error


def main(first, last=None, door=None):
    with tempfile.TemporaryDirectory() as folder:
        return check_seeds(partial(check, folder=folder, door=door), first, last)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
