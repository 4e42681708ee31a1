"""The README holds what it says: its code runs, and prints what is shown."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import ComplEx, LightGCN
from torch_geometric.transforms import ToUndirected

from pyg_recmetrics import RankingTask, evaluate, metrics, plain

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
TEXT = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)

#: A decimal number, as in a table or behind a sign of its own.
DECIMAL = re.compile(r"\d*\.\d+")

#: How far a number may be from the one shown. How training rounds depends on the machine.
TOLERANCE = 0.02

MAX_LINES = 170


def run(code, namespace):
    """Runs code, and returns what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def assert_alike(shown, printed):
    """Asserts that texts are the same, but for decimals that differ by the tolerance at most."""
    assert DECIMAL.sub("#", shown) == DECIMAL.sub("#", printed)
    numbers, expected = (
        [float(number) for number in DECIMAL.findall(text)] for text in (printed, shown)
    )
    assert numbers == pytest.approx(expected, abs=TOLERANCE)


#: How many lines the first block may have, but for blank ones.
MAX_LINES_OF_FIRST = 10


@pytest.fixture(scope="module")
def first():
    """The variables of the first block, and what it prints."""
    namespace = {}
    printed = run(PYTHON[0], namespace)
    return namespace, printed


@pytest.fixture(scope="module")
def trained():
    """The variables behind the training loop."""
    namespace = {}
    run("".join(PYTHON[:2]), namespace)
    return namespace


def test_the_first_block_is_short_and_has_the_call_in_it():
    assert sum(line != "" for line in PYTHON[0].splitlines()) <= MAX_LINES_OF_FIRST
    assert "evaluate(model, test, " in PYTHON[0]


def test_the_first_block_prints_the_table_below_it(first):
    _, printed = first
    assert README.index(TEXT[0]) > README.index(PYTHON[0])
    assert_alike(TEXT[0], printed)


def test_the_loop_trains_the_model_and_tests_its_best_epoch(trained):
    wanted = ["recall@20", "ndcg@20"]
    untrained = LightGCN(num_nodes=1500, embedding_dim=64, num_layers=2)
    after, chance = (
        evaluate(model, trained["test"], wanted) for model in (trained["model"], untrained)
    )
    assert all(after[metric] > 3 * chance[metric] for metric in after)
    on_validation = evaluate(trained["model"], trained["val"], wanted)
    assert on_validation["ndcg@20"] == trained["evaluator"].best["ndcg@20"]
    (shown,) = re.findall(r'\["r_precision"\]  # ([.\d]+)', PYTHON[1])
    value = evaluate(trained["model"], trained["test"])["r_precision"]
    assert value == pytest.approx(float(shown), abs=TOLERANCE)


def test_edges_alone_give_the_numbers_of_the_split_and_of_the_plain_file(trained):
    namespace = trained | {"RankingTask": RankingTask}  # which the block before imports
    run(PYTHON[3], namespace)
    call = PYTHON[3].splitlines()[-1]
    assert call.startswith('evaluate(model, truth, "r_precision", edge_index=train_edges')
    alone = eval(call, namespace)
    split = evaluate(namespace["model"], namespace["test"], "r_precision")
    assert alone["r_precision"] == split["r_precision"]
    by_hand = plain.evaluate(
        *(namespace[name] for name in ("model", "truth", "train_edges")), 1000, 500
    )
    # `topk` of the model may order scores that are rounded to the same in another way.
    differs = by_hand["r_precision"] != alone.per_user["r_precision"]
    assert int(differs.sum()) <= 2


def test_all_python_runs_and_prints_what_is_shown(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = dict(trained)
    printed = "".join(run(block, namespace) for block in PYTHON[2:])
    for text in TEXT[1:]:
        assert_alike(text.strip(), printed.strip())
    assert list(tmp_path.iterdir()) == []


def test_all_metrics_are_named():
    listed = README[README.index("All metrics, ") : README.index("## What do you have")]
    assert set(re.findall(r"`(\w+)`", listed)) == set(metrics.names())


def test_every_row_of_what_you_have_runs(trained):
    namespace = dict(trained)
    model, test = namespace["model"], namespace["test"]
    task = RankingTask.from_data(test)
    edges = ToUndirected()(test).to_homogeneous().edge_index
    users, items = model.get_embedding(edges).split([1000, 500])
    frame = pytest.importorskip("pandas").DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    triples = torch.stack([torch.arange(40), torch.arange(40) % 3, torch.arange(40).flip(0)])
    kge = ComplEx(num_nodes=40, num_relations=3, hidden_channels=4)
    rows = [
        ({"model": model, "test": test}, "evaluate(model, test)"),
        ({"users": users, "items": items, "test": test}, "evaluate((users, items), test)"),
        ({"scores": users @ items.t(), "test": test}, "evaluate(scores, test)"),
        (
            {"lists": {"a": ["x", "y"], "b": ["x", "y"]}, "frame": frame},
            "evaluate(lists, RankingTask.from_frames(test=frame))",
        ),
        (
            {
                "model": kge,
                "test": triples[:, :9],
                "train": triples[:, 9:19],
                "val": triples[:, 19:],
            },
            "evaluate(model, RankingTask.from_triples(test, [train, val], ..))",
        ),
    ]
    results = []
    for given, line in rows:
        assert f"`{line}` |" in README
        call = line.replace(", ..", ", num_entities=40, num_relations=3")
        with warnings.catch_warnings():
            # Two users and items are too few for anything but an example.
            warnings.filterwarnings("ignore", message="'test' comes alone")
            results.append(eval(call, {"evaluate": evaluate, "RankingTask": RankingTask, **given}))
    first_row, *others = (result["recall@20"] for result in results[:3])
    assert others == pytest.approx([first_row] * 2)
    assert results[0].user_counts.num_evaluated == int((task.degree > 0).sum())


def test_it_is_short():
    assert README.count("\n") <= MAX_LINES
