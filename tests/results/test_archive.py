"""Reports: tables in every format, and files."""

import dataclasses
import json
import zipfile
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    compare,
    conventions,
    evaluate,
    metrics,
)
from pyg_recmetrics.tables import Table

METRICS = ["recall@2", "recall@3", "ndcg(gain=exponential)@3", "r_precision"]


def make_task(**options):
    generator = torch.Generator().manual_seed(0)
    kind = torch.rand(40, 9, generator=generator)
    truth, seen = (kind < 0.25).nonzero().t(), (kind > 0.75).nonzero().t()
    return RankingTask(truth, num_users=40, num_items=9, seen=seen, **options)


def make(task=None, seed=1, **options):
    task = make_task() if task is None else task
    scores = torch.rand(40, 9, generator=torch.Generator().manual_seed(seed))
    return evaluate(scores, task, options.pop("metrics", METRICS), **options)


class Cells(HTMLParser):
    """Collects the text of every cell of a table."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.notes, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "p":
            self.notes.append("")
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("td", "th"):
            self.rows[-1][-1] += data
        if self.inside == "p":
            self.notes[-1] += data


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
        cells = Cells(table._repr_html_())
        assert cells.rows == [["a<b", "c"], *map(list, rows)]
        assert cells.notes == ["n & m"]

    @given(texts, texts)
    def test_signs_of_markdown_and_latex_are_escaped(self, one, other):
        table = Table([one, other], [[other, one]])
        markdown = table.to_markdown().splitlines()
        for line in markdown:
            assert line.replace("\\\\", "").replace("\\|", "").count("|") == 3
        latex = table.to_latex()
        for command in (r"\\", r"\_", r"\&", r"\%", r"\$", r"\#", r"\{", r"\}"):
            latex = latex.replace(command, "")
        assert latex.count("&") == 2
        assert not set("_%#^~") & set(latex)
        assert latex.count("$") % 2 == 0


class TestFormats:
    def test_whatever_prints_as_a_table_has_them_all(self):
        result = make()
        pair = compare(result, make(seed=2))
        for shown in (result, pair, result.by_degree(2), result.recall_by_popularity(3, 2)):
            text = str(shown).splitlines()
            html = Cells(shown._repr_html_())
            num_notes = len(html.notes)
            assert text[-num_notes:] == html.notes
            table = html.rows
            assert len(table) == len(text) - num_notes - 1
            for row, line in zip(table, [text[0], *text[2:]], strict=False):
                assert "".join(row).replace(" ", "") == line.replace(" ", "")
            latex = shown.to_latex().splitlines()
            assert all(line.count("&") == len(table[0]) - 1 for line in latex if "\\\\" in line)
            assert sum("\\\\" in line for line in latex) == len(table)
            markdown = shown.to_markdown().splitlines()
            assert len([line for line in markdown if line.startswith("|")]) == len(table) + 1

    def test_a_result_in_markdown(self):
        lines = make().to_markdown().splitlines()
        assert lines[0] == "| metric |  | @2 | @3 |"
        assert lines[2].startswith("| recall |  | 0.")


def assert_same(one, other):
    assert one.to_dict() == other.to_dict()
    assert list(one) == list(other)
    for name, value in one.per_user.items():
        assert torch.equal(value.nan_to_num(-1), other.per_user[name].nan_to_num(-1))
    assert str(one) == str(other)
    assert one.recipe() == other.recipe()
    assert one.convention == other.convention
    assert one.definitions == other.definitions
    for field in [field.name for field in dataclasses.fields(one.ranked)]:
        mine, theirs = getattr(one.ranked, field), getattr(other.ranked, field)
        if isinstance(mine, torch.Tensor):
            assert torch.equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        elif field == "catalogue" and mine is not None:
            assert repr(mine) == repr(theirs)
            for name in ("seen", "item_embedding", "item_category"):
                assert str(getattr(mine, name)) == str(getattr(theirs, name))
        else:
            assert mine == theirs


class TestFiles:
    @pytest.mark.parametrize(
        ("task_options", "options"),
        [
            ({}, {}),
            ({}, {"keep_items": True}),
            ({"users": torch.arange(4, 30)}, {"empty_target_action": "neg"}),
            ({"candidates": torch.arange(0, 9, 2)}, {"metrics": ["mean_rank", "mrr@3"]}),
            ({}, {"convention": "recometrics", "metrics": ["ndcg@3", "precision@2"]}),
            (
                {},
                {
                    "metrics": ["coverage@3", "novelty@2", "diversity@3", "recall@2"],
                    "item_category": torch.arange(9) % 3,
                },
            ),
            ({}, {"convention": "trec_eval", "metrics": ["mrr@3"]}),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*taken out of the truth")
    def test_what_is_loaded_is_what_was_saved(self, tmp_path, task_options, options):
        result = make(make_task(**task_options), **options)
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert_same(result, loaded)
        more = [metrics.recall(one.ranked, k=1).nan_to_num(-1) for one in (loaded, result)]
        assert torch.equal(*more)
        assert str(loaded.by_degree(2)) == str(result.by_degree(2))
        assert [row.difference for row in compare(result, loaded)] == [0.0] * len(result)

    def test_weights_and_candidates_of_each_user(self, tmp_path):
        truth = torch.tensor([[0, 0, 1], [1, 2, 0]])
        task = RankingTask(
            truth,
            num_users=2,
            num_items=3,
            weight=torch.tensor([1.0, 2.5, 3.0]),
            candidates=torch.tensor([[0, 0, 0, 1, 1], [0, 1, 2, 0, 1]]),
        )
        result = evaluate(torch.tensor([0.3, 0.2, 0.1]), task, ["ndcg@2", "dcg@2"])
        result.save(str(tmp_path / "result"))
        loaded = EvaluationResult.load(str(tmp_path / "result"))
        assert_same(result, loaded)
        assert torch.equal(loaded.task.weight, task.weight)
        assert torch.equal(loaded.task.candidates, task.candidates)

    def test_lists_alone_and_names(self, tmp_path):
        (tmp_path / "run").write_text("ann Q0 x 1 0.9 me\nann Q0 y 2 0.5 me\nbob Q0 x 1 1 me\n")
        (tmp_path / "qrels").write_text("ann 0 y 1\nbob 0 x 2\n")
        ranked = RankedEdges.from_trec(tmp_path / "run", tmp_path / "qrels")
        result = EvaluationResult(ranked, ["mrr@2", "ndcg@2"])
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert_same(result, loaded)
        assert loaded.task is None
        loaded.to_trec(tmp_path / "run2", tmp_path / "qrels2")
        assert (tmp_path / "qrels2").read_text() == (tmp_path / "qrels").read_text()

    def test_a_convention_of_ones_own(self, tmp_path):
        convention = conventions.Convention(
            "mine",
            "a paper",
            {"map": {"normalizer": "k"}, "mrr": {}},
            without_cut_off=("mrr",),
            empty_target_action="pos",
            population=conventions.Population(min_pos_test=2),
        )
        result = make(metrics=["map@3", "mrr@3"], convention=convention)
        result.save(tmp_path / "result.npz")
        assert_same(result, EvaluationResult.load(tmp_path / "result.npz"))

    def test_from_another_device(self, device, tmp_path):
        scores = torch.rand(40, 9, generator=torch.Generator().manual_seed(1)).to(device)
        result = evaluate(scores, make_task().to(device), METRICS)
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert loaded.ranked.rank.device.type == "cpu"
        assert loaded.to_dict() == pytest.approx(result.to_dict())

    def test_the_file_holds_no_pickle(self, tmp_path):
        make(keep_items=True).save(tmp_path / "result.npz")
        with zipfile.ZipFile(tmp_path / "result.npz") as file:
            for name in file.namelist():
                with file.open(name) as entry:
                    np.lib.format.read_magic(entry)
                    _, _, dtype = np.lib.format.read_array_header_1_0(entry)
                    assert not dtype.hasobject

    def test_what_is_no_result_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            EvaluationResult.load(tmp_path / "none.npz")
        (tmp_path / "text").write_text("hello")
        np.savez(tmp_path / "other.npz", a=np.ones(3))
        torch.save({"a": 1}, tmp_path / "model.pt")
        for name in ("text", "other.npz", "model.pt"):
            with pytest.raises(
                ValueError, match=rf"'path' needs to be a saved result \(got .*{name}"
            ):
                EvaluationResult.load(tmp_path / name)
        with (tmp_path / "new.npz").open("wb") as file:
            np.savez(file, header=np.array(json.dumps({"format": 99})))
        with pytest.raises(ValueError, match=r"format 2, .*\(got format 99\)"):
            EvaluationResult.load(tmp_path / "new.npz")
