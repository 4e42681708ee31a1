"""Tables in a terminal, Markdown, LaTeX and HTML, and everything that prints as a table."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import (
    Evaluator,
    Runs,
    compare,
    datasets,
    evaluate,
    transforms,
)
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.tables import Best, Rows, Table, Tabular, format_level
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.tools.latex_tables import LatexTable

METRICS = ["recall@2", "recall@3", "ndcg(gain=exponential)@3", "r_precision"]

#: Text with every sign that means something in Markdown, LaTeX or HTML.
texts = st.text("ab_*|<>&%$#{}\\~^± @1", max_size=5)

#: Text with every sign that LaTeX prints in another way, and with numbers.
latex_texts = st.text("ae_*|<>&%$#{}[]\\~^±†\N{MINUS SIGN}-+.@ é0127", max_size=8)


class TestTable:
    @given(st.lists(st.tuples(latex_texts, latex_texts), max_size=3), latex_texts)
    def test_latex_prints_any_text(self, rows, note):
        table = LatexTable(Table(["a&b", "c"], rows, (note,)).to_latex())
        assert unspaced(table.rows) == unspaced([["a&b", "c"], *rows])
        assert unspaced([table.notes[-1:]]) == unspaced([[note]])

    def test_headings_of_rows_and_what_is_best_are_set_apart(self):
        table = Table(["name", "x"], [["a - b"], ["recall", Best("1 & 2")]])
        assert str(table).splitlines() == [
            "name             x",
            "------------------",
            "a - b",
            "recall  best 1 & 2",
        ]
        assert table.to_markdown().splitlines()[2:] == [
            "| **a - b** |  |",
            "| recall | **1 & 2** |",
        ]
        assert 'colspan="2" style="text-align: left"><span>a - b</span></th>' in table._repr_html_()
        assert "<b>1 &amp; 2</b>" in table._repr_html_()
        assert table.to_latex().startswith(r"\begin{tabular}{@{}lr@{}}")
        assert r"\multicolumn{2}{@{}l@{}}{a - b} \\" in table.to_latex()
        assert r"recall & \textbf{1 \& 2} \\" in table.to_latex()

    def test_columns_of_a_group_stand_below_its_name_in_latex(self):
        groups = ["", "A&B", "A&B", "C"]
        table = Table(["name", "A&B x", "A&B y", "C x"], [list("n123")], groups=groups)
        assert str(table).splitlines()[0].split() == ["name", "A&B", "x", "A&B", "y", "C", "x"]
        assert table.to_latex().splitlines()[2:5] == [
            r" & \multicolumn{2}{c}{A\&B} & \multicolumn{1}{c}{C} \\",
            r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}",
            r"name & x & y & x \\",
        ]

    def test_long_notes_are_wrapped_in_a_terminal_alone(self):
        note = "word " * 40 + "end"
        text = str(Table(["x"], [["1"]], (note,)))
        assert max(map(len, text.splitlines())) <= 100
        assert " ".join(text.split()[3:]) == note
        assert note in Table(["x"], [["1"]], (note,)).to_markdown()

    @given(st.lists(st.tuples(texts, texts), max_size=3))
    def test_html_holds_any_text(self, rows):
        table = Table(["a<b", "c"], [list(row) for row in rows], ("n & m",))
        assert read_html(table) == ([["a<b", "c"], *map(list, rows)], ["n & m"])

    @given(texts, texts)
    def test_signs_of_markdown_are_escaped(self, head, cell):
        markdown = Table([head, cell], [[cell, head]]).to_markdown().splitlines()
        for line in markdown:
            assert line.replace("\\\\", "").replace("\\|", "").count("|") == 3


def read_html(shown):
    """The text of every cell, and of every note below."""
    tree = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    return rows, ["".join(note.itertext()) for note in tree.iter("p")]


def unspaced(rows):
    """Rows with a plain blank for several, as LaTeX prints them, and with none at the ends."""
    return [[" ".join(cell.split()) for cell in row] for row in rows]


def compact(cells):
    """Cells side by side, without the blanks that align them."""
    return "".join(cells).replace(" ", "")


def markdown_cells(line):
    """The cells of a line of a Markdown table."""
    cells = re.split(r"(?<!\\) ?\| ?", line)[1:-1]
    # A heading of rows is a cell in bold type, and the others are empty.
    cells = cells[:1] if len(cells) > 1 and cells[0].startswith("**") else cells
    cells = [re.sub(r"^\*\*(.*)\*\*$", r"\1", cell) for cell in cells]
    return [re.sub(r"\\(.)", r"\1", cell) for cell in cells]


@pytest.fixture(scope="module")
def tables(benchmark):
    """One of everything that prints as a table."""
    task = random_task(40, 9, truth_share=0.25, seen_share=0.25)
    evaluator = Evaluator(task, METRICS, keep_items=3)
    result, other_result = (evaluator(random_scores(task, seed)) for seed in (1, 2))
    edge_type = ("user", "rates", "item")
    split = RandomLinkSplit(edge_types=edge_type, neg_sampling_ratio=0.0)
    data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=8)
    return {
        "result": result,
        "table": result.table(),
        "comparison": compare({"a": result, "b": other_result}),
        "groups": result.by(["<b>", "a & b"] * 20),
        "degrees": result.by_degree(2),
        "history": evaluator.history,
        "split": transforms.check_split(*split(data)),
        "runs": Runs([result, other_result]),
        "runs of two": compare({"a": [result, other_result], "b": other_result}),
        "mean": evaluate(random_scores(task, 1), task, "coverage@2"),
        "benchmark": benchmark,
    }


class TestFormats:
    def test_whatever_prints_as_a_table_has_them_all(self, tables):
        for name, shown in tables.items():
            assert isinstance(shown, Tabular), name
            rows, notes = read_html(shown)
            text = str(shown).splitlines()
            num_lines = 2 + len(shown.table().rows)
            head, rule, *lines = text[:num_lines]
            # Long notes are wrapped.
            assert " ".join(map(str.strip, text[num_lines:])) == " ".join(notes), name
            assert set(rule) == {"-"}, name
            plain = [line.replace("best ", "") for line in [head, *lines]]
            assert [compact(row) for row in rows] == [compact([line]) for line in plain]

            markdown = shown.to_markdown().splitlines()
            head, rule, *lines = [line for line in markdown if line.startswith("|")]
            assert set(rule) <= set("|-: "), name
            assert [markdown_cells(line) for line in [head, *lines]] == rows, name

            lines = shown.to_latex().splitlines()
            lines = [line for line in lines if "{c}{" not in line and "cmidrule" not in line]
            latex = LatexTable("\n".join(lines))
            if any(groups := shown.table().groups):
                names = zip(rows[0], groups, strict=True)
                rows[0] = [head.removeprefix(f"{group} ") for head, group in names]
            assert unspaced(latex.rows) == unspaced(rows), name
            assert unspaced([latex.notes]) == unspaced([notes]), name

    def test_all_kinds_of_tables_are_among_them(self, tables):
        bases = {Tabular, Rows, Measured}
        kinds = {kind for base in bases for kind in base.__subclasses__()} - bases
        kinds = {kind for kind in kinds if "pyg_recmetrics" in kind.__module__}
        assert kinds == {type(shown) for shown in tables.values()}


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (0.683, "68.3%"),
        (0.95, "95%"),
        (1 - 0.05 / 3, "98.33%"),
        (0.9999, "99.99%"),
        (0.99985, "99.985%"),
        (0.99999, "99.999%"),
        (0.999999, "99.9999%"),
    ],
)
def test_no_level_is_printed_as_certain(level, text):
    assert format_level(level) == text


@pytest.mark.parametrize("name", ["two\nlines", "two\r\nlines", "two\u2028lines", "two\vlines"])
def test_a_cell_has_one_line(name):
    table = Table(["name", "value"], [[name, "1"]])
    for text in (str(table), table.to_markdown()):
        assert len(text.splitlines()) == 3
        assert "two lines" in text
