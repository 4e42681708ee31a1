"""What processes that hold a share of a task each find out, and where it differs from the whole.

python -m tests.support.machines.shares FOLDER 1 2 3 4  # groups of one to four processes
"""

import math
import multiprocessing
import os
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from pyg_recmetrics import RankingTask, compare, conventions, evaluate, metrics, race, rank

#: How many metrics each case has.
NUM_METRICS = 6

#: How many random cases each group of processes evaluates.
NUM_CASES = 4

OF_RANKS = ("ndcg@5", "recall@5", "precision@3", "r_precision", "mrr@5", "hit_rate@1", "err@5")
OF_SUMS = ("recall(average=micro)@5", "precision(average=micro)@3")
OF_LISTS = ("coverage@5", "gini@5", "entropy@5", "personalization@5")
OF_SEEN = ("novelty@5", "popularity@5", "tail_share@5", "serendipity@5", "calibration@5")
OF_PROPENSITY = (
    "recall(propensity=popularity)@5",
    "recall(average=micro,propensity=popularity)@5",
)
OF_ALL_RANKS = (
    "roc_auc",
    "roc_auc(weight=candidates)",
    "roc_auc(weight=relevant)",
    "mean_rank",
    "median_rank",
    "adjusted_mean_rank_index(average=micro)",
    "pr_auc",
)


class Case:
    """A random evaluation, of all users or of those of one process.

    Args:
        seed (int): The seed, which says all.
    """

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.num_users, self.num_items = self.integer(2, 60), self.integer(6, 30)
        shape = (self.num_users, self.num_items)
        draw = torch.rand(shape, generator=self.generator)
        self.truth = draw > self.choose(0.95, 0.8)
        self.truth[0, 0] = True
        self.seen = draw < 0.2 if self.integer(0, 3) else None
        self.weight = (
            torch.rand(shape, generator=self.generator) * 3 if self.integer(0, 2) == 2 else None
        )
        self.candidates = self.choose(
            None,
            None,
            torch.randperm(self.num_items, generator=self.generator)[: self.num_items // 2],
            torch.rand(shape, generator=self.generator) < 0.6,
        )
        self.users = torch.rand(self.num_users, generator=self.generator) < self.choose(2, 0.7)
        self.users[0] = True
        self.ids = self.choose(
            [10 * user - 50 for user in range(self.num_users)],
            [f"user {user:03d}" for user in range(self.num_users)],
        )
        self.options = {
            "missing": self.choose(None, "count", "drop"),
            "exclude_seen": self.choose(True, True, False),
            "item_ids": self.choose(None, [f"item {item}" for item in range(self.num_items)]),
        }
        self.kind = self.choose("embeddings", "biases", "scores", "masked", "popularity", "lists")
        dim = 4
        self.user, self.item, self.bias, self.scores = (
            self.numbers(self.num_users, dim),
            self.numbers(self.num_items, dim),
            self.numbers(self.num_items),
            self.numbers(*shape),
        )
        self.per = self.choose("user", "user", "user", "edge")
        self.how = {
            "per": self.per,
            "convention": self.choose("standard", "standard", "recometrics", "rectools"),
            "empty_target_action": self.choose(None, "neg", "pos"),
            "ties": self.choose(None, "mean", "worst", "best"),
            "batch_size": self.choose(None, 3),
            "keep_items": self.choose(False, True) if self.per == "user" else False,
            "average_over": self.choose("user", "person") if self.per == "edge" else "user",
        }
        if self.kind == "lists":
            self.how["ties"] = None
        elif self.how["convention"] == "recometrics":
            self.how["ties"] = "mean"  # whose own are random
        self.metrics = list(OF_RANKS)
        if self.how["average_over"] == "user":
            self.metrics += OF_SUMS
        if self.weight is not None and self.how["average_over"] == "user":
            self.metrics.append("recall(weighted=True,average=micro)@5")
        if self.per == "user":
            self.metrics += OF_LISTS
        if self.seen is not None and self.per == "user":
            self.metrics += OF_SEEN
            self.how["item_category"] = torch.arange(self.num_items) % 3
        if self.seen is not None:
            self.metrics += OF_PROPENSITY[: 1 if self.how["average_over"] == "person" else 2]
        if self.kind in ("embeddings", "biases", "scores") and self.candidates is None:
            self.metrics += OF_ALL_RANKS if self.how["average_over"] == "user" else ("roc_auc",)
        known = [name for name in self.metrics if self.is_known(name)]
        order = torch.randperm(len(known), generator=self.generator)[:NUM_METRICS]
        self.metrics = [known[place] for place in order]

    def is_known(self, name):
        try:
            conventions.get(self.how["convention"]).resolve_all([metrics.parse(name)])
        except ValueError:
            return False
        return True

    def integer(self, low, high):
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def choose(self, *values):
        return values[self.integer(0, len(values) - 1)]

    def numbers(self, *shape):
        if self.integer(0, 1):
            return torch.randn(shape, generator=self.generator)
        return torch.randint(-1, 2, shape, generator=self.generator).float()  # many ties

    def owners(self, size, seed):
        """The process of each user; some have few, and some have none."""
        self.generator = torch.Generator().manual_seed(seed)
        share = torch.rand(size, generator=self.generator).pow(2)
        share[0 if size == 1 else self.integer(0, size - 1)] += 0.2
        if size > 2:
            share[self.integer(0, size - 1)] = 0.0
        if float(share.sum()) == 0:
            share[0] = 1.0
        return torch.multinomial(share, self.num_users, replacement=True, generator=self.generator)

    def task(self, own=None):
        """The task of all users, or of some."""
        is_share = own is not None
        own = torch.arange(self.num_users) if own is None else own
        truth = self.truth[own].nonzero().t()
        candidates = self.candidates
        if candidates is not None and candidates.dim() > 1:
            candidates = candidates[own].nonzero().t()
        return RankingTask(
            truth,
            num_users=len(own),
            num_items=self.num_items,
            seen=None if self.seen is None else self.seen[own].nonzero().t(),
            weight=None if self.weight is None else self.weight[own][tuple(truth)],
            candidates=candidates,
            users=self.users[own].nonzero().squeeze(1),
            user_ids=[self.ids[user] for user in own.tolist()],
            is_share=is_share,
            **self.options,
        )

    def recommender(self, own=None):
        own = torch.arange(self.num_users) if own is None else own
        scores = self.scores[own]
        if self.kind == "masked":
            draw = torch.rand(self.scores.shape, generator=torch.Generator().manual_seed(1))
            scores = scores.masked_fill((draw < 0.3)[own], -torch.inf)
            scores[:, 0] = 0.0
            return lambda users: scores[users]
        return {
            "embeddings": (self.user[own], self.item),
            "biases": (self.user[own], self.item, self.bias),
            "scores": scores,
            "popularity": self.bias,
            "lists": scores.argsort(dim=1, descending=True)[:, :6],
        }[self.kind]

    def evaluate(self, own=None, **options):
        how = self.how | options
        return evaluate(self.recommender(own), self.task(own), self.metrics, **how)

    def group(self, own=None):
        """A label for each user, or for each person or edge."""
        own = torch.arange(self.num_users) if own is None else own
        return own % 3


def outcome(function):
    """What a function returns, or what it raises."""
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def seen_of(result, case, own=None):
    """What a result says of all users, by name."""
    seen = {
        "means": dict(result),
        "table": str(result),
        "recipe": result.recipe(),
        "counts": result.user_counts,
        "num_tied": result.num_tied,
    }
    for name in result.per_user:
        seen[f"interval of {name}"] = result.confidence_interval(name, 0.9)
    name = next(iter(result.per_user), "mrr@5")
    seen["ties"] = result.tie_range(name)
    seen["interval of another"] = outcome(lambda: result.confidence_interval("f1@2"))
    if case.per == "user":
        groups = result.by(case.group(own))
        seen["groups"] = (str(groups), str(groups.gaps(0)) if 0 in groups else "")
        names = [f"odd {user}" if user % 2 else None for user in case.group(own).tolist()]
        seen["named groups"] = str(result.by(names))
        seen["degrees"] = str(result.by_degree(bins=4))
    if result.average_over == "user":
        seen["popularity"] = outcome(lambda: str(result.recall_by_popularity(k=3, bins=3)))
        items = torch.arange(case.num_items) % 2
        seen["item groups"] = outcome(lambda: str(result.by_item_group(items, k=3)))
    return seen


def differing(wanted, found, path=""):
    """Yields where two values differ: in any bit, unless sums of roots are rounded."""
    if isinstance(wanted, dict):
        for name in {**wanted, **found}:
            yield from differing(wanted.get(name), found.get(name), f"{path}/{name}")
    elif isinstance(wanted, tuple | list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differing(one, other, f"{path}/{number}")
    elif isinstance(wanted, torch.Tensor):
        if not isinstance(found, torch.Tensor) or wanted.dtype != found.dtype:
            yield f"{path}: {wanted!r} != {found!r}"
        elif not torch.equal(wanted.nan_to_num(-7), found.nan_to_num(-7)):
            yield f"{path}: {wanted} != {found}"
    elif isinstance(wanted, float) and "personalization" in path:
        if not math.isclose(wanted, found, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{path}: {wanted} != {found}"
    elif wanted != found and not (wanted != wanted and found != found):
        yield f"{path}: {wanted!r} != {found!r}"


def check(case, whole, wanted, own):
    """What of a case differs in this process from what a single process finds."""
    try:
        result = case.evaluate(own)
    except ValueError as error:
        return [] if isinstance(whole, str) else [f"raised {error}"]
    if isinstance(whole, str):
        return [f"did not raise {whole}"]
    found = list(differing(wanted, seen_of(result, case, own)))
    if case.per == "user":
        for name, value in result.per_user.items():
            found += differing(whole.per_user[name][own], value, f"per user/{name}")
    gathered = result.gather()
    found += differing(whole._to_fields(), gathered._to_fields(), "gathered")
    found += differing(dict(whole), dict(gathered), "means gathered")
    return found


def cases():
    """All cases with what a single process finds, by seed."""
    found = {}
    for seed in range(NUM_CASES):
        case = Case(seed)
        whole = outcome(case.evaluate)
        found[seed] = (case, whole, whole if isinstance(whole, str) else seen_of(whole, case))
    return found


def refusals(me, size):
    """What becomes of what a share is not enough for, and of shares that are not of one task."""
    truth = torch.tensor([[0, 0, 1], [1, 2, 0]])

    def task(**options):
        ids = [10 * me, 10 * me + 1]
        fields = {"num_users": 2, "num_items": 4, "user_ids": ids, "is_share": True, **options}
        return RankingTask(fields.pop("truth", truth), **fields)

    def ranked_with(item_shift=0.0, **options):
        items = torch.arange(4.0).view(4, 1) + item_shift
        return outcome(lambda: evaluate((torch.ones(2, 1), items), task(**options), "recall@2"))

    scores = torch.arange(4.0)
    result = evaluate(scores, task(), ["recall@2"], keep_items=True)
    last = size - 1
    none = torch.empty(2, 0, dtype=torch.long)
    return {
        "same integer": ranked_with(user_ids=[10 * min(me, last - 1), 100 + me]),
        "same name": ranked_with(user_ids=["ann" if me in (0, last) else f"b{me}", f"c{me}"]),
        "same number": ranked_with(user_ids=[7 if me in (0, last) else f"b{me}", f"c{me}"]),
        "same query": ranked_with(user_ids=None, query=torch.tensor([[0, 1], [2, me // 2]])),
        "number of items": ranked_with(num_items=4 + (me == last)),
        "candidates": ranked_with(candidates=torch.tensor([0, 1, 2 + (me == last)])),
        "exclude_seen": ranked_with(exclude_seen=me > 0),
        "not a share": ranked_with(is_share=me > 0),
        "weights of one": ranked_with(weight=torch.ones(3) if me else None),
        "other items": ranked_with(item_shift=0.5 * (me == last)),
        "nobody has truth": ranked_with(truth=none),
        "one argument": outcome(lambda: rank(scores, task(), k=2 - 2 * (me == last))),
        "margin": outcome(lambda: evaluate(scores, task(), "mrr@2", margin=0.1)),
        "race": outcome(
            lambda: race({"a": scores, "b": -scores}, task(), "mrr@2", equivalence=0.1)
        ),
        "random ties": outcome(lambda: evaluate(scores, task(), "mrr@2", ties="random")),
        "person": outcome(lambda: task(person=[0, 0])),
        "no ids": outcome(lambda: task(user_ids=None)),
        "empty in another": outcome(
            lambda: evaluate(
                scores,
                task(truth=none if me == last else truth),
                "mrr@2",
                empty_target_action="error",
            )
        ),
        "bootstrap": outcome(lambda: result.confidence_interval("recall@2", method="bootstrap")),
        "save": outcome(lambda: result.save("nowhere.npz")),
        "per_item": outcome(lambda: result.per_item("recall@2")),
        "to_trec": outcome(lambda: result.to_trec("nowhere", "nowhere")),
        "compare": outcome(lambda: compare({"a": result, "b": result})),
        "to_ranx": outcome(result.to_ranx),
        "afterwards": result["recall@2"] == evaluate(scores, task(), "recall@2")["recall@2"],
    }


def work(me, size, folder, known):
    """What one process does, and writes into the folder."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=me,
        world_size=size,
        timeout=timedelta(seconds=60),
    )
    seen = {"differing": {}, "sizes": []}
    for seed, (case, whole, wanted) in known.items():
        own = (case.owners(size, seed) == me).nonzero().squeeze(1)
        seen["sizes"].append(len(own))
        seen["differing"][seed] = check(case, whole, wanted, own)
        for _ in range(0 if isinstance(whole, str) else 2):  # the second is finished at once
            resumed = case.evaluate(own, resume=folder / f"kept {seed}")
            seen["differing"][seed] += differing(dict(whole), dict(resumed), "resumed")
    seen["refusals"] = refusals(me, size) if size in (2, 3) else {}
    torch.save(seen, folder / f"{me}.pt")
    dist.barrier()
    os._exit(0)


def main():
    """Forks processes, which share what a single process has found out."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    known = cases()
    fork = multiprocessing.get_context("fork")
    for size in map(int, sys.argv[2:]):
        folder = Path(sys.argv[1]) / str(size)
        folder.mkdir()
        group = [fork.Process(target=work, args=(me, size, folder, known)) for me in range(size)]
        for process in group:
            process.start()
        for process in group:
            process.join()
        print(*(process.exitcode for process in group))


if __name__ == "__main__":
    main()
