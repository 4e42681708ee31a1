"""What the package computes, written down once more: one user after the other, in plain Python.

Shares no code with the package. Where a metric is undefined, the value is `nan`.
"""

import math
import statistics

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


def recall(ranked, truth, k, normalizer="R"):
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


def mrr(ranked, truth, k=None):
    for place, item in enumerate(ranked[:k]):
        if item in truth:
            return 1 / (place + 1)
    return 0.0


def map(ranked, truth, k=None, normalizer="min"):
    total, hits = 0.0, 0
    for place, item in enumerate(ranked[:k]):
        if item in truth:
            hits += 1
            total += precision(ranked, truth, place + 1)
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
    return [place for place, item in enumerate(ranked, start=1) if item in truth]


def mean_rank(ranked, truth):
    return sum(ranks(ranked, truth)) / len(truth)


def median_rank(ranked, truth):
    return statistics.median(ranks(ranked, truth))


def truth_of(user, edges, weights=None):
    """The relevant items of one user with their weights: the largest where an edge is repeated."""
    truth = {}
    for place, (other, item) in enumerate(edges):
        weight = 1.0 if weights is None else weights[place]
        if other == user and weight > 0:
            truth[item] = max(weight, truth.get(item, 0.0))
    return truth


def per_user(name, rankings, truths, average="macro", **arguments):
    """A metric for every user, `nan` for those without truth."""
    function = globals()[name]
    values = [
        function(ranked, truth, **arguments) if truth else nan
        for ranked, truth in zip(rankings, truths, strict=True)
    ]
    if average == "macro":
        return values
    # The micro average: each hit counts as much as any other, so a user's share is its number of
    # hits by the mean denominator, which makes the mean of shares the ratio of the two sums.
    normalizer = arguments.get("normalizer", "k" if name == "precision" else "R")
    k = arguments["k"]
    denominators = [
        {
            "k": k,
            "length": len(ranked[:k]),
            "min": min(k, len(truth)),
            "R": len(truth),
        }[normalizer]
        for ranked, truth in zip(rankings, truths, strict=True)
        if truth
    ]
    mean = sum(denominators) / len(denominators)
    return [
        len(set(ranked[:k]) & set(truth)) / mean if truth else nan
        for ranked, truth in zip(rankings, truths, strict=True)
    ]
