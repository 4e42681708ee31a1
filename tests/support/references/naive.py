"""Metrics of lists and of the catalogue: plain loops in Python, one user after the other.

It shares no code with the package. Where a metric is undefined, the value is `nan`.
"""

import inspect
import itertools
import math
import statistics
from collections import Counter
from dataclasses import dataclass

nan = math.nan


def ranking(scores, seen=(), candidates=None):
    """The item ids of one user, best first; equal scores by the lower id."""
    items = range(len(scores)) if candidates is None else candidates
    left = [item for item in set(items) if item not in seen]
    return sorted(left, key=lambda item: (-scores[item], item))


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
    return sum(count > 0 for count in exposures(rankings, k, catalogue)) / catalogue.num_items


def gini(rankings, k, catalogue):
    counts = exposures(rankings, k, catalogue)
    differences = sum(abs(count - other) for count in counts for other in counts)
    return differences / (2 * len(counts) * sum(counts)) if any(counts) else nan


def entropy(rankings, k, catalogue):
    counts = Counter(item for ranked in rankings for item in ranked[:k]).values()
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
    counts = sorted(map(catalogue.count, range(catalogue.num_items)), reverse=True)
    needed = 1
    while sum(counts[:needed]) / sum(counts) * 100 < head - 1e-9:
        needed += 1
    return mean_over(ranked[:k], lambda item: float(catalogue.count(item) < counts[needed - 1]))


def cosine(first, second):
    norms = math.hypot(*first) * math.hypot(*second)
    return sum(a * b for a, b in zip(first, second, strict=True)) / norms if norms else 0.0


def diversity(ranked, truth, k, catalogue, history, over="category"):
    def vector(item):
        if over == "embedding":
            return catalogue.embeddings[item]
        return [float(category in catalogue.categories[item]) for category in range(10)]

    pairs = itertools.combinations(map(vector, ranked[:k]), 2)
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
    needs_truth = name == "serendipity"
    return [
        globals()[name](ranked, truth, catalogue=catalogue, history=history, **arguments)
        if truth or not needs_truth
        else nan
        for ranked, truth, history in zip(rankings, truths, catalogue.seen, strict=True)
    ]
