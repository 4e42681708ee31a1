"""The methods `slices` and `item_slices`, which a result and several runs have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_integer,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.results.averages import check_has_rows
from pyg_recmetrics.results.features import (
    Column,
    FeaturesLike,
    columns_of_items,
    columns_of_users,
    make_feature,
    num_users_of,
    read_columns,
    rows_of_users,
)
from pyg_recmetrics.results.measured import Measured
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.results.slices import Question, Slices, Values, find_slices


class SliceMethods:
    """The methods of a result, and of several runs, that find slices."""

    def slices(
        self,
        metric: str | Metric,
        features: FeaturesLike | None = None,
        *,
        against: "SliceMethods | Iterable[SliceMethods] | None" = None,
        max_depth: int = 2,
        min_users: int = 50,
        level: float = 0.95,
        seed: int = 0,
    ) -> Slices:
        r"""Finds the groups of users who are served badly, or for whom a recommender is better.

        A slice is a group of users who meet one or two conditions, such as "training degree ≤ 10
        and country = NL". Slices are looked for on a random half of the users and measured on the
        other half, so that none is shown that only chance made look bad. Those that are shown are
        worse than the mean of all, with confidence. The first one takes most from the mean of all:
        it has the largest product of the difference and the share of users.

        The conditions are about what users have seen: how many items (`training degree`), how
        popular these are on average, and if items have categories, which is the most frequent one
        and how many of equal size have the same entropy. They are also about the number of relevant
        items, and with `per="edge"`, about the popularity of the item. Ordered values are cut into
        eight groups of about the same size.

        Args:
            metric (str or Metric): The metric; see :meth:`EvaluationResult.contributions`.
            features (data frame or dict, optional): What else is known of users: a data frame of
                pandas or polars with their ids in a column `user`, `user_id` or `id`, or arrays
                with a value for every user. Numbers and dates are ordered, and all else is labels.
                Users without a row have missing values. (default: `None`)
            against (EvaluationResult or Runs, optional): Another recommender on the same task. The
                slices are then those for whom the difference of this one and the other is far from
                the mean difference, in either direction. (default: `None`)
            max_depth (int, optional): The largest number of conditions: `1` or `2`.
                (default: `2`)
            min_users (int, optional): The smallest number of users of a slice in each half.
                (default: `50`)
            level (float, optional): The level of all confidence intervals together. Those of
                several runs allow for other runs, too. (default: `0.95`)
            seed (int, optional): The seed of the halves. A person who has several rows has all of
                them in one half. (default: `0`)

        Returns:
            At most five slices, with their means and their differences from the mean of all.

        Raises:
            ImportError: If a data frame is given, and narwhals is not installed.
            TypeError: If `features` or `against` is something else.
            ValueError: If there is no such metric, it is no mean over users, means are over
                persons, `against` is of another task, `features` does not fit the users, or a
                number is out of range.

        Sources: Athey and Imbens, "Recursive partitioning for heterogeneous causal effects" (2016),
        for the two halves; Chung et al., "Slice Finder: automated data slicing for model
        validation" (2019).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> user = torch.arange(1000)
            >>> task = RankingTask(torch.stack([user, user % 7]), num_users=1000, num_items=7)
            >>> scores = torch.nn.functional.one_hot(user % 7, 7).float()
            >>> scores[::4] = torch.arange(7.0)  # every fourth user gets the same list
            >>> country = ["NL" if number % 4 == 0 else "DE" for number in range(1000)]
            >>> print(evaluate(scores, task, "recall@2").slices("recall@2", {"country": country}))
            slice         users  share        recall@2       difference   effect
            --------------------------------------------------------------------
            country = NL    250  25.0%  0.2787 ± .0925  -0.5453 ± .0768  -0.1363
            difference: from the mean of all users, 0.8240; effect: difference x share
            ±: 95% confidence intervals that hold together
            looked for among 2 slices on 500 users, measured on 500 others (seed 0)
        """
        runs, others = _runs_of(self, "self"), _runs_of(against, "against")
        resolved = _check_mean_of_rows(runs[0], metric)
        _check_same(runs[0], others)
        question = _question(
            metric,
            resolved,
            unit=runs[0].nouns.rows,
            is_difference=bool(others),
            level=level,
            max_depth=max_depth,
            min_rows=check_positive_integer(min_users, "min_users"),
            seed=seed,
        )
        of_both = [runs, others] if others else [runs]
        values = [_stack(result.contributions(metric) for result in of) for of in of_both]
        ranked, task = runs[0].ranked, runs[0].task
        given = read_columns(features, ranked.user_ids, num_users_of(ranked, task), "user")
        columns = columns_of_users(ranked, task) | rows_of_users(given, ranked)
        notes = () if runs[0].sampling is None else (runs[0].sampling.note(runs[0].nouns),)
        return _find(values, runs[0].person, columns, question, notes)

    def item_slices(
        self,
        metric: str | Metric = "recall@20",
        features: FeaturesLike | None = None,
        *,
        against: "SliceMethods | Iterable[SliceMethods] | None" = None,
        max_depth: int = 2,
        min_items: int = 50,
        level: float = 0.95,
        seed: int = 0,
    ) -> Slices:
        r"""Finds the groups of items that users do not find, such as those that few have seen.

        The value of an item is a share of the users to whom it is relevant: of those who find it,
        as in :meth:`EvaluationResult.per_item`. Each relevant item counts as much as any other.
        Intervals are about other items of this kind, given these users. All else is as in
        :meth:`slices`.

        The conditions are about how many users have seen an item (`training degree`), to how many
        it is relevant (`ground-truth degree`), and its category.

        Args:
            metric (str or Metric, optional): Where to find an item: `recall@k`, `hit_rate@k`, or
                `r_precision`. (default: `"recall@20"`)
            features (data frame or dict, optional): What else is known of items, such as their age:
                a data frame with their ids in a column `item`, `item_id` or `id`, or arrays with a
                value for every item. (default: `None`)
            against (EvaluationResult or Runs, optional): See :meth:`slices`. (default: `None`)
            max_depth (int, optional): See :meth:`slices`. (default: `2`)
            min_items (int, optional): The smallest number of items of a slice in each half.
                (default: `50`)
            level (float, optional): See :meth:`slices`. (default: `0.95`)
            seed (int, optional): See :meth:`slices`. (default: `0`)

        Returns:
            At most five slices. A column of the table says which share of their items no user
            finds.

        Raises:
            ImportError: If a data frame is given, and narwhals is not installed.
            TypeError: If `features` or `against` is something else.
            ValueError: If it is another metric, means are over persons, `against` is of another
                task, `features` does not fit the items, or a number is out of range.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> item = torch.arange(800)
            >>> task = RankingTask(torch.stack([item, item % 400]), num_users=800, num_items=400)
            >>> age = torch.arange(400) // 40
            >>> scores = torch.nn.functional.one_hot(item % 400, 400) * (age < 7)
            >>> result = evaluate(scores.float(), task, "recall@20", ties="worst")
            >>> print(result.item_slices("recall@20", {"age": age}))
            slice    items  share  recall@20       difference   effect  never found
            -----------------------------------------------------------------------
            age ≥ 7    120  30.0%     0.0000  -0.7150 ± .0737  -0.2145       100.0%
            difference: from the mean of all items, 0.7150; effect: difference x share
            ±: 95% confidence intervals that hold together
            looked for among 20 slices on 200 items, measured on 200 others (seed 0)
        """
        runs, others = _runs_of(self, "self"), _runs_of(against, "against")
        check_has_rows(runs[0].average_over, "item_slices")
        _check_same(runs[0], others)
        question = _question(
            metric,
            parse(metric),
            unit="items",
            is_difference=bool(others),
            level=level,
            max_depth=max_depth,
            min_rows=check_positive_integer(min_items, "min_items"),
            seed=seed,
        )
        of_both = [runs, others] if others else [runs]
        found = [[result._share_of_hits(metric) for result in of] for of in of_both]
        values = [_stack(share for _, share in of) for of in found]
        (degree, _), ranked = found[0][0], runs[0].ranked
        given = read_columns(features, ranked.item_ids, len(degree), "item")
        return _find(values, None, columns_of_items(ranked, degree) | given, question)


def _find(
    values: Sequence[Tensor],
    person: Tensor | None,
    columns: Mapping[str, Column],
    question: Question,
    notes: tuple[str, ...] = (),
) -> Slices:
    is_counted = ~torch.cat(list(values)).isnan().any(dim=0)
    row = is_counted.nonzero().squeeze(1)
    counted = Values(
        [of_runs[:, row] for of_runs in values],
        None if person is None else person.cpu()[row].unique(return_inverse=True)[1],
        row,
        is_counted.numel(),
    )
    features = [make_feature(name, column[row.numpy()]) for name, column in columns.items()]
    return find_slices(counted, features, question, notes)


def _question(
    metric: str | Metric,
    resolved: Metric,
    *,
    unit: str,
    is_difference: bool,
    level: float,
    max_depth: int,
    min_rows: int,
    seed: int,
) -> Question:
    if check_integer(max_depth, "max_depth") not in (1, 2):
        raise ValueError(f"'max_depth' needs to be 1 or 2 (got {max_depth})")
    bad = -1 if resolved.definition.higher_is_better else 1
    return Question(
        str(parse(metric)),
        0 if is_difference else bad,
        is_difference,
        unit,
        check_level(level),
        max_depth,
        min_rows,
        check_natural_number(seed, "seed"),
    )


def _runs_of(results: Any, name: str) -> list[Measured]:
    """Returns the runs of a recommender, of which there is one in a result, and none in `None`."""
    if results is None:
        return []
    runs = [results] if hasattr(results, "ranked") else results
    runs = [] if isinstance(runs, str) or not isinstance(runs, Iterable) else list(runs)
    if not runs or not all(hasattr(result, "ranked") for result in runs):
        raise TypeError(
            f"'{name}' needs to be an 'EvaluationResult', or several runs of a recommender "
            f"(got {type(results).__name__})"
        )
    return runs


def _check_same(first: Measured, others: Sequence[Measured]) -> None:
    name = "another" if len(others) == 1 else "run {} of another"
    by_name = {name.format(number): result for number, result in enumerate(others, 1)}
    check_same_task({"this": first, **by_name})


def _check_mean_of_rows(result: Measured, metric: str | Metric) -> Metric:
    """Returns what a metric is, if its mean over a slice is its value there."""
    check_has_rows(result.average_over, "slices")
    resolved = result._resolve(metric)
    if resolved.is_pooled:
        raise ValueError(
            f"'metric' needs to be a mean over {result.nouns.rows} (got '{resolved}', a ratio of "
            f"sums, which 'by' measures for groups)"
        )
    return resolved


def _stack(values: Iterable[Tensor]) -> Tensor:
    """Returns the values of rows in each run, `[num_runs, num_rows]`, on the CPU."""
    return torch.stack([each.cpu().double() for each in values])
