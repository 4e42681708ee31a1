r"""Slices: groups of users or items whose mean is far from that of all, and how to find them.

A slice is what one or two conditions leave, such as few training edges. Slices are looked for on a
random half of the rows and measured on the other, so that what was found by chance is not found
there again. The search takes the slice with the largest

.. math::
    z^2 - 2 d \log C, \qquad z = \frac{\sum_{i \in S} (\bar x - x_i)}
    {s \sqrt{|S| (1 - |S| / n)}}

for slices of `d` conditions, of which there are `C`. A second condition thus has to be worth more
than what the best of so many would gain by chance. Once a slice is found, its values are moved to
those of the other rows, and slices of nearly the same rows are left out, so that the next one says
something else.

Sources: Athey and Imbens, "Recursive partitioning for heterogeneous causal effects" (2016), for the
two halves; Chung et al., "Slice Finder: automated data slicing for model validation" (2019); Foster
and George, "The risk inflation criterion for multiple regression" (1994), for the penalty.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.results.estimates import Estimate
from pyg_recmetrics.results.estimates_of_runs import mean_of_users_and_runs, two_recommenders
from pyg_recmetrics.results.features import Feature, anything
from pyg_recmetrics.tables import Rows, Table, format_level, format_mean, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

#: The most slices that are measured.
MOST_SLICES = 5

#: No slice is taken from the search that chance alone would make as bad in so many of its errors.
_LEAST_Z = 2.0

#: What the size of a slice takes from its score, so that the smaller of it and its rest is taken.
_OF_SIZE = 1e-6

#: Slices that share more than this part of the rows of both say the same.
_MOST_OVERLAP = 0.5

#: A variance that is smaller than this share of the mean square is due to rounding.
_ROUNDING = 1e-20

#: The conditions of a slice: a feature, and the number of one of its conditions.
Rule: TypeAlias = tuple[tuple[Feature, int], ...]


class Slice(NamedTuple):
    """A group of users, or of items, whose mean is far from that of all.

    Attributes:
        conditions: Its conditions, such as `"training degree ≤ 10 and country = NL"`.
        num_rows: How many users or items it has.
        share: Their share of all.
        mean: Its mean, or the mean difference of two recommenders in it.
        mean_low: The lower end of the confidence interval of the mean.
        mean_high: The upper end.
        difference: Its mean minus the mean of all.
        low: The lower end of the confidence interval of the difference.
        high: The upper end.
        zeros: The share of its users or items for whom nothing is found, whose value is zero;
            `NaN` for the difference of two recommenders.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> user = torch.arange(1000)
        >>> truth = torch.stack([user, (user % 4 > 0).long()])
        >>> task = RankingTask(truth, num_users=1000, num_items=2)
        >>> result = evaluate(torch.tensor([0.1, 0.9]), task, "mrr")
        >>> found = result.slices("mrr", {"kind": (user % 4).tolist()})
        >>> found[0].conditions, round(found[0].mean, 2)
        ('kind = 0', 0.5)
    """

    conditions: str
    num_rows: int
    share: float
    mean: float
    mean_low: float
    mean_high: float
    difference: float
    low: float
    high: float
    zeros: float

    @property
    def effect(self) -> float:
        """What it adds to the mean of all: its difference times its share."""
        return self.difference * self.share


@dataclass(frozen=True)
class Question:
    """What is asked for.

    Attributes:
        metric (str): The metric.
        sign (int): What kind of slice is looked for: `-1` for low values, `1` for high ones, and
            `0` for both.
        is_difference (bool): Whether values are differences of two recommenders.
        unit (str): What the rows are called, such as `"users"`.
        level (float): The level of all intervals together.
        max_depth (int): The largest number of conditions of a slice.
        min_rows (int): The smallest number of rows of a slice in each half.
        seed (int): The seed of the halves.
    """

    metric: str
    sign: int
    is_difference: bool
    unit: str
    level: float
    max_depth: int
    min_rows: int
    seed: int


@dataclass(frozen=True, eq=False)
class Values:
    """The values of rows that count.

    Attributes:
        runs (sequence of torch.Tensor): The values of one recommender or two in each of their runs,
            of shape `[num_runs, num_rows]`.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_rows]`.
        row (torch.Tensor): The number of each row in the result, of shape `[num_rows]`.
        num_rows (int): The number of rows in the result.
    """

    runs: Sequence[Tensor]
    person: Tensor | None
    row: Tensor
    num_rows: int

    @property
    def mean(self) -> Tensor:
        """The mean over runs, or the difference of two such means, of shape `[num_rows]`."""
        first, *others = (values.mean(dim=0) for values in self.runs)
        return first - others[0] if others else first

    def estimate(self, is_in: Tensor) -> Estimate:
        """Returns the mean over some rows, a mask of shape `[num_rows]`."""
        return self._combined(self._means(is_in))

    def contrast(self, is_in: Tensor, is_all: Tensor) -> Estimate:
        """Returns the mean over some rows minus that over these and others."""
        pairs = zip(self._means(is_in), self._means(is_all), strict=True)
        return self._combined([inside.minus(everywhere) for inside, everywhere in pairs])

    def _means(self, is_in: Tensor) -> list[Estimate]:
        return [
            mean_of_users_and_runs(values.masked_fill(~is_in, torch.nan), self.person)
            for values in self.runs
        ]

    def _combined(self, estimates: list[Estimate]) -> Estimate:
        return two_recommenders(*estimates) if len(estimates) == 2 else estimates[0]


class Slices(Rows[Slice]):
    """The slices of users or items whose mean is far from that of all, the largest effect first.

    :meth:`EvaluationResult.slices` and :meth:`EvaluationResult.item_slices` return it.

    Attributes:
        question (Question): What was asked for.
        mean (float): The mean of all users or items of the half on which slices were measured.
        num_searched (int): How many users or items slices were looked for on.
        num_measured (int): How many others they were measured on.
        num_candidates (int): How many slices were looked at.
        num_tested (int): How many of them were measured, for which all intervals are corrected.
        notes (tuple of str): What else a table says.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> user = torch.arange(1000)
        >>> truth = torch.stack([user, (user % 4 > 0).long()])
        >>> task = RankingTask(truth, num_users=1000, num_items=2)
        >>> result = evaluate(torch.tensor([0.1, 0.9]), task, "mrr")
        >>> found = result.slices("mrr", {"kind": (user % 4).tolist()})
        >>> len(found) > 0
        True
    """

    def __init__(
        self,
        slices: Iterable[tuple[Slice, Tensor]],
        question: Question,
        mean: float,
        num_searched: int,
        num_measured: int,
        num_candidates: int,
        num_tested: int,
        notes: Sequence[str] = (),
    ) -> None:
        found = sorted(slices, key=lambda each: -abs(each[0].effect))
        self._rows, self._masks = tuple(row for row, _ in found), tuple(mask for _, mask in found)
        self.question, self.mean = question, mean
        self.num_searched, self.num_measured = num_searched, num_measured
        self.num_candidates, self.num_tested = num_candidates, num_tested
        self.notes = tuple(notes)

    def mask(self, index: int) -> Tensor:
        """Returns who is in a slice, a mask of shape `[num_users]` or `[num_items]` on the CPU.

        Those who do not count in the mean are in no slice.

        Args:
            index (int): The place of the slice in the table, from `0` on.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> user = torch.arange(1000)
            >>> truth = torch.stack([user, (user % 4 > 0).long()])
            >>> task = RankingTask(truth, num_users=1000, num_items=2)
            >>> result = evaluate(torch.tensor([0.1, 0.9]), task, "mrr")
            >>> found = result.slices("mrr", {"kind": (user % 4).tolist()})
            >>> found.mask(0)[:4]
            tensor([ True, False, False, False])
        """
        return self._masks[index]

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every slice, and the attributes of :class:`Slice`.

        Raises:
            ImportError: If pandas is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> user = torch.arange(1000)
            >>> truth = torch.stack([user, (user % 4 > 0).long()])
            >>> task = RankingTask(truth, num_users=1000, num_items=2)
            >>> result = evaluate(torch.tensor([0.1, 0.9]), task, "mrr")
            >>> found = result.slices("mrr", {"kind": (user % 4).tolist()})
            >>> len(found.to_pandas()) == len(found)
            True
        """
        rows = [(*row, row.effect) for row in self]
        return to_data_frame(rows, [*Slice._fields, "effect"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} slices of {self.question.metric})"

    def table(self) -> Table:
        """Returns the printed table."""
        question, is_of_items = self.question, self.question.unit == "items"
        metric = f"{question.metric}, a - b" if question.is_difference else question.metric
        head = ["slice", question.unit, "share", metric, "difference", "effect"]
        rows = [
            [
                row.conditions,
                f"{row.num_rows:,}",
                f"{100 * row.share:.1f}%",
                format_mean(row.mean, (row.mean_high - row.mean_low) / 2),
                signed(row.difference, row.high),
                f"{row.effect:+.4f}",
                f"{100 * row.zeros:.1f}%",
            ]
            for row in self
        ]
        if is_of_items and not question.is_difference:
            return Table([*head, "never found"], rows, self._all_notes())
        return Table(head, [row[:-1] for row in rows], self._all_notes())

    def _all_notes(self) -> tuple[str, ...]:
        question, unit = self.question, self.question.unit
        level = format_level(question.level)
        what = "difference" if question.is_difference else "mean"
        notes = [] if len(self) else [self.nothing]
        if len(self):
            each = "" if self.num_tested == 1 else f" for all {self.num_tested} measured slices"
            notes = [
                f"difference: from the {what} of all {unit}, {self.mean:.4f}; effect: difference x "
                f"share",
                f"±: {level} confidence intervals that hold together{each}",
            ]
        notes.append(
            f"looked for among {self.num_candidates:,} slices on {self.num_searched:,} {unit}, "
            f"measured on {self.num_measured:,} others (seed {question.seed})"
        )
        return (*notes, *self.notes)

    @property
    def nothing(self) -> str:
        """What to say if there is no slice."""
        question = self.question
        far = {-1: "is below", 1: "is above", 0: "differs from"}[question.sign]
        if self.num_candidates:
            return f"no group of {question.unit} was found that {far} the mean of all"
        return (
            f"no group of {question.unit} that is known has {question.min_rows} of them in each "
            f"half, and leaves out as many"
        )


def signed(difference: float, high: float) -> str:
    """Formats a difference with its sign, and half the width of its interval."""
    return f"{'+' if difference >= 0 else ''}{format_mean(difference, high - difference)}"


def find_slices(
    values: Values, features: Sequence[Feature], question: Question, notes: tuple[str, ...] = ()
) -> Slices:
    """Looks for slices on one half, and measures them on the other.

    Args:
        values (Values): The values of all rows.
        features (sequence of Feature): What the rows differ in.
        question (Question): What is asked for.
        notes (tuple of str, optional): What a table says below its own notes.
    """
    is_searched = random_half(values.person, len(values.row), question.seed)
    search = Search(features, is_searched, ~is_searched, question.min_rows, question.max_depth)
    rules = search.find(values.mean, question.sign)
    measured = measure(rules, values, ~is_searched, question)
    return Slices(
        measured,
        question,
        values.estimate(~is_searched).value,
        int(is_searched.sum()),
        int((~is_searched).sum()),
        search.num_candidates,
        len(rules),
        notes,
    )


def random_half(person: Tensor | None, num_rows: int, seed: int) -> Tensor:
    """Draws half of the rows, or of the persons with all of their rows: a mask `[num_rows]`."""
    drawn = torch.arange(num_rows, device="cpu") if person is None else person
    distinct, number = drawn.unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(distinct.numel(), generator=generator, device="cpu")
    is_first: Tensor = (order < distinct.numel() // 2)[number]
    return is_first


class Search:
    """Looks at all slices of one condition or two.

    Args:
        features (sequence of Feature): What rows differ in.
        is_searched (torch.Tensor): The rows to look at, a mask of shape `[num_rows]`.
        is_measured (torch.Tensor): The rows of which a slice needs enough, too.
        min_rows (int): How many rows of both a slice needs to have, and each condition to drop.
        max_depth (int): The largest number of conditions: one or two.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        is_searched: Tensor,
        is_measured: Tensor,
        min_rows: int,
        max_depth: int,
    ) -> None:
        self.is_searched = is_searched
        features = [feature for feature in features if feature.labels]
        num_conditions = sum(len(feature.labels) for feature in features)
        self.penalty = 2 * math.log(max(num_conditions, 1))
        alone = [(feature, anything(len(is_searched))) for feature in features]
        both = combinations(features, 2) if max_depth > 1 else ()
        self._boxes = [_Boxes(*pair, is_searched, is_measured, min_rows) for pair in alone]
        self._depths = [1] * len(alone)
        for pair in both:
            self._boxes.append(_Boxes(*pair, is_searched, is_measured, min_rows))
            self._depths.append(2)
        self.num_candidates = sum(int(boxes.is_allowed.sum()) for boxes in self._boxes)

    def find(self, values: Tensor, sign: int, most: int = MOST_SLICES) -> list[Rule]:
        """Returns the slices whose values are low, high, or either.

        Args:
            values (torch.Tensor): The value of each row, of shape `[num_rows]`.
            sign (int): `-1` for low values, `1` for high ones, and `0` for both.
            most (int, optional): The most slices. (default: `5`)
        """
        found: list[Rule] = []
        is_open = [boxes.is_allowed for boxes in self._boxes]
        values = values[self.is_searched]
        while len(found) < most and (rule := self._best(values, sign, is_open)):
            found.append(rule)
            is_in = meets(rule)[self.is_searched]
            is_open = [
                some & ~boxes.repeat(rule, is_in)
                for some, boxes in zip(is_open, self._boxes, strict=True)
            ]
            shift = values[~is_in].mean() - values[is_in].mean()
            values = torch.where(is_in, values + shift, values)
        return found

    def _best(self, values: Tensor, sign: int, is_open: Sequence[Tensor]) -> Rule | None:
        deviation = values - values.mean()
        variance = deviation.square().mean()
        if variance <= _ROUNDING * values.square().mean():
            return None
        deviation /= variance.sqrt()
        best, rule = -math.inf, None
        for boxes, depth, is_left in zip(self._boxes, self._depths, is_open, strict=True):
            z = boxes.z(deviation)
            z = sign * z if sign else z.abs()
            score = z.square() - depth * self.penalty - _OF_SIZE * boxes.count / len(values)
            score = score.masked_fill(~is_left | ~(z >= _LEAST_Z), -math.inf).flatten()
            place = int(score.argmax())
            if float(score[place]) > best:
                best, rule = float(score[place]), boxes.rule(place)
        return rule


class _Boxes:
    """All slices of a condition on one feature and a condition on another.

    Values of both features make a table of sums. A slice is a rectangle in it, whose sum is that of
    four corners of the cumulated table.
    """

    def __init__(
        self,
        one: Feature,
        other: Feature,
        is_searched: Tensor,
        is_measured: Tensor,
        min_rows: int,
    ) -> None:
        self.one, self.other = one, other
        self._shape = one.size, other.size
        place = one.code * other.size + other.code
        self._place = place[is_searched]
        self._num_rows = int(is_searched.sum())
        self.count = self._sums(self._place)
        self.is_allowed = self._is_large(is_searched, place, min_rows)
        self.is_allowed &= self._is_large(is_measured, place, min_rows)

    def z(self, deviation: Tensor) -> Tensor:
        """Returns by how many standard errors each slice is above the mean.

        Args:
            deviation (torch.Tensor): By how many standard deviations the value of each row that is
                looked at is above the mean.
        """
        variance = self.count * (1 - self.count / self._num_rows)
        return self._sums(self._place, deviation) / variance.sqrt()

    def repeat(self, rule: Rule, is_in: Tensor) -> Tensor:
        """Returns which slices say what another says, a mask like :attr:`count`.

        They share most of the rows of both, or any row if the conditions are on the same features.

        Args:
            rule (tuple): The conditions of the other slice.
            is_in (torch.Tensor): Its rows, of those that are looked at.
        """
        common = self._sums(self._place, is_in.double())
        of_any = self.count + int(is_in.sum()) - common
        return common > (0 if self._is_on_features_of(rule) else _MOST_OVERLAP * of_any)

    def _is_on_features_of(self, rule: Rule) -> bool:
        own = {id(feature) for feature in (self.one, self.other) if any(feature.labels)}
        return own == {id(feature) for feature, _ in rule}

    def rule(self, place: int) -> Rule:
        """Returns the conditions of a slice, given its place in the flat table."""
        first, second = divmod(place, len(self.other.labels))
        return tuple(
            (feature, number)
            for feature, number in ((self.one, first), (self.other, second))
            if feature.labels[number]
        )

    def _is_large(self, some: Tensor, place: Tensor, min_rows: int) -> Tensor:
        """Returns which slices have enough of some rows, and of which each condition drops enough.

        Args:
            some (torch.Tensor): The rows that count, a mask of shape `[num_rows]`.
            place (torch.Tensor): The place of each row in the table, of shape `[num_rows]`.
            min_rows (int): How many are enough.
        """
        count = self._sums(place[some])
        met_one, met_other = (_num_met(feature, some) for feature in (self.one, self.other))
        is_large = (count >= min_rows) & (met_other - count >= min_rows)
        if any(self.other.labels):
            is_large &= met_one.unsqueeze(1) - count >= min_rows
        return is_large

    def _sums(self, place: Tensor, weight: Tensor | None = None) -> Tensor:
        """Returns the sums of all rectangles, of shape `[num_conditions, num_conditions]`."""
        flat = torch.bincount(place, weight, minlength=math.prod(self._shape))
        cumulated = flat.double().view(self._shape).cumsum(0).cumsum(1)
        padded = torch.nn.functional.pad(cumulated, (1, 0, 1, 0))
        rows = padded[self.one.last + 1] - padded[self.one.first]
        return rows[:, self.other.last + 1] - rows[:, self.other.first]


def _num_met(feature: Feature, some: Tensor) -> Tensor:
    """Returns how many of some rows meet each condition, of shape `[num_conditions]`."""
    count = torch.bincount(feature.code[some], minlength=feature.size).cumsum(0)
    padded = torch.nn.functional.pad(count, (1, 0))
    return padded[feature.last + 1] - padded[feature.first]


def meets(rule: Rule) -> Tensor:
    """Returns which rows meet all conditions, a mask of shape `[num_rows]`."""
    (feature, number), *others = rule
    is_in = feature.is_met(number)
    for feature, number in others:
        is_in = is_in & feature.is_met(number)
    return is_in


def measure(
    rules: Sequence[Rule], values: Values, is_measured: Tensor, question: Question
) -> Iterator[tuple[Slice, Tensor]]:
    """Yields the slices that are as far from the mean of all as they should be, and their rows.

    Each slice has two intervals. All of them hold together at the level of the question.

    Args:
        rules (sequence): The conditions of each slice.
        values (Values): The values of all rows.
        is_measured (torch.Tensor): The rows to measure slices on, a mask of shape `[num_rows]`.
        question (Question): What is asked for.
    """
    level = 1 - (1 - question.level) / max(1, 2 * len(rules))
    for rule in rules:
        is_in = meets(rule)
        inside = is_in & is_measured
        mean, difference = values.estimate(inside), values.contrast(inside, is_measured)
        low, high = difference.interval(level)
        if (question.sign <= 0 and high < 0) or (question.sign >= 0 and low > 0):
            mask = torch.zeros(values.num_rows, dtype=torch.bool, device="cpu")
            mask[values.row[is_in]] = True
            yield (
                Slice(
                    " and ".join(feature.labels[number] for feature, number in rule),
                    int(is_in.sum()),
                    float(is_in.double().mean()),
                    mean.value,
                    *mean.interval(level),
                    difference.value,
                    low,
                    high,
                    _share_of_zeros(values, inside),
                ),
                mask,
            )


def _share_of_zeros(values: Values, is_in: Tensor) -> float:
    if len(values.runs) > 1:
        return math.nan
    return float((values.runs[0][:, is_in] == 0).double().mean())
