"""Critical differences, against scikit-posthocs."""

import pytest

pytest.importorskip("scikit_posthocs")

import pandas as pd
import scikit_posthocs as posthocs

from tests.benchmark.test_critical_differences import critical
from tests.support.cases.small_benchmark import many_data_sets


@pytest.mark.parametrize("lead", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("number", [8, 13, 30])
def test_wilcoxons_tests_with_holms_correction(number, lead):
    names = [*"abcde"]
    means = many_data_sets(number, names, lead=lead, seed=number)
    frame = pd.DataFrame(means).T
    found = critical(means, names)
    long = frame.melt(var_name="name", value_name="value")
    theirs = posthocs.posthoc_wilcoxon(long, "value", "name", p_adjust="holm")
    for row in found:
        assert row.p_adjusted == pytest.approx(theirs.loc[row.a, row.b])


def test_nemenyis_test_agrees_on_what_is_far_apart():
    names = [*"abcd"]
    means = many_data_sets(30, names, lead=1.0)
    theirs = posthocs.posthoc_nemenyi_friedman(pd.DataFrame(means).T)
    found = critical(means, names)
    for row in found:
        assert row.is_significant == (theirs.loc[row.a, row.b] <= 0.05)
    assert {"a"} == {row.a for row in found if row.is_significant}
