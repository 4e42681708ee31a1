"""Queries of several columns: as a naive loop over tuples numbers them."""

import warnings
from collections import defaultdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask, rank
from tests.support.cases.strategies import pairs
from tests.support.tools.largest_tensor import LargestTensor

SESSION, POSITION = torch.tensor([7, 7, 3, 7]), torch.tensor([2, 1, 1, 2])
ITEM = torch.tensor([0, 3, 1, 2])


def columns(rows):
    return tuple(torch.tensor(column) for column in zip(*rows, strict=True))


def task(query=(SESSION, POSITION), item=ITEM, **options):
    return RankingTask.from_queries(query, item, num_items=4, **options)


@st.composite
def cases(draw):
    """Edges, seen edges and candidates of queries of two columns, and weights."""
    row = st.tuples(st.sampled_from([0, 1, 10**18, 2**63 - 1]), st.integers(0, 2))
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

    @pytest.mark.parametrize("candidates", [torch.tensor([3, 1, 0, 2]), [0, 1, 2, 3]])
    def test_candidates_that_all_queries_share(self, candidates):
        assert task(candidates=candidates).candidates.tolist() == [0, 1, 2, 3]

    def test_any_device(self, device):
        query, item = (SESSION.to(device), POSITION.to(device)), ITEM.to(device)
        seen = ((SESSION.to(device), POSITION.to(device)), item.flip(0))
        candidates = (tuple(x.repeat(2) for x in query), torch.cat([item, item.flip(0)]))
        made = task(query, item, seen=seen, candidates=candidates, person=query[0])
        assert made.candidates.device.type == device.type
        for name, value in vars(
            task(seen=((SESSION, POSITION), ITEM.flip(0)), person=SESSION)
        ).items():
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
    def test_a_label_of_each_edge(self):
        assert task(person=["bob", "ann", "ann", "bob"]).person.tolist() == [0, 0, 1]
        assert task(person=torch.tensor([5, 9, 9, 5])).person.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("query", "item", "options", "message"),
    [
        ((SESSION, POSITION[:3]), ITEM, {}, r"'query' needs to be a tuple .*\[\[4\], \[3"),
        ([[7, 2], [7, 1], [3, 1], [7, 2]], ITEM, {}, "'query' needs to be a tuple of columns"),
        ([(7, 2), (7, 1)], ITEM[:2], {}, "'query' needs to be a tuple of columns"),
        (torch.zeros(2, 4, 1).long(), ITEM, {}, r"'query' .*\(got \[\[2, 4, 1\]\]\)"),
        (torch.zeros(4, 0).long(), ITEM, {}, r"'query' .*\(got \[\[4, 0\]\]\)"),
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
    assert largest.numel <= 2 * (20000 + 5000)  # both columns of all queries
    truth, expected = pairs(made.truth), set()
    for number, row in enumerate(made.query.tolist()):
        expected |= {(number, other) for other in by_row[tuple(row)]} - truth
    assert pairs(made.seen) == expected
    assert expected


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


class TestNaiveOfEvents:
    @pytest.mark.parametrize("repeats", [True, False])
    @pytest.mark.parametrize("exclude_seen", [True, False])
    @given(events=EVENTS)
    def test_it_is_the_task_of_a_loop_over_events(self, events, repeats, exclude_seen):
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

    @given(EVENTS, st.randoms())
    def test_the_order_of_events_does_not_matter(self, events, random):
        if not any(is_test for *_, is_test in events):
            events = [(*events[0][:3], True), *events[1:]]
        shuffled = random.sample(events, len(events))
        for name, value in task_of_events(events).to_dict().items():
            other = getattr(task_of_events(shuffled), name)
            assert torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other

    @given(EVENTS, st.integers(0, 2**31))
    def test_ranks_are_those_of_a_loop(self, events, seed):
        events = [(*events[0][:3], True), *events[1:]]
        made = task_of_events(events)
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
        made = task_of_events(self.EVENTS)
        assert made.query.tolist() == [[0, 20], [0, 30]]
        assert pairs(made.truth) == {(0, 2), (1, 1), (1, 3)}
        assert pairs(made.seen) == {(0, 1), (1, 2)}
        assert repr(made).endswith("seen=[2, 2], person=[2], query=[2, 2])")

    def test_or_is_not_ranked(self):
        made = task_of_events(self.EVENTS, repeats=False)
        assert pairs(made.truth) == {(0, 2), (1, 3)}
        assert pairs(made.seen) == {(0, 1), (1, 1), (1, 2)}

    def test_candidates_are_those_of_all(self):
        assert task_of_events(self.EVENTS, candidates=[3, 2, 1]).num_candidates.tolist() == [2, 2]

    def test_any_device(self, device):
        columns = [torch.tensor(column).to(device) for column in zip(*self.EVENTS, strict=True)]
        made = RankingTask.from_events(*columns, num_items=NUM_ITEMS)
        assert made.query.device.type == device.type
        for name in ("query", "truth", "seen", "person", "num_candidates"):
            assert (
                getattr(made, name).tolist() == getattr(task_of_events(self.EVENTS), name).tolist()
            )

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
        ({"src": SRC[None]}, r"'src' needs .* of shape \[3\] \(got \[1, 3\]\)"),
        ({"dst": DST[:2]}, r"'dst' needs .* of shape \[3\] \(got \[2\]\)"),
        ({"t": T[:, None]}, r"'t' needs .* of shape \[3\] \(got \[3, 1\]\)"),
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
def test_what_is_wrong_is_named_of_events(options, message):
    options = {"src": SRC, "dst": DST, "t": T, "is_test": T > 5, "num_items": 5, **options}
    with pytest.raises(ValueError, match=message):
        RankingTask.from_events(**options)


@pytest.mark.parametrize("name", ["repeats", "exclude_seen"])
def test_options_are_booleans(name):
    with pytest.raises(TypeError, match=f"'{name}' needs to be a boolean"):
        RankingTask.from_events(SRC, DST, T, T > 5, num_items=5, **{name: 1})


NUM_ENTITIES, NUM_RELATIONS = 6, 3
TRAIN = torch.tensor([[0, 0, 3, 4], [1, 1, 2, 0], [3, 5, 0, 4]])
TEST = torch.tensor([[0, 3], [1, 2], [2, 1]])

TRIPLE = st.tuples(
    st.integers(0, NUM_ENTITIES - 1),
    st.integers(0, NUM_RELATIONS - 1),
    st.integers(0, NUM_ENTITIES - 1),
)


def stacked(triples):
    return torch.tensor(triples, dtype=torch.long).reshape(-1, 3).t()


def task_of_triples(test=TEST, known=TRAIN, **options):
    options = {"num_entities": NUM_ENTITIES, "num_relations": NUM_RELATIONS, **options}
    return RankingTask.from_triples(test, known, **options)


def filtered_rank(scores, answer, others):
    """The rank of an answer as the mean of the best and the worst, without the other answers."""
    above = below = 1
    for entity, score in enumerate(scores):
        if entity != answer and entity not in others:
            above += score > scores[answer]
            below += score >= scores[answer]
    return (above + below) / 2


def ranks_of_a_loop(scores, test, known):
    """The rank of the tail and of the head of each triple, from scores `[h][r][t]`."""
    true, ranks = {*test, *known}, {}
    for h, r, t in {*test}:
        tails = {other for head, relation, other in true if (head, relation) == (h, r)}
        heads = {other for other, relation, tail in true if (relation, tail) == (r, t)}
        ranks[h, r, t] = (
            filtered_rank(scores[h][r], t, tails),
            filtered_rank([row[r][t] for row in scores], h, heads),
        )
    return ranks


def ranks_of_triples(ranked, query, num_relations):
    """The same from one ranking: of what is above an edge, the other truth of its query is known.

    The truth of a query stands in the order of its ranks, or shares the mean of some of them. Then
    `rank - position + 1` of the first and the last of equal ones are those without each other.
    """
    user, item = ranked.edge_label_index
    above = ranked.num_above
    same = user[:, None] == user
    others_above = (same & (above < above[:, None])).sum(dim=1)
    others_tied = (same & (above == above[:, None])).sum(dim=1) - 1
    best = above - others_above + 1
    mean = best + (ranked.num_tied - others_tied) / 2
    entity, relation = query[user].t()
    found = {}
    for known, r, answer, value in zip(
        entity.tolist(), relation.tolist(), item.tolist(), mean.tolist(), strict=True
    ):
        is_head = r >= num_relations
        triple = (answer, r - num_relations, known) if is_head else (known, r, answer)
        found.setdefault(triple, [None, None])[is_head] = value
    return {triple: tuple(values) for triple, values in found.items()}


def scores_of_queries(scores, query, num_relations):
    """Scores of all entities for each query."""
    rows = [
        scores[entity, relation]
        if relation < num_relations
        else scores[:, relation % num_relations, entity]
        for entity, relation in query.tolist()
    ]
    return torch.stack(rows)


class TestNaiveOfTriples:
    @given(
        st.lists(TRIPLE, min_size=1, max_size=12),
        st.lists(TRIPLE, min_size=1, max_size=25),
        st.integers(0, 2**31),
    )
    def test_each_triple_has_the_rank_of_a_filtered_loop(self, test, known, seed):
        generator = torch.Generator().manual_seed(seed)
        shape = (NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES)
        scores = torch.randint(-2, 3, shape, generator=generator)
        made = task_of_triples(stacked(test), stacked(known))
        given_scores = scores_of_queries(scores.float(), made.query, NUM_RELATIONS)
        ranked = rank(given_scores, made, full=True)
        found = ranks_of_triples(ranked, made.query, NUM_RELATIONS)
        assert found == ranks_of_a_loop(scores.tolist(), test, known)


class TestFormsOfTriples:
    def test_the_queries_of_a_small_graph(self):
        made = task_of_triples()
        assert made.query.tolist() == [[0, 1], [1, 5], [2, 4], [3, 2]]
        assert pairs(made.truth) == {(0, 2), (1, 3), (2, 0), (3, 1)}
        assert pairs(made.seen) == {(0, 3), (0, 5), (3, 0)}
        assert repr(made).endswith("seen=[2, 3], query=[4, 2], num_relations=3)")
        assert made.person is None

    @pytest.mark.parametrize(
        "known",
        [
            TRAIN,
            TRAIN.numpy(),
            [TRAIN],
            [TRAIN[:, :3], TRAIN[:, 3:]],
            [TRAIN[:, :1], TRAIN[:, 1:2], TRAIN[:, 2:]],
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

    def test_any_device(self, device):
        made = task_of_triples(TEST.to(device), [TRAIN.to(device)])
        assert made.query.device.type == device.type
        assert made.query.tolist() == task_of_triples().query.tolist()
        assert made.seen.tolist() == task_of_triples().seen.tolist()
        assert made.num_candidates.tolist() == task_of_triples().num_candidates.tolist()


def test_entities_that_all_queries_share():
    candidates = torch.tensor([3, 1, 2, 0])
    assert task_of_triples(candidates=candidates).candidates.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": TEST.t()}, r"'test' .* shape \[3, num_triples\] \(got \[2, 3\]; transpose it\)"),
        ({"test": TEST[:2]}, r"'test' needs to hold heads, relations and tails .*\(got \[2, 2\]\)"),
        ({"test": TEST.float()}, "'test' needs to hold integers"),
        ({"test": TEST[:, :0]}, "at least one query"),
        ({"test": (TEST[0], TEST[1], TEST[2, :1])}, "'test' needs to hold parts of one shape"),
        ({"known": TRAIN.t()}, r"'known' .*\(got \[4, 3\]; transpose it\)"),
        ({"known": [TRAIN, TEST[0]]}, r"'known' .*\(got \[2\]\)"),
        ({"known": TRAIN.to("meta")[:, :0]}, r"'known' .* device of 'test', cpu \(got meta\)"),
        ({"num_entities": 3}, r"'test' needs to hold entity ids in \[0, 3\) \(got 3\)"),
        ({"num_entities": 4}, r"'known' needs to hold entity ids in \[0, 4\) \(got 4\)"),
        ({"num_entities": 0}, "'num_entities' needs to be a positive integer"),
        ({"num_relations": 2}, r"'test' needs to hold relation ids in \[0, 2\) \(got 2\)"),
        ({"num_relations": 0}, "'num_relations' needs to be a positive integer"),
        ({"test": TEST - 1}, r"'test' .* entity ids in \[0, 6\) \(got -1\)"),
        ({"known": tuple(TRAIN)}, r"'known' .* shape \[3, num_triples\] \(got \[4\]\)"),
        ({"candidates": torch.ones(6, 6) > 0}, r"'candidates' .*\(got \[6, 6\]\)"),
        ({"candidates": torch.tensor([6])}, "'candidates' needs to hold item ids"),
    ],
)
def test_what_is_wrong_is_named_of_triples(options, message):
    with pytest.raises(ValueError, match=message):
        task_of_triples(**options)
