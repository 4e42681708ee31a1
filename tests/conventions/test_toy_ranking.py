"""The toy ranking that all conventions measure side by side."""

import pytest

from pyg_recmetrics import conventions


class TestTable:
    def test_the_numbers_of_all_libraries_on_the_toy(self):
        rows = {line.split()[0]: line.split()[1:] for line in str(conventions.table()).splitlines()}
        assert set(conventions.CONVENTIONS) < set(rows)
        assert rows["rectools"][2] == ".5556*"
        assert rows["trec_eval"] == [
            ".3333", ".4667", ".1333", ".2778", ".4449", ".5667", ".6667"
        ]  # fmt: skip

    def test_another_cut_off(self):
        assert "ndcg@10" in str(conventions.table(k=10))
        with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
            conventions.table(k=0)
