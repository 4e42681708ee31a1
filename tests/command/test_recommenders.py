"""Lists whose order is not obvious, and lists that are none."""

import numpy as np
import pytest

from pyg_recmetrics.command.ids import Ids
from pyg_recmetrics.command.recommenders import make_axis

LINE = "evaluate -q --test test.csv --metrics mrr --json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.csv").write_text("user,item\nann,9\nann,10\n")
    return tmp_path


def mrr(out):
    return float(out.partition('"mean": ')[2].partition(",")[0])


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        # Of equal scores, the lower id comes first, in the order of numbers; in a run, the first.
        ("lists.csv", "user,item,score\nann,30,0.5\nann,10,0.5\n", 1),
        ("lists.csv", "user,item,score\nann,5,0.5\nann,10,0.5\n", 2),
        ("lists.run", "ann Q0 30 1 0.5 me\nann Q0 10 2 0.5 me\n", 2),
        # Ranks before scores, but for a run.
        ("lists.csv", "user,item,score,rank\nann,30,0.9,2\nann,10,0.1,1\n", 1),
        ("lists.run", "ann Q0 30 2 0.9 me\nann Q0 10 1 0.1 me\n", 2),
        ("lists.jsonl", '{"user": "ann", "items": [30, "10"]}\n', 2),
        ("lists.jsonl", '{"user": "bob", "items": []}\n{"user": "ann", "items": [10]}\n', 1),
    ],
)
def test_the_order_of_lists_is_as_documented(folder, run, name, content, first):
    (folder / name).write_text(content)
    option = "--run" if name.endswith("run") else "--lists"
    status, out, err = run(f"{LINE} {option} {name}")
    assert status == 0, err
    assert mrr(out) == pytest.approx(1 / first)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "user,item,rank\nann,9,1\nann,10,3\n",
            "ranks of a user need to be 1, 2, 3 and so on (got",
        ),
        ("user,item,rank\nann,9,0\nann,10,1\n", "(got 0 in place of 1 for user 'ann')"),
        (
            "user,item\nann,9\n",
            "the order of items needs a column of ranks or scores, which --rank",
        ),
        ("user,item,rank\nann,9,1\nann,9,2\n", "'lists.csv' needs to list every item once for a"),
        ("user,item,rank\nbob,9,1\n", "'lists.csv' needs to hold lists by the original ids"),
    ],
)
def test_what_is_no_list_is_told(folder, run, content, message):
    (folder / "lists.csv").write_text(content)
    status, out, err = run(f"{LINE} --lists lists.csv")
    assert (status, out) == (3, "")
    assert message in err


def test_a_user_has_one_list(folder, run):
    (folder / "lists.jsonl").write_text('{"user": "ann", "items": [30]}\n' * 2)
    status, _, err = run(f"{LINE} --lists lists.jsonl")
    assert status == 3
    assert "lists.jsonl: every user needs one row with a list (got 2 rows of 1 users)" in err


def test_a_place_within_a_list_cannot_be_empty(folder, run):
    (folder / "test.csv").write_text("user,item\n0,9\n1,9\n")
    np.save(folder / "lists.npy", [[9, -1], [-1, 9]])
    status, _, err = run(f"{LINE} --lists lists.npy")
    assert status == 3
    assert "lists.npy: -1 needs to stand behind all items of a row" in err


def test_an_empty_line_is_no_item(folder, run):
    (folder / "lists.csv").write_text("user,item,rank\nann,10,1\n")
    (folder / "items.txt").write_text("9\n10\n\n11\n")
    status, _, err = run(f"{LINE} --lists lists.csv --item-ids items.txt")
    assert status == 3
    assert "items.txt, line 3: an id is needed (got nothing)" in err


def test_an_axis_is_in_the_order_of_ids_and_knows_the_rows_of_an_array():
    known = Ids()
    known.numbers(["b", "a"])
    axis = make_axis(known, ["c", "b", "a"], "item", "i.npy", grows=True)
    assert axis.ids == ("a", "b", "c")
    assert axis.number_of.tolist() == [1, 0, 2]
    assert axis.row_of.tolist() == [2, 1, 0]


def test_an_axis_of_all_rows_leaves_an_array_where_it_is():
    known = Ids()
    known.numbers(["2", "0"])
    axis = make_axis(known, 3, "item", "i.npy", grows=True)
    assert (axis.ids, axis.row_of) == ((0, 1, 2), None)
    assert axis.number_of.tolist() == [2, 0, 1]


def test_an_axis_of_users_has_those_of_interactions_alone():
    known = Ids()
    known.numbers(["2", "0"])
    axis = make_axis(known, 3, "user", "u.npy", grows=False)
    assert (axis.ids, axis.row_of.tolist()) == ((0, 2), [0, 2])


@pytest.mark.parametrize("ids", [["a", "a"], ["b", "a", "b"]])
def test_ids_of_rows_need_to_differ(ids):
    known = Ids()
    known.numbers(["a"])
    with pytest.raises(ValueError, match=r"i.npy: every id needs one row"):
        make_axis(known, ids, "item", "i.npy", grows=True)
