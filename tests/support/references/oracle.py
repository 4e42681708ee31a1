"""What a ranking has to be: plain Python in exact rational arithmetic.

It shares no code with the package. Scores are numbers of Python, which hold every floating-point
number exactly. Scores of embeddings are computed as exact integers times a power of two, and are
then rounded once.
"""

import bisect
import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import starmap

#: The rank of an item that is not retrieved, or so deep that its rank is not known.
NOT_RETRIEVED = math.inf

#: The number of bits of a number of single precision, and the exponent of the smallest one.
_NUM_BITS, _SMALLEST = 24, -149

#: Scaled embeddings have their largest number below two to the power of this, and count as zero up
#: to two to the power of that.
_LARGEST, _NEGLIGIBLE = 55, -400


def inner_products(users, items, biases=None):
    """The scores of embeddings, lists of rows of numbers: `[num_users][num_items]`.

    Each user and the table of items are scaled by powers of two. This matters only where single
    precision underflows. A bias is one more dimension, in which every user has a one.
    """
    if biases is not None:
        users = [[*row, 1.0] for row in users]
        items = [[*row, bias] for row, bias in zip(items, biases, strict=True)]
    wholes, exponent = _as_integers(items)
    scores = []
    for row in users:
        (own,), own_exponent = _as_integers([row])
        products = [sum(starmap(operator.mul, zip(own, other, strict=True))) for other in wholes]
        exponents = exponent + own_exponent
        scores.append([rounded_to_single(product, exponents) for product in products])
    return scores


def rounded_to_single(whole, exponent):
    """The number of single precision nearest to `whole * 2**exponent`, of two the even one."""
    size = abs(whole)
    num_dropped = max(size.bit_length() + exponent - _NUM_BITS, _SMALLEST) - exponent
    if num_dropped > 0:
        size, rest = divmod(size, 1 << num_dropped)
        half = 1 << (num_dropped - 1)
        size += rest > half or (rest == half and size % 2 == 1)
        exponent += num_dropped
    return math.ldexp(size if whole > 0 else -size, exponent)


def _as_integers(rows):
    """Writes scaled rows as integers times two to the power of one exponent."""
    largest = max(abs(number) for row in rows for number in row)
    scale = _LARGEST - math.frexp(largest)[1]
    negligible = math.ldexp(1.0, _NEGLIGIBLE - scale)
    rows = [[number if abs(number) > negligible else 0.0 for number in row] for row in rows]
    ratios = [[number.as_integer_ratio() for number in row] for row in rows]
    num_places = max(below.bit_length() - 1 for row in ratios for _, below in row)
    wholes = [
        [above << (num_places - below.bit_length() + 1) for above, below in row] for row in ratios
    ]
    return wholes, scale - num_places


@dataclass(frozen=True)
class Task:
    """Who is ranked, over what, and what is relevant, as it was given.

    Attributes:
        num_users: The number of users.
        num_items: The number of items.
        truth: Pairs of a user and an item, some of them several times.
        weights: A number for each of these pairs, or `None`.
        seen: Pairs whose items are left out.
        shared: The items that all users share as candidates, or `None`.
        own: Pairs of a user and a candidate of this user, or `None`.
        users: The users who are evaluated, or `None` for all of them.
        threshold: The smallest weight of a relevant item, or `None` for any that is positive.
        exclude_seen: Whether what is seen is left out.
        missing: What becomes of truth that is no candidate: `"count"` or `"drop"`, or `None` for
            the one where users have their own candidates, and the other where they do not.
    """

    num_users: int
    num_items: int
    truth: list
    weights: list | None = None
    seen: list = ()
    shared: list | None = None
    own: list | None = None
    users: list | None = None
    threshold: float | None = None
    exclude_seen: bool = True
    missing: str | None = None

    @cached_property
    def evaluated(self):
        """The users who are evaluated, in order."""
        return sorted(set(range(self.num_users) if self.users is None else self.users))

    @cached_property
    def candidates(self):
        """The items that each user may be recommended, in order."""
        own = [set(range(self.num_items)) for _ in range(self.num_users)]
        if self.shared is not None:
            own = [set(self.shared) for _ in range(self.num_users)]
        if self.own is not None:
            own = [set() for _ in range(self.num_users)]
            for user, item in self.own:
                own[user].add(item)
        for user, item in self.seen if self.exclude_seen else ():
            own[user].discard(item)
        return [sorted(items) for items in own]

    @cached_property
    def relevant(self):
        """The weights of the relevant items of each user, by item."""
        found = [{} for _ in range(self.num_users)]
        evaluated = set(self.evaluated)
        hidden = set(self.seen if self.exclude_seen else ())
        allowed = [set(items) for items in self.candidates]
        if self.counts_missing:
            allowed = [set(range(self.num_items)) for _ in allowed]
        for user, item, weight in self.weighted_truth:
            if item in allowed[user] and user in evaluated and (user, item) not in hidden:
                found[user][item] = max(weight, found[user].get(item, weight))
        return [dict(sorted(items.items())) for items in found]

    @property
    def counts_missing(self):
        """Whether truth that is no candidate counts as not retrieved."""
        return self.missing == "count" or (self.missing is None and self.own is not None)

    @property
    def has_truth(self):
        """Whether any user has a relevant item that can be retrieved, or that counts as missed."""
        return any(self.relevant)

    @cached_property
    def weighted_truth(self):
        """The truth whose weight is large enough, whoever is evaluated."""
        weights = [1] * len(self.truth) if self.weights is None else self.weights
        return [
            (user, item, weight)
            for (user, item), weight in zip(self.truth, weights, strict=True)
            if (weight > 0 if self.threshold is None else weight >= self.threshold)
        ]

    @property
    def max_degree(self):
        return max(len(items) for items in self.relevant)


@dataclass(frozen=True)
class Place:
    """Where a relevant item stands among the candidates of its user.

    Attributes:
        item: The item.
        weight: Its weight.
        rank: Its rank.
        num_above: How many candidates score higher, or `None` if scores are not known.
        num_tied: How many other candidates score the same, or `None`.
    """

    item: int
    weight: float
    rank: int | Fraction | float
    num_above: int | float | None = None
    num_tied: int | None = None


def rank_by_scores(task, scores, ties, depth):
    """The places of all relevant items of each user, by rank, and by item where not retrieved.

    With `ties="random"`, ranks are those of `"index"`: any others that `is_legal` are as right.
    """
    return [
        _in_order(
            _forget(place, max(depth, len(task.relevant[user])))
            for place in _places(
                scores[user], scored(task, scores, user), task.relevant[user], ties
            )
        )
        for user in range(task.num_users)
    ]


def scored(task, scores, user):
    """The candidates of a user that a score of `-inf` does not keep out."""
    return [item for item in task.candidates[user] if scores[user][item] > -math.inf]


def _places(scores, candidates, relevant, ties):
    ordered = sorted(scores[item] for item in candidates)
    for item, weight in relevant.items():
        own = scores[item]
        if item not in candidates:
            yield Place(item, weight, NOT_RETRIEVED, NOT_RETRIEVED, -1)
            continue
        num_above = len(ordered) - bisect.bisect_right(ordered, own)
        tied = [other for other in candidates if scores[other] == own]
        rank = num_above + 1 + _place_among(item, tied, relevant, ties)
        yield Place(item, weight, rank, num_above, len(tied) - 1)


def _place_among(item, tied, relevant, ties):
    """How many of the items of one score come before one of them."""
    if ties in ("index", "random"):
        return sum(other < item for other in tied)
    others = [other for other in tied if other in relevant and other != item]
    num_irrelevant = len(tied) - len(others) - 1
    sign = -1 if ties == "best" else 1
    own = (sign * relevant[item], item)
    before = sum((sign * relevant[other], other) < own for other in others)
    return before + {"best": 0, "worst": num_irrelevant, "mean": Fraction(num_irrelevant, 2)}[ties]


def _forget(place, depth):
    """Forgets what lies below the depth of a user."""
    num_above, num_tied = place.num_above, place.num_tied
    if num_above >= depth:
        num_above, num_tied = NOT_RETRIEVED, min(num_tied, 0)
    rank = NOT_RETRIEVED if place.rank > depth else place.rank
    return Place(place.item, place.weight, rank, num_above, num_tied)


def _in_order(places):
    return sorted(places, key=lambda place: (place.rank, place.item))


def is_legal(places, ranks, depth):
    """Whether the random `ranks` of a user's items could come from an order of the ties.

    Args:
        places: The places of the relevant items.
        ranks: Their ranks, by item.
        depth: How deep the user is ranked.
    """
    groups = {}
    for place in places:
        groups.setdefault(place.num_above, []).append(place)
    for num_above, group in groups.items():
        found = [ranks[place.item] for place in group]
        known = [rank for rank in found if rank != NOT_RETRIEVED]
        if num_above == NOT_RETRIEVED:
            if known:
                return False
            continue
        last = num_above + 1 + group[0].num_tied
        num_places_below = max(0, last - max(depth, num_above))
        if (
            len(set(known)) < len(known)
            or any(not num_above < rank <= min(last, depth) for rank in known)
            or len(found) - len(known) > num_places_below
        ):
            return False
    return True


def best_items(task, scores, width):
    """The lists of the evaluated users, with equal scores by item, and padding for all others."""
    evaluated = set(task.evaluated)
    return [
        padded(
            _by_score(scored(task, scores, user), scores[user]) if user in evaluated else [], width
        )
        for user in range(task.num_users)
    ]


def _by_score(items, scores):
    return sorted(items, key=lambda item: (-scores[item], item))


def padded(items, width):
    return (items + [-1] * width)[:width]
