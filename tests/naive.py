"""What the package computes, written down once more: one user after the other, in plain Python.

Shares no code with the package. Where a metric is undefined, the value is `nan`.
"""

import math

nan = math.nan


def ranking(scores, seen=(), candidates=None):
    """The item ids of one user, best first; equal scores by the lower id."""
    items = range(len(scores)) if candidates is None else candidates
    left = [item for item in set(items) if item not in seen]
    return sorted(left, key=lambda item: (-scores[item], item))


def precision(ranked, truth, k):
    hits = 0
    for item in ranked[:k]:
        if item in truth:
            hits += 1
    return hits / k


def recall(ranked, truth, k):
    return len(set(ranked[:k]) & set(truth)) / len(truth)


def truncated_precision(ranked, truth, k):
    possible = k if k < len(truth) else len(truth)
    return len(set(ranked[:k]) & set(truth)) / possible


def f1(ranked, truth, k):
    p, r = precision(ranked, truth, k), recall(ranked, truth, k)
    return 0.0 if p + r == 0 else 2 * p * r / (p + r)


def r_precision(ranked, truth):
    return precision(ranked, truth, len(truth))


def hit_rate(ranked, truth, k):
    for item in ranked[:k]:
        if item in truth:
            return 1.0
    return 0.0


def mrr(ranked, truth, k):
    for place, item in enumerate(ranked[:k]):
        if item in truth:
            return 1 / (place + 1)
    return 0.0


def map(ranked, truth, k):
    total = 0.0
    for place, item in enumerate(ranked[:k]):
        if item in truth:
            total += precision(ranked, truth, place + 1)
    return total / (k if k < len(truth) else len(truth))


def dcg(ranked, truth, k, gain="linear"):
    worth = {
        "linear": lambda weight: weight,
        "exponential": lambda weight: 2**weight - 1,
        "binary": lambda weight: 1,
    }[gain]
    total = 0.0
    for place, item in enumerate(ranked[:k]):
        if item in truth:
            total += worth(truth[item]) / math.log(place + 2, 2)
    return total


def ndcg(ranked, truth, k, gain="linear"):
    best = sorted(truth, key=lambda item: -truth[item])
    return dcg(ranked, truth, k, gain) / dcg(best, truth, k, gain)


def truth_of(user, edges, weights=None):
    """The relevant items of one user with their weights: the largest where an edge is repeated."""
    truth = {}
    for place, (other, item) in enumerate(edges):
        weight = 1.0 if weights is None else weights[place]
        if other == user and weight > 0:
            truth[item] = max(weight, truth.get(item, 0.0))
    return truth


def per_user(name, rankings, truths, **arguments):
    """A metric for every user, `nan` for those without truth."""
    function = globals()[name]
    return [
        function(ranked, truth, **arguments) if truth else nan
        for ranked, truth in zip(rankings, truths, strict=True)
    ]
