"""A reference for metrics of ranks that may be halves: plain loops over the ranks of one user.

It shares no code with the package, and knows no lists. Ranks are in ascending order, infinite for
items that were not retrieved. Each belongs to a relevant item, whose weight is at the same place.
"""

import math
import statistics


def hits(ranks, k):
    return len([rank for rank in ranks if rank <= k])


def precision(ranks, weights, num_candidates, k, normalizer="k"):
    by = {"k": k, "length": min(k, num_candidates), "min": min(k, len(ranks))}
    return hits(ranks, k) / by[normalizer] if hits(ranks, k) else 0.0


def truncated_precision(ranks, weights, num_candidates, k):
    return hits(ranks, k) / min(k, len(ranks))


def recall(ranks, weights, num_candidates, k, normalizer="R", weighted=False):
    if weighted:
        found = sum(w for rank, w in zip(ranks, weights, strict=True) if rank <= k)
        largest = sorted(weights)[-min(k, len(ranks)) :]
        return found / {"R": sum(weights), "min": sum(largest)}[normalizer]
    return hits(ranks, k) / {"R": len(ranks), "min": min(k, len(ranks))}[normalizer]


def f1(ranks, weights, num_candidates, k):
    return 2 * hits(ranks, k) / (k + len(ranks))


def r_precision(ranks, weights, num_candidates, users="all"):
    value = hits(ranks, len(ranks)) / len(ranks)
    return math.nan if users == "hit" and value == 0 else value


def hit_rate(ranks, weights, num_candidates, k):
    return float(min(ranks) <= k)


def fall_out(ranks, weights, num_candidates, k):
    irrelevant = num_candidates - len(ranks)
    others = k - hits(ranks, k)
    return min(others / irrelevant, 1.0) if irrelevant else math.nan


def rbp(ranks, weights, num_candidates, k=math.inf, p=0.8):
    return sum((1 - p) * p ** (rank - 1) for rank in ranks if rank <= k and rank < math.inf)


def err(ranks, weights, num_candidates, k=math.inf, max_grade=4):
    total, chance_to_look = 0.0, 1.0
    for rank, weight in zip(ranks, weights, strict=True):
        satisfied = (2**weight - 1) / 2**max_grade
        if rank <= k:
            total += chance_to_look * satisfied / rank
        chance_to_look *= 1 - satisfied
    return total


def mrr(ranks, weights, num_candidates, k=math.inf, hits="first"):
    reciprocals = [1 / rank if rank <= k else 0.0 for rank in ranks]
    return {"first": reciprocals[0], "all": statistics.mean(reciprocals)}[hits]


def map(ranks, weights, num_candidates, k=math.inf, normalizer="min"):
    total, found = 0.0, 0
    for rank in ranks:
        if rank <= k and rank < math.inf:
            found += 1
            total += found / rank
    by = {"min": min(k, len(ranks)), "R": len(ranks), "k": k, "hits": max(found, 1)}
    return total / by[normalizer]


def discounted(gain, rank, discount):
    return gain / math.log2(rank + 1 if discount == "log2" else max(rank, 2))


def dcg(ranks, weights, num_candidates, k=math.inf, gain="linear", discount="log2"):
    total = 0.0
    for rank, weight in zip(ranks, weights, strict=True):
        if rank <= k and rank < math.inf:
            worth = {"linear": weight, "exponential": 2**weight - 1, "binary": 1}[gain]
            total += discounted(worth, rank, discount)
    return total


def ndcg(ranks, weights, num_candidates, k=math.inf, ideal="relevant", ideal_k=None, **variant):
    best = sorted(weights, reverse=True)
    if ideal == "k":
        best = [max(weights)] * k
    if ideal == "retrieved":
        depth = k if ideal_k is None or k == math.inf else ideal_k
        both = zip(ranks, weights, strict=True)
        best = sorted((w for rank, w in both if rank <= depth and rank < math.inf), reverse=True)
    value = dcg(ranks, weights, num_candidates, k, **variant)
    if value == 0:
        return 0.0
    return value / dcg(range(1, len(best) + 1), best, num_candidates, k, **variant)


def above(ranks):
    """The number of irrelevant items above each relevant one; those of equal score are halves."""
    return [rank - place for place, rank in enumerate(ranks, start=1)]


def roc_auc(ranks, weights, num_candidates):
    irrelevant = num_candidates - len(ranks)
    below = [irrelevant - number for number in above(ranks)]
    return sum(below) / (len(ranks) * irrelevant) if irrelevant else math.nan


def partial_auc(ranks, weights, num_candidates, k):
    looked_at = min(k, num_candidates - len(ranks))
    below = [max(0, looked_at - number) for number in above(ranks)]
    return sum(below) / (len(ranks) * looked_at) if looked_at else math.nan


def pr_auc(ranks, weights, num_candidates):
    return statistics.mean(place / rank for place, rank in enumerate(ranks, start=1))


def mean_rank(ranks, weights, num_candidates):
    return statistics.mean(ranks)


def median_rank(ranks, weights, num_candidates):
    return statistics.median(ranks)


def adjusted_mean_rank(ranks, weights, num_candidates):
    return statistics.mean(ranks) / statistics.mean(range(1, num_candidates + 1))


def adjusted_mean_rank_index(ranks, weights, num_candidates):
    if num_candidates == 1:
        return math.nan
    return 1 - statistics.mean(rank - 1 for rank in ranks) / ((num_candidates - 1) / 2)
