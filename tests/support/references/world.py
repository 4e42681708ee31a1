"""A world of users and items, and what every metric of it is, in plain Python.

It shares no code with the package, nor with the other references.
"""

import math
import statistics
from dataclasses import dataclass


@dataclass
class Row:
    """What metrics know of a user: the ranks and the grades of what was retrieved, in order."""

    ranks: list
    grades: list
    all_grades: list
    num_candidates: int
    num_irrelevant: int
    length: int

    @classmethod
    def of(cls, ranks, grades, num_candidates, num_irrelevant, length=None):
        """A user by all ranks in order, which are infinite for what was not retrieved."""
        found = [rank for rank in ranks if rank < math.inf]
        length = num_candidates if length is None else length
        return cls(found, grades[: len(found)], grades, num_candidates, num_irrelevant, length)

    def hits(self, k):
        return [rank for rank in self.ranks if k is None or rank <= k]

    def denominator(self, k, normalizer):
        r, hits = len(self.all_grades), len(self.hits(k))
        if k is None:
            return {"R": r, "min": r, "hits": max(hits, 1)}[normalizer]
        least, length = min(k, r), min(k, self.length)
        return {"k": k, "R": r, "min": least, "length": length, "hits": max(hits, 1)}[normalizer]


def precision(row, k, normalizer="k"):
    return len(row.hits(k)) / max(row.denominator(k, normalizer), 1)


def recall(row, k, normalizer="R", weighted=False):
    if weighted:
        return sum(row.grades[: len(row.hits(k))]) / possible_weight(row, k, normalizer)
    return len(row.hits(k)) / row.denominator(k, normalizer)


def possible_weight(row, k, normalizer):
    return sum(sorted(row.all_grades, reverse=True)[: k if normalizer == "min" else None])


def truncated_precision(row, k):
    return recall(row, k, "min")


def f1(row, k):
    return 2 * len(row.hits(k)) / (k + len(row.all_grades))


def r_precision(row, users="all"):
    value = recall(row, len(row.all_grades))
    return None if users == "hit" and value == 0 else value


def hit_rate(row, k):
    return float(bool(row.hits(k)))


def fall_out(row, k):
    wrong = min(k - len(row.hits(k)), row.num_irrelevant)
    return wrong / row.num_irrelevant if row.num_irrelevant else None


def mrr(row, k=None, hits="first"):
    reciprocals = [1 / rank for rank in row.hits(k)]
    return sum(reciprocals) / len(row.all_grades) if hits == "all" else sum(reciprocals[:1])


def map(row, k=None, normalizer="min"):
    total = sum(number / rank for number, rank in enumerate(row.hits(k), 1))
    return total / row.denominator(k, normalizer)


def rbp(row, k=None, p=0.8):
    return (1 - p) * sum(p ** (rank - 1) for rank in row.hits(k))


def err(row, k=None, max_grade=4):
    total, goes_on = 0.0, 1.0
    for rank, grade in zip(row.hits(k), row.grades, strict=False):
        satisfied = (2**grade - 1) / 2**max_grade
        total += goes_on * satisfied / rank
        goes_on *= 1 - satisfied
    return total


def dcg(row, k=None, gain="linear", discount="log2"):
    return discounted(row.grades, row.hits(k), gain, discount)


def discounted(grades, ranks, gain, discount):
    worth = {"linear": lambda x: x, "exponential": lambda x: 2**x - 1, "binary": lambda x: 1}[gain]
    total = 0.0
    for grade, rank in zip(grades, ranks, strict=False):
        total += worth(grade) / math.log2(rank + 1 if discount == "log2" else max(rank, 2))
    return total


def ndcg(row, k=None, gain="linear", discount="log2", ideal="relevant", ideal_k=None):
    best = sorted(row.all_grades, reverse=True)
    if ideal == "retrieved":
        best = sorted(row.grades[: len(row.hits(k and (ideal_k or k)))], reverse=True)
    best = best[:1] * k if ideal == "k" else best[:k]
    value = dcg(row, k, gain, discount)
    return value / discounted(best, range(1, len(best) + 1), gain, discount) if value else 0.0


def roc_auc(row):
    return partial_auc(row, row.num_irrelevant)


def partial_auc(row, k):
    looked_at = min(k, row.num_irrelevant)
    above = [rank - number for number, rank in enumerate(row.ranks, 1)]
    below = sum(max(0, looked_at - number) for number in above)
    return below / (len(above) * looked_at) if looked_at else None


pr_auc = map


def mean_rank(row):
    return statistics.fmean(row.ranks)


def median_rank(row):
    return statistics.median(row.ranks)


def adjusted_mean_rank(row):
    return mean_rank(row) / ((row.num_candidates + 1) / 2)


def adjusted_mean_rank_index(row):
    expected = (row.num_candidates - 1) / 2
    return 1 - (mean_rank(row) - 1) / expected if expected else None


def measure(name, rows, k=None, average=None, **arguments):
    """A metric of every row, `None` where it is undefined."""
    given = arguments if k is None else {"k": k, **arguments}
    values = [globals()[name](row, **given) if row.all_grades else None for row in rows]
    is_adjusted = name.startswith("adjusted")
    average = average or ("micro" if is_adjusted else "macro")
    if average == "macro":
        return values
    # Each value counts as much as its denominator, and is scaled so that the mean is the ratio.
    degree, by_size = [len(row.all_grades) for row in rows], average != "micro"
    if is_adjusted:
        shift = 1 if name.endswith("index") else -1
        size = [r * (row.num_candidates - shift) / 2 for r, row in zip(degree, rows, strict=True)]
    elif by_size:
        size = [row.num_candidates for row in rows] if average == "candidates" else degree
    else:
        normalizer = arguments.get("normalizer", "k" if name == "precision" else "R")
        possible = possible_weight if arguments.get("weighted") else Row.denominator
        size = [possible(row, k, normalizer) for row in rows]
    counts = [x is not None if by_size else r > 0 for x, r in zip(values, degree, strict=True)]
    total = sum(own for own, is_counted in zip(size, counts, strict=True) if is_counted)
    scale = sum(counts) / total if total else (0.0 if not is_adjusted else None)
    return [
        None if not is_counted or scale is None else (value or 0.0) * own * scale
        for value, own, is_counted in zip(values, size, counts, strict=True)
    ]


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
        threshold: The least grade of what is relevant, or `None` for all above zero.
        shared: The candidates of all users, or `None`.
        own: The pairs of a user and a candidate, or `None`.
        missing: Whether relevant items that are no candidates `"count"` as missed, or `"drop"`.
        person: The person of each user, or `None`.
    """

    users: list
    items: list
    strangers: list
    seen: set
    grade: dict
    score: dict
    lists: dict
    exclude_seen: bool
    ties: str = "index"
    threshold: float | None = None
    shared: list | None = None
    own: set | None = None
    missing: str = "drop"
    person: dict | None = None

    def is_seen(self, user, item):
        return self.exclude_seen and (user, item) in self.seen

    def is_candidate(self, user, item):
        is_shared = self.shared is None or item in self.shared
        is_own = self.own is None or (user, item) in self.own
        return is_shared and is_own and not self.is_seen(user, item)

    def candidates(self, user):
        """The items that may be recommended to a user."""
        return [x for x in self.items if self.is_candidate(user, x)]

    def is_grade(self, grade):
        """Whether a grade is that of a relevant item."""
        return grade > 0 if self.threshold is None else grade >= self.threshold

    def truth(self, user):
        """The grade of each relevant item of a user."""
        grades = {x: self.grade.get((user, x), 0) for x in self.items if not self.is_seen(user, x)}
        allowed = self.items if self.missing == "count" else self.candidates(user)
        return {x: grade for x, grade in grades.items() if x in allowed and self.is_grade(grade)}

    def row(self, user, by, only=None, ties=None):
        """What metrics know of a user, or of one relevant item without the others."""
        truth = self.truth(user)
        hidden = set() if only is None else truth.keys() - {only}
        truth = {x: grade for x, grade in truth.items() if x not in hidden}
        left = [x for x in self.candidates(user) if x not in hidden]
        places, length = {}, len(left)
        if by == "score":
            places = {x: self.place(user, x, left, truth, ties) for x in truth if x in left}
        else:
            order = [x for x in self.order(user) if x not in hidden]
            places = {x: order.index(x) + 1 for x in truth if x in order}
            length = len(order)
        found = sorted(truth, key=lambda x: (places.get(x, math.inf), self.items.index(x)))
        ranks, grades = [places.get(x, math.inf) for x in found], [truth[x] for x in found]
        return Row.of(ranks, grades, len(left), sum(x not in truth for x in left), length)

    def place(self, user, item, left, truth, ties=None):
        """The place of a relevant item among the candidates that are left."""
        ties = ties or self.ties
        own = self.score[user, item]
        above = sum(self.score[user, x] > own for x in left)
        tied = [x for x in left if self.score[user, x] == own]
        if ties == "index":
            return above + tied.index(item) + 1
        sign = -1 if ties == "best" else 1  # among relevant ones, the heavier lead or trail
        relevant = sorted(
            (x for x in tied if x in truth), key=lambda x: (sign * truth[x], self.items.index(x))
        )
        others = {"best": 0, "worst": 1, "mean": 0.5}[ties] * (len(tied) - len(relevant))
        return above + 1 + relevant.index(item) + others

    def order(self, user):
        """The list of a user without what it may not hold; padding keeps its place."""
        order = []
        for x in self.lists.get(user, []):
            if x is None or x not in self.items or self.is_candidate(user, x):
                order.append(None if x in order else x)
        while order and order[-1] is None:
            order.pop()
        return order

    def rows(self, by, per="user", ties=None):
        """What metrics know of every user, or of every relevant item in order."""
        if per == "edge":
            return [self.row(u, by, x, ties) for u in self.users for x in self.truth(u)]
        return [self.row(user, by, None, ties) for user in self.users]

    def values(self, metric, by, per="user"):
        """A metric of every row; `metric` is a name, a cut-off and the arguments."""
        name, k, arguments = metric
        ties = "mean" if arguments.get("ties") == "half" else None
        arguments = {key: value for key, value in arguments.items() if key != "ties"}
        return measure(name, self.rows(by, per, ties), k, **arguments)

    def mean(self, values, action="skip", per="user"):
        """The mean over rows, of which those without truth count as the action says."""
        rows = (
            [bool(self.truth(user)) for user in self.users] if per != "edge" else [1] * len(values)
        )
        empty = {"skip": None, "error": None, "neg": 0.0, "pos": 1.0}[action]
        values = [v if has else empty for v, has in zip(values, rows, strict=True)]
        if per == "person":
            groups = {}
            for user, value in zip(self.users, values, strict=True):
                groups.setdefault(self.person[user], []).append(value)
            values = [self.average(own) for own in groups.values()]
        mean = self.average(values)
        return math.nan if mean is None else mean

    @staticmethod
    def average(values):
        counted = [value for value in values if value is not None]
        return math.fsum(counted) / len(counted) if counted else None
