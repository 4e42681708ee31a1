"""What a report is about: recommenders of one task, and the split that they are of."""

import pytest
import torch

from pyg_recmetrics import Benchmark, compare, datasets, evaluate, transforms
from pyg_recmetrics.reporting.page import read_contents
from tests.reporting.conftest import contents_of
from tests.support.cases.small_benchmark import DETERMINISTIC
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK


def test_metrics_are_those_of_users_that_all_results_have(task, popular):
    other = evaluate(torch.rand(60), task, ["mrr", "coverage@10", "recall@10"])
    contents = contents_of({"a": popular, "b": other})
    assert list(map(str, contents.metrics)) == ["recall@10"]
    assert str(contents.main_metric) == "recall@10"


def test_checks_of_a_split_may_be_given(popular, split):
    checked = transforms.check_split(*split)
    assert contents_of(popular, checked).split is checked
    assert str(contents_of(popular, split).split) == str(checked)


def test_another_split_is_refused(popular, split):
    data = datasets.synthetic_interactions(num_users=300, num_items=40, mean_degree=9)
    with pytest.raises(ValueError, match="'split' does not match the results: neither its test"):
        contents_of(popular, transforms.PerUserSplit(seed=7)(data))
    assert contents_of(popular, (split[0], split[2], split[0])).split is not None


def test_what_is_wrong_is_named(popular, split, benchmark):
    other = evaluate(torch.rand(60), split[1], "recall@5")
    of_several = benchmark, None, compare(benchmark["Small"])
    for given, error, message in (
        (({"a": popular, "b": other}, None, None), ValueError, "to be of the same task"),
        ((popular, (1, 2), None), TypeError, "'split' needs to be training, validation and"),
        ((popular, (1, 2, 3), None), TypeError, "'train' needs to be a 'Data' or 'HeteroData'"),
        ((popular, None, {}), TypeError, "'comparison' needs to be a 'Comparison' .got dict"),
        ((benchmark, split, None), ValueError, "'split' needs to be of one data set"),
        (of_several, ValueError, "'comparison' needs to be of one data set .got several"),
    ):
        with pytest.raises(error, match=message):
            read_contents(*given)


def test_a_comparison_of_other_results_is_named(runs, popular):
    results = {"Random": runs, "Popular": popular}
    for other, what in (
        ({"A": runs, "B": popular}, r"\['Random', 'Popular'\] .* differs in A, B, Popular, Random"),
        ({"Random": runs[0], "Popular": popular}, "differs in Random"),
        ({**results, "One": runs[0]}, r"of \['Random', 'Popular', 'One'\], .* differs in One"),
    ):
        with pytest.raises(ValueError, match=f"'comparison' needs to be of the results .*{what}"):
            contents_of(results, None, compare(other))


@pytest.mark.parametrize("metric", ["ndcg@10", "mean_rank"])
def test_the_best_is_beside_each_of_the_others_in_the_order_of_means(task, metric):
    generator = torch.Generator().manual_seed(0)
    scores = [torch.rand(120, 60, generator=generator) for _ in range(5)]
    scores[3][tuple(task.truth)] += 1
    results = {f"r{i}": evaluate(x, task, metric) for i, x in enumerate(scores)}
    best = contents_of(results).best
    order = sorted(results, key=lambda name: results[name][metric], reverse=metric != "mean_rank")
    assert [row.a for row in best] == ["r3"] * 4
    assert [row.b for row in best] == order[1:]
    assert contents_of(results, None, compare(results, baseline="r3")).best[0].b == order[1]
    assert contents_of({"r3": results["r3"]}).best is None


class TestDataSets:
    """Contents of a report on several data sets."""

    def test_p_values_of_a_page_are_those_of_its_table(self, benchmark):
        for results in (benchmark, dict(benchmark)):
            contents, made = read_contents(results, None, None)
            assert list(contents) == list(made) == list(benchmark)
            assert {str(x.main_metric) for x in contents.values()} == {"ndcg@3"}
            table = Benchmark(dict(benchmark), deterministic=made.deterministic)
            for data_set, found in table.comparisons.items():
                of_page = contents[data_set].comparison
                assert of_page.protocol == found.protocol
                assert of_page.to_pandas().equals(found.to_pandas())

    def test_options_of_a_benchmark_are_kept(self, benchmark):
        options = {"deterministic": DETERMINISTIC, "proposed": "Fair", "level": 0.9}
        given = Benchmark(benchmark, "recall@3", **options)
        contents, made = read_contents(given, None, None)
        alone, _ = read_contents(Benchmark(benchmark["Small"], **options), None, None)
        assert made is given
        assert {str(x.main_metric) for x in contents.values()} == {"recall@3"}
        for found in (*contents.values(), alone[""]):
            protocol = found.comparison.protocol
            assert (protocol.level, protocol.deterministic) == (0.9, ("None",))

    def test_the_metric_is_the_first_that_every_user_has(self):
        good, bad = (
            evaluate(scores, TASK, ["coverage@2", "mrr"], keep_items=True)
            for scores in (GOOD_SCORES, BAD_SCORES)
        )
        contents, _ = read_contents({"A": {"x": good}, "B": {"x": good, "y": bad}}, None, None)
        assert {str(x.main_metric) for x in contents.values()} == {"mrr"}
        assert (contents["A"].comparison, contents["B"].best[0].b) == (None, "y")
