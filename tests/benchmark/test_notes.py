"""Notes on several data sets."""

from pyg_recmetrics.benchmark.notes import notes_of_all


def test_a_note_stands_once_and_names_its_data_sets():
    notes = {"A": ["all", "two"], "B": ["all", "one"], "C": ["all", "two"]}
    assert notes_of_all(notes) == ["all", "A, C: two", "B: one"]
    assert notes_of_all({"A": [], "B": []}) == []
