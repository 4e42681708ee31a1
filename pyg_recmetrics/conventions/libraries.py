"""The conventions of other libraries, as data."""

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.conventions.convention import DEEPEST, Convention, Population
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics import Value, names


def _metrics(like_ours: str, **different: dict[str, Value]) -> dict[str, dict[str, Value]]:
    """Returns what a library offers, with the arguments of the metrics it defines differently."""
    offered = {*like_ours.split(), *different}
    return {name: different.get(name, {}) for name in names() if name in offered}


_DIVIDED_BY_R: dict[str, Value] = {"normalizer": "R"}
_BINARY: dict[str, Value] = {"gain": "binary"}
_HALF: dict[str, Value] = {"ties": "half"}

#: What a note says of a library whose order of equal scores cannot be predicted.
_UNSTABLE = "It sorts equal scores into any order; here, the lower item id comes first."

_LIBRARIES = (
    Convention(
        "standard",
        "torch_geometric.metrics 2.8",
        None,
        note="PyG's definitions, which hold here also if lists are padded or edges are repeated. "
        "R-precision is that of the literature; PyG has none.",
    ),
    Convention(
        "trec_eval",
        "trec_eval, through pytrec_eval-terrier 0.5.11",
        _metrics("precision recall ndcg mrr r_precision hit_rate", map=_DIVIDED_BY_R),
        without_cut_off=("mrr",),
        note="Its reciprocal rank has no cut-off. It orders equal scores by document id as a "
        "string, in descending order; here, the lower item id comes first.",
    ),
    Convention(
        "torchmetrics",
        "torchmetrics 1.9.0",
        _metrics(
            "precision recall ndcg mrr r_precision hit_rate fall_out",
            map={"normalizer": "hits"},
            roc_auc=_HALF,
        ),
        empty_target_action="neg",
        note="In precision, recall, MAP and MRR, it counts relevant items with a score of zero or "
        f"less as missed: this is a bug and not reproduced. {_UNSTABLE} Its NDCG is the mean over "
        "all orders of equal scores. Its fall-out of users without ground truth is k / n; here, "
        "they count as zero. Its ROC-AUC is zero, and its fall-out one, for users without an "
        "irrelevant candidate; here, they do not count.",
    ),
    Convention(
        "recbole",
        "RecBole 1.2.1",
        _metrics(
            "precision recall map mrr hit_rate coverage gini popularity",
            ndcg=_BINARY,
            roc_auc={"ties": "half", "average": "relevant"},
        ),
        note="Its number of items includes the padding item, which changes coverage and Gini index "
        f"a little: this is a bug and not reproduced. {_UNSTABLE} What it calls GAUC is roc_auc. "
        "In modes such as uni100, all relevant items of a user compete with all that was sampled "
        "for any of them: these are the candidates of a task.",
    ),
    Convention(
        "rectools",
        "RecTools 0.19.0",
        _metrics(
            "precision recall f1 mrr hit_rate truncated_precision coverage popularity novelty "
            "serendipity",
            map=_DIVIDED_BY_R,
            ndcg={"gain": "binary", "ideal": "k"},
        ),
        note="What it calls r_precision is truncated_precision. Its options divide_by_k and "
        "divide_by_achievable are map(normalizer=k) and ndcg(ideal=relevant).",
    ),
    Convention(
        "lenskit",
        "LensKit 2025.6",
        _metrics(
            "mrr map hit_rate gini",
            precision={"normalizer": "length"},
            recall={"normalizer": "min"},
            rbp={"p": 0.85},
            ndcg={"discount": "lenskit"},
        ),
        note="Its precision counts users without ground truth as zero. Its average precision "
        "divides by zero for them.",
    ),
    Convention(
        "recommenders",
        "Microsoft recommenders 1.2.1",
        _metrics("precision recall r_precision", map=_DIVIDED_BY_R, ndcg=_BINARY),
        note="Its map_at_k is map(normalizer=min). It leaves users who score zero out of the mean "
        "R-precision: this is a bug and not reproduced, but r_precision(users=hit) does the same.",
    ),
    Convention(
        "recometrics",
        "recometrics 0.1.6",
        _metrics(
            "precision truncated_precision recall ndcg mrr hit_rate roc_auc pr_auc",
            map=_DIVIDED_BY_R,
        ),
        population=Population(min_items_pool=2, constant_scores=False, few_candidates="undefined"),
        ties="random",
        note="Its TAP@K is map(normalizer=min). Its cumulative NDCG is wrong below rank R; its "
        "PR-AUC, Hit and RR are wrong if they are computed alone; without noise and ROC-AUC, "
        "everything is undefined if the top k have equal scores; and it ignores min_pos_test: "
        "these bugs are not reproduced. Its noise breaks ties at random, as here; without it, and "
        "above 10,000, it sorts equal scores into any order. It subtracts negative weights from "
        "the NDCG, and leaves ROC-AUC and PR-AUC undefined for users with fewer than k candidates; "
        "here, negative weights are not relevant, and these metrics do not depend on k.",
    ),
    Convention(
        "ranx",
        "ranx 0.3.21",
        _metrics("precision recall f1 mrr ndcg r_precision hit_rate rbp", map=_DIVIDED_BY_R),
        without_cut_off=("rbp",),
        empty_target_action="neg",
        note=f"{_UNSTABLE} What it calls rbp.95 is rbp(p=0.95), which it does not cut off. It "
        "multiplies each hit by its weight; here, all relevant items count the same.",
    ),
    Convention(
        "replay",
        "RePlay 0.22.0",
        _metrics("precision recall map mrr hit_rate", ndcg=_BINARY),
        note="Among equal scores, it ranks the higher item id first; here, it is the lower one.",
    ),
    Convention(
        "implicit",
        "implicit 0.7.3",
        _metrics("map", precision={"normalizer": "min", "average": "micro"}, ndcg=_BINARY),
        note="It reads past the end of lists that are shorter than k: this is a bug and not "
        f"reproduced. {_UNSTABLE}",
    ),
    Convention(
        "rectorch",
        "rectorch 0.0.9b",
        _metrics("mrr hit_rate", recall={"normalizer": "min"}, ndcg=_BINARY),
        note=f"{_UNSTABLE} Its k is 100 unless given. For users without relevant items, its Hit "
        "and MRR are zero and all else is NaN; here, they do not count.",
    ),
    Convention(
        "ngcf",
        "the evaluation of the NGCF paper and of notebooks after it",
        _metrics(
            "precision recall hit_rate",
            ndcg={"gain": "binary", "ideal": "retrieved", "ideal_k": DEEPEST},
            roc_auc=_HALF,
        ),
        note="Its NDCG compares a list with its own best order, not with the best possible list. "
        "Relevant items that were not retrieved cost nothing, so values are inflated, and NDCG@5 "
        "depends on the largest k that is evaluated. Its AUC is zero for users whose candidates "
        "are all relevant, and with ranklist_by_heapq for all; here, the former do not "
        "count. For reproducing published numbers only.",
    ),
    Convention(
        "pykeen",
        "PyKEEN 1.11.1",
        _metrics("mrr hit_rate mean_rank adjusted_mean_rank adjusted_mean_rank_index"),
        without_cut_off=("mrr",),
        ties="mean",
        note="It ranks each triple without the other known answers to its query, for tails and for "
        "heads, and averages over both, as a task of RankingTask.from_triples does (with others, "
        'write evaluate(..., per="edge")). What it calls realistic is the mean of the best and the '
        'worst rank; optimistic and pessimistic are ties="best" and ties="worst". Its evaluator '
        "knows no other triples than those it evaluates, unless they are in "
        "additional_filter_triples; here, they are in known. Its ranks and means are in single "
        "precision, so its means differ from the sixth or seventh digit on.",
    ),
    Convention(
        "ogb",
        "the evaluator of links of ogb 1.3.6",
        _metrics("mrr hit_rate", roc_auc=_HALF),
        without_cut_off=("mrr",),
        ties="mean",
        note="It is given the scores of positives and negatives, as RankedEdges.from_negatives is; "
        'with a task, write evaluate(..., per="edge"). Its rank is the mean of the best and the '
        "worst where each positive has its own negatives, and the worst in the hit rate of "
        'negatives that all share: write ties="worst" for that.',
    ),
    Convention(
        "tgb",
        "the evaluator of links of py-tgb 2.3.0",
        _metrics("mrr hit_rate"),
        without_cut_off=("mrr",),
        ties="mean",
        note="It is given the scores of positives, each with its own negatives, as "
        'RankedEdges.from_negatives is; with a task, write evaluate(..., per="edge"). Early '
        "versions ranked several positives at once against the negatives of all of them: this is a "
        "bug and not reproduced.",
    ),
    Convention(
        "relbench",
        "RelBench 3.0.2",
        _metrics("map"),
        note="It has no other metric of recommendations. An item that a list repeats counts twice: "
        "this is a bug and not reproduced.",
    ),
    Convention(
        "mind",
        "the metrics of the MIND dataset, in Microsoft recommenders 1.2.1",
        _metrics("hit_rate", ndcg=_BINARY, mrr={"hits": "all"}, roc_auc=_HALF),
        without_cut_off=("mrr",),
        note="Every impression is a query: RankedEdges.from_pairs takes scores, clicks and "
        "impressions. Its MRR is the mean of 1 / rank over all that was clicked, where others look "
        f"at the first. What it calls group_auc is roc_auc. {_UNSTABLE} Where nothing is clicked, "
        "or all for the AUC, its metrics are NaN, zero or an error; here, they do not count.",
    ),
    Convention(
        "ncf",
        "the evaluation of the NCF paper and of notebooks after it",
        _metrics("hit_rate", ndcg=_BINARY),
        ties="worst",
        note="It ranks one relevant item of each user among 99 that were sampled, the candidates "
        'of a task; with several relevant items, write evaluate(..., per="edge"). The relevant '
        "item comes last, so equal scores rank above it.",
    ),
)

#: All conventions by their name.
CONVENTIONS: FrozenDict[str, Convention] = FrozenDict(
    {convention.name: convention for convention in _LIBRARIES}
)


def get(convention: str | Convention) -> Convention:
    """Looks up a convention by its name.

    Raises:
        ValueError: If there is no convention of that name; the error lists all names.

    Example:
        >>> from pyg_recmetrics import conventions
        >>> conventions.get("ranx").source
        'ranx 0.3.21'
    """
    if isinstance(convention, Convention):
        return convention
    return CONVENTIONS[check_choice(convention, "convention", list(CONVENTIONS))]
