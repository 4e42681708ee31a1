"""What metrics of other libraries are, by the words of their own documentation."""

#: What libraries offer, with the arguments of their metrics, and which metric has no cut-off.
_R, _BINARY, _HALF = {"normalizer": "R"}, {"gain": "binary"}, {"ties": "half"}
_HITS, _MIN = {"normalizer": "hits"}, {"normalizer": "min"}
_INFLATED = {"gain": "binary", "ideal": "retrieved", "ideal_k": "deepest"}
CONVENTIONS = {
    "standard": ("", None),
    "trec_eval": ("mrr", {"map": _R, "ndcg": {}, "mrr": {}, "recall": {}}),
    "torchmetrics": ("", {"map": _HITS, "roc_auc": _HALF, "fall_out": {}}),
    "rectools": ("", {"map": _R, "ndcg": _BINARY | {"ideal": "k"}, "f1": {}}),
    "lenskit": (
        "",
        {
            "precision": {"normalizer": "length"},
            "recall": _MIN,
            "ndcg": {"discount": "lenskit"},
            "rbp": {"p": 0.85},
        },
    ),
    "ranx": ("rbp", {"map": _R, "rbp": {}, "r_precision": {}, "hit_rate": {}}),
    "implicit": ("", {"map": {}, "precision": _MIN | {"average": "micro"}, "ndcg": _BINARY}),
    "ngcf": ("", {"ndcg": _INFLATED, "roc_auc": _HALF}),
    "pykeen": ("mrr", {"mrr": {}, "mean_rank": {}, "adjusted_mean_rank": {}}),
    "mind": ("mrr", {"mrr": {"hits": "all"}, "ndcg": _BINARY}),
    "ncf": ("", {"hit_rate": {}, "ndcg": _BINARY}),
    "rectorch": ("", {"mrr": {}, "hit_rate": {}, "recall": _MIN, "ndcg": _BINARY}),
}


def resolve(metric, convention, deepest, knows_ties):
    """What a library computes under the name of a metric; `None` if it does not offer it."""
    (without_cut_off, offered), (name, k, given) = CONVENTIONS[convention], metric
    if offered is None:
        return metric
    if name not in offered:
        return None
    arguments = {
        key: max(deepest, k or 1) if value == "deepest" else value
        for key, value in offered[name].items()
        if knows_ties or key != "ties"
    }
    return name, None if name == without_cut_off else k, arguments | given
