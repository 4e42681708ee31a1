"""Tables in a terminal, Markdown, LaTeX and HTML, and everything that prints as a table."""

import re

import pytest
from html_tables import HtmlTable
from hypothesis import given
from hypothesis import strategies as st
from random_tasks import random_scores, random_task
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import Evaluator, compare, conventions, datasets, evaluate, transforms
from pyg_recmetrics.tables import Table, Tabular

METRICS = ["recall@2", "recall@3", "ndcg(gain=exponential)@3", "r_precision"]

#: Text with every sign that means something in Markdown, LaTeX or HTML.
texts = st.text("ab_*|<>&%$#{}\\~^± @1", max_size=5)


class TestTable:
    table = Table(["metric", "50%"], [["a_b", "1 ± .5"], ["c", ""]], ("x_y: 5%",))

    def test_text(self):
        assert str(self.table).splitlines() == [
            "metric     50%",
            "--------------",
            "a_b     1 ± .5",
            "c",
            "x_y: 5%",
        ]

    def test_markdown(self):
        assert self.table.to_markdown().splitlines() == [
            "| metric | 50% |",
            "| --- | ---: |",
            "| a\\_b | 1 ± .5 |",
            "| c |  |",
            "",
            "x\\_y: 5%",
        ]

    def test_latex(self):
        assert self.table.to_latex().splitlines() == [
            r"\begin{tabular}{lr}",
            r"\toprule",
            r"metric & 50\% \\",
            r"\midrule",
            r"a\_b & 1 $\pm$ .5 \\",
            r"c &  \\",
            r"\bottomrule",
            r"\end{tabular}",
            "% x_y: 5%",
        ]

    @given(st.lists(st.tuples(texts, texts), max_size=3))
    def test_html_holds_any_text(self, rows):
        table = Table(["a<b", "c"], [list(row) for row in rows], ("n & m",))
        cells = HtmlTable(table._repr_html_())
        assert cells.rows == [["a<b", "c"], *map(list, rows)]
        assert cells.notes == ["n & m"]

    @given(texts, texts)
    def test_signs_of_markdown_and_latex_are_escaped(self, head, cell):
        table = Table([head, cell], [[cell, head]])
        markdown = table.to_markdown().splitlines()
        for line in markdown:
            assert line.replace("\\\\", "").replace("\\|", "").count("|") == 3
        latex = table.to_latex()
        for command in (r"\\", r"\_", r"\&", r"\%", r"\$", r"\#", r"\{", r"\}"):
            latex = latex.replace(command, "")
        assert latex.count("&") == 2
        assert not set("_%#^~") & set(latex)
        assert latex.count("$") % 2 == 0


def compact(cells):
    """Cells side by side, without the blanks that align them."""
    return "".join(cells).replace(" ", "")


def markdown_cells(line):
    """The cells of a line of a Markdown table."""
    cells = re.split(r"(?<!\\) ?\| ?", line)[1:-1]
    return [re.sub(r"\\(.)", r"\1", cell) for cell in cells]


def latex_cells(line):
    """The cells of a line of a LaTeX table."""
    cells = re.split(r"(?<!\\) ?& ?", line.removesuffix(r"\\").rstrip(" "))
    for spelled, sign in {r"$\pm$": "±", "$<$": "<", "$>$": ">"}.items():
        cells = [cell.replace(spelled, sign) for cell in cells]
    return [re.sub(r"\\([&%$#_{}])", r"\1", cell) for cell in cells]


@pytest.fixture(scope="module")
def tables():
    """One of everything that prints as a table."""
    task = random_task(40, 9, truth_share=0.25, seen_share=0.25)
    evaluator = Evaluator(task, METRICS)
    result, other_result = (evaluator(random_scores(task, seed)) for seed in (1, 2))
    edge_type = ("user", "rates", "item")
    split = RandomLinkSplit(edge_types=edge_type, neg_sampling_ratio=0.0)
    data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=8)
    return {
        "result": result,
        "comparison": compare(result, other_result),
        "groups": result.by(["<b>", "a & b"] * 20),
        "degrees": result.by_degree(2),
        "popularity": result.recall_by_popularity(3, 2),
        "history": evaluator.history,
        "split": transforms.check_split(*split(data)),
        "conventions": conventions.table(),
        "mean": evaluate(random_scores(task, 1), task, "coverage@2"),
    }


class TestFormats:
    def test_whatever_prints_as_a_table_has_them_all(self, tables):
        for name, shown in tables.items():
            assert isinstance(shown, Tabular), name
            html = HtmlTable(shown._repr_html_())
            rows, notes = html.rows, html.notes
            text = str(shown).splitlines()
            head, rule, *lines = text[: len(text) - len(notes)]
            assert text[len(text) - len(notes) :] == notes, name
            assert set(rule) == {"-"}, name
            assert [compact(row) for row in rows] == [compact([line]) for line in [head, *lines]]

            markdown = shown.to_markdown().splitlines()
            head, rule, *lines = [line for line in markdown if line.startswith("|")]
            assert set(rule) <= set("|-: "), name
            assert [markdown_cells(line) for line in [head, *lines]] == rows, name

            latex = shown.to_latex().splitlines()
            lines = [line for line in latex if line.endswith(r"\\")]
            assert [latex_cells(line) for line in lines] == rows, name
            assert [line for line in latex if line.startswith("% ")] == [f"% {n}" for n in notes]

    def test_all_kinds_of_tables_are_among_them(self, tables):
        kinds = {kind for kind in Tabular.__subclasses__() if "pyg_recmetrics" in kind.__module__}
        assert kinds == {type(shown) for shown in tables.values()}
        assert {kind.__name__ for kind in kinds} == {
            "Cohorts",
            "Comparison",
            "EvaluationResult",
            "History",
            "SplitReport",
            "Table",
        }
