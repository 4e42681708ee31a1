"""Triples of a knowledge graph: ranks are those of a naive filtered loop over triples."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask, rank
from tests.support.cases.strategies import pairs

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


def task(test=TEST, known=TRAIN, **options):
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


class TestNaive:
    @given(
        st.lists(TRIPLE, min_size=1, max_size=12),
        st.lists(TRIPLE, min_size=1, max_size=25),
        st.integers(0, 2**31),
    )
    def test_each_triple_has_the_rank_of_a_filtered_loop(self, test, known, seed):
        generator = torch.Generator().manual_seed(seed)
        shape = (NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES)
        scores = torch.randint(-2, 3, shape, generator=generator)
        made = task(stacked(test), stacked(known))
        given_scores = scores_of_queries(scores.float(), made.query, NUM_RELATIONS)
        ranked = rank(given_scores, made, full=True)
        found = ranks_of_triples(ranked, made.query, NUM_RELATIONS)
        assert found == ranks_of_a_loop(scores.tolist(), test, known)

    @given(st.lists(TRIPLE, min_size=1, max_size=12), st.lists(TRIPLE, min_size=1, max_size=25))
    def test_both_directions_are_each_of_them(self, test, known):
        both = task(stacked(test), stacked(known))
        tails, heads = (
            task(stacked(test), stacked(known), directions=name) for name in ("tail", "head")
        )
        is_head = both.query[:, 1] >= NUM_RELATIONS
        assert set(map(tuple, both.query[~is_head].tolist())) == {(h, r) for h, r, _ in test}
        assert both.query[~is_head].tolist() == tails.query.tolist()
        assert both.query[is_head].tolist() == heads.query.tolist()
        for name in ("truth", "seen"):
            edges = {
                (*both.query[user].tolist(), item) for user, item in pairs(getattr(both, name))
            }
            of_each = {
                (*one.query[user].tolist(), item)
                for one in (tails, heads)
                for user, item in pairs(getattr(one, name))
            }
            assert edges == of_each


class TestForms:
    def test_the_queries_of_a_small_graph(self):
        made = task()
        assert made.query.tolist() == [[0, 1], [1, 5], [2, 4], [3, 2]]
        assert pairs(made.truth) == {(0, 2), (1, 3), (2, 0), (3, 1)}
        assert pairs(made.seen) == {(0, 3), (0, 5), (3, 0)}
        assert repr(made).endswith("seen=[2, 3], query=[4, 2], num_relations=3)")
        assert made.person is None

    @pytest.mark.parametrize(
        "known",
        [
            TRAIN,
            tuple(TRAIN),
            TRAIN.tolist(),
            TRAIN.numpy(),
            [TRAIN],
            [TRAIN[:, :3], TRAIN[:, 3:]],
            [TRAIN[:, :1], TRAIN[:, 1:2], TRAIN[:, 2:]],
            (tuple(TRAIN[:, :1]), tuple(TRAIN[:, 1:2]), tuple(TRAIN[:, 2:])),
            [TRAIN, TEST, TRAIN[:, :0]],
        ],
    )
    def test_what_is_known_comes_in_one_part_or_in_several(self, known):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for test in (TEST, tuple(TEST), TEST.int()):
                made = task(test, known)
                assert torch.equal(made.seen, task().seen)
                assert torch.equal(made.truth, task().truth)

    def test_relations_are_counted(self):
        assert task(num_relations=None).num_relations == 3
        assert task(TEST[:, :1], TRAIN[:, :2], num_relations=None).num_relations == 2
        assert task(TEST[:, :1], TRAIN, num_relations=None).num_relations == 3

    def test_without_other_triples_there_is_one_warning(self):
        for known in (None, []):
            with pytest.warns(UserWarning, match=r"'known' is not given, .*\[train, valid\]") as w:
                made = task(known=known)
            assert len(w) == 1
            assert w[0].filename == __file__
            assert made.seen.shape == (2, 0)

    def test_any_device(self, device):
        types = torch.ones(2 * NUM_RELATIONS, NUM_ENTITIES, dtype=torch.bool)
        made = task(TEST.to(device), [TRAIN.to(device)], candidates=types.to(device))
        assert made.query.device.type == device.type
        assert made.query.tolist() == task().query.tolist()
        assert made.seen.tolist() == task().seen.tolist()
        assert made.num_candidates.tolist() == task().num_candidates.tolist()


class TestCandidates:
    def test_entities_that_all_queries_share(self):
        assert task(candidates=torch.tensor([3, 1, 2, 0])).candidates.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("directions", ["both", "tail", "head"])
    def test_what_fits_a_relation(self, directions):
        types = torch.rand(6, 6, generator=torch.Generator().manual_seed(3)) < 0.7
        types[TEST[1], TEST[2]] = types[TEST[1] + 3, TEST[0]] = True
        made = task(candidates=types, directions=directions)
        allowed = [set(row.nonzero().flatten().tolist()) for row in types]
        expected = {
            (number, item)
            for number, (_, relation) in enumerate(made.query.tolist())
            for item in allowed[relation]
        }
        assert pairs(made.candidates) == expected
        if directions != "both":
            half = types[:3] if directions == "tail" else types[3:]
            again = task(candidates=half, directions=directions)
            assert torch.equal(again.candidates, made.candidates)

    def test_a_relation_that_allows_nothing(self):
        types = torch.ones(6, 6, dtype=torch.bool)
        types[2] = False
        made = task(candidates=types)
        assert int((~made.is_candidate).sum()) == 1
        assert made.num_candidates.tolist() == [4, 6, 6, 0]


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
        ({"directions": "tails"}, r"'directions' .*\['both', 'tail', 'head'\].*\(got 'tails'\)"),
        ({"candidates": torch.ones(3, 6) > 0}, r"\[6, 6\] for directions='both'.*\[3, 6\]\)"),
        ({"candidates": torch.ones(6, 5) > 0}, r"'candidates' .* of shape \[6, 6\] .*\[6, 5\]"),
        ({"candidates": torch.ones(6, 6)}, r"'candidates' .*\(got torch.float32 of shape"),
        ({"candidates": torch.ones(6) > 0}, r"'candidates' .*\(got torch.bool of shape \[6\]"),
        (
            {"candidates": torch.ones(4, 6) > 0, "directions": "tail"},
            r"\[3, 6\] or \[6, 6\] for directions='tail'",
        ),
        ({"candidates": torch.tensor([6])}, "'candidates' needs to hold item ids"),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        task(**options)
