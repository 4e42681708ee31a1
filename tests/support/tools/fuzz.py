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
from unittest.mock import patch

import torch

from pyg_recmetrics import EvaluationResult, RankingTask
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.scores import BoundedFactors, inner_product_matrix
from pyg_recmetrics.ranked_edges import evaluated_mask, has_constant_scores
from pyg_recmetrics.ranking.recommenders import EmbeddingRecommender
from tests.support.machines.emulated_device import NAME as EMULATED
from tests.support.machines.emulated_device import emulated_device
from tests.support.references import oracle
from tests.support.tools.fuzz_cases import draw_case
from tests.support.tools.fuzz_files import check_files

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
    """Computes a ranking, and compares all that it says with the oracle.

    Metrics are not computed: :mod:`tests.support.tools.doors` compares them.
    """
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
            check_ranked(case, ranked)
            if draw.chance(0.2):
                task = RankingTask(**case.tensors) if case.tensors else None
                check_files(EvaluationResult(ranked, "hit_rate@1", task=task), draw)
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
    """Compares a ranking with the oracle."""
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


def check_users(case, ranked):
    """Compares what a ranking knows of users, and the lists of items."""
    task = case.task
    is_evaluated = [user in set(task.evaluated) for user in range(task.num_users)]
    _same("is_evaluated", evaluated_mask(ranked).tolist(), is_evaluated)
    assert (ranked.users is None) == all(is_evaluated), "users"
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
