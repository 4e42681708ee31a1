"""The usual names of columns."""

import pytest

from pyg_recmetrics.command.columns import choose_column, find_column


@pytest.mark.parametrize(
    ("what", "column"),
    [
        *(("user", name) for name in ("user_id", "userId", "USER", "uid", "user_id:token", "u")),
        *(("item", name) for name in ("item_id", "movieId", "Item ID", "asin", "i")),
        *(("rating", name) for name in ("rating", "stars", "rating:float")),
        *(("time", name) for name in ("timestamp", "Date", "created_at")),
        *(("rank", name) for name in ("rank", "position")),
        *(("score", name) for name in ("score", "prediction")),
        *(("vector", name) for name in ("features", "embedding")),
    ],
)
def test_usual_names_are_found(what, column):
    assert find_column([what], ["other", column, "more"]) == column


def test_the_most_usual_name_comes_first():
    assert find_column(["item"], ["movie_id", "item_id"]) == "item_id"
    assert find_column(["user", "id"], ["id", "user"]) == "user"


def test_other_names_are_not():
    assert find_column(["user"], ["username_hash", "used"]) is None


def test_a_name_that_is_given_counts():
    assert choose_column("t", "user", ["user", "who"], "who", "--user-column") == "who"


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (["a"], "b", "t: there is no column 'b', which --user-column names (got 'a')"),
        (["a"], None, "t: no column has a usual name for a user, so --user-column needs to name"),
        (["1", "2"], None, "if the file has no header, --columns names its columns"),
    ],
)
def test_a_column_that_is_not_there_is_told(columns, given, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 (the message is compared below)
        choose_column("t", "user", columns, given, "--user-column")
    assert message in str(raised.value)
