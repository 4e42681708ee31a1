"""Queries of several columns: their forms, events as a loop reads them, and triples."""

import warnings

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankingTask
from tests.support.cases.strategies import pairs
from tests.support.tools.largest_tensor import LargestTensor

SESSION, POSITION = torch.tensor([7, 7, 3, 7]), torch.tensor([2, 1, 1, 2])
ITEM = torch.tensor([0, 3, 1, 2])


def task(query=(SESSION, POSITION), item=ITEM, **options):
    return RankingTask.from_queries(query, item, num_items=4, **options)


class TestForms:
    @pytest.mark.parametrize(
        "query",
        [
            (SESSION, POSITION),
            [SESSION, POSITION.int()],
            torch.stack([SESSION, POSITION], dim=1),
            torch.stack([SESSION, POSITION], dim=1).numpy(),
        ],
    )
    def test_columns_and_rows(self, query):
        made = task(query)
        assert made.query.tolist() == [[3, 1], [7, 1], [7, 2]]
        assert pairs(made.truth) == {(0, 1), (1, 3), (2, 0), (2, 2)}
        assert repr(made) == "RankingTask(num_users=3, num_items=4, truth=[2, 4], query=[3, 2])"

    @pytest.mark.parametrize("query", [SESSION, (SESSION,), SESSION[:, None]])
    def test_one_column(self, query):
        made = task(query, seen=(SESSION[:1], [1]))
        assert made.query.tolist() == [[3], [7]]
        assert pairs(made.truth) == {(0, 1), (1, 0), (1, 2), (1, 3)}
        assert pairs(made.seen) == {(1, 1)}


BOTH = (SESSION, POSITION)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": (SESSION, POSITION[:3])}, r"'query' needs to be a tuple .*\[\[4\], \[3"),
        ({"query": [(7, 2), (7, 1)]}, "'query' needs to be a tuple of columns"),
        ({"query": torch.zeros(4, 0).long()}, r"'query' .*\(got \[\[4, 0\]\]\)"),
        ({"query": (SESSION.float(), POSITION)}, r"'query' needs to hold integers .*float32"),
        ({"query": (SESSION - 4, POSITION)}, r"'query' .* no negative numbers \(got -1\)"),
        ({"query": torch.zeros(2, 4).long()}, "'item' needs to hold an item for each query"),
        ({"query": torch.zeros(4, 3).long(), "item": ITEM[:3]}, "an item for each query of shape"),
        ({"query": (SESSION[:0],), "item": ITEM[:0]}, r"'query' .* at least one .*\(got none\)"),
        ({"query": torch.arange(2**11), "item": [0] * 2**11, "num_items": 2**52}, r"2\*\*63"),
        ({"item": ITEM + 1}, r"'item' needs to hold item ids in \[0, 4\) \(got 4\)"),
        ({"item": ITEM.float()}, "'item' needs to hold integers"),
        ({"item": ITEM.to("meta")}, r"'item' .* device of 'query', cpu \(got meta"),
        ({"seen": SESSION}, "'seen' needs to be a pair .*got Tensor"),
        ({"seen": (SESSION, ITEM)}, r"as 'query', 2 \(got 1\)"),
        ({"seen": ((SESSION, -POSITION), ITEM)}, r"'seen' .* no negative numbers \(got -2\)"),
        ({"seen": (BOTH, ITEM[:3])}, r"'seen' needs to hold an item .*\(got \[3\]\)"),
        ({"seen": (BOTH, ITEM + 4)}, "'seen' needs to hold item ids"),
        ({"candidates": ITEM[None]}, r"'candidates' needs to have shape \[num_candidates\] .*4\]"),
        ({"candidates": [4]}, "'candidates' needs to hold item ids"),
        ({"person": [1, 2, 3]}, r"'person' .* edge of shape \[4\]"),
        ({"person": ["a", None, "b", "a"]}, "got none for 1 of"),
        ({"person": [1, 2, 3, 4]}, r"'person' needs to be the same .* the query \(7, 2\)\)"),
        ({"weight": torch.ones(3)}, r"'weight' .* shape \[4\]"),
        ({"seen": (BOTH, ITEM), "threshold": 2}, "'threshold' needs a 'weight'"),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        RankingTask.from_queries(**{"query": BOTH, "item": ITEM, "num_items": 4, **options})


NUM_ITEMS = 5

#: A source, a destination, a moment, and whether the event is ranked.
EVENT = st.tuples(
    st.sampled_from([0, 3, 10**18]),
    st.integers(0, NUM_ITEMS - 1),
    st.sampled_from([-(10**18), -1, 0, 1, 2, 10**18]),
    st.booleans(),
)
EVENTS = st.lists(EVENT, min_size=1, max_size=20)


def task_of_events(events, **options):
    src, dst, t, is_test = (torch.tensor(column) for column in zip(*events, strict=True))
    return RankingTask.from_events(src, dst, t, is_test, num_items=NUM_ITEMS, **options)


def read_by_a_loop(events, *, repeats, exclude_seen):
    """The truth and the seen destinations of each source and moment, one event after the other."""
    truth, seen = {}, {}
    for source, item, moment, is_test in events:
        before = {d for s, d, t, _ in events if s == source and t < moment}
        if is_test and (repeats or item not in before):
            truth.setdefault((source, moment), set()).add(item)
            seen[source, moment] = before
    if exclude_seen:
        seen = {query: seen[query] - items for query, items in truth.items()}
    return truth, seen


def by_query(edges, query):
    found = {}
    for user, item in pairs(edges):
        found.setdefault(tuple(query[user].tolist()), set()).add(item)
    return found


@pytest.mark.filterwarnings("ignore:.* repeat an earlier one")
@given(events=EVENTS, repeats=st.booleans(), exclude_seen=st.booleans())
def test_events_are_the_task_of_a_loop_over_them(events, repeats, exclude_seen):
    options = {"repeats": repeats, "exclude_seen": exclude_seen}
    truth, seen = read_by_a_loop(events, **options)
    if not truth:
        with pytest.raises(ValueError, match="'is_test' needs to be true for an event"):
            task_of_events(events, **options)
        return
    made = task_of_events(events, **options)
    assert made.query.tolist() == [list(query) for query in sorted(truth)]
    assert by_query(made.truth, made.query) == truth
    assert by_query(made.seen, made.query) == {q: items for q, items in seen.items() if items}
    sources = sorted({source for source, _ in truth})
    assert made.person.tolist() == [sources.index(source) for source, _ in sorted(truth)]


@pytest.mark.filterwarnings("ignore:.* repeat an earlier one")
def test_memory_of_events_is_that_of_what_is_left_out():
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(0, 500, (20000,), generator=generator)
    dst = torch.randint(0, 1000, (20000,), generator=generator)
    t = torch.arange(20000)
    with LargestTensor() as largest:
        made = RankingTask.from_events(src, dst, t, t >= 15000, num_items=1000)
    assert made.num_users == 5000  # a dense comparison has 5000 * 20000 entries
    assert largest.numel <= 2.1 * made.seen.size(1) < 2**19


SRC, DST, T = torch.tensor([0, 1, 1]), torch.tensor([2, 0, 3]), torch.tensor([5, 6, 7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"src": SRC.float()}, "'src' needs to hold integers"),
        ({"src": SRC[None]}, r"'src' needs .* of shape \[3\] \(got \[1, 3\]\)"),
        ({"dst": DST + 2}, r"'dst' needs to hold item ids in \[0, 5\) \(got 5\)"),
        ({"dst": DST.to("meta")}, r"'dst' .* device of 'src', cpu \(got meta\)"),
        ({"is_test": T}, r"'is_test' needs to be a mask of shape \[3\] \(got torch.int64, \[3\]"),
        ({"is_test": T < 0}, r"'is_test' needs to be true for an event \(got none\)"),
        (
            {"src": SRC * 0, "dst": DST * 0, "is_test": T > 5, "repeats": False},
            r"an event that is the first of its source and destination \(got none\)",
        ),
        ({"num_items": 0}, "'num_items' needs to be a positive integer"),
        ({"repeats": 1}, "'repeats' needs to be a boolean"),
        ({"exclude_seen": 1}, "'exclude_seen' needs to be a boolean"),
    ],
)
def test_what_is_wrong_is_named_of_events(options, message):
    options = {"src": SRC, "dst": DST, "t": T, "is_test": T > 5, "num_items": 5, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        RankingTask.from_events(**options)


NUM_ENTITIES, NUM_RELATIONS = 6, 3
TRAIN = torch.tensor([[0, 0, 3, 4], [1, 1, 2, 0], [3, 5, 0, 4]])
TEST = torch.tensor([[0, 3], [1, 2], [2, 1]])


def task_of_triples(test=TEST, known=TRAIN, **options):
    options = {"num_entities": NUM_ENTITIES, "num_relations": NUM_RELATIONS, **options}
    return RankingTask.from_triples(test, known, **options)


class TestFormsOfTriples:
    @pytest.mark.parametrize(
        "known",
        [
            TRAIN,
            TRAIN.numpy(),
            [TRAIN],
            [TRAIN[:, :3], TRAIN[:, 3:]],
            (tuple(TRAIN[:, :1]), TRAIN[:, 1:].tolist()),
            [TRAIN, TEST, TRAIN[:, :0]],
        ],
    )
    def test_what_is_known_comes_in_one_part_or_in_several(self, known):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for test in (TEST, tuple(TEST), TEST.int()):
                made = task_of_triples(test, known)
                assert torch.equal(made.seen, task_of_triples().seen)
                assert torch.equal(made.truth, task_of_triples().truth)

    def test_relations_are_counted(self):
        assert task_of_triples(num_relations=None).num_relations == 3
        assert task_of_triples(TEST[:, :1], TRAIN[:, :2], num_relations=None).num_relations == 2
        assert task_of_triples(TEST[:, :1], TRAIN, num_relations=None).num_relations == 3

    def test_without_other_triples_there_is_one_warning(self):
        for known in (None, []):
            with pytest.warns(UserWarning, match=r"'known' is not given, .*\[train, valid\]") as w:
                made = task_of_triples(known=known)
            assert len(w) == 1
            assert w[0].filename == __file__
            assert made.seen.shape == (2, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": TEST.t()}, r"'test' .* shape \[3, num_triples\] \(got \[2, 3\]\)"),
        ({"test": TEST[:2]}, r"'test' needs to hold heads, relations and tails .*\(got \[2, 2\]\)"),
        ({"test": TEST[:, :0]}, "at least one query"),
        ({"known": TRAIN.t()}, r"'known' .*\(got \[4, 3\]\)"),
        ({"known": [TRAIN, TEST[0]]}, r"'known' .*\(got \[2\]\)"),
        ({"known": TRAIN.to("meta")[:, :0]}, r"'known' .* device of 'test', cpu \(got meta\)"),
        ({"num_entities": 3}, r"'test' needs to hold entity ids in \[0, 3\) \(got 3\)"),
        ({"num_entities": 4}, r"'known' needs to hold entity ids in \[0, 4\) \(got 4\)"),
        ({"num_relations": 2}, r"'test' needs to hold relation ids in \[0, 2\) \(got 2\)"),
    ],
)
def test_what_is_wrong_is_named_of_triples(options, message):
    with pytest.raises(ValueError, match=message):
        task_of_triples(**options)


def test_tasks_of_every_kind_are_the_same_on_any_device(device):
    columns = SESSION, POSITION, ITEM, SESSION % 2 == 1
    moved, triples = [column.to(device) for column in columns], (TEST.to(device), TRAIN.to(device))

    def tasks(session, position, item, is_test, test, known):
        query = (session, position)
        seen = (query, item.flip(0))
        yield task(query, item, seen=seen, candidates=(query, item), person=session)
        yield RankingTask.from_events(session, item, position, is_test, num_items=4)
        yield task_of_triples(test, known)

    for made, wanted in zip(tasks(*moved, *triples), tasks(*columns, TEST, TRAIN), strict=True):
        for name in ("query", "truth", "seen", "person", "candidates", "num_candidates"):
            found, expected = getattr(made, name), getattr(wanted, name)
            assert (found is None) == (expected is None)
            if found is not None:
                assert found.device.type == device.type
                assert found.tolist() == expected.tolist(), name
