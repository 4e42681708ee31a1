"""An independent reference for every metric: plain loops in Python, one user after the other.

It shares no code with the package. Where a metric is undefined, the value is `nan`.
"""

import inspect
import itertools
import math
import statistics
from dataclasses import dataclass

nan = math.nan


def ranking(scores, seen=(), candidates=None):
    """The item ids of one user, best first; equal scores by the lower id."""
    items = range(len(scores)) if candidates is None else candidates
    left = [item for item in set(items) if item not in seen]
    return sorted(left, key=lambda item: (-scores[item], item))


def precision(ranked, truth, k, normalizer="k"):
    hits = 0
    for item in ranked[:k]:
        if item in truth:
            hits += 1
    if hits == 0:
        return 0.0
    by = {"k": k, "length": len(ranked[:k]), "min": k if k < len(truth) else len(truth)}
    return hits / by[normalizer]


def recall(ranked, truth, k, normalizer="R", weighted=False):
    if weighted:
        heaviest = sorted(truth.values(), reverse=True)
        possible = sum(heaviest) if normalizer == "R" else sum(heaviest[:k])
        return sum(truth[item] for item in ranked[:k] if item in truth) / possible
    by = {"R": len(truth), "min": k if k < len(truth) else len(truth)}
    return len(set(ranked[:k]) & set(truth)) / by[normalizer]


def truncated_precision(ranked, truth, k):
    possible = k if k < len(truth) else len(truth)
    return len(set(ranked[:k]) & set(truth)) / possible


def f1(ranked, truth, k):
    p, r = precision(ranked, truth, k), recall(ranked, truth, k)
    return 0.0 if p + r == 0 else 2 * p * r / (p + r)


def r_precision(ranked, truth, users="all"):
    value = precision(ranked, truth, len(truth))
    return nan if users == "hit" and value == 0 else value


def hit_rate(ranked, truth, k):
    for item in ranked[:k]:
        if item in truth:
            return 1.0
    return 0.0


def fall_out(ranked, truth, k):
    irrelevant = [item for item in ranked if item not in truth]
    return len([i for i in ranked[:k] if i in irrelevant]) / len(irrelevant) if irrelevant else nan


def rbp(ranked, truth, k=None, p=0.8):
    total, chance_to_look = 0.0, 1.0
    for item in ranked[:k]:
        if item in truth:
            total += chance_to_look * (1 - p)
        chance_to_look *= p
    return total


def err(ranked, truth, k=None, max_grade=4):
    total, chance_to_look = 0.0, 1.0
    for position, item in enumerate(ranked[:k]):
        satisfied = (2 ** truth.get(item, 0) - 1) / 2**max_grade
        total += chance_to_look * satisfied / (position + 1)
        chance_to_look *= 1 - satisfied
    return total


def mrr(ranked, truth, k=None, hits="first"):
    if hits == "all":
        reciprocals = [1 / rank for rank in ranks(ranked[:k], truth)]
        return sum(reciprocals) / len(truth)
    for position, item in enumerate(ranked[:k]):
        if item in truth:
            return 1 / (position + 1)
    return 0.0


def map(ranked, truth, k=None, normalizer="min"):
    total, hits = 0.0, 0
    for position, item in enumerate(ranked[:k]):
        if item in truth:
            hits += 1
            total += precision(ranked, truth, position + 1)
    if hits == 0:
        return 0.0
    least = len(truth) if k is None else min(k, len(truth))
    return total / {"min": least, "R": len(truth), "k": k, "hits": hits}[normalizer]


def worth(weight, gain):
    return {"linear": weight, "exponential": 2**weight - 1, "binary": 1}[gain]


def discounted(gains, discount):
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        total += gain / math.log(rank + 1 if discount == "log2" else max(rank, 2), 2)
    return total


def dcg(ranked, truth, k=None, gain="linear", discount="log2"):
    return discounted(
        [worth(truth[item], gain) if item in truth else 0 for item in ranked[:k]], discount
    )


def ndcg(ranked, truth, k=None, gain="linear", discount="log2", ideal="relevant", ideal_k=None):
    best = sorted((worth(weight, gain) for weight in truth.values()), reverse=True)
    if ideal == "k":
        best = [best[0]] * k
    if ideal == "retrieved":
        depth = ideal_k if ideal_k is not None and k is not None else k
        best = [worth(truth[item], gain) for item in ranked[:depth] if item in truth]
        best.sort(reverse=True)
    value = dcg(ranked, truth, k, gain, discount)
    return 0.0 if value == 0 else value / discounted(best[:k], discount)


def roc_auc(ranked, truth):
    pairs = [(a, b) for a in ranked if a in truth for b in ranked if b not in truth]
    right = [ranked.index(a) < ranked.index(b) for a, b in pairs]
    return sum(right) / len(pairs) if pairs else nan


def partial_auc(ranked, truth, k):
    top = [item for item in ranked if item not in truth][:k]
    return roc_auc([item for item in ranked if item in truth or item in top], truth)


def pr_auc(ranked, truth):
    return map(ranked, truth)


def ranks(ranked, truth):
    return [rank for rank, item in enumerate(ranked, start=1) if item in truth]


def mean_rank(ranked, truth):
    return sum(ranks(ranked, truth)) / len(truth)


def median_rank(ranked, truth):
    return statistics.median(ranks(ranked, truth))


def expected_rank(ranked):
    return statistics.mean(range(1, len(ranked) + 1))


def adjusted_mean_rank(ranked, truth):
    return mean_rank(ranked, truth) / expected_rank(ranked)


def adjusted_mean_rank_index(ranked, truth):
    if len(ranked) == 1:
        return nan
    return 1 - (mean_rank(ranked, truth) - 1) / (expected_rank(ranked) - 1)


def pooled(values, weights):
    """Values that are multiplied so that their mean is the weighted mean of those given."""
    total = sum(weights)
    num_counted = sum(weight > 0 for weight in weights)
    return [
        value * weight * num_counted / total if weight else value
        for value, weight in zip(values, weights, strict=True)
    ]


def pooled_ranks(name, rankings, truths):
    """How far the ranks of each user are from random ones, as one average over all edges."""
    num_users = sum(bool(truth) for truth in truths)
    edges = [ranked for ranked, truth in zip(rankings, truths, strict=True) for _ in truth]
    total = sum(map_to(expected_rank, edges))
    if name == "adjusted_mean_rank_index":
        total -= len(edges)
    if not total:
        return [nan] * len(truths)
    values = []
    for ranked, truth in zip(rankings, truths, strict=True):
        value = sum(ranks(ranked, truth))
        if name == "adjusted_mean_rank_index":
            value = sum(expected_rank(ranked) - rank for rank in ranks(ranked, truth))
        values.append(value * num_users / total if truth else nan)
    return values


@dataclass
class Catalogue:
    """Who has seen which items, and the set of categories and the vector of each item."""

    num_items: int
    seen: list[set[int]]
    categories: list[set[int]]
    embeddings: list[list[float]]

    def count(self, item):
        return sum(item in items for items in self.seen)


def exposures(rankings, k, catalogue):
    return [sum(item in ranked[:k] for ranked in rankings) for item in range(catalogue.num_items)]


def coverage(rankings, k, catalogue):
    return len({item for ranked in rankings for item in ranked[:k]}) / catalogue.num_items


def gini(rankings, k, catalogue):
    counts = exposures(rankings, k, catalogue)
    differences = sum(abs(count - other) for count in counts for other in counts)
    return differences / (2 * len(counts) * sum(counts)) if any(counts) else nan


def entropy(rankings, k, catalogue):
    counts = [count for count in exposures(rankings, k, catalogue) if count]
    shares = [count / sum(counts) for count in counts]
    return -sum(share * math.log2(share) for share in shares) if counts else nan


def personalization(rankings, k, catalogue):
    lists = [set(ranked[:k]) for ranked in rankings if ranked[:k]]
    distances = [
        1 - len(first & second) / math.sqrt(len(first) * len(second))
        for first, second in itertools.combinations(lists, 2)
    ]
    return statistics.mean(distances) if distances else nan


def mean_over(ranked, value):
    return statistics.mean(value(item) for item in ranked) if ranked else nan


def popularity(ranked, truth, k, catalogue, history):
    return mean_over(ranked[:k], catalogue.count)


def novelty(ranked, truth, k, catalogue, history):
    num_active = sum(bool(items) for items in catalogue.seen)
    return mean_over(
        ranked[:k], lambda item: -math.log2(max(catalogue.count(item), 1) / num_active)
    )


def tail_share(ranked, truth, k, catalogue, history, head=80):
    counts = sorted(map_to(catalogue.count, range(catalogue.num_items)), reverse=True)
    needed = 1
    while sum(counts[:needed]) / sum(counts) * 100 < head - 1e-9:
        needed += 1
    return mean_over(ranked[:k], lambda item: float(catalogue.count(item) < counts[needed - 1]))


def map_to(function, values):
    return [function(value) for value in values]


def cosine(first, second):
    norms = math.hypot(*first) * math.hypot(*second)
    return sum(a * b for a, b in zip(first, second, strict=True)) / norms if norms else 0.0


def diversity(ranked, truth, k, catalogue, history, over="category"):
    def vector(item):
        if over == "embedding":
            return catalogue.embeddings[item]
        return [float(category in catalogue.categories[item]) for category in range(10)]

    vectors = map_to(vector, ranked[:k])
    pairs = itertools.combinations(vectors, 2)
    distances = [1 - cosine(first, second) for first, second in pairs]
    return statistics.mean(distances) if distances else nan


def serendipity(ranked, truth, k, catalogue, history):
    levels = sorted({catalogue.count(i) for i in range(catalogue.num_items)} - {0}, reverse=True)
    total = 0.0
    for position, item in enumerate(ranked[:k]):
        if item in truth:
            chance = (catalogue.num_items - position) / catalogue.num_items
            if catalogue.count(item):
                by_popularity = levels.index(catalogue.count(item))
                chance -= (catalogue.num_items - by_popularity) / catalogue.num_items
            total += max(chance, 0)
    return total / len(ranked[:k]) if ranked[:k] else 0.0


def calibration(ranked, truth, k, catalogue, history):
    def distribution(items):
        shares = dict.fromkeys(range(10), 0.0)
        described = [item for item in items if catalogue.categories[item]]
        for item in described:
            for category in catalogue.categories[item]:
                shares[category] += 1 / len(catalogue.categories[item]) / len(described)
        return shares if described else None

    wanted, got = distribution(history), distribution(ranked[:k])
    if wanted is None or got is None:
        return nan
    total = 0.0
    for category, share in wanted.items():
        if share:
            total += share * math.log(share / (0.99 * got[category] + 0.01 * share))
    return total


def truth_of(user, edges, weights=None):
    """The relevant items of one user with their weights: the largest where an edge is repeated."""
    truth = {}
    for edge, (user_of_edge, item) in enumerate(edges):
        weight = 1.0 if weights is None else weights[edge]
        if user_of_edge == user and weight > 0:
            truth[item] = max(weight, truth.get(item, 0.0))
    return truth


def value(name, rankings, truths, catalogue, **arguments):
    """The values of a metric for every user, or its one value for all users together."""
    takes = inspect.signature(globals()[name]).parameters
    if "rankings" in takes:
        return globals()[name](rankings, catalogue=catalogue, **arguments)
    if "catalogue" not in takes:
        return per_user(name, rankings, truths, **arguments)
    needs_truth = name == "serendipity"
    return [
        globals()[name](ranked, truth, catalogue=catalogue, history=history, **arguments)
        if truth or not needs_truth
        else nan
        for ranked, truth, history in zip(rankings, truths, catalogue.seen, strict=True)
    ]


def per_user(name, rankings, truths, average=None, **arguments):
    """The values of a metric for every user, `nan` for those without truth."""
    function = globals()[name]
    is_adjusted = name.startswith("adjusted")
    if is_adjusted and average != "macro":
        return pooled_ranks(name, rankings, truths)
    values = [
        function(ranked, truth, **arguments) if truth else nan
        for ranked, truth in zip(rankings, truths, strict=True)
    ]
    if average in ("candidates", "relevant"):
        sizes = map_to(len, rankings if average == "candidates" else truths)
        weights = [
            0 if math.isnan(value) else size for value, size in zip(values, sizes, strict=True)
        ]
        return pooled(values, weights)
    if average != "micro":
        return values
    # The micro average: each hit counts as much as any other, so a user's share is its number of
    # hits by the mean denominator, which makes the mean of shares the ratio of the two sums.
    normalizer = arguments.get("normalizer", "k" if name == "precision" else "R")
    k = arguments["k"]
    if not arguments.get("weighted"):
        truths = [dict.fromkeys(truth, 1) for truth in truths]
    denominators = [
        {
            "k": k,
            "length": len(ranked[:k]),
            "min": sum(sorted(truth.values(), reverse=True)[:k]),
            "R": sum(truth.values()),
        }[normalizer]
        for ranked, truth in zip(rankings, truths, strict=True)
        if truth
    ]
    mean = sum(denominators) / len(denominators)
    return [
        (sum(truth.get(i, 0) for i in ranked[:k]) / mean if mean else 0.0) if truth else nan
        for ranked, truth in zip(rankings, truths, strict=True)
    ]
