"""A world of users and items, and what every metric of it is, in plain Python.

It shares no code with the package, nor with the other references.
"""

import math
import random
from dataclasses import dataclass, replace

#: The metrics with a cut-off, in the order in which they are computed.
NAMES = (
    *("recall", "precision", "precision(normalizer=length)", "hit_rate", "mrr", "map", "ndcg"),
    "f1",
)


@dataclass
class World:
    """Who likes what, who has seen what, and what a recommender says of it.

    Attributes:
        users: The ids of all users.
        items: The ids of the catalogue.
        strangers: The ids of items that the recommender knows, and the task does not.
        seen: The pairs of a user and an item that were seen.
        grade: How relevant each pair of a user and an item is.
        score: What the recommender gives to each pair of a user and an item, or a stranger.
        lists: What it recommends to each user, best first; `None` where it has no item.
        exclude_seen: Whether what was seen is left out.
        ties: How equal scores are ranked.
        k: The cut-off.
        action: What users without ground truth count as.
    """

    users: list
    items: list
    strangers: list
    seen: set
    grade: dict
    score: dict
    lists: dict
    exclude_seen: bool
    ties: str
    k: int
    action: str

    def candidates(self, user):
        """The items that may be recommended to a user."""
        return [x for x in self.items if not (self.exclude_seen and (user, x) in self.seen)]

    def truth(self, user):
        """The grade of each relevant item that may be recommended to a user."""
        return {x: self.grade[user, x] for x in self.candidates(user) if (user, x) in self.grade}

    def places_by_score(self, user):
        """The place of each relevant item, and all candidates in order."""
        candidates, truth = self.candidates(user), self.truth(user)
        own = {x: self.score[user, x] for x in candidates}
        order = sorted(candidates, key=lambda x: (-own[x], self.items.index(x)))
        places = {}
        for item in truth:
            above = sum(own[x] > own[item] for x in candidates)
            tied = [x for x in candidates if own[x] == own[item]]
            sign = (
                -1 if self.ties == "best" else 1
            )  # among relevant ones, the heavier lead or trail
            relevant = [x for x in tied if x in truth]
            relevant.sort(key=lambda x: (sign * truth[x], self.items.index(x)))
            first, others = relevant.index(item), len(tied) - len(relevant)
            places[item] = {
                "index": order.index(item) + 1,
                "best": above + 1 + first,
                "worst": above + 1 + first + others,
                "mean": above + 1 + first + others / 2,
            }[self.ties]
        return places, order

    def places_by_list(self, user):
        """The place of each relevant item in the list of a user, and the list."""
        order = []
        for item in self.lists.get(user, []):
            if self.exclude_seen and (user, item) in self.seen:
                continue
            order.append(None if item in order else item)
        while order and order[-1] is None:
            order.pop()
        truth = self.truth(user)
        return {x: order.index(x) + 1 for x in truth if x in order}, order

    def without_strangers(self):
        """The same world, in which a list has no item in place of a stranger."""
        known = {*self.items}
        lists = {
            user: [item if item in known else None for item in own]
            for user, own in self.lists.items()
        }
        return replace(self, lists=lists)

    def measure(self, by):
        """Every metric of every user, by name; `None` where it is undefined."""
        values = {}
        for user in self.users:
            places, order = getattr(self, f"places_by_{by}")(user)
            for name, value in self._metrics(user, places, order, by).items():
                values.setdefault(name, {})[user] = value
        return values

    def _metrics(self, user, places, order, by):
        k, truth = self.k, self.truth(user)
        length = min(k, len(self.candidates(user)) if by == "score" else len(order))
        if not truth:
            return {f"{name}@{k}": None for name in NAMES} | {"r_precision": None}
        r, ranks = len(truth), sorted(places.values())
        hits = [rank for rank in ranks if rank <= k]
        gain = sum(truth[x] / math.log2(place + 1) for x, place in places.items() if place <= k)
        ideal = sorted(truth.values(), reverse=True)[:k]
        ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(ideal, 1))
        precision, recall = len(hits) / k, len(hits) / r
        values = [
            recall,
            precision,
            len(hits) / length if hits else 0.0,
            float(bool(hits)),
            1 / hits[0] if hits else 0.0,
            sum(number / rank for number, rank in enumerate(hits, 1)) / min(k, r),
            gain / ideal,
            2 * precision * recall / (precision + recall) if hits else 0.0,
        ]
        named = {f"{name}@{k}": value for name, value in zip(NAMES, values, strict=True)}
        return named | {"r_precision": sum(rank <= r for rank in ranks) / r}

    def mean(self, values):
        """The mean over users, of whom those without ground truth count as the action says."""
        empty = {"skip": None, "neg": 0.0, "pos": 1.0}[self.action]
        counted = [empty if value is None else value for value in values.values()]
        counted = [value for value in counted if value is not None]
        return math.fsum(counted) / len(counted) if counted else math.nan


def draw_world(seed):
    """A random world."""
    draw = random.Random(seed)
    num_users, num_items = draw.randint(1, 9), draw.randint(2, draw.choice([4, 12, 40]))
    make = draw.choice([str, lambda x: f"id {x}", lambda x: 10 * x + 3])
    users = [make(x) for x in draw.sample(range(100), num_users)]
    items = [make(x) for x in draw.sample(range(100, 200), num_items)]
    strangers = [make(x) for x in range(200, 200 + draw.choice([0, 0, 1, 9]))]
    pairs = [(user, item) for user in users for item in items]
    grade = {
        pair: draw.choice([1.0, 1.0, 2.0, 5.0]) if draw.random() < 0.4 else 1.0
        for pair in draw.sample(pairs, draw.randint(1, max(1, len(pairs) // 2)))
    }
    if draw.random() < 0.5:
        grade = dict.fromkeys(grade, 1.0)
    seen = set(draw.sample(pairs, draw.randint(0, len(pairs) // 3)))
    if draw.random() < 0.7:
        seen -= grade.keys()
    values = [draw.randint(-4, 4) for _ in range(3)] if draw.random() < 0.3 else None
    score = {
        (user, item): float(draw.choice(values) if values else draw.randint(-(2**20), 2**20))
        for user in users
        for item in [*items, *strangers]
    }
    lists, k = {}, draw.choice([1, 2, 3, 5, 20, 50])
    for user in users:
        known = [*items, *strangers, *([None] * draw.choice([0, 0, 2]))]
        lists[user] = draw.sample(known, draw.randint(1, len(known)))
        # Whether a list goes on where only repeats follow is not told.
        first, left = lists[user][:k], {item for item in items if (user, item) not in seen}
        if draw.random() < 0.1 and left.issuperset(first) and len(first) == k:
            lists[user] += draw.choices(lists[user], k=2)
    if draw.random() < 0.2 and num_users > 1:
        del lists[draw.choice(users)]
    return World(
        users,
        items,
        strangers,
        seen,
        grade,
        score,
        lists,
        exclude_seen=draw.random() < 0.8,
        ties=draw.choice(["index", "index", "best", "worst", "mean"]),
        k=k,
        action=draw.choice(["skip", "skip", "neg", "pos"]),
    )
