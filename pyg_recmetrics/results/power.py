"""The power of a comparison: which differences its test detects, and what smaller ones need."""

from dataclasses import dataclass

from pyg_recmetrics.checks import check_finite_number, check_fraction
from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.uncertainty import Source, Uncertainty


@dataclass(frozen=True)
class Power:
    r"""How large a difference of two recommenders has to be for a test to detect it.

    :meth:`Comparison.power` returns it. It follows from how much the difference varies over users,
    and over runs if there are several. It is that of one t-test, without correction for others.

    Attributes:
        metric (str): The metric, as `name@k`.
        a (str): The name of one recommender.
        b (str): The name of the other.
        level (float): The level of confidence of the test.

    Sources: Cohen, "Statistical power analysis for the behavioral sciences" (1988); Sakai,
    "Statistical power analysis and reproducibility in information retrieval" (2018).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> power = compare({"perfect": perfect, "popular": popular}).power("recall@1")
        >>> power
        Power(recall@1 of perfect and popular: detects a difference of 0.7857 in 80% of cases)
        >>> round(power.detectable(0.5), 2), power.users(difference=0.1)
        (0.54, 238)
    """

    metric: str
    a: str
    b: str
    level: float
    _uncertainty: Uncertainty

    def detectable(self, power: float = 0.8) -> float:
        """Returns the smallest difference that the test detects with probability `power`.

        Args:
            power (float, optional): The probability, in :math:`(0, 1)`. (default: `0.8`)

        Raises:
            ValueError: If `power` is not between 0 and 1.
        """
        return self._uncertainty.detectable(check_fraction(power, "power"), self.level)

    def detectable_interval(self, power: float = 0.8) -> Interval:
        """Returns how large and how small the detectable difference may really be.

        The standard error is itself an estimate. With few runs, it may be far too small or too
        large by chance, and the detectable difference with it.

        Args:
            power (float, optional): The probability, in :math:`(0, 1)`. (default: `0.8`)

        Returns:
            The ends of an interval at the level of the test.

        Raises:
            ValueError: If `power` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
            >>> task = RankingTask(truth, num_users=6, num_items=3)
            >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
            >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
            >>> comparison = compare({"perfect": perfect, "popular": popular})
            >>> low, high = comparison.power("recall@1").detectable_interval()
            >>> round(low, 2), round(high, 2)
            (0.49, 1.93)
        """
        value = self.detectable(power)
        low, high = self._uncertainty.scaled(self.level)
        return Interval(value * low, value * high)

    def users(self, difference: float, power: float = 0.8) -> int | None:
        """Returns how many users are needed to detect a difference.

        If persons have several rows, it is the number of persons.

        Args:
            difference (float): The size of the difference.
            power (float, optional): The probability of detecting it, in :math:`(0, 1)`.
                (default: `0.8`)

        Returns:
            The number; `None` if no number is enough, because runs alone vary too much.

        Raises:
            ValueError: If `difference` is zero, or `power` is not between 0 and 1.
        """
        return self._needed("users", difference, power)

    def runs(self, difference: float, power: float = 0.8) -> int | None:
        """Returns how many runs of each recommender are needed to detect a difference.

        A recommender with one run stays as it is and needs no more.

        Args:
            difference (float): The size of the difference.
            power (float, optional): The probability of detecting it, in :math:`(0, 1)`.
                (default: `0.8`)

        Returns:
            The number; `None` if no number is enough, because there are too few users.

        Raises:
            ValueError: If `difference` is zero, `power` is not between 0 and 1, or neither
                recommender has several runs.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.stack([torch.arange(30), torch.arange(30) % 3])
            >>> task = RankingTask(truth, num_users=30, num_items=3)
            >>> models = torch.rand(4, 30, 3, generator=torch.Generator().manual_seed(0))
            >>> first, second, third, other = (evaluate(model, task, "mrr") for model in models)
            >>> comparison = compare({"a": [first, second, third], "b": other}, deterministic="b")
            >>> power = comparison.power("mrr")
            >>> power.runs(difference=0.3), power.runs(difference=0.001)
            (2, None)
        """
        if not self._uncertainty.has_runs:
            raise ValueError(
                f"'results' needs to hold several runs of '{self.a}' or '{self.b}' (got one of "
                f"each)"
            )
        return self._needed("runs", difference, power)

    @property
    def has_error(self) -> bool:
        """Whether differences vary at all; if not, they do not say what a test detects."""
        return self._uncertainty.variance > 0

    def _needed(self, source: Source, difference: float, power: float) -> int | None:
        if check_finite_number(difference, "difference") == 0:
            raise ValueError(f"'difference' needs to be other than zero (got {difference!r})")
        power = check_fraction(power, "power")
        return self._uncertainty.needed(source, difference, power, self.level)

    def __repr__(self) -> str:
        what = f"{type(self).__name__}({self.metric} of {self.a} and {self.b}: "
        if not self.has_error:
            return f"{what}all differences are the same)"
        low, high = self.detectable_interval()
        doubt = f", or {low:.4f} to {high:.4f}" if self._uncertainty.has_runs else ""
        return f"{what}detects a difference of {self.detectable():.4f}{doubt} in 80% of cases)"
