"""Small random evaluations for Hypothesis: many ties, repeated edges, users without any edge."""

import math
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st

from pyg_recmetrics import Catalogue, RankingTask
from tests.support.references import naive

NUM_CATEGORIES = 3


@dataclass
class Case:
    """One evaluation in plain Python."""

    num_users: int
    num_items: int
    scores: list[list[int]]
    truth: list[tuple[int, int]]
    weights: list[int] | None
    seen: list[tuple[int, int]]
    categories: list[set[int]]
    embeddings: list[list[int]]

    @property
    def score_matrix(self):
        return torch.tensor(self.scores, dtype=torch.float)

    def task(self, **options):
        return RankingTask(
            edges(self.truth),
            num_users=self.num_users,
            num_items=self.num_items,
            seen=edges(self.seen),
            weight=None if self.weights is None else torch.tensor(self.weights),
            **options,
        )

    def seen_by(self, user):
        return {item for seen_by, item in self.seen if seen_by == user}

    def without_ties(self):
        """The same case with distinct scores, since ties would be broken by the item id."""
        distinct = [
            [score * self.num_items + item for item, score in enumerate(row)] for row in self.scores
        ]
        return replace(self, scores=distinct)

    def renumbered(self, users, items):
        """The same case where `users[u]` is the new id of user `u`, and `items[i]` that of `i`."""
        scores = [[0] * self.num_items for _ in range(self.num_users)]
        for user, row in enumerate(self.scores):
            for item, score in enumerate(row):
                scores[users[user]][items[item]] = score
        old_item = sorted(range(self.num_items), key=lambda item: items[item])
        return replace(
            self,
            scores=scores,
            truth=[(users[user], items[item]) for user, item in self.truth],
            seen=[(users[user], items[item]) for user, item in self.seen],
            categories=[self.categories[item] for item in old_item],
            embeddings=[self.embeddings[item] for item in old_item],
        )

    @property
    def catalogue(self):
        if all(len(categories) == 1 for categories in self.categories):
            category = torch.tensor([min(categories) for categories in self.categories])
        else:
            category = torch.zeros(self.num_items, NUM_CATEGORIES, dtype=torch.bool)
            for item, categories in enumerate(self.categories):
                category[item, list(categories)] = True
        return Catalogue(
            self.num_items,
            seen=edges(self.seen),
            item_category=category,
            item_embedding=torch.tensor(self.embeddings, dtype=torch.float),
        )

    @property
    def naive_catalogue(self):
        seen = [self.seen_by(user) for user in range(self.num_users)]
        return naive.Catalogue(self.num_items, seen, self.categories, self.embeddings)

    @property
    def rankings(self):
        return [
            naive.ranking(self.scores[user], self.seen_by(user)) for user in range(self.num_users)
        ]

    @property
    def truths(self):
        return [
            {
                item: weight
                for item, weight in naive.truth_of(user, self.truth, self.weights).items()
                if item not in self.seen_by(user)
            }
            for user in range(self.num_users)
        ]


def edges(pairs):
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


def pairs(edges):
    """The pairs of nodes that edges connect."""
    return set(zip(*edges.tolist(), strict=True))


def ranks(ranked):
    """The rank of every edge as a dictionary, infinite where the item was not retrieved."""
    return {
        (user, item): rank if rank < 10**9 else math.inf
        for user, item, rank in zip(
            *ranked.edge_label_index.tolist(), ranked.rank.tolist(), strict=True
        )
    }


@st.composite
def cases(draw, max_users=6, max_items=9):
    # One of many users can hide the fault that one of few would show, so there are both.
    num_users = draw(st.integers(1, min(6, max_users)) | st.integers(1, max_users))
    num_items = draw(st.integers(1, max_items))
    row = st.lists(st.integers(-2, 2), min_size=num_items, max_size=num_items)
    pair = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    # Many users have more edges, or else most of them would have none.
    num_more = max(0, num_users - 6) * draw(st.sampled_from([1, 3]))
    max_edges = num_items * max_users // 3
    truth = draw(st.lists(pair, min_size=1 + num_more, max_size=max_edges + num_more))
    weights = draw(
        st.none() | st.lists(st.integers(0, 3), min_size=len(truth), max_size=len(truth))
    )
    seen = draw(st.lists(pair, min_size=num_more, max_size=max_edges + num_more))
    if draw(st.booleans()):  # a user who has seen everything
        seen += [(draw(st.integers(0, num_users - 1)), item) for item in range(num_items)]
    scores = draw(st.lists(row, min_size=num_users, max_size=num_users))
    min_size, max_size = draw(st.sampled_from([(1, 1), (0, 2)]))
    category = st.integers(0, NUM_CATEGORIES - 1)
    categories = st.sets(category, min_size=min_size, max_size=max_size)
    vector = st.lists(st.integers(-1, 1), min_size=2, max_size=2)
    case = Case(
        num_users,
        num_items,
        scores,
        truth,
        weights,
        seen,
        categories=draw(st.lists(categories, min_size=num_items, max_size=num_items)),
        embeddings=draw(st.lists(vector, min_size=num_items, max_size=num_items)),
    )
    if not any(case.truths):
        # At least one edge can be retrieved: a task without any is an error.
        user, item = truth[0]
        case.seen = [pair for pair in seen if pair != (user, item)]
        if weights is not None:
            case.weights = [max(weights[0], 1), *weights[1:]]
    return case


def scored_pairs(case):
    """Pairs as torchmetrics needs them: with positive scores, and without ties."""
    scores = case.score_matrix * 100 - torch.arange(case.num_items) + 1000
    rows = [
        (float(scores[user, item]), item in case.truths[user], user)
        for user, ranking in enumerate(case.rankings)
        for item in ranking
    ]
    return tuple(torch.tensor(column) for column in zip(*rows, strict=True))
