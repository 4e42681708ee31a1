"""Names of metrics for trackers: valid, unique, and the same as before where nothing is asked."""

import re

import pytest

from pyg_recmetrics import evaluate, metrics
from pyg_recmetrics.results.tracker_names import spell
from tests.support.cases.small_task import GOOD_SCORES, TASK
from tests.support.tools.laws import values_of

#: What MLflow says a name may be made of.
VALID = re.compile(r"[A-Za-z0-9_\-. /]+")


def all_spellings():
    """Every metric with each value of its parameters, with and without a cut-off."""
    for name in metrics.names():
        definition = metrics.definition(name)
        for k in {20 if definition.has_cut_off else None, 20 if definition.needs_cut_off else None}:
            arguments = [
                ((parameter.name, value),)
                for parameter in definition.parameters.values()
                for value in values_of(parameter, k)
            ]
            for chosen in [(), *arguments]:
                yield metrics.Metric(name, k, chosen)


@pytest.mark.parametrize("sep", ["_", "-", "."])
def test_every_metric_has_a_valid_name_of_its_own(sep):
    asked = list(dict.fromkeys(all_spellings()))
    names = spell(asked, sep)
    assert all(VALID.fullmatch(name) for name in names)
    assert len(set(names)) == len(asked) > 60


@pytest.mark.parametrize(
    ("metric", "sep", "name"),
    [
        ("recall@20", "_", "recall_20"),
        ("r_precision", "_", "r_precision"),
        ("r_precision", "-", "r_precision"),
        ("ndcg(gain=exponential)@20", "_", "ndcg_gain_exponential_20"),
        ("ndcg(gain=exponential,ideal=k)@20", "-", "ndcg-gain-exponential-ideal-k-20"),
        ("recall(normalizer=min)@5", ".", "recall.normalizer.min.5"),
        ("r_precision(users=hit)", "_", "r_precision_users_hit"),
    ],
)
def test_the_separator_stands_for_all_signs(metric, sep, name):
    assert spell([metric], sep) == [name]
    assert spell([metrics.parse(metric)]) == [metric]


def test_two_metrics_never_share_a_name():
    with pytest.raises(ValueError, match=r"got '_', which makes 'recall_20' of \['recall@20', 're"):
        spell(["mrr", "recall@20", "recall_20"], "_")
    assert spell(["recall@20", "recall_20"], "-") == ["recall-20", "recall_20"]


@pytest.mark.parametrize("sep", ["/", "", "__", None, 1])
def test_wrong_separators_are_named(sep):
    result = evaluate(GOOD_SCORES, TASK, "recall@2")
    with pytest.raises(ValueError, match=r"'sep' needs to be one of \['@', '_', '-', '\.'\] \(got"):
        result.to_dict(sep=sep)


def test_values_stay_with_their_names():
    result = evaluate(GOOD_SCORES, TASK, ["recall@1", "ndcg(gain=exponential)@2", "mean_rank"])
    assert result.to_dict() == result.to_dict("@") == dict(result)
    assert result.to_dict("_") == {
        "recall_1": result["recall@1"],
        "ndcg_gain_exponential_2": result["ndcg(gain=exponential)@2"],
        "mean_rank": result["mean_rank"],
    }
    assert len({*result.values()}) == 3
