"""Parts of messages."""

import pytest

from pyg_recmetrics.utils import list_some


@pytest.mark.parametrize(
    ("num_words", "most", "wanted"),
    [
        (1, 5, "0"),
        (5, 5, "0, 1, 2, 3, 4"),
        (6, 5, "0, 1, 2, 3, 4 and 1 more"),
        (10**5, 2, "0, 1 and 99998 more"),
    ],
)
def test_the_first_words_and_how_many_more(num_words, most, wanted):
    assert list_some([str(number) for number in range(num_words)], most) == wanted
