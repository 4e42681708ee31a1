"""Checks of what comes in from outside: what they accept, and what they read."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric import EdgeIndex

from pyg_recmetrics import checks

CPU = torch.device("cpu")

#: Each check with arguments that it accepts: the value, what follows the name, and what it returns.
ACCEPTED = {
    "integers": [
        (torch.tensor([1, -2], dtype=torch.int32), (), [1, -2]),
        (np.array([1, 200], dtype=np.uint16), (), [1, 200]),
    ],
    "mask": [([True, False], ((2,),), [True, False])],
    "edges": [([[0, 1], [1, 1]], (), [[0, 1], [1, 1]]), (torch.zeros(2, 0).int(), (), [[], []])],
    "bipartite": [([[0, 1], [4, 0]], (2, 5), [[0, 1], [4, 0]]), ([[], []], (2, 5), [[], []])],
    "weight": [
        (torch.tensor([0.5, -1.0], requires_grad=True), (torch.zeros(2, 2),), [0.5, -1]),
        ([True, False], (torch.zeros(2, 2),), [1, 0]),
    ],
    "finite": [(torch.tensor([[3.0, -7.0]]), (), 7.0), (torch.tensor([]), (), 0.0)],
    "scores": [(torch.zeros(2, dtype=torch.bfloat16), (), [0, 0])],
    "raw_ids": [
        (("a", None), (), ("a", None)),
        (np.array([3, 1]), (2,), (3, 1)),
        ([(1, 2)], (), ((1, 2),)),
    ],
    "integer": [(-3, (), -3), (np.int8(-3), (), -3), (torch.tensor(0), (), 0)],
    "positive_integer": [(1, (), 1), (2**53 - 1, (), 2**53 - 1), (np.uint8(3), (), 3)],
    "natural_number": [(0, (), 0), (2**53 - 1, (), 2**53 - 1)],
    "number": [(0.5, ("a word",), 0.5)],
    "finite_number": [(-3, (), -3), (1e308, (), 1e308), (10**308, (), 10**308)],
    "fraction": [(5e-324, (), 5e-324), (0.999, (), 0.999)],
    "boolean": [(False, (), False)],
    "choice": [("keep", (("keep", "drop"),), "keep")],
    "mapping": [({"a": 1}, (), {"a": 1})],
}

#: Calls of checks that return nothing, and raise nothing.
PASSED = [
    (checks.check_device, (torch.zeros(2), "x", CPU, "y")),
    (checks.check_double_precision, (CPU, "x")),
    (checks.check_ids, (torch.tensor([[0, 2], [1, 0]]), "x", "item", 3)),
    (checks.check_ids, (torch.tensor([]), "x", "item", 0)),
    (checks.check_ranked_scores, (torch.tensor([0.0, -math.inf, 3e38]), "x")),
    (checks.check_ranked_scores, (torch.tensor([]), "x")),
    *(
        (checks.check_matrix, (edges, "x", 2, num_items))
        for edges in (
            torch.eye(2, 3).to_sparse(),
            EdgeIndex([[0], [1]], sparse_size=(2, None)),
            EdgeIndex([[0], [1]]),
            torch.zeros(2, 7).long(),
        )
        for num_items in (3, None)
    ),
    (checks.check_num_pairs, ("x", 1, 2**63 - 1)),
    (checks.check_num_pairs, ("x", 2**31, 2**32 - 1)),
    (checks.check_shape, (torch.zeros(2, 3), "x", (2, 3), "biases")),
    (checks.check_range, (1e19, 1e19, 0.0, 2)),
    (checks.check_level, (0.95,)),
]


def rows(table):
    return [pytest.param(name, *row, id=name) for name, own in table.items() for row in own]


@pytest.mark.parametrize(("name", "value", "others", "wanted"), rows(ACCEPTED))
def test_what_is_right_is_returned_as_numbers_of_one_kind(name, value, others, wanted):
    value = torch.tensor(value).int() if name == "bipartite" else value
    others = [torch.zeros(2, 2).long() if torch.is_tensor(other) else other for other in others]
    found = getattr(checks, f"check_{name}")(value, "x", *others)
    if torch.is_tensor(found):
        kinds = {"mask": torch.bool, "weight": torch.double, "scores": torch.bfloat16}
        assert found.dtype == kinds.get(name, torch.long)
        assert not found.requires_grad
        assert found.tolist() == wanted
    else:
        assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(("check", "arguments"), PASSED)
def test_what_is_right_is_no_error(check, arguments):
    check(*arguments)


@pytest.mark.parametrize(
    ("items", "is_shifted"),
    [([2, 5], True), ([2, 6], True), ([1, 5], False), ([2, 7], False), ([-1, 5], False)],
)
def test_ids_that_are_shifted_by_the_number_of_users_are_told(items, is_shifted):
    edges = torch.tensor([[0, 1], items])
    with pytest.raises(ValueError, match=r"item ids in \[0, 5\) \(got -?[0-9]\)") as raised:
        checks.check_pairs(edges, "x", num_users=2, num_items=5)
    assert ("subtract 'num_users' (2)" in str(raised.value)) == is_shifted


def test_valued_edges():
    edges, value = checks.check_valued_edges(torch.tensor([[0, 3.5], [0, 1]]).to_sparse(), "x")
    assert (edges.tolist(), value.tolist()) == ([[0, 1], [1, 1]], [3.5, 1])
    edges, value = checks.check_valued_edges([[0, 1], [1, 1]], "x")
    assert (edges.tolist(), value) == ([[0, 1], [1, 1]], None)


def test_weighted_edges():
    rated, binary = torch.tensor([[0, 2.0], [0, 1]]), torch.tensor([[0, 1.0], [0, 1]])
    for matrix, wanted in ((rated, [2, 1]), (binary, None)):
        edges, weight = checks.check_weighted_edges(matrix.to_sparse(), None, "x", "w")
        assert edges.tolist() == [[0, 1], [1, 1]]
        assert (None if weight is None else weight.tolist()) == wanted
    edges, weight = checks.check_weighted_edges([[0, 1], [1, 1]], [3, 4], "x", "w")
    assert (edges.tolist(), weight.tolist()) == ([[0, 1], [1, 1]], [3, 4])
    with pytest.raises(ValueError, match=r"'w' needs to be None if 'x' is a matrix.*\(got both\)"):
        checks.check_weighted_edges(rated.to_sparse(), [3, 4], "x", "w")


def test_labels():
    ids = ["b", "a"]
    for unlabelled in (np.ones(2), [1, 2], torch.ones(2), pd.Series([1, 2]), None):
        checks.check_labels(unlabelled, "x", ids)
    checks.check_labels(pd.Series([1, 2], index=ids), "x", ids)
    checks.check_labels(pd.DataFrame(np.eye(2), columns=ids), "x", None)
    for labelled, wanted, found in (
        (pd.Series([1, 2], index=["a", "b"]), (ids,), ["a", "b"]),
        (pd.Series([1, 2], index=[1, 0]), (ids,), [1, 0]),
        (pd.Series([1, 2], index=ids), (None,), ids),
        (pd.DataFrame(np.eye(2), columns=["a", "b"]), (None, ids), ["a", "b"]),
    ):
        with pytest.raises(ValueError, match=re.escape(f"(got labels that start with {found})")):
            checks.check_labels(labelled, "x", *wanted)


@pytest.mark.parametrize(("num_users", "num_items"), [(2**31, 2**32), (1, 2**63), (10**10, 10**10)])
def test_more_pairs_than_64_bits_number_are_refused(num_users, num_items):
    message = rf"less than 2\*\*63 \(got {num_users} users and {num_items} items\)"
    with pytest.raises(ValueError, match=message):
        checks.check_bipartite(torch.zeros(2, 1).long(), "x", num_users, num_items)


def test_scores_that_single_precision_does_not_hold_are_refused():
    checks.check_range(1.0, 1.0, 3e38, dim=2)
    with pytest.raises(ValueError, match=r"embeddings whose scores may reach 5\.0e\+38"):
        checks.check_range(1e19, 1e19, 3e38, dim=2)
