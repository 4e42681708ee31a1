"""Checks of what comes in from outside: what they accept, and what they say of all else."""

import math
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric import EdgeIndex

from pyg_recmetrics import checks

CPU = torch.device("cpu")
NUMBERS = "'x' needs to be a tensor, an array or a list of numbers (got {})"
REAL = "'x' needs to hold real numbers of 16 bits or more (got {})"
LARGE = "'x' needs to be less than 2**53, up to where double precision is exact (got an integer of "


def expected(error):
    """Expects an error of this type and with just this message, or no error if it is `None`."""
    if error is None:
        return nullcontext()
    return pytest.raises(type(error), match=f"^{re.escape(str(error))}$")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (torch.tensor([1, -2]), None),
        (torch.tensor([1, -2], dtype=torch.int32), None),
        (torch.tensor([1, 200], dtype=torch.uint8), None),
        (torch.tensor([True]), ValueError("'x' needs to hold integers (got torch.bool)")),
        (torch.tensor([1.0]), ValueError("'x' needs to hold integers (got torch.float32)")),
        (torch.tensor([1j]), ValueError("'x' needs to hold integers (got torch.complex64)")),
        (np.array([1, 200], dtype=np.uint16), None),
        ("1", TypeError(NUMBERS.format("str"))),
        ([1.0], ValueError("'x' needs to hold integers (got torch.float64)")),
    ],
)
def test_integers(value, error):
    with expected(error):
        checked = checks.check_integers(value, "x")
        assert checked.dtype == torch.long
        assert checked.tolist() == value.tolist()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (torch.tensor([True, False]), None),
        ([True, False], None),
        (torch.tensor([True]), "torch.bool, [1]"),
        (torch.tensor([1, 0]), "torch.int64, [2]"),
    ],
)
def test_mask(value, found):
    error = found and ValueError(f"'x' needs to be a mask of shape [2] (got {found})")
    with expected(error):
        assert checks.check_mask(value, "x", (2,)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("device", "error"),
    [
        (CPU, None),
        (
            torch.device("meta"),
            ValueError("'x' needs to be on the device of 'truth', meta (got cpu)"),
        ),
    ],
)
def test_device(device, error):
    with expected(error):
        checks.check_device(torch.zeros(2), "x", device, "truth")


@pytest.mark.parametrize(
    ("device", "error"),
    [
        (CPU, None),
        (
            torch.device("mps", 0),
            ValueError(
                "'x' needs to be on a device with double precision, such as the CPU (got mps:0)"
            ),
        ),
    ],
)
def test_double_precision(device, error):
    with expected(error):
        checks.check_double_precision(device, "x")


@pytest.mark.parametrize(
    ("ids", "num_ids", "error"),
    [
        ([0, 2, 1], 3, None),
        ([[0, 1], [2, 0]], 3, None),
        ([], 0, None),
        ([0, 3], 3, ValueError("'x' needs to hold item ids in [0, 3) (got 3)")),
        ([-1, 0], 3, ValueError("'x' needs to hold item ids in [0, 3) (got -1)")),
        ([-1, 9], 3, ValueError("'x' needs to hold item ids in [0, 3) (got -1)")),
        ([0], 0, ValueError("'x' needs to hold item ids in [0, 0) (got 0)")),
    ],
)
def test_ids(ids, num_ids, error):
    with expected(error):
        checks.check_ids(torch.tensor(ids, dtype=torch.long), "x", "item", num_ids)


@pytest.mark.parametrize(
    ("items", "is_shifted"),
    [([2, 5], True), ([2, 6], True), ([1, 5], False), ([2, 7], False), ([-1, 5], False)],
)
def test_ids_that_are_shifted_by_the_number_of_users_are_told(items, is_shifted):
    edges = torch.tensor([[0, 1], items])
    with pytest.raises(ValueError, match=r"item ids in \[0, 5\) \(got -?[0-9]\)") as raised:
        checks.check_bipartite(edges, "x", num_users=2, num_items=5)
    assert ("subtract 'num_users' (2)" in str(raised.value)) == is_shifted


@pytest.mark.parametrize(
    ("edges", "error"),
    [
        (torch.zeros(2, 3).long(), None),
        (torch.zeros(2, 0).int(), None),
        (torch.zeros(2).long(), ValueError("'x' needs to have shape [2, num_edges] (got [2])")),
        (
            torch.zeros(3, 2).long(),
            ValueError("'x' needs to have shape [2, num_edges] (got [3, 2]; transpose it)"),
        ),
        (
            torch.zeros(2, 3, 1).long(),
            ValueError("'x' needs to have shape [2, num_edges] (got [2, 3, 1])"),
        ),
        (torch.zeros(2, 3), ValueError("'x' needs to hold integers (got torch.float32)")),
        ({0: 1}, TypeError(NUMBERS.format("dict"))),
    ],
)
def test_edges(edges, error):
    with expected(error):
        checked = checks.check_edges(edges, "x")
        assert checked.dtype == torch.long
        assert checked.tolist() == edges.tolist()


def test_valued_edges():
    edges, value = checks.check_valued_edges(torch.tensor([[0, 3.5], [0, 1]]).to_sparse(), "x")
    assert (edges.tolist(), value.tolist()) == ([[0, 1], [1, 1]], [3.5, 1])
    edges, value = checks.check_valued_edges([[0, 1], [1, 1]], "x")
    assert (edges.tolist(), value) == ([[0, 1], [1, 1]], None)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, 3),
        (-3, -3),
        (np.int8(-3), -3),
        (torch.tensor(0), 0),
        (1.0, None),
        (True, None),
        ("1", None),
    ],
)
def test_integer(value, wanted):
    error = (
        None if wanted is not None else ValueError(f"'x' needs to be an integer (got {value!r})")
    )
    with expected(error):
        checked = checks.check_integer(value, "x")
        assert (checked, type(checked)) == (wanted, int)


@pytest.mark.parametrize(
    ("scores", "num_wrong"),
    [
        ([], 0),
        ([0.0, -math.inf, 3e38], 0),
        ([-math.inf], 0),
        ([math.inf, -math.inf], 1),
        ([[math.nan, 1.0], [math.inf, math.nan]], 3),
    ],
)
def test_ranked_scores(scores, num_wrong):
    message = (
        f"'x' needs to hold finite numbers, or '-inf' for items that must not be retrieved "
        f"(got {num_wrong} NaN or 'inf')"
    )
    with expected(ValueError(message) if num_wrong else None):
        checks.check_ranked_scores(torch.tensor(scores), "x")


@pytest.mark.parametrize(
    ("edges", "num_items", "found"),
    [
        (torch.eye(2, 3).to_sparse(), 3, None),
        (torch.eye(2, 3).to_sparse(), None, None),
        (EdgeIndex([[0], [1]], sparse_size=(2, 3)), 3, None),
        (EdgeIndex([[0], [1]], sparse_size=(2, None)), 3, None),
        (EdgeIndex([[0], [1]]), 3, None),
        (torch.zeros(2, 7).long(), 3, None),
        (torch.eye(2, 4).to_sparse(), 3, [2, 4]),
        (torch.eye(3, 2).to_sparse(), 3, [3, 2]),
        (torch.eye(3, 3).to_sparse(), None, [3, 3]),
        (EdgeIndex([[0], [1]], sparse_size=(2, 4)), 3, [2, 4]),
    ],
)
def test_matrix(edges, num_items, found):
    shape = f"[2, {'any' if num_items is None else num_items}]"
    message = f"'x' needs to be a matrix of shape {shape} (got {found})"
    with expected(ValueError(message) if found else None):
        checks.check_matrix(edges, "x", 2, num_items)


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


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        (["ann", "bob"], None),
        ((7, "7"), None),
        (np.array([3, 1]), None),
        ([(1, 2), None], None),
        ("ab", TypeError("'x' needs to be a tensor or a sequence of ids (got str)")),
        ({1, 2}, TypeError("'x' needs to be a tensor or a sequence of ids (got set)")),
        ({1: 2, 2: 3}, TypeError("'x' needs to be a tensor or a sequence of ids (got dict)")),
        (2, TypeError("'x' needs to be a tensor or a sequence of ids (got int)")),
        ([1, 1], ValueError("'x' needs to hold every id once (got 1 more than once)")),
        ([1, 2, 3], ValueError("'x' needs to hold 2 ids (got 3)")),
    ],
)
def test_raw_ids(ids, error):
    with expected(error):
        assert checks.check_raw_ids(ids, "x", 2) == tuple(ids)


def test_labels():
    ids = ["b", "a"]
    for unlabelled in (np.ones(2), [1, 2], torch.ones(2), pd.Series([1, 2]), None):
        checks.check_labels(unlabelled, "x", ids)
    checks.check_labels(pd.Series([1, 2], index=ids), "x", ids)
    checks.check_labels(pd.DataFrame(np.eye(2), columns=ids), "x", None)
    message = (
        "'x' needs to be labelled by the original ids of the task in their order, as 'reindex' "
        "puts them, or not at all (got labels that start with {})"
    )
    for labelled, wanted, found in (
        (pd.Series([1, 2], index=["a", "b"]), (ids,), ["a", "b"]),
        (pd.Series([1, 2], index=[1, 0]), (ids,), [1, 0]),
        (pd.Series([1, 2], index=ids), (None,), ids),
        (pd.DataFrame(np.eye(2), columns=["a", "b"]), (None, ids), ["a", "b"]),
    ):
        with expected(ValueError(message.format(found))):
            checks.check_labels(labelled, "x", *wanted)


def test_raw_ids_are_of_pythons_own_types():
    checked = checks.check_raw_ids(list(np.array([3, 1])), "x")
    assert [type(id_) for id_ in checked] == [int, int]


def test_raw_ids_can_be_hashed():
    with pytest.raises(TypeError, match="'x' needs to hold ids that can be hashed"):
        checks.check_raw_ids([[1], [2]], "x")


@pytest.mark.parametrize(
    ("edges", "error"),
    [
        ([[0, 1], [4, 0]], None),
        ([[], []], None),
        ([[0, 2], [4, 0]], ValueError("'x' needs to hold user ids in [0, 2) (got 2)")),
        ([[0, 1], [5, 0]], ValueError("'x' needs to hold item ids in [0, 5) (got 5)")),
        ([[-1, 1], [5, 0]], ValueError("'x' needs to hold user ids in [0, 2) (got -1)")),
        ([0, 1], ValueError("'x' needs to have shape [2, num_edges] (got [2])")),
    ],
)
def test_bipartite(edges, error):
    with expected(error):
        checked = checks.check_bipartite(torch.tensor(edges).int(), "x", num_users=2, num_items=5)
        assert checked.dtype == torch.long
        assert checked.tolist() == edges


@pytest.mark.parametrize(
    ("edges", "error"),
    [
        ([[0, 1], [4, 0]], None),
        ([[], []], None),
        ([[0, 2], [4, 0]], ValueError("'x' needs to hold user ids in [0, 2) (got 2)")),
        (
            [[0, 1], [2, 6]],
            ValueError(
                "'x' needs to hold item ids in [0, 5) (got 6); subtract 'num_users' (2) if the ids "
                "of users come first"
            ),
        ),
    ],
)
def test_pairs(edges, error):
    with expected(error):
        checks.check_pairs(torch.tensor(edges).long(), "x", num_users=2, num_items=5)


@pytest.mark.parametrize(
    ("num_users", "num_items", "is_accepted"),
    [
        (1, 2**63 - 1, True),
        (2**31, 2**32 - 1, True),
        (4_000_000_000, 2, True),
        (2**31, 2**32, False),
        (1, 2**63, False),
        (10**10, 10**10, False),
    ],
)
def test_num_pairs(num_users, num_items, is_accepted):
    message = (
        f"'x' needs the number of users times that of items to be less than 2**63 "
        f"(got {num_users} users and {num_items} items)"
    )
    with expected(None if is_accepted else ValueError(message)):
        checks.check_num_pairs("x", num_users, num_items)
    with expected(None if is_accepted else ValueError(message)):
        checks.check_bipartite(torch.zeros(2, 1).long(), "x", num_users, num_items)


@pytest.mark.parametrize(
    ("weight", "error"),
    [
        (torch.tensor([0.5, -1.0]), None),
        (torch.tensor([0.5, -1.0], requires_grad=True), None),
        (torch.tensor([1, 1j]), ValueError(REAL.format("torch.complex64"))),
        (torch.ones(2).to(torch.float8_e5m2), ValueError(REAL.format("torch.float8_e5m2"))),
        (torch.tensor([2, 0]), None),
        (torch.tensor([True, False]), None),
        (
            torch.ones(3),
            ValueError("'x' needs to hold a number for every edge of shape [2] (got [3])"),
        ),
        (
            torch.ones(2, 1),
            ValueError("'x' needs to hold a number for every edge of shape [2] (got [2, 1])"),
        ),
        (
            torch.tensor([1, torch.inf]),
            ValueError("'x' needs to hold finite numbers (got 1 NaN or infinite)"),
        ),
        (np.array([0.5, 2.0]), None),
        (1.0, TypeError(NUMBERS.format("float"))),
    ],
)
def test_weight(weight, error):
    with expected(error):
        checked = checks.check_weight(weight, "x", torch.zeros(2, 2).long())
        assert checked.dtype == torch.double
        assert not checked.requires_grad
        assert checked.tolist() == weight.tolist()


@pytest.mark.parametrize(
    ("values", "num_wrong"),
    [
        ([], 0),
        ([0.0, -3e38, 3e38], 0),
        ([[1, 2], [3, 4]], 0),
        ([0.0, math.nan], 1),
        ([math.inf, 0.0, -math.inf], 2),
        ([[math.nan, 1.0], [-math.inf, math.nan]], 3),
    ],
)
def test_finite(values, num_wrong):
    message = f"'x' needs to hold finite numbers (got {num_wrong} NaN or infinite)"
    with expected(ValueError(message) if num_wrong else None):
        checks.check_finite(torch.tensor(values), "x")


#: What is no number, and so is refused wherever a number is needed.
NO_NUMBERS = [
    True,
    False,
    None,
    "1",
    [1],
    torch.tensor(1.0),
    torch.tensor(True),
    math.nan,
    math.inf,
    -math.inf,
]


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        (1, True),
        (2**53 - 1, True),
        (np.int64(3), True),
        (np.uint8(3), True),
        (torch.tensor(3), True),
        *((value, False) for value in (0, -1, 1.0, 0.5, np.int64(0), np.bool_(True), *NO_NUMBERS)),
    ],
)
def test_positive_integer(value, is_accepted):
    message = f"'x' needs to be a positive integer (got {value!r})"
    with expected(None if is_accepted else ValueError(message)):
        checked = checks.check_positive_integer(value, "x")
        assert (checked, type(checked)) == (int(value), int)


@pytest.mark.parametrize("value", [2**53, 2**63, 10**400, 10**5000], ids=int.bit_length)
@pytest.mark.parametrize("check", [checks.check_positive_integer, checks.check_natural_number])
def test_integers_that_double_precision_does_not_hold(check, value):
    with expected(ValueError(f"{LARGE}{value.bit_length()} bits)")):
        check(value, "x")


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        (0, True),
        (1, True),
        (2**53 - 1, True),
        *((value, False) for value in (-1, 0.0, 1.0, *NO_NUMBERS)),
    ],
)
def test_natural_number(value, is_accepted):
    message = f"'x' needs to be a non-negative integer (got {value!r})"
    with expected(None if is_accepted else ValueError(message)):
        assert checks.check_natural_number(value, "x") is value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.5, None),
        (math.inf, ValueError("'x' needs to be a finite number (got inf)")),
        *(
            (value, TypeError(f"'x' needs to be a number or a word (got {value!r})"))
            for value in (True, "a", [0.1], None)
        ),
    ],
)
def test_number(value, error):
    with expected(error):
        assert checks.check_number(value, "x", "a word") is value


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        (0, True),
        (-3, True),
        (0.5, True),
        (1e308, True),
        (10**308, True),
        (10**309, False),
        (-(10**400), False),
        *((value, False) for value in NO_NUMBERS),
    ],
)
def test_finite_number(value, is_accepted):
    message = f"'x' needs to be a finite number (got {value!r})"
    with expected(None if is_accepted else ValueError(message)):
        assert checks.check_finite_number(value, "x") is value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.5, None),
        (5e-324, None),
        (0.0, ValueError("'x' needs to be a number between 0 and 1 (got 0.0)")),
        (1, ValueError("'x' needs to be a number between 0 and 1 (got 1)")),
        (-0.5, ValueError("'x' needs to be a number between 0 and 1 (got -0.5)")),
        (math.nan, ValueError("'x' needs to be a number between 0 and 1 (got nan)")),
        (False, ValueError("'x' needs to be a number between 0 and 1 (got False)")),
        ("0.5", ValueError("'x' needs to be a number between 0 and 1 (got '0.5')")),
    ],
)
def test_fraction(value, error):
    with expected(error):
        assert checks.check_fraction(value, "x") is value


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        (0.5, True),
        (0.999, True),
        *((value, False) for value in (0, 1, 0.0, 1.0, 95, -0.5, *NO_NUMBERS)),
    ],
)
def test_level(value, is_accepted):
    message = f"'level' needs to be a number between 0 and 1 (got {value!r})"
    with expected(None if is_accepted else ValueError(message)):
        assert checks.check_level(value) is value


@pytest.mark.parametrize(
    ("scores", "error"),
    [
        (torch.zeros(2, dtype=torch.half), None),
        (torch.zeros(2, dtype=torch.bfloat16), None),
        (torch.zeros(2), None),
        (torch.zeros(2).double(), None),
        *(
            (
                torch.zeros(2).to(dtype),
                ValueError(
                    f"'x' needs to hold floating-point numbers of 16 to 64 bits (got {dtype})"
                ),
            )
            for dtype in (torch.long, torch.bool, torch.complex64, torch.float8_e4m3fn)
        ),
        (
            torch.zeros(2, 2).to_sparse(),
            ValueError("'x' needs to be a dense tensor (got torch.sparse_coo)"),
        ),
        (0.5, TypeError(NUMBERS.format("float"))),
    ],
)
def test_scores(scores, error):
    with expected(error):
        assert checks.check_scores(scores, "x") is scores


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ((2, 3), None),
        (
            (3, 2),
            ValueError("'x' needs to hold item biases of shape [3, 2] (got [2, 3]); transpose it"),
        ),
        ((6,), ValueError("'x' needs to hold item biases of shape [6] (got [2, 3])")),
        ((), ValueError("'x' needs to hold item biases of shape [] (got [2, 3])")),
    ],
)
def test_shape(shape, error):
    with expected(error):
        checks.check_shape(torch.zeros(2, 3), "x", shape, "item biases")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (True, None),
        (False, None),
        (1, TypeError("'x' needs to be a boolean (got 1)")),
        (None, TypeError("'x' needs to be a boolean (got None)")),
        ("yes", TypeError("'x' needs to be a boolean (got 'yes')")),
    ],
)
def test_boolean(value, error):
    with expected(error):
        assert checks.check_boolean(value, "x") is value


@pytest.mark.parametrize(
    ("value", "or_else", "error"),
    [
        ("keep", "", None),
        ("drop", "a mapping", None),
        ("kept", "", ValueError("'x' needs to be one of ['keep', 'drop'] (got 'kept')")),
        ("", "", ValueError("'x' needs to be one of ['keep', 'drop'] (got '')")),
        (None, "", ValueError("'x' needs to be one of ['keep', 'drop'] (got None)")),
        (["keep"], "", ValueError("'x' needs to be one of ['keep', 'drop'] (got ['keep'])")),
        (
            np.array(["keep", "drop"]),
            "",
            ValueError(
                "'x' needs to be one of ['keep', 'drop'] (got array(['keep', 'drop'], dtype='<U4'))"
            ),
        ),
        (
            7,
            "a mapping",
            ValueError("'x' needs to be one of ['keep', 'drop'] or a mapping (got 7)"),
        ),
    ],
)
def test_choice(value, or_else, error):
    with expected(error):
        assert checks.check_choice(value, "x", ("keep", "drop"), or_else) == value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({}, None),
        ({"a": 1}, None),
        ([("a", 1)], TypeError("'x' needs to be a mapping (got list)")),
        (None, TypeError("'x' needs to be a mapping (got NoneType)")),
    ],
)
def test_mapping(value, error):
    with expected(error):
        assert checks.check_mapping(value, "x") is value


@pytest.mark.parametrize(
    ("user", "item", "bias", "error"),
    [
        (1.0, 1.0, 3e38, None),
        (1e19, 1e19, 0.0, None),
        (
            1e19,
            1e19,
            3e38,
            ValueError(
                "'recommender' needs to have scores in the range of single precision (got "
                "embeddings whose scores may reach 5.0e+38)"
            ),
        ),
    ],
)
def test_range(user, item, bias, error):
    with expected(error):
        checks.check_range(user, item, bias, dim=2)


def test_every_check_has_a_table_here():
    names = {name.removeprefix("check_") for name in vars(checks) if name.startswith("check_")}
    assert names == {name.removeprefix("test_") for name in globals()} & names
