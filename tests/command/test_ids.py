"""Ids as they are written."""

import pytest

from pyg_recmetrics.command.ids import Ids, id_of, order_of, values_of


def test_ids_are_numbered_as_they_come_first():
    ids = Ids()
    assert ids.numbers(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert ids.numbers(["c", "a"]).tolist() == [2, 1]
    assert list(ids) == ["b", "a", "c"]


@pytest.mark.parametrize("written", [["1", "10", "9"], ["0", "-3"], ["9" * 18]])
def test_integers_become_integers(written):
    assert values_of(written) == [int(id_) for id_ in written]
    assert [id_of(id_) for id_ in written] == [int(id_) for id_ in written]


@pytest.mark.parametrize("odd", ["007", "a", "1.0", "-0", "1e3", " 1", "٣", "9" * 19, "1_0"])
def test_everything_else_stays_a_text_with_all_the_others(odd):
    assert values_of(["1", odd]) == ["1", odd]
    assert id_of(odd) == odd


def test_integers_are_in_the_order_of_their_values_and_texts_in_that_of_letters():
    assert order_of(values_of(["10", "9", "-1"])).tolist() == [2, 1, 0]
    assert order_of(values_of(["10", "9", "a"])).tolist() == [0, 1, 2]
