"""Checks of what comes in from outside: what they accept, and what they say of all else."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric import EdgeIndex

from pyg_recmetrics import checks

CPU = torch.device("cpu")
FLOAT8 = torch.ones(2).to(torch.float8_e5m2)

#: What is no number, and so is refused wherever a number is needed.
NO_NUMBERS = [True, None, "1", [1], torch.tensor(1.0), torch.tensor(True), math.nan, -math.inf]

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

NUMBERS = "'x' needs to be a tensor, an array or a list of numbers (got "
MASK = "'x' needs to be a mask of shape [2] (got torch."
SHAPE = "'x' needs to have shape [2, num_edges] (got "
MATRIX = "'x' needs to be a matrix of shape "
FINITE = "'x' needs to hold finite numbers (got 2 NaN or infinite)"
LARGE = "'x' needs to be less than 2**53, up to where double precision is exact (got an integer of "
REAL = "'x' needs to hold real numbers of 16 bits or more (got torch."

#: Each check with a value, what follows the name, and the start of the error.
REFUSED = {
    "integers": [
        (torch.tensor([True]), (), "'x' needs to hold integers (got torch.bool)"),
        ([1.0], (), "'x' needs to hold integers (got torch.float64)"),
        (torch.tensor([1j]), (), "'x' needs to hold integers (got torch.complex64)"),
        ("1", (), f"{NUMBERS}str)"),
    ],
    "mask": [([True], ((2,),), f"{MASK}bool, [1])"), ([1, 0], ((2,),), f"{MASK}int64, [2])")],
    "device": [
        (torch.zeros(2), (torch.device("meta"), "y"), "'x' needs to be on the device of 'y', meta")
    ],
    "double_precision": [(torch.device("mps", 0), (), "'x' needs to be on a device with double")],
    "ids": [
        (torch.tensor([0, 3]), ("item", 3), "'x' needs to hold item ids in [0, 3) (got 3)"),
        (torch.tensor([-1, 9]), ("item", 3), "'x' needs to hold item ids in [0, 3) (got -1)"),
    ],
    "edges": [
        (torch.zeros(2).long(), (), f"{SHAPE}[2])"),
        (torch.zeros(3, 2).long(), (), f"{SHAPE}[3, 2]; transpose it)"),
        (torch.zeros(2, 3, 1).long(), (), f"{SHAPE}[2, 3, 1])"),
        (torch.zeros(2, 3), (), "'x' needs to hold integers (got torch.float32)"),
        ({0: 1}, (), f"{NUMBERS}dict)"),
    ],
    "bipartite": [
        ([[0, 2], [4, 0]], (2, 5), "'x' needs to hold user ids in [0, 2) (got 2)"),
        ([[0, 1], [5, 0]], (2, 5), "'x' needs to hold item ids in [0, 5) (got 5)"),
        (torch.eye(2, 4).to_sparse(), (2, 5), f"{MATRIX}[2, 5] (got [2, 4])"),
    ],
    "matrix": [
        (torch.eye(3, 2).to_sparse(), (2, 3), f"{MATRIX}[2, 3] (got [3, 2])"),
        (torch.eye(3, 3).to_sparse(), (2, None), f"{MATRIX}[2, any] (got [3, 3])"),
        (EdgeIndex([[0], [1]], sparse_size=(2, 4)), (2, 3), f"{MATRIX}[2, 3] (got [2, 4])"),
    ],
    "ranked_scores": [
        (
            torch.tensor([[math.nan, 1.0], [math.inf, -math.inf]]),
            (),
            "'x' needs to hold finite numbers, or '-inf' for items that must not be retrieved "
            "(got 2 NaN or 'inf')",
        )
    ],
    "weight": [
        (torch.ones(2, 1), (torch.zeros(2, 2),), "'x' needs to hold a number for every"),
        (torch.tensor([1, torch.inf]), (torch.zeros(2, 2),), "'x' needs to hold finite numbers"),
        (torch.tensor([1, 1j]), (torch.zeros(2, 2),), f"{REAL}complex64)"),
    ],
    "finite": [
        (torch.tensor([[math.nan, 1.0], [-math.inf, 3.0]]), (), FINITE),
        (torch.tensor([math.inf, 1.0, math.inf]), (), FINITE),
        (FLOAT8, (), f"{REAL}float8_e5m2)"),
    ],
    "scores": [
        *(
            (
                torch.zeros(2).to(dtype),
                (),
                "'x' needs to hold floating-point numbers of 16 to",
            )
            for dtype in (torch.long, torch.complex64, torch.float8_e4m3fn)
        ),
        (torch.zeros(2, 2).to_sparse(), (), "'x' needs to be a dense tensor (got torch.sparse_coo"),
    ],
    "raw_ids": [
        *(
            (ids, (), f"'x' needs to be a tensor or a sequence of ids (got {type(ids).__name__})")
            for ids in ("ab", {1, 2}, {1: 2}, 2)
        ),
        ([2, 1, 1], (), "'x' needs to hold every id once (got 1 more than once)"),
        ([1, 2, 3], (2,), "'x' needs to hold 2 ids (got 3)"),
        ([[1], [2]], (), "'x' needs to hold ids that can be hashed"),
    ],
    "integer": [(x, (), f"'x' needs to be an integer (got {x!r})") for x in (1.0, *NO_NUMBERS)],
    "positive_integer": [
        *(
            (value, (), f"'x' needs to be a positive integer (got {value!r})")
            for value in (0, -1, 1.0, np.int64(0), np.bool_(True), *NO_NUMBERS)
        ),
        *((value, (), f"{LARGE}{value.bit_length()} bits)") for value in (2**53, 10**5000)),
    ],
    "natural_number": [
        (value, (), f"'x' needs to be a non-negative integer (got {value!r})")
        for value in (-1, 0.0, *NO_NUMBERS)
    ],
    "number": [
        (math.inf, ("a word",), "'x' needs to be a finite number (got inf)"),
        ("a", ("a word",), "'x' needs to be a number or a word (got 'a')"),
    ],
    "finite_number": [
        (value, (), f"'x' needs to be a finite number (got {value!r})")
        for value in (10**309, -(10**400), *NO_NUMBERS)
    ],
    "fraction": [
        (value, (), f"'x' needs to be a number between 0 and 1 (got {value!r})")
        for value in (0.0, 1, -0.5, *NO_NUMBERS)
    ],
    "boolean": [(x, (), f"'x' needs to be a boolean (got {x!r})") for x in (1, None, "yes")],
    "choice": [
        *(
            (x, (("keep", "drop"),), f"'x' needs to be one of ['keep', 'drop'] (got {x!r})")
            for x in ("kept", "", None, ["keep"], np.array(["keep", "drop"]))
        ),
        (7, (("keep",), "a mapping"), "'x' needs to be one of ['keep'] or a mapping (got 7)"),
    ],
    "mapping": [([("a", 1)], (), "'x' needs to be a mapping (got list)")],
    "shape": [
        (torch.zeros(2, 3), ((6,), "biases"), "'x' needs to hold biases of shape [6] (got [2, 3])")
    ],
}


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


@pytest.mark.parametrize(("name", "value", "others", "message"), rows(REFUSED))
def test_what_is_wrong_is_named(name, value, others, message):
    value = torch.tensor(value) if name == "bipartite" and isinstance(value, list) else value
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        getattr(checks, f"check_{name}")(value, "x", *others)


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
