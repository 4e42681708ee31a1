# Written by tests/support/tools/module_stubs.py from the registry of metrics.
from typing import Literal

from typing_extensions import Unpack

from pyg_recmetrics.modules.ranking_metric import (
    MeanOverUsers as MeanOverUsers,
    OverAllUsers as OverAllUsers,
    PrecisionRecallCurve as PrecisionRecallCurve,
    RankingMetric as RankingMetric,
    RecallAtFixedPrecision as RecallAtFixedPrecision,
    StreamingMetric as StreamingMetric,
    TorchmetricsArguments,
    base_class as base_class,
    class_name as class_name,
    make_class as make_class,
)
from pyg_recmetrics.task import Catalogue

class Precision(MeanOverUsers):
    """The fraction of the top `k` that is relevant."""

    def __init__(
        self,
        k: int,
        normalizer: Literal["k", "length", "min"] = "k",
        average: Literal["macro", "micro"] = "macro",
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class TruncatedPrecision(MeanOverUsers):
    """Precision as a share of what is possible: a perfect ranking scores one at every `k`."""

    def __init__(
        self,
        k: int,
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class Recall(MeanOverUsers):
    """The fraction of the relevant items that is in the top `k`."""

    def __init__(
        self,
        k: int,
        normalizer: Literal["R", "min"] = "R",
        average: Literal["macro", "micro"] = "macro",
        weighted: bool = False,
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class F1(MeanOverUsers):
    """The harmonic mean of a user's precision and recall."""

    def __init__(
        self,
        k: int,
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class RPrecision(MeanOverUsers):
    """Precision at the user's own number of relevant items `R`, where it equals recall."""

    def __init__(
        self,
        users: Literal["all", "hit"] = "all",
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class HitRate(MeanOverUsers):
    """Whether there is a relevant item in the top `k`."""

    def __init__(
        self,
        k: int,
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class MRR(MeanOverUsers):
    """The reciprocal rank of the first relevant item; its mean is the MRR."""

    def __init__(
        self,
        k: int | None = None,
        hits: Literal["first", "all"] = "first",
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class MAP(MeanOverUsers):
    """The average precision at the ranks of the relevant items; its mean is the MAP."""

    def __init__(
        self,
        k: int | None = None,
        normalizer: Literal["min", "R", "k", "hits"] = "min",
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class DCG(MeanOverUsers):
    """The discounted cumulative gain: relevant items add up, and count less further down."""

    def __init__(
        self,
        k: int | None = None,
        gain: Literal["linear", "exponential", "binary"] = "linear",
        discount: Literal["log2", "lenskit"] = "log2",
        *,
        weighted: bool = False,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class NDCG(MeanOverUsers):
    """The discounted cumulative gain as a fraction of the best possible one."""

    def __init__(
        self,
        k: int | None = None,
        gain: Literal["linear", "exponential", "binary"] = "linear",
        discount: Literal["log2", "lenskit"] = "log2",
        ideal: Literal["relevant", "k", "retrieved"] = "relevant",
        ideal_k: int | None = None,
        *,
        weighted: bool = False,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class RBP(MeanOverUsers):
    """The chance that a user who may stop after any item stops at a relevant one."""

    def __init__(
        self,
        k: int | None = None,
        p: float = 0.8,
        *,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class ERR(MeanOverUsers):
    """The expected reciprocal rank of the item at which a user is satisfied, and stops."""

    def __init__(
        self,
        k: int | None = None,
        max_grade: int = 4,
        *,
        weighted: bool = False,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class Coverage(OverAllUsers):
    """The fraction of all items that are in the top `k` of at least one user."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class Gini(OverAllUsers):
    """How unequally items are recommended, from zero (all equally often); lower is better."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class Entropy(OverAllUsers):
    """The Shannon entropy of the recommended items, in bits: higher means more evenly spread."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class Personalization(OverAllUsers):
    """How different the lists of two users are on average: zero if all lists are the same."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class Popularity(MeanOverUsers):
    """How many users saw a recommended item on average, the ARP; lower is better."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class Novelty(MeanOverUsers):
    """The mean self-information of the recommended items, in bits: high if few users saw them."""

    def __init__(
        self, k: int, *, catalogue: Catalogue, **kwargs: Unpack[TorchmetricsArguments]
    ) -> None: ...

class TailShare(MeanOverUsers):
    """The fraction of the recommended items that are in the long tail; its mean is the APLT."""

    def __init__(
        self,
        k: int,
        head: int = 80,
        *,
        catalogue: Catalogue,
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class Diversity(MeanOverUsers):
    """How different two items of a list are on average: one minus their mean cosine."""

    def __init__(
        self,
        k: int,
        over: Literal["category", "embedding"] = "category",
        *,
        catalogue: Catalogue,
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

class Serendipity(MeanOverUsers):
    """How much of the list is relevant and would not be recommended for its popularity alone."""

    def __init__(
        self,
        k: int,
        *,
        catalogue: Catalogue,
        empty_target_action: Literal["skip", "neg", "pos", "error"] = "skip",
        **kwargs: Unpack[TorchmetricsArguments],
    ) -> None: ...

# The class of a metric of your own.
def __getattr__(name: str) -> type[RankingMetric]: ...
