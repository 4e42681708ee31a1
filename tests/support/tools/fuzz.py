"""Compares random rankings with the oracle. The seed of a case decides all of it.

python -m tests.support.tools.fuzz 17          # checks a case, and shows it if it fails
python -m tests.support.tools.fuzz 0 20000     # checks all cases from the one to the other
python -m tests.support.tools.fuzz 0 900 cuda  # checks them on another device
TRITON_INTERPRET=1 python -m tests.support.tools.fuzz 0 90 triton  # checks what a card does
"""

import contextlib
import math
import sys
import warnings
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import torch

from pyg_recmetrics.kernels import card
from pyg_recmetrics.ranked_edges import has_constant_scores
from pyg_recmetrics.ranking import algorithms
from tests.support.machines.emulated_device import NAME as EMULATED, emulated_device
from tests.support.references import oracle
from tests.support.tools.fuzz_cases import draw_case
from tests.support.tools.seeds import check_seeds

#: Warnings that random cases may well give.
EXPECTED_WARNINGS = (
    ".*(taken out of the truth|scores that fall|depending on the order of ties"
    "|have a rating of zero or less|ratings count as relevant|a score of '-inf'"
    "|no more often than by chance)"
)


class FuzzError(AssertionError):
    """A case in which the package differs from the oracle. The message starts with its seed."""


def check_case(case):
    """Computes a ranking, and compares all that it says with the oracle.

    Metrics are not computed: :mod:`tests.support.tools.doors` compares them.
    """
    before = [value.clone() for value in case.given.tensors]
    state = torch.get_rng_state()
    with contextlib.ExitStack() as stack:
        for owner, name, value in case.given.patches:
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=EXPECTED_WARNINGS)
        if case.error is None:
            check_ranked(case, case.compute())
        else:
            _check_error(case.compute, case.error)
    for value, old in zip(case.given.tensors, before, strict=True):
        torch.testing.assert_close(value, old, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(state, torch.get_rng_state()), "the global random state was touched"


def _check_error(function, start):
    """Checks that a function raises an error whose message starts as it should."""
    try:
        function()
    except ValueError as error:
        message = str(error)
    else:
        message = "no error"
    assert message.startswith(start), f"{message!r} instead of {start!r}"


def check_ranked(case, ranked):
    """Compares a ranking with the oracle."""
    task, ties = case.task, case.options["ties"]
    places = oracle.rank_by_scores(task, case.given.scores, ties, case.depth)
    if ties == "random":
        places = check_random_ranks(case, ranked, places)
    edges = [(user, place) for user, own in enumerate(places) for place in own]
    _same("edge_index", _pairs(ranked), [(user, place.item) for user, place in edges])
    for name in ("rank", "num_above", "num_tied"):
        found = _numbers(getattr(ranked, name))
        _same(name, found, [getattr(place, name) for _, place in edges])
    is_half = ties == "mean"
    assert ranked.rank.dtype == (torch.double if is_half else torch.long), ranked.rank.dtype
    _same("ties", ranked.ties, ties)
    _same("degree", ranked.degree.tolist(), [len(own) for own in places])
    weight = None if task.weights is None else [place.weight for _, place in edges]
    _same("weight", ranked.weight if weight is None else ranked.weight.tolist(), weight)
    check_users(case, ranked)


def check_users(case, ranked):
    """Compares what a ranking knows of users, and the lists of items."""
    task = case.task
    is_evaluated = [user in set(task.evaluated) for user in range(task.num_users)]
    _same("is_evaluated", ranked._is_evaluated.tolist(), is_evaluated)
    assert (ranked.users is None) == all(is_evaluated), "users"
    num_candidates = [len(items) for items in case.candidates]
    _same("num_candidates", ranked.num_candidates.tolist(), num_candidates)
    _same("depth", ranked.depth, None if case.depth >= max(num_candidates) else case.depth)
    scores = case.given.scores
    is_constant = [
        any(scores[user][item] > -math.inf for item in {*task.relevant[user]} & {*items})
        and len({scores[user][item] for item in left}) == 1
        for user, (items, left) in enumerate(zip(task.candidates, case.candidates, strict=True))
    ]
    _same("has_constant_scores", has_constant_scores(ranked).tolist(), is_constant)
    lists = None if case.width is None else oracle.best_items(task, scores, case.width)
    _same("items", ranked.lists if lists is None else ranked.lists.to_matrix().tolist(), lists)


def check_random_ranks(case, ranked, places):
    """Checks that random ranks are legal and depend on the seed alone, and takes them over."""
    found = dict(zip(_pairs(ranked), _numbers(ranked.rank), strict=True))
    for user, own in enumerate(places):
        ranks = {place.item: found.get((user, place.item)) for place in own}
        assert None not in ranks.values(), f"user {user}: an edge is missing"
        depth = max(case.depth, len(case.task.relevant[user]))
        legal = oracle.is_legal(own, ranks, depth)
        assert legal, f"user {user}: {ranks} is no order of {own}"
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
    """Checks the case of a seed on a device, and returns whether it led to numbers.

    Raises:
        FuzzError: If anything differs from the oracle, or an error is raised that is not due.
    """
    case = draw_case(seed, device)
    try:
        check_case(case)
    except Exception as error:
        message = f"seed {seed}: {type(error).__name__}: {error}\n{case}"
        raise FuzzError(message) from error
    return case.error is None


@contextlib.contextmanager
def interpreter():
    """Lets the CPU rank as a card does, with the kernel in Triton's interpreter."""
    with (
        patch.object(card, "has_kernel", lambda device: True),
        patch.multiple(card, _WIDTH=64, _STEPS=2),
        patch.object(algorithms, "_is_card", lambda device: True),
    ):
        yield


#: What there has to be for a device.
MACHINES = {EMULATED: emulated_device, "triton": interpreter}


def main(first, last=None, device="cpu"):
    with MACHINES.get(device, contextlib.nullcontext)():
        on = "cpu" if device == "triton" else device
        return check_seeds(partial(run, device=on), first, last)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
