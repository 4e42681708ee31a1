"""Events of a temporal graph: what is seen before a moment is what a naive loop says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask, rank
from tests.support.cases.strategies import pairs
from tests.support.tools.largest_tensor import LargestTensor

NUM_ITEMS = 5

#: A source, a destination, a moment, and whether the event is ranked.
EVENT = st.tuples(
    st.sampled_from([0, 3, 10**18]),
    st.integers(0, NUM_ITEMS - 1),
    st.sampled_from([-(10**18), -1, 0, 1, 2, 10**18]),
    st.booleans(),
)
EVENTS = st.lists(EVENT, min_size=1, max_size=20)


def task(events, **options):
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


class TestNaive:
    @pytest.mark.parametrize("repeats", [True, False])
    @pytest.mark.parametrize("exclude_seen", [True, False])
    @given(events=EVENTS)
    def test_it_is_the_task_of_a_loop_over_events(self, events, repeats, exclude_seen):
        options = {"repeats": repeats, "exclude_seen": exclude_seen}
        truth, seen = read_by_a_loop(events, **options)
        if not truth:
            with pytest.raises(ValueError, match="'is_test' needs to be true for an event"):
                task(events, **options)
            return
        made = task(events, **options)
        assert made.query.tolist() == [list(query) for query in sorted(truth)]
        assert by_query(made.truth, made.query) == truth
        assert by_query(made.seen, made.query) == {q: items for q, items in seen.items() if items}
        sources = sorted({source for source, _ in truth})
        assert made.person.tolist() == [sources.index(source) for source, _ in sorted(truth)]

    @given(EVENTS, st.randoms())
    def test_the_order_of_events_does_not_matter(self, events, random):
        if not any(is_test for *_, is_test in events):
            events = [(*events[0][:3], True), *events[1:]]
        shuffled = random.sample(events, len(events))
        for name, value in task(events).to_dict().items():
            other = getattr(task(shuffled), name)
            assert torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other

    @given(EVENTS, st.integers(0, 2**31))
    def test_ranks_are_those_of_a_loop(self, events, seed):
        events = [(*events[0][:3], True), *events[1:]]
        made = task(events)
        shape = (made.num_users, NUM_ITEMS)
        generator = torch.Generator().manual_seed(seed)
        scores = torch.rand(shape, generator=generator)
        ranked = rank(scores, made, full=True)
        truth, seen = read_by_a_loop(events, repeats=True, exclude_seen=True)
        for user, item, found in zip(
            *ranked.edge_label_index.tolist(), ranked.rank.tolist(), strict=True
        ):
            query = tuple(made.query[user].tolist())
            allowed = {*range(NUM_ITEMS)} - seen[query]
            assert item in truth[query]
            assert found == 1 + sum(bool(scores[user, i] > scores[user, item]) for i in allowed)


class TestEvents:
    EVENTS = ((0, 1, 10, False), (0, 2, 20, True), (0, 1, 30, True), (0, 3, 30, True))

    def test_what_was_seen_before_is_truth_again(self):
        made = task(self.EVENTS)
        assert made.query.tolist() == [[0, 20], [0, 30]]
        assert pairs(made.truth) == {(0, 2), (1, 1), (1, 3)}
        assert pairs(made.seen) == {(0, 1), (1, 2)}
        assert repr(made).endswith("seen=[2, 2], person=[2], query=[2, 2])")

    def test_or_is_not_ranked(self):
        made = task(self.EVENTS, repeats=False)
        assert pairs(made.truth) == {(0, 2), (1, 3)}
        assert pairs(made.seen) == {(0, 1), (1, 1), (1, 2)}

    def test_candidates_are_those_of_all(self):
        assert task(self.EVENTS, candidates=[3, 2, 1]).num_candidates.tolist() == [2, 2]

    def test_any_device(self, device):
        columns = [torch.tensor(column).to(device) for column in zip(*self.EVENTS, strict=True)]
        made = RankingTask.from_events(*columns, num_items=NUM_ITEMS)
        assert made.query.device.type == device.type
        for name in ("query", "truth", "seen", "person", "num_candidates"):
            assert getattr(made, name).tolist() == getattr(task(self.EVENTS), name).tolist()

    def test_memory_is_that_of_what_is_left_out(self):
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
        ({"t": T.float()}, "'t' needs to hold integers"),
        ({"src": SRC - 1}, r"'src' needs to hold no negative numbers \(got -1\)"),
        ({"src": SRC[None]}, r"'src' needs to have shape \[num_events\], .*\(got \[1, 3\]\)"),
        ({"dst": DST[:2]}, r"'dst' needs to have shape \[num_events\], .*\(got \[2\]\)"),
        ({"t": T[:, None]}, r"'t' needs to have shape \[num_events\], .*\(got \[3, 1\]\)"),
        ({"dst": DST + 2}, r"'dst' needs to hold item ids in \[0, 5\) \(got 5\)"),
        ({"dst": DST.to("meta")}, r"'dst' .* device of 'src', cpu \(got meta\)"),
        ({"is_test": T}, r"'is_test' needs to be a mask of shape \[3\] \(got torch.int64, \[3\]"),
        ({"is_test": T[:2] > 5}, r"'is_test' .*\(got torch.bool, \[2\]\)"),
        ({"is_test": T < 0}, r"'is_test' needs to be true for an event \(got none\)"),
        (
            {"src": SRC * 0, "dst": DST * 0, "is_test": T > 5, "repeats": False},
            r"an event that is the first of its source and destination \(got none\)",
        ),
        ({"num_items": 0}, "'num_items' needs to be a positive integer"),
        (
            {
                "num_items": 2**53 - 1,
                "src": torch.arange(2**11),
                "dst": torch.zeros(2**11).long(),
                "t": torch.arange(2**11),
                "is_test": torch.arange(2**11) > 0,
            },
            r"'src' .* 2\*\*63",
        ),
    ],
)
def test_what_is_wrong_is_named(options, message):
    options = {"src": SRC, "dst": DST, "t": T, "is_test": T > 5, "num_items": 5, **options}
    with pytest.raises(ValueError, match=message):
        RankingTask.from_events(**options)


@pytest.mark.parametrize("name", ["repeats", "exclude_seen"])
def test_options_are_booleans(name):
    with pytest.raises(TypeError, match=f"'{name}' needs to be a boolean"):
        RankingTask.from_events(SRC, DST, T, T > 5, num_items=5, **{name: 1})
