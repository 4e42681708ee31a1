"""Compares random rankings with the oracle. The seed of a case decides all of it.

python -m tests.support.tools.fuzz 17          # checks a case, and shows it if it fails
python -m tests.support.tools.fuzz 0 20000     # checks all cases from the one to the other
python -m tests.support.tools.fuzz 0 900 cuda  # checks them on another device
"""

import contextlib
import math
import sys
import time
import traceback
import warnings
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import torch

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.scores import BoundedFactors, inner_product_matrix
from pyg_recmetrics.ranked_edges import evaluated_mask, has_constant_scores
from pyg_recmetrics.ranking.recommenders import EmbeddingRecommender
from tests.support.machines.emulated_device import NAME as EMULATED
from tests.support.machines.emulated_device import emulated_device
from tests.support.references import oracle
from tests.support.tools.fuzz_cases import draw_case
from tests.support.tools.fuzz_doors import check_doors
from tests.support.tools.fuzz_files import check_files

#: The largest weight with whose exponential gain `2**w - 1` a metric is compared. Of larger ones,
#: the DCG is infinite.
LARGEST_WEIGHT = {"dcg": 1000, "ndcg": 10**6}

#: Warnings that random cases may well give.
EXPECTED_WARNINGS = (
    ".*taken out of the truth",
    ".*gives too few items",
    ".*holds every item once",
    ".*(no item below|scores that fall|that are ranks or items)",
    ".*recommends an item more than once",
    ".*depending on the order of ties",
    ".*have a rating of zero or less and are ignored; all others count as",
    ".*are negative and count as not relevant",
    ".*ratings count as relevant, from",
    ".*have a score of '-inf'",
)


class FuzzError(AssertionError):
    """A case in which the package differs from the oracle. The message starts with its seed."""


def check_case(case, draw):
    """Computes a ranking, and compares all that it says with the oracle."""
    before = [value.clone() for value in case.inputs]
    state = torch.get_rng_state()
    with contextlib.ExitStack() as stack:
        for owner, name, value in case.patches:
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        ranked = _compute(case)
        if ranked is not None:
            check_scores(case)
            users = check_ranked(case, ranked)
            check_metrics(case, ranked, users, draw)
            if case.recommender is not None and case.ties != "random":
                check_doors(case, ranked)
    for value, old in zip(case.inputs, before, strict=True):
        torch.testing.assert_close(value, old, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(state, torch.get_rng_state()), "the global random state was touched"


def _compute(case):
    """Returns the ranking, or `None` if an error is due, and comes."""
    if case.error is None:
        return case.compute()
    _check_error(case.compute, case.error)
    return None


def _check_error(function, start):
    """Checks that a function raises an error whose message starts as it should."""
    try:
        function()
    except ValueError as error:
        message = str(error)
    else:
        message = "no error"
    assert message.startswith(start), f"{message!r} instead of {start!r}"


def check_scores(case):
    """Compares the scores of embeddings bit by bit."""
    if isinstance(case.recommender, tuple | list):
        user, item, *bias = case.recommender
        bias = bias[0] if bias else None
        recommender = EmbeddingRecommender(user, item, bias, user.device)
        users = recommender.users(torch.arange(case.task.num_users))
        every = BoundedFactors(recommender.items.double(slice(None)))
        found = inner_product_matrix(users, every, Scratch(users.device)).tolist()
        for user, wanted in enumerate(case.scores):
            _same(f"scores of user {user}", found[user], wanted)


def check_ranked(case, ranked):
    """Compares a ranking with the oracle, and returns what the oracle says of each user."""
    task = case.task
    places = case.places()
    if case.ties == "random":
        places = check_random_ranks(case, ranked, places)
    edges = [(user, place) for user, own in enumerate(places) for place in own]
    _same("edge_index", _pairs(ranked), [(user, place.item) for user, place in edges])
    _same("rank", _numbers(ranked.rank), [place.rank for _, place in edges])
    is_half = case.ties == "mean"
    assert ranked.rank.dtype == (torch.double if is_half else torch.long), ranked.rank.dtype
    _same("ties", ranked.ties, case.ties)
    _same("degree", ranked.degree.tolist(), [len(own) for own in places])
    if task.weights is None:
        assert ranked.weight is None, "weights out of nowhere"
    else:
        _same("weight", ranked.weight.tolist(), [place.weight for _, place in edges])
    for name in ("num_above", "num_tied"):
        values = getattr(ranked, name)
        if case.scores is None:
            assert values is None, name
        else:
            _same(name, _numbers(values), [getattr(place, name) for _, place in edges])
    check_users(case, ranked)
    return _ranked_users(case, places)


def _ranked_users(case, places):
    """What metrics know of the users; from lists alone, they do not know the candidates."""
    lists = case.lists
    if lists is not None:
        lists = oracle.kept_items(case.task, lists, max(map(len, lists)))
    return [
        oracle.RankedUser(
            ranks=[place.rank for place in own],
            weights=[place.weight for place in own],
            num_candidates=len(case.candidates[user]) if case.knows_candidates else None,
            items=None if lists is None else lists[user],
            num_masked=sum(_is_no_candidate(case.task, user, place) for place in own),
        )
        for user, own in enumerate(places)
    ]


def _is_no_candidate(task, user, place):
    """Whether a relevant item was missed before, or is kept out by its score."""
    return place.num_tied == -1 or place.item not in task.candidates[user]


def check_users(case, ranked):
    """Compares what a ranking knows of users, and the lists of items."""
    task = case.task
    is_evaluated = [user in set(task.evaluated) for user in range(task.num_users)]
    _same("is_evaluated", evaluated_mask(ranked).tolist(), is_evaluated)
    assert (ranked.users is None) == all(is_evaluated), "users"
    if case.knows_candidates:
        num_candidates = [len(items) for items in case.candidates]
        _same("num_candidates", ranked.num_candidates.tolist(), num_candidates)
        _same("depth", ranked.depth, None if case.is_complete else case.depth)
    if case.scores is not None:
        is_constant = [
            any(
                case.scores[user][item] > -math.inf
                for item in task.relevant[user]
                if item in task.candidates[user]
            )
            and len({case.scores[user][item] for item in items}) == 1
            for user, items in enumerate(case.candidates)
        ]
        _same("has_constant_scores", has_constant_scores(ranked).tolist(), is_constant)
    if case.width is None:
        assert ranked.lists is None, "lists out of nowhere"
    elif case.scores is not None:
        _same(
            "items",
            ranked.lists.to_matrix().tolist(),
            oracle.best_items(task, case.scores, case.width),
        )
    else:
        _same(
            "items",
            ranked.lists.to_matrix().tolist(),
            oracle.kept_items(task, case.lists, case.width),
        )


def check_random_ranks(case, ranked, places):
    """Checks that random ranks are legal and depend on the seed alone, and takes them over."""
    found = dict(zip(_pairs(ranked), _numbers(ranked.rank), strict=True))
    for user, own in enumerate(places):
        ranks = {place.item: found.get((user, place.item)) for place in own}
        assert None not in ranks.values(), f"user {user}: an edge is missing"
        legal = oracle.is_legal(own, ranks, case.depth_of(user))
        assert legal, f"user {user}: {ranks} is no order of {own}"
    if case.recommender is not None:
        again = case.compute(algorithm="dense", batch_size=3)
        assert torch.equal(again.rank, ranked.rank), "random ranks depend on more than the seed"
    return [
        sorted(
            (replace(place, rank=found[user, place.item]) for place in own),
            key=lambda place: (place.rank, place.item),
        )
        for user, own in enumerate(places)
    ]


def _pairs(ranked):
    return list(zip(*ranked.edge_label_index.tolist(), strict=True))


def _numbers(values):
    return [number if number < 2**62 else oracle.NOT_RETRIEVED for number in values.tolist()]


def _same(name, got, wanted):
    if got == wanted:
        return
    if isinstance(wanted, list) and len(got) == len(wanted):
        wrong = [
            f"[{at}] {one} instead of {other}"
            for at, (one, other) in enumerate(zip(got, wanted, strict=True))
            if one != other
        ]
        raise AssertionError(f"{name}: {len(wrong)} of {len(got)} differ: {'; '.join(wrong[:6])}")
    raise AssertionError(f"{name}: {got} instead of {wanted}")


#: The arguments of each metric, and whether it has a cut-off.
METRICS = {
    "precision": ("needed", {"normalizer": ["k", "length", "min"], "average": ["macro", "micro"]}),
    "recall": (
        "needed",
        {"normalizer": ["R", "min"], "average": ["macro", "micro"], "weighted": [True, False]},
    ),
    "truncated_precision": ("needed", {}),
    "f1": ("needed", {}),
    "r_precision": ("none", {"users": ["all", "hit"]}),
    "hit_rate": ("needed", {}),
    "rbp": ("allowed", {"p": [0.5, 0.95, 0.99]}),
    "err": ("allowed", {"max_grade": [4, 5, 70]}),
    "mrr": ("allowed", {"hits": ["first", "all"]}),
    "map": ("allowed", {"normalizer": ["min", "R", "k", "hits"]}),
    "dcg": (
        "allowed",
        {"gain": ["linear", "exponential", "binary"], "discount": ["log2", "lenskit"]},
    ),
    "ndcg": (
        "allowed",
        {
            "gain": ["linear", "exponential", "binary"],
            "discount": ["log2", "lenskit"],
            "ideal": ["relevant", "k", "retrieved"],
        },
    ),
}
METRICS_OF_CANDIDATES = {"fall_out": ("needed", {})}
METRICS_OF_ALL_RANKS = {
    "roc_auc": (
        "none",
        {"ties": ["ranked", "half"], "average": ["macro", "candidates", "relevant"]},
    ),
    "partial_auc": ("needed", {}),
    "pr_auc": ("none", {}),
    "mean_rank": ("none", {}),
    "median_rank": ("none", {}),
    "adjusted_mean_rank": ("none", {"average": ["macro", "micro"]}),
    "adjusted_mean_rank_index": ("none", {"average": ["macro", "micro"]}),
}


def draw_metric(draw, case, users):
    """The name of a metric, its cut-off and its arguments."""
    choices = dict(METRICS)
    if case.knows_candidates:
        choices |= METRICS_OF_CANDIDATES
    has_all_ranks = all(rank != oracle.NOT_RETRIEVED for user in users for rank in user.ranks)
    has_all_ranks &= all(-1 not in (user.items or [])[: user.list_length(10**9)] for user in users)
    if case.knows_candidates and case.is_complete and has_all_ranks:
        choices |= METRICS_OF_ALL_RANKS
    weights = [weight for user in users for weight in user.weights] or [1]
    if max(weights) > 4:  # the largest grade unless another is given
        del choices["err"]
    name = draw.choice(list(choices))
    cut_off, arguments = choices[name]
    given = {key: draw.choice(values) for key, values in arguments.items() if draw.chance(0.6)}
    k = None
    if cut_off == "needed" or (cut_off == "allowed" and (not case.is_complete or draw.chance(0.7))):
        last = case.task.num_items + 3 if case.is_complete else case.depth
        k = draw.choice([draw.randint(1, last), draw.randint(1, min(last, 8))])
    if (k is None and "k" in given.values()) or (case.scores is None and "ties" in given):
        given = {}
    if max(weights) > LARGEST_WEIGHT.get(name, math.inf):
        given = {key: value for key, value in given.items() if value != "exponential"}
    return name, k, given


def _spelling(name, k, arguments):
    spelled = ",".join(f"{key}={value}" for key, value in arguments.items())
    return name + (f"({spelled})" if spelled else "") + (f"@{k}" if k is not None else "")


def check_metrics(case, ranked, users, draw):
    """Compares some metrics, of every user and on average, and the range that ties leave."""
    metrics = [draw_metric(draw, case, users) for _ in range(5)]
    action = draw.choice(["skip", "neg", "pos", "error"])
    is_error = action == "error" and any(not users[user].degree for user in case.task.evaluated)
    names = [_spelling(*metric) for metric in metrics]
    if is_error:
        measure = partial(EvaluationResult, ranked, names, empty_target_action=action)
        _check_error(measure, "'empty_target_action' needs every user to have ground truth")
        return
    task = RankingTask(**case.tensors) if case.tensors else None
    result = EvaluationResult(ranked, names, task=task, empty_target_action=action)
    action = "skip" if action == "error" else action
    check_values(case, result, metrics, users, action)
    if case.scores is not None:
        check_ties(case, result, metrics[0], action)
    if case.recommender is not None and case.ties != "random" and draw.chance(0.2):
        check_evaluation(case, metrics, draw)
    if draw.chance(0.2):
        check_files(result, draw)


def check_values(case, result, metrics, users, action):
    for metric, name in ((metric, _spelling(*metric)) for metric in metrics):
        values = oracle_values(case, metric, users)
        _close(name, result.per_user[name].tolist(), values)
        mean = oracle.mean(values, users, case.task.evaluated, action)
        _close(f"the mean of {name} with '{action}'", [result[name]], [mean])
    if case.scores is not None and case.ties != "random" and "roc_auc" in result:
        shares = oracle.shares_of_better(case.task, case.scores, case.ties)
        _close("roc_auc from scores", result.per_user["roc_auc"].tolist(), shares)


def oracle_values(case, metric, users):
    name, k, arguments = metric
    if arguments.get("ties") == "half":
        shares = oracle.shares_of_better(case.task, case.scores, "mean")
        average = arguments.get("average", "macro")
        return shares if average == "macro" else oracle.weighted(shares, users, average)
    return oracle.value(name, users, k, **{key: x for key, x in arguments.items() if key != "ties"})


def check_ties(case, result, metric, action):
    places = case.places()
    num_tied = sum(place.num_tied > 0 for own in places for place in own)
    _same("num_tied of the result", result.num_tied, num_tied)
    limits = []
    for ties in ("worst", "best"):
        users = _ranked_users(case, case.places(ties))
        values = oracle_values(case, metric, users)
        limits.append(oracle.mean(values, users, case.task.evaluated, action))
    if None not in limits:
        name = _spelling(*metric)
        _close(f"the range of {name}", list(result.tie_range(name)), sorted(limits))


def check_evaluation(case, metrics, draw):
    """Compares the means of :func:`evaluate`, which ranks just as deep as these metrics need."""
    action = draw.choice(["skip", "neg", "pos"])
    names = [_spelling(*metric) for metric in metrics]
    result = evaluate(
        case.recommender,
        RankingTask(**case.tensors),
        names,
        empty_target_action=action,
        ties=case.ties,
        batch_size=case.options["batch_size"],
        keep_items=case.options.get("keep_items", False),
        **case.needs,
    )
    depths = [_depth(*metric) for metric in metrics]
    depth = case.task.num_items if None in depths else max(depths)
    users = _ranked_users(case, replace(case, depth=depth).places())
    for metric, name in zip(metrics, names, strict=True):
        mean = oracle.mean(oracle_values(case, metric, users), users, case.task.evaluated, action)
        _close(f"evaluate(): {name} with '{action}'", [result[name]], [mean])


def _depth(name, k, arguments):
    """How deep a metric needs users to be ranked; `None` if all ranks are needed."""
    if name in METRICS_OF_ALL_RANKS or (k is None and METRICS.get(name, ("",))[0] == "allowed"):
        return None
    return k or 1


def _close(name, got, wanted):
    """Numbers agree if they differ by rounding alone; `None` stands for undefined ones."""
    for at, (one, other) in enumerate(zip(got, wanted, strict=True)):
        exact = math.nan if other is None else float(other)
        # Numbers below the smallest normal one have fewer digits.
        least = sys.float_info.min
        if "adjusted_mean_rank_index" in name:
            least = 1e-14  # since it is a difference of ranks that may cancel out
        is_close = math.isclose(one, exact, rel_tol=1e-12, abs_tol=least)
        if other is None:
            is_close = math.isnan(one)
        assert is_close or (one == 0 and exact == 0), f"{name}: [{at}] {one!r} instead of {exact!r}"


def run(seed, device="cpu"):
    """Checks the case of a seed on a device.

    Raises:
        FuzzError: If anything differs from the oracle, or an error is raised that is not due.
    """
    case, draw = draw_case(seed, device)
    try:
        check_case(case, draw)
    except Exception as error:
        message = f"seed {seed}: {type(error).__name__}: {error}\n{case}"
        raise FuzzError(message) from error


def main(first, last=None, device="cpu"):
    seeds = range(int(first), int(first) + 1 if last is None else int(last))
    failed = 0
    start = time.process_time()
    with emulated_device() if device == EMULATED else contextlib.nullcontext():
        for seed in seeds:
            try:
                run(seed, device)
            except FuzzError as failure:
                failed += 1
                print(failure, flush=True)
                if last is None:
                    traceback.print_exception(failure.__cause__)
    print(f"{len(seeds)} cases, {failed} failed, {time.process_time() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
