"""Queries of several columns: as a naive loop over tuples numbers them."""

from collections import defaultdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask
from pyg_recmetrics.task.queries import RowNumbers
from tests.support.cases.strategies import pairs
from tests.support.tools.largest_tensor import LargestTensor

SESSION, POSITION = torch.tensor([7, 7, 3, 7]), torch.tensor([2, 1, 1, 2])
ITEM = torch.tensor([0, 3, 1, 2])

#: The values of a column: few of them, some of them as large as a moment in nanoseconds.
VALUE = st.sampled_from([0, 1, 2, 10**9, 10**18, 2**63 - 1])
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[VALUE] * width), min_size=1, max_size=12)
)


def columns(rows):
    return tuple(torch.tensor(column) for column in zip(*rows, strict=True))


def task(query=(SESSION, POSITION), item=ITEM, **options):
    return RankingTask.from_queries(query, item, num_items=4, **options)


class TestRowNumbers:
    @given(ROWS)
    def test_numbers_follow_the_order_of_tuples(self, rows):
        numbers = RowNumbers(list(columns(rows)))
        expected = sorted(set(rows))
        assert numbers.rows.tolist() == [list(row) for row in expected]
        assert numbers.number.tolist() == [expected.index(row) for row in rows]

    @given(ROWS, st.data())
    def test_known_rows_are_found(self, rows, data):
        others = data.draw(st.lists(st.tuples(*[VALUE] * len(rows[0])), min_size=1, max_size=12))
        found, number = RowNumbers(list(columns(rows))).find(list(columns(others)))
        expected = sorted(set(rows))
        known = [index for index, row in enumerate(others) if row in expected]
        assert found.tolist() == known
        assert number.tolist() == [expected.index(others[index]) for index in known]


@st.composite
def cases(draw):
    """Edges, seen edges and candidates of queries of two columns, and weights."""
    row = st.tuples(st.sampled_from([0, 1, 10**18]), st.integers(0, 2))
    edge = st.tuples(row, st.integers(0, 5))
    parts = [draw(st.lists(edge, min_size=1, max_size=size)) for size in (10, 15, 40)]
    weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=10, max_size=10))
    return *parts, None if weights is None else weights[: len(parts[0])]


def part(edges):
    return columns([row for row, _ in edges]), torch.tensor([item for _, item in edges])


class TestNaive:
    @given(cases())
    def test_it_is_the_task_of_a_loop_over_queries(self, case):
        edges, seen, _, weights = case
        rows = sorted({row for row, _ in edges})
        truth = dict.fromkeys(edges, 1) if weights is None else {}
        for edge, weight in zip(edges, weights or [], strict=False):
            truth[edge] = max(weight, truth.get(edge, 0))
        truth = {edge for edge, weight in truth.items() if weight >= (1 if weights is None else 2)}
        weights = None if weights is None else torch.tensor(weights)
        options = {} if weights is None else {"weight": weights, "threshold": 2}
        if not truth:
            with pytest.raises(ValueError, match="'threshold' needs to be reached"):
                RankingTask.from_queries(*part(edges), num_items=6, seen=part(seen), **options)
            return
        made = RankingTask.from_queries(*part(edges), num_items=6, seen=part(seen), **options)
        assert made.query.tolist() == [list(row) for row in rows]
        assert pairs(made.truth) == {(rows.index(row), item) for row, item in truth}
        assert pairs(made.seen) == {
            (rows.index(row), item) for row, item in {*seen} - truth if row in rows
        }

    @pytest.mark.filterwarnings("ignore:.*taken out of the truth")
    @given(cases())
    def test_candidates_of_each_query(self, case):
        edges, _, candidates, _ = case
        rows = sorted({row for row, _ in edges})
        if not {*edges} & {*candidates}:
            candidates = [edges[0]]
        made = RankingTask.from_queries(
            *part(edges), num_items=6, candidates=part(candidates), missing="drop"
        )
        assert pairs(made.candidates) == {
            (rows.index(row), item) for row, item in candidates if row in rows
        }
        assert pairs(made.truth) == {
            (rows.index(row), item) for row, item in {*edges} & {*candidates}
        }


class TestForms:
    @pytest.mark.parametrize(
        "query",
        [
            (SESSION, POSITION),
            [SESSION, POSITION.int()],
            torch.stack([SESSION, POSITION], dim=1),
            torch.stack([SESSION, POSITION], dim=1).numpy(),
            (SESSION.tolist(), POSITION.tolist()),
            torch.stack([SESSION, POSITION], dim=1).tolist(),
            list(zip(SESSION.tolist(), POSITION.tolist(), strict=True)),
        ],
    )
    def test_columns_and_rows(self, query):
        made = task(query)
        assert made.query.tolist() == [[3, 1], [7, 1], [7, 2]]
        assert pairs(made.truth) == {(0, 1), (1, 3), (2, 0), (2, 2)}
        assert repr(made) == "RankingTask(num_users=3, num_items=4, truth=[2, 4], query=[3, 2])"

    @pytest.mark.parametrize("query", [SESSION, (SESSION,), SESSION[:, None], SESSION.tolist()])
    def test_one_column(self, query):
        made = task(query, seen=(SESSION[:1], [1]))
        assert made.query.tolist() == [[3], [7]]
        assert pairs(made.truth) == {(0, 1), (1, 0), (1, 2), (1, 3)}
        assert pairs(made.seen) == {(1, 1)}

    @pytest.mark.parametrize("candidates", [torch.tensor([3, 1, 0, 2]), [0, 1, 2, 3]])
    def test_candidates_that_all_queries_share(self, candidates):
        assert task(candidates=candidates).candidates.tolist() == [0, 1, 2, 3]

    def test_any_device(self, device):
        query, item = (SESSION.to(device), POSITION.to(device)), ITEM.to(device)
        seen = ((SESSION.to(device), POSITION.to(device)), item.flip(0))
        candidates = (tuple(x.repeat(2) for x in query), torch.cat([item, item.flip(0)]))
        made = task(query, item, seen=seen, candidates=candidates, person=0)
        assert made.candidates.device.type == device.type
        for name, value in vars(task(seen=((SESSION, POSITION), ITEM.flip(0)), person=0)).items():
            if isinstance(value, torch.Tensor) and name not in ("num_candidates", "candidates"):
                assert getattr(made, name).device.type == device.type
                assert getattr(made, name).tolist() == value.tolist(), name


class TestSeen:
    def test_truth_is_taken_out_without_a_warning(self):
        made = task(seen=((SESSION, POSITION), torch.tensor([0, 3, 0, 1])))
        assert pairs(made.truth) == {(0, 1), (1, 3), (2, 0), (2, 2)}
        assert pairs(made.seen) == {(0, 0), (2, 1)}
        assert made.num_candidates.tolist() == [3, 4, 3]

    def test_what_has_too_little_weight_is_no_truth_and_stays(self):
        rated = {"weight": torch.tensor([1.0, 4.1, 4.1, 5.0]), "threshold": 4.1}
        made = task(seen=((SESSION, POSITION), ITEM), **rated)
        assert pairs(made.truth) == {(0, 1), (1, 3), (2, 2)}
        assert pairs(made.seen) == {(2, 0)}

    def test_nothing_is_taken_out_of_what_is_ranked(self):
        made = task(seen=((SESSION, POSITION), ITEM), exclude_seen=False)
        assert pairs(made.seen) == pairs(made.truth)
        assert made.num_candidates.tolist() == [4, 4, 4]

    def test_of_other_queries_is_ignored(self):
        others = ((torch.tensor([3, 9, 0]), torch.tensor([2, 1, 10**18])), torch.tensor([0, 1, 2]))
        assert task(seen=others).seen.shape == (2, 0)


class TestPerson:
    def test_a_column(self):
        assert task(person=0).person.tolist() == [0, 1, 1]
        assert task(person=1).person.tolist() == [0, 0, 1]
        assert task().person is None

    def test_a_label_of_each_edge(self):
        assert task(person=["bob", "ann", "ann", "bob"]).person.tolist() == [0, 0, 1]
        assert task(person=torch.tensor([5, 9, 9, 5])).person.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("query", "item", "options", "message"),
    [
        ((SESSION, POSITION[:3]), ITEM, {}, r"'query' .* of shape \[num_edges\], .*\[\[4\], \[3"),
        (torch.zeros(2, 4, 1).long(), ITEM, {}, r"'query' .*\(got shape \[2, 4, 1\]\)"),
        (torch.zeros(4, 0).long(), ITEM, {}, r"'query' .*\(got shape \[4, 0\]\)"),
        ((SESSION.float(), POSITION), ITEM, {}, r"'query' needs to hold integers .*float32"),
        ((SESSION, POSITION > 1), ITEM, {}, r"'query' needs to hold integers .*bool"),
        ((SESSION - 4, POSITION), ITEM, {}, r"'query' .* no negative numbers \(got -1\)"),
        (torch.zeros(2, 4).long(), ITEM, {}, r"'item' needs to hold an item for each of the 2 "),
        (
            torch.zeros(4, 3).long(),
            ITEM[:3],
            {},
            r"\(got shape \[3\]; transpose queries in a matrix\)",
        ),
        ((SESSION[:0], POSITION[:0]), ITEM[:0], {}, r"'query' .* at least one query \(got none\)"),
        ((SESSION, POSITION), ITEM + 1, {}, r"'item' needs to hold item ids in \[0, 4\) \(got 4\)"),
        ((SESSION, POSITION), ITEM.float(), {}, "'item' needs to hold integers"),
        ((SESSION, POSITION), ITEM, {"seen": SESSION}, r"'seen' needs to be a pair .*shape \[4\]"),
        ((SESSION, POSITION), ITEM, {"seen": (SESSION, ITEM)}, r"as 'query', 2 \(got 1\)"),
        (
            (SESSION, POSITION),
            ITEM,
            {"seen": ((SESSION, -POSITION), ITEM)},
            r"'seen' needs to hold no negative numbers \(got -2\)",
        ),
        (
            (SESSION, POSITION),
            ITEM,
            {"seen": ((SESSION, POSITION), ITEM[:3])},
            r"'seen' needs to hold an item for each of the 4 queries \(got shape \[3\]\)",
        ),
        (
            (SESSION, POSITION),
            ITEM,
            {"seen": ((SESSION, POSITION), ITEM + 4)},
            r"'seen' needs to hold item ids",
        ),
        (
            (SESSION, POSITION),
            ITEM,
            {"candidates": ITEM[None]},
            r"'candidates' needs to have shape \[num_candidates\] .*\(got \[1, 4\]\)",
        ),
        ((SESSION, POSITION), ITEM, {"candidates": [4]}, "'candidates' needs to hold item ids"),
        ((SESSION, POSITION), ITEM, {"person": 2}, r"'person' .* from 0 to 1, .*\(got 2\)"),
        ((SESSION, POSITION), ITEM, {"person": -1}, r"'person' needs to be a column .*\(got -1\)"),
        ((SESSION, POSITION), ITEM, {"person": [1, 2, 3]}, r"'person' .* shape \[4\], .* edge"),
        ((SESSION, POSITION), ITEM, {"person": ["a", None, "b", "a"]}, "got none for 1 of"),
        (
            (SESSION, POSITION),
            ITEM,
            {"person": [1, 2, 3, 4]},
            r"'person' needs to be the same .*\(got several for the query \(7, 2\)\)",
        ),
        ((SESSION, POSITION), ITEM, {"weight": torch.ones(3)}, r"'weight' .* shape \[4\]"),
        ((SESSION, POSITION), ITEM, {"threshold": 2}, "'threshold' needs a 'weight'"),
        (
            (SESSION, POSITION),
            ITEM,
            {"seen": ((SESSION, POSITION), ITEM), "threshold": 2},
            "'threshold' needs a 'weight'",
        ),
        ((SESSION, POSITION), ITEM.to("meta"), {}, r"'item' .* device of 'query', cpu \(got meta"),
    ],
)
def test_what_is_wrong_is_named(query, item, options, message):
    with pytest.raises(ValueError, match=message):
        task(query, item, **options)


def test_as_many_items_as_64_bits_can_number():
    with pytest.raises(ValueError, match=r"'query' needs the number of users times .* 2\*\*63"):
        RankingTask.from_queries(torch.arange(2**11), [0] * 2**11, num_items=2**52)


def test_memory_is_that_of_the_edges():
    generator = torch.Generator().manual_seed(0)

    def draw(high, size):
        return torch.randint(0, high, (size,), generator=generator)

    query, seen = ((draw(3000, size), draw(50, size)) for size in (5000, 20000))
    item, seen_item = draw(1000, 5000), draw(1000, 20000)
    by_row = defaultdict(set)
    for *row, other in torch.stack([*seen, seen_item]).t().tolist():
        by_row[tuple(row)].add(other)

    with LargestTensor() as largest:
        made = RankingTask.from_queries(query, item, num_items=1000, seen=(seen, seen_item))
    assert largest.numel <= 2 * 20000
    truth, expected = pairs(made.truth), set()
    for number, row in enumerate(made.query.tolist()):
        expected |= {(number, other) for other in by_row[tuple(row)]} - truth
    assert pairs(made.seen) == expected
    assert expected
