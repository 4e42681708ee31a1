"""All metrics of the registry by what they need, and the laws that those of ranks obey.

The laws are about whatever is registered at the moment, such as a metric that an example adds.
"""

import itertools

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import metrics, rank
from tests.support.cases.strategies import cases

CUT_OFFS = (1, 2, 3, 5, 20)

#: Some values of parameters that take too many numbers to try all of them. Weights are up to 3.
NUMBERS = {"head": (1, 50, 100), "max_grade": (3, 7), "p": (0.5, 0.9)}


def values_of(parameter, k):
    """All values of a parameter of a metric at `k`, or some if there are too many."""
    if parameter.is_cut_off:
        return [] if k is None else [k, k + 1, k + 7]
    return list(parameter.words or NUMBERS.get(parameter.name, ()))


def with_arguments(name, k):
    """A metric alone, and with the values of each parameter and of each pair of parameters."""
    definition = metrics.definition(name)
    k = k if definition.has_cut_off else None
    given = [
        [(parameter.name, value) for value in values_of(parameter, k)]
        for parameter in definition.parameters.values()
    ]
    return [
        metrics.Metric(name, k, arguments)
        for number in range(3)
        for chosen in itertools.combinations(given, number)
        for arguments in itertools.product(*chosen)
    ]


def metrics_of_ranks(k):
    """Every metric that needs neither all ranks nor lists, at `k` where it has a cut-off."""
    definitions = map(metrics.definition, metrics.names())
    wanted = [each.name for each in definitions if not each.needs_all_ranks and not each.needs]
    return [metric for name in wanted for metric in with_arguments(name, k)]


def metrics_of_lists(k):
    """Every metric of lists."""
    wanted = [name for name in metrics.names() if metrics.definition(name).needs]
    return [metric for name in wanted for metric in with_arguments(name, k)]


def with_lists(case, k):
    """A ranking that knows all that metrics of ranks and of lists need, and these metrics."""
    ranked = rank(case.score_matrix, case.task(), k=k + 7, keep_items=True)
    ranked = ranked.with_catalogue(case.catalogue)
    return ranked, metrics_of_ranks(k) + (metrics_of_lists(k) if case.seen else [])


@given(case=cases(max_users=15), k=st.sampled_from(CUT_OFFS))
def check_bounds(case, k):
    """Values are within bounds, and undefined for users without truth and for nobody else."""
    ranked, found = with_lists(case, k)
    for metric in found:
        value = metric(ranked)
        assert (value.dtype, value.dim()) == (torch.float64, 0 if metric.is_aggregate else 1)
        low, high = metrics.definition(metric.name).range
        assert not value.nanmean() > high + 1e-12, metric
        if not metric.is_pooled:
            assert all(low <= x <= high + 1e-12 for x in value[~value.isnan()].tolist()), metric
        if metric.needs_truth and dict(metric.arguments).get("users") != "hit":
            is_undefined = [not truth for truth in case.truths]
            if metrics.definition(metric.name).needs_candidates:
                pairs = zip(case.rankings, case.truths, strict=True)
                is_undefined = [not truth or not set(items) - set(truth) for items, truth in pairs]
            assert value.isnan().tolist() == is_undefined


@given(case=cases(max_users=15), data=st.data())
def check_renumbering(case, data):
    """New ids for users and items change no metric."""
    users = data.draw(st.permutations(range(case.num_users)))
    items = data.draw(st.permutations(range(case.num_items)))
    case = case.without_ties()
    before, found = with_lists(case, 5)
    after, _ = with_lists(case.renumbered(users, items), 5)
    for metric in data.draw(st.lists(st.sampled_from(found), min_size=30, max_size=30)):
        value, again = metric(before), metric(after)
        again = again if metric.is_aggregate else again[users]
        assert again.tolist() == pytest.approx(value.tolist(), abs=1e-12, nan_ok=True), metric
