"""What a ranking and its metrics have to be: plain Python in exact rational arithmetic.

It shares no code with the package. Scores are numbers of Python, which hold every floating-point
number exactly. Scores of embeddings are computed as exact integers times a power of two, and are
then rounded once. Metrics are fractions. Logarithms are rounded, and what is computed from them.
"""

import bisect
import math
import operator
import statistics
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import starmap

#: The rank of an item that is not retrieved, or so deep that its rank is not known.
NOT_RETRIEVED = math.inf

#: Enough digits for gains of any size.
_DIGITS = Context(prec=80, Emin=MIN_EMIN, Emax=MAX_EMAX)

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
    def has_retrievable_truth(self):
        """Whether any relevant item is a candidate."""
        pairs = zip(self.relevant, self.candidates, strict=True)
        return any(not set(own).isdisjoint(items) for own, items in pairs)

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


def rank_by_lists(task, lists, depth):
    """The places of all relevant items of each user in given lists."""
    found = []
    for user, relevant in enumerate(task.relevant):
        own_depth = max(depth, len(relevant))
        left = only_candidates(task, user, lists[user])
        left = left[: min(own_depth, len(left))]
        ranks = {item: left.index(item) + 1 if item in left else math.inf for item in relevant}
        found.append(_in_order(Place(item, relevant[item], ranks[item]) for item in relevant))
    return found


def only_candidates(task, user, items):
    """A list without the items that may not be retrieved. The padding keeps its places."""
    allowed = set(task.candidates[user])
    return [item for item in items if item == -1 or item in allowed]


def without_repeats(items):
    """A list in which padding stands for all but the first of equal items."""
    return [-1 if item in items[:place] else item for place, item in enumerate(items)]


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


def kept_items(task, lists, width):
    """What is kept of given lists, and padding for users who are not evaluated."""
    evaluated = set(task.evaluated)
    return [
        padded(without_repeats(only_candidates(task, user, items)), width)
        if user in evaluated
        else [-1] * width
        for user, items in enumerate(lists)
    ]


def padded(items, width):
    return (items + [-1] * width)[:width]


@dataclass(frozen=True)
class RankedUser:
    """What metrics know of a user.

    Attributes:
        ranks: The ranks of the relevant items, in order.
        weights: Their weights, in the same order.
        num_candidates: How many candidates there are, or `None`.
        items: The list of the user, or `None`.
        num_masked: How many relevant items are no candidates.
    """

    ranks: list
    weights: list
    num_candidates: int | None
    items: list | None = None
    num_masked: int = 0

    @property
    def degree(self):
        return len(self.ranks)

    def hits(self, k):
        return sum(rank <= k for rank in self.ranks)

    def list_length(self, k):
        if self.items is None:
            return min(k, self.num_candidates)
        places = [place for place, item in enumerate(self.items, start=1) if item >= 0]
        return min(k, max(places, default=0))

    @property
    def num_irrelevant(self):
        return self.num_candidates - (self.degree - self.num_masked)

    @property
    def num_irrelevant_above(self):
        """How many irrelevant items rank above each relevant one; a half where they tie."""
        return [rank - place for place, rank in enumerate(self.ranks, start=1)]


def _denominator(user, k, normalizer):
    return {
        "k": k,
        "R": user.degree,
        "min": user.degree if k is None else min(k, user.degree),
        "hits": max(sum(_is_hit(rank, k) for rank in user.ranks), 1),
        "length": None if normalizer != "length" else user.list_length(k),
    }[normalizer]


def precision(user, k, normalizer="k"):
    return _share(user.hits(k), _denominator(user, k, normalizer))


def recall(user, k, normalizer="R", weighted=False):
    if weighted:
        return _weight_of_hits(user, k) / _possible_weight(user, k, normalizer)
    return _share(user.hits(k), _denominator(user, k, normalizer))


def _weight_of_hits(user, k):
    pairs = zip(user.ranks, user.weights, strict=True)
    return sum(Fraction(weight) for rank, weight in pairs if rank <= k)


def _possible_weight(user, k, normalizer):
    largest = sorted(map_to(Fraction, user.weights), reverse=True)
    return sum(largest if normalizer == "R" else largest[:k])


def map_to(function, values):
    return [function(value) for value in values]


def truncated_precision(user, k):
    return Fraction(user.hits(k), min(k, user.degree))


def f1(user, k):
    return Fraction(2 * user.hits(k), k + user.degree)


def r_precision(user, users="all"):
    value = Fraction(user.hits(user.degree), user.degree)
    return None if users == "hit" and value == 0 else value


def fall_out(user, k):
    if not user.num_irrelevant:
        return None
    return Fraction(min(k - user.hits(k), user.num_irrelevant), user.num_irrelevant)


def rbp(user, k=None, p=0.8):
    total = Decimal(0)
    for rank in (rank for rank in user.ranks if _is_hit(rank, k)):
        number_before = Decimal(float(rank)) - 1
        total = _DIGITS.add(total, _DIGITS.power(Decimal(p), number_before))
    return float(_DIGITS.multiply(total, 1 - Decimal(p)))


def err(user, k=None, max_grade=4):
    total, goes_on = Decimal(0), Decimal(1)
    for rank, weight in zip(user.ranks, user.weights, strict=True):
        if _is_hit(rank, k):
            satisfied = _DIGITS.divide(_gain(weight, "exponential"), _DIGITS.power(2, max_grade))
            stops = _DIGITS.divide(satisfied, Decimal(float(rank)))
            total = _DIGITS.add(total, _DIGITS.multiply(goes_on, stops))
            goes_on = _DIGITS.multiply(goes_on, _DIGITS.subtract(1, satisfied))
    return float(total)


def hit_rate(user, k):
    return Fraction(user.hits(k) > 0)


def mrr(user, k=None, hits="first"):
    reciprocals = [1 / Fraction(rank) if _is_hit(rank, k) else Fraction(0) for rank in user.ranks]
    return reciprocals[0] if hits == "first" else sum(reciprocals) / user.degree


def map(user, k=None, normalizer="min"):
    hits = [rank for rank in user.ranks if _is_hit(rank, k)]
    total = sum(place / Fraction(rank) for place, rank in enumerate(hits, start=1))
    return Fraction(total) / _denominator(user, k, normalizer)


def _is_hit(rank, k):
    return rank != NOT_RETRIEVED and (k is None or rank <= k)


def _share(hits, denominator):
    return Fraction(hits, denominator) if hits else Fraction(0)


def _gain(weight, gain):
    if gain == "exponential":
        return _DIGITS.subtract(_DIGITS.power(2, Decimal(weight)), 1)
    return Decimal(weight) if gain == "linear" else Decimal(1)


def _discounted(gains, ranks, discount):
    """The sum of gains at ranks, each divided by a logarithm."""
    total = Decimal(0)
    for gain, rank in zip(gains, ranks, strict=True):
        at = rank + 1 if discount == "log2" else max(rank, 2)
        total = _DIGITS.add(total, _DIGITS.divide(gain, Decimal(math.log2(at))))
    return total


def dcg(user, k=None, gain="linear", discount="log2"):
    return float(_dcg(user, k, gain, discount))


def _dcg(user, k, gain, discount):
    hits = [pair for pair in zip(user.weights, user.ranks, strict=True) if _is_hit(pair[1], k)]
    gains = [_gain(weight, gain) for weight, _ in hits]
    return _discounted(gains, [rank for _, rank in hits], discount)


def ndcg(user, k=None, gain="linear", discount="log2", ideal="relevant"):
    value = _dcg(user, k, gain, discount)
    gains = [
        _gain(weight, gain)
        for weight, rank in zip(user.weights, user.ranks, strict=True)
        if ideal != "retrieved" or _is_hit(rank, k)
    ]
    gains.sort(reverse=True)
    gains = [gains[0]] * k if ideal == "k" else gains[:k]
    best = _discounted(gains, range(1, len(gains) + 1), discount)
    return float(_DIGITS.divide(value, best)) if value else 0.0


def roc_auc(user):
    num_pairs = user.degree * user.num_irrelevant
    return 1 - Fraction(sum(user.num_irrelevant_above)) / num_pairs if num_pairs else None


def partial_auc(user, k):
    looked_at = min(k, user.num_irrelevant)
    below = [max(0, looked_at - above) for above in user.num_irrelevant_above]
    return Fraction(sum(below)) / (user.degree * looked_at) if looked_at else None


def pr_auc(user):
    return map(user)


def mean_rank(user):
    return Fraction(sum(user.ranks)) / user.degree


def median_rank(user):
    return Fraction(statistics.median(user.ranks))


def adjusted_mean_rank(users, average="micro"):
    """The sum of ranks by what it is in random order, `None` where it is undefined."""
    return _ratios(
        [Fraction(sum(user.ranks)) for user in users],
        [Fraction(user.degree * (user.num_candidates + 1), 2) for user in users],
        users,
        average,
    )


def adjusted_mean_rank_index(users, average="micro"):
    """One less the ratio of the ranks less one, or zero for who cannot be better or worse."""
    possible = [Fraction(user.degree * (user.num_candidates - 1), 2) for user in users]
    missed = [Fraction(sum(user.ranks)) - user.degree for user in users]
    gained = [most - lost for most, lost in zip(possible, missed, strict=True)]
    return _ratios(gained, possible, users, average)


def _ratios(parts, totals, users, average):
    is_counted = [user.degree > 0 for user in users]
    mean = sum(totals) / Fraction(max(sum(is_counted), 1))
    by = totals if average == "macro" else [mean] * len(users)
    return [
        part / total if counts and total else None
        for part, total, counts in zip(parts, by, is_counted, strict=True)
    ]


def weighted(values, users, weight):
    """Values that are multiplied so that their mean is weighted by candidates or relevant items."""
    weights = [
        0 if value is None else user.num_candidates if weight == "candidates" else user.degree
        for value, user in zip(values, users, strict=True)
    ]
    total, num_counted = sum(weights), sum(value is not None for value in values)
    return [
        None if value is None else Fraction(value) * own * num_counted / total
        for value, own in zip(values, weights, strict=True)
    ]


def shares_of_better(task, scores, ties):
    """The share of pairs of a relevant and an irrelevant item in which the relevant one is ahead.

    This is the ROC-AUC of each user by its definition, from scores alone.
    """
    return [_share_of_better(task, scores[user], user, ties) for user in range(task.num_users)]


def _share_of_better(task, own, user, ties):
    relevant = task.relevant[user]
    irrelevant = [
        item for item in task.candidates[user] if item not in relevant and own[item] > -math.inf
    ]
    if not relevant or not irrelevant:
        return None
    pairs = [(item, other) for item in relevant for other in irrelevant]
    # An item that was missed before comes behind all candidates.
    found = [pair for pair in pairs if pair[0] in task.candidates[user]]
    num_ahead = sum(own[item] > own[other] for item, other in found)
    tied = [pair for pair in found if own[pair[0]] == own[pair[1]]]
    num_ahead += {
        "index": sum(item < other for item, other in tied),
        "best": len(tied),
        "worst": 0,
        "mean": Fraction(len(tied), 2),
    }[ties]
    return Fraction(num_ahead) / len(pairs)


def value(name, ranked, k=None, average=None, **arguments):
    """A metric of every user, `None` where it is undefined."""
    function = globals()[name]
    if name.startswith("adjusted"):
        return function(ranked, average or "micro")
    average = average or "macro"
    if average in ("candidates", "relevant"):
        return weighted(value(name, ranked), ranked, average)
    if k is not None:
        arguments["k"] = k
    if average == "macro":
        return [function(user, **arguments) if user.degree else None for user in ranked]
    # A user's share: its hits by the mean denominator, so that the mean is the ratio of two sums.
    normalizer = arguments.get("normalizer", "k" if name == "precision" else "R")
    with_truth = [user for user in ranked if user.degree]
    hits, possible = RankedUser.hits, _denominator
    if arguments.get("weighted"):
        hits, possible = _weight_of_hits, _possible_weight
    total = sum(possible(user, k, normalizer) for user in with_truth)
    return [
        _share(hits(user, k) * len(with_truth), total) if user.degree else None for user in ranked
    ]


def mean(values, ranked, evaluated, empty_target_action):
    """The mean over evaluated users, where users without truth count as the action says."""
    of_empty = {"skip": None, "neg": 0, "pos": 1}[empty_target_action]
    counted = [values[user] if ranked[user].degree else of_empty for user in evaluated]
    counted = [value for value in counted if value is not None]
    if not counted:
        return None
    if any(isinstance(value, float) for value in counted):
        return math.fsum(counted) / len(counted)
    return Fraction(sum(counted)) / len(counted)
