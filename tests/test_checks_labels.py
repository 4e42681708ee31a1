"""Labels of users or items, in the forms in which people hold them."""

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_recmetrics.checks import read_labels


def read(labels, num_wanted=3):
    number, distinct = read_labels(labels, "groups", "user", num_wanted)
    assert number.dtype == torch.long
    return number.tolist(), distinct


def test_single_values_are_labels():
    assert read([torch.tensor(7), np.array(3), np.int64(7)]) == ([1, 0, 1], [3, 7])
    assert read(list(torch.tensor([7, 3, 7]))) == ([1, 0, 1], [3, 7])


def test_labels_that_cannot_be_sorted_stay_in_the_order_in_which_they_came():
    assert read(["old", 3, "old"]) == ([0, 1, 0], ["old", 3])


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_what_is_missing_has_no_label(missing):
    assert read(["b", missing, "a"]) == ([1, -1, 0], ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.tensor([0.5, 1, 2]), ValueError, "'groups' needs to hold integers or booleans"),
        (torch.tensor([1, 2]), ValueError, r"a label for every user of shape \[3\] \(got \[2\]\)"),
        (["a"], ValueError, r"a label for every user of shape \[3\] \(got \[1\]\)"),
        ("abc", TypeError, r"a sequence of labels \(got str\)"),
        (3, TypeError, r"a sequence of labels \(got int\)"),
        ([["a"], "b", "c"], TypeError, r"labels that can be hashed \(got \['a'\]\)"),
        ([torch.tensor([1])] * 3, TypeError, r"labels that can be hashed \(got \[1\]\)"),
        (pd.DataFrame({"a": [1, 2, 3]}), TypeError, r"frame\['column'\]"),
    ],
)
def test_what_are_no_labels_is_refused(labels, error, message):
    with pytest.raises(error, match=message):
        read(labels)
