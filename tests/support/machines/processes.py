"""What one of several processes does in the tests of `test_distributed.py`, and what it sees.

python -m tests.support.machines.processes FOLDER 2 3  # two processes, and after them three
"""

import multiprocessing
import os
import signal
import sys
import warnings
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import get_args

import torch
import torch.distributed as dist
from torch_geometric.nn import LightGCN
from torch_geometric.nn.kge import DistMult, RotatE, TransE

from pyg_recmetrics import (
    Catalogue,
    Margin,
    PairScorer,
    RankingTask,
    distributed,
    evaluate,
    modules,
    rank,
)
from pyg_recmetrics.ranked_edges import fields_of
from pyg_recmetrics.ranked_edges.ties import Ties
from pyg_recmetrics.ranking import Algorithm

NUM_USERS, NUM_ITEMS = 37, 50


def small_task(users=None, seed=0, weight=None, **options):
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(NUM_USERS, NUM_ITEMS, generator=generator)
    truth = (draw > 0.9).nonzero().t().contiguous()
    return RankingTask(
        truth,
        weight=None if weight is None else torch.full_like(truth[0], weight, dtype=torch.float),
        seen=(draw < 0.2).nonzero().t().contiguous(),
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        users=users,
        **options,
    )


def embeddings():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(NUM_USERS, 8, generator=generator), torch.randn(
        NUM_ITEMS, 8, generator=generator
    )


class Model(torch.nn.Module):
    """Recommends like the embeddings; what is wrong with it happens in one process."""

    def __init__(self, error=None, process=None):
        super().__init__()
        self.error, self.process = error, process
        self.register_buffer("version", torch.zeros(1))

    def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
        if self.error is not None and dist.get_rank() == self.process:
            raise self.error
        user, item = embeddings()
        scores = user[src_index] @ item.t()
        return dst_index[scores.topk(k, dim=1).indices]


class ShortModel(Model):
    """Returns fewer items than it is asked for, but only in the second process."""

    def recommend(self, *args, **options):
        items = super().recommend(*args, **options)
        return items[:, :2] if dist.get_rank() == 1 else items


class OwnScores(DistMult):
    """A knowledge graph model that is asked for the scores of triples."""

    def forward(self, head_index, rel_type, tail_index):
        return super().forward(head_index, rel_type, tail_index).round(decimals=3)


EDGE_INDEX = torch.tensor([[0, NUM_USERS], [NUM_USERS, 0]])


def own_candidates():
    """Candidates of each user, without some of the truth."""
    draw = torch.rand(NUM_USERS, NUM_ITEMS, generator=torch.Generator().manual_seed(6))
    return (draw < 0.6).nonzero().t().contiguous()


def results():
    """All that must be the same whatever the number of processes, by name."""
    user, item = embeddings()
    task = small_task()
    scores = (user @ item.t()).round()  # many are equal
    scores[::3] = 0
    is_masked = torch.rand(scores.shape, generator=torch.Generator().manual_seed(2)) < 0.3
    is_masked[tuple(task.truth)] = False
    masked = scores.masked_fill(is_masked, -torch.inf)
    ways = {
        "embeddings": rank((user, item), task, k=5, keep_items=True),
        **{
            way: rank((user, item), task, k=5, algorithm=way)
            for way in get_args(Algorithm)
            if way != "recommend"
        },
        "recommend": rank(Model(), task, k=5, algorithm="recommend", edge_index=EDGE_INDEX),
        "full": rank((user, item), task, full=True),
        **{ties: rank(scores, task, k=5, ties=ties) for ties in get_args(Ties) if ties != "index"},
        "scores": rank(scores, task, k=7, batch_size=2),
        "masked": rank(masked, task, k=7, batch_size=2, keep_items=True),
        "pairs": rank(PairScorer(lambda user, item: masked[user, item]), task, full=True),
        "lists": rank(scores.argsort(descending=True)[:, :-1], task),
        "model": rank(Model(), task, k=5, edge_index=EDGE_INDEX, batch_size=4),
        **{
            kind.__name__: rank(kge_model(kind), triples(), full=True)
            for kind in (RotatE, TransE, OwnScores)
        },
        "own candidates": rank((user, item), small_task(candidates=own_candidates()), k=5),
        "one user": rank((user, item), small_task(users=torch.tensor([5])), k=5, keep_items=True),
        "two users": rank((user, item), small_task(users=torch.tensor([5, 8])), k=3),
    }
    seen = {
        name: tuple(value for field, value in fields_of(ranked).items() if field != "catalogue")
        for name, ranked in ways.items()
    }
    for convention in ("standard", "recometrics"):
        result = evaluate(scores, task, ["ndcg@5", "map@5"], convention=convention)
        seen[convention] = (result.to_dict(), dict(result.per_user), str(result))
    seen |= samples()
    of_lists = ["coverage@5", "gini@5", "entropy@5", "personalization@5", "novelty@5"]
    catalogue = evaluate((user, item), task, of_lists)
    seen["catalogue"] = (catalogue.to_dict(), dict(catalogue.per_user), str(catalogue))
    return seen


def samples():
    """What is known of means to a margin, by all forms of recommenders that differ in batches."""
    generator = torch.Generator().manual_seed(3)
    draw = torch.rand(2500, NUM_ITEMS, generator=generator)
    task = RankingTask((draw > 0.93).nonzero().t(), num_users=2500, num_items=NUM_ITEMS)
    user, item = torch.randn(2500, 8, generator=generator), embeddings()[1]
    scores = user @ item.t()
    masked = scores.masked_fill((draw > 0.1) & (draw < 0.2), -torch.inf)
    options = {"metrics": ["ndcg@5", "recall@5"], "margin": 0.05}
    results = {
        "margin": evaluate((user, item), task, **options),
        "margin with lists": evaluate(masked, task, keep_items=3, **options),
        "margin of some": evaluate(
            lambda users: scores[users], task, **options | {"margin": Margin(0.05, max_users=700)}
        ),
    }
    return {
        name: (str(result), repr(result.sampling), dict(result.per_user), result.ranked.rank)
        for name, result in results.items()
    }


def outcome(function):
    """The error that is raised, or else what is returned."""
    try:
        return function()
    except Silent:
        return "Silent: "
    except BaseException as error:
        notes = getattr(error, "__notes__", [])
        message = str(error).encode(errors="backslashreplace").decode()
        return " ".join([f"{type(error).__name__}: {message}", *notes])


class Silent(Exception):  # noqa: N818 (it is no error of anything)
    """An error that cannot say what it is."""

    def __str__(self):
        raise RuntimeError("it has no words")


def failing(error, process):
    """Scores that cannot be computed in the second process."""

    def scores(users):
        if process == 1:
            raise error
        return torch.zeros(len(users), NUM_ITEMS)

    return scores


def triples():
    generator = torch.Generator().manual_seed(3)
    draw = torch.randint(0, NUM_ITEMS, (3, 200), generator=generator) % torch.tensor(
        [[50], [4], [50]]
    )
    return RankingTask.from_triples(
        draw[:, :50], draw[:, 50:], num_entities=NUM_ITEMS, num_relations=4
    )


def kge_model(kind, process=0):
    """A model of triples, of which one relation is another in one process."""
    torch.manual_seed(4)
    model = kind(NUM_ITEMS, 4, 8)
    with torch.no_grad():
        model.rel_emb.weight[3, 7] += process
    return model


class Factors:
    """A recommender without a state that anybody knows."""

    def __init__(self, first):
        self.first = first

    def recommend(self, users, k):
        return (torch.arange(k) + self.first).expand(len(users), -1)


def differences(me):
    """What becomes of recommenders, and all else, that differ by a little in one process."""
    user, item = embeddings()
    changed = item.clone()
    changed[3, 4] = torch.nextafter(changed[3, 4], torch.tensor(9.0)) if me else changed[3, 4]
    scores = torch.rand(NUM_USERS, NUM_ITEMS, generator=torch.Generator().manual_seed(me))
    gcn, same_gcn = (LightGCN(NUM_USERS + NUM_ITEMS, 4, num_layers=1) for _ in range(2))
    torch.nn.init.constant_(gcn.embedding.weight, 1.0 + me)
    torch.nn.init.constant_(same_gcn.embedding.weight, 1.0)
    model = Model()
    model.version += me
    edges = EDGE_INDEX[:, :1] if me else EDGE_INDEX
    items = Catalogue(NUM_ITEMS, item_category=torch.arange(NUM_ITEMS) % (2 + me))

    def ranking(given=(user, item), edge_index=EDGE_INDEX, k=5, keep_items=False, **task):
        options = {"edge_index": edge_index, "k": k, "keep_items": keep_items}
        return partial(rank, given, small_task(**task), **options)

    calls = {
        "embeddings": ranking((user, changed)),
        "biases": ranking((user, item, changed[:, 4].clone())),
        "scores": ranking(scores),
        "popularity": ranking(scores[0]),
        "lists": ranking(scores.argsort()[:, :30]),
        "function": ranking(lambda users: scores[users]),
        "pairs": ranking(PairScorer(lambda user, item: scores[user, item])),
        "weights of a model": ranking(model),
        "weights of a LightGCN": ranking(gcn),
        "recommend": ranking(Factors(me)),
        "kind": ranking(scores if me else (user, item)),
        "edges of a model": ranking(Model(), edges),
        "edges of a LightGCN": ranking(same_gcn, edges),
        "shape": ranking(torch.zeros(NUM_USERS, NUM_ITEMS + me)),
        "odd letters": ranking(failing(ValueError("\ud800"), me)),
        "without words": ranking(failing(Silent(), me)),
        "argument": ranking(k=5 - 5 * (me == 1)),
        "depth": ranking(k=5 + me, keep_items=True),
        "kept items": ranking(keep_items=2 + me),
        "task": ranking(seed=me),
        "weight": ranking(weight=1.0 + me),
        "candidates": ranking(candidates=torch.arange(9) + me),
        "colliding candidates": ranking(candidates=torch.tensor([1, 10, 49] if me else [6, 5, 49])),
    }
    options = {
        "convention": {"convention": "rectools" if me else "standard"},
        "metric": {"metrics": f"map@{5 + me}"},
        "level": {"margin": Margin(0.1, level=0.9 + 0.04 * me)},
        "margin": {"margin": 0.1 + 0.1 * me},
        "ties": {"ties": "worst" if me else "best"},
        "seed": {"ties": "random", "seed": me},
        "category": {"metrics": "diversity@3", "catalogue": items},
    }
    for name, given in options.items():
        calls[name] = partial(evaluate, (user, item), small_task(), **{"metrics": "map@5"} | given)
    for kind in (RotatE, TransE, OwnScores):
        calls[kind.__name__] = partial(rank, kge_model(kind, me), triples())
    return {name: outcome(call) for name, call in calls.items()}


def failures():
    def ranking_with(error, process):
        model = Model(error, process).train()
        seen = outcome(lambda: rank(model, small_task(), edge_index=EDGE_INDEX, batch_size=4))
        return seen, model.training

    def warnings_of(function):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            function()
        return [str(warning.message) for warning in warned]

    def short_lists_and_lost_truth():
        rank(torch.zeros(NUM_USERS, 1, dtype=torch.long), small_task())
        truth = torch.tensor([[0, 0], [0, 1]])
        RankingTask(truth, seen=truth[:, :1], num_users=1, num_items=2)

    short = partial(rank, ShortModel(), small_task(), k=5, edge_index=EDGE_INDEX, batch_size=4)
    return {
        "one": ranking_with(ValueError("no such item"), 1),
        "first": ranking_with(IndexError("no such user"), 0),
        "interrupt": ranking_with(KeyboardInterrupt(), 1),
        **differences(dist.get_rank()),
        "warned": warnings_of(short_lists_and_lost_truth),
        "left out": warnings_of(short),
        "afterwards": rank(embeddings(), small_task(), k=5).rank,
    }


def by_itself():
    if dist.get_rank() == 1:
        with distributed.alone():
            return rank(embeddings(), small_task(), k=5).rank
    return None


def synchronised():
    """What metric classes say of all processes together."""
    me, first_items = dist.get_rank(), torch.zeros(2, 1, dtype=torch.long)
    recall = modules.Recall(k=1)  # which the last process has not updated
    if me < dist.get_world_size() - 1:
        recall.update(torch.arange(me + 1).unsqueeze(1), first_items)
    classes = (modules.Coverage, modules.Gini, modules.Entropy, modules.Personalization)
    of_lists = [cls(k=2, catalogue=Catalogue(NUM_ITEMS)) for cls in classes]
    for metric in of_lists:
        metric.update(lists_of(me), first_items)
    # One keeps few pairs, and one keeps all.
    curves = [modules.PrecisionRecallCurve(max_k=3), modules.PrecisionRecallCurve()]
    for metric in curves:
        metric.update(*pairs_of(me))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was called before the ``update``")
        return {
            "synchronised": (recall.compute(), recall.get("count")),
            "synchronised over all": [metric.compute() for metric in of_lists],
            "synchronised curves": [metric.compute() for metric in curves],
        }


def pairs_of(process):
    """Scored pairs of two queries, of which the second has more pairs in later processes."""
    target = torch.arange(4 + process) % 2
    return torch.arange(4.0 + process), target, torch.arange(4 + process).clamp(min=1, max=2)


def lists_of(process):
    return torch.arange(6).view(3, 2) * (process + 1)


def killed():
    """The last process is killed while it ranks."""
    user, item = embeddings()

    def scores(users):
        if dist.get_rank() == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return user[users] @ item.t()

    return outcome(lambda: rank(scores, small_task()))


def work(process, num_processes, folder):
    """What one process does, and writes into the folder."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=process,
        world_size=num_processes,
        timeout=timedelta(seconds=30),
    )
    seen = {"results": results(), "failures": failures(), "alone": by_itself()}
    if modules.NDCG.__mro__[-2] is not torch.nn.Module:
        seen |= synchronised()
    torch.save(seen, folder / f"{process}.pt")
    dist.barrier()
    torch.save(killed(), folder / f"{process}.killed.pt")
    # As the interpreter ends, gloo's threads may abort a process whose peer was killed.
    os._exit(0)


def main():
    """Forks processes, which need not import torch again, and prints how those of a group end."""
    torch.set_num_threads(1)
    fork = multiprocessing.get_context("fork")
    for size in map(int, sys.argv[2:]):
        folder = Path(sys.argv[1]) / str(size)
        folder.mkdir()
        group = [fork.Process(target=work, args=(process, size, folder)) for process in range(size)]
        for process in group:
            process.start()
        for process in group:
            process.join()
        print(*(process.exitcode for process in group))


if __name__ == "__main__":
    main()
