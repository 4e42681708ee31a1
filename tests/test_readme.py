"""The README holds what it says: its code runs, and prints what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from torch_geometric.nn import LightGCN

from pyg_recmetrics import evaluate, metrics
from pyg_recmetrics.command.main import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
TEXT = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)

#: A decimal number, as in a table or behind a sign of its own.
DECIMAL = re.compile(r"\d*\.\d+")

#: How far a number may be from the one shown. How training rounds depends on the machine.
TOLERANCE = 0.02

MAX_LINES = 190


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


@pytest.fixture(scope="module")
def first():
    """The variables of the first block, and what it prints."""
    namespace = {}
    printed = run(PYTHON[0], namespace)
    return namespace, printed


def test_the_first_block_prints_the_table_below_it(first):
    _, printed = first
    assert README.index(TEXT[0]) > README.index(PYTHON[0])
    assert_alike(TEXT[0], printed)


def test_the_first_block_trains_a_model(first):
    namespace, _ = first
    untrained = LightGCN(num_nodes=1500, embedding_dim=64, num_layers=2)
    trained, chance = (
        evaluate(model, namespace["test"], ["recall@20", "ndcg@20"], num_users=1000)
        for model in (namespace["model"], untrained)
    )
    assert all(trained[metric] > 3 * chance[metric] for metric in trained)


def test_the_first_block_evaluates_edges_that_were_not_trained_on(first):
    namespace, _ = first
    trained, tested = (
        set(zip(*namespace[part].edge_label_index.tolist(), strict=True))
        for part in ("train", "test")
    )
    assert tested
    assert not trained & tested


def test_all_python_runs_and_gives_what_its_comments_say(first, tmp_path, monkeypatch):
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    namespace = dict(first[0])
    printed = ""
    for block in PYTHON[1:]:
        printed += run(block, namespace)
        for code, number in re.findall(r"^(.*\S)  # (\d\.\d{4})\b", block, flags=re.MULTILINE):
            assert eval(code, namespace) == pytest.approx(float(number), abs=TOLERANCE), code
    assert "Computed with pyg_recmetrics" in printed
    assert "over edges, for other queries" in printed
    # The end of a text is left out, as its first lines are what a newcomer wants.
    for text in TEXT[1:]:
        lines = printed[printed.index(text.splitlines()[0]) :].splitlines()
        assert_alike(text.strip(), "\n".join(lines[: text.count("\n")]))
    assert list(tmp_path.iterdir()) == []


def test_the_command_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    (commands,) = (
        block
        for block in re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
        if "gate" in block
    )
    users, items = range(40), range(12)
    rows = {
        "train.csv": [f"{user},{(user + 5) % 12}" for user in users],
        "test.csv": [f"{user},{user % 12}" for user in users],
        "lists.csv": [
            f"{user},{item},{(item - user) % 12 + 1}" for user in users for item in items
        ],
        "old.csv": [f"{user},{item},{(item + user) % 12 + 1}" for user in users for item in items],
    }
    for name, lines in rows.items():
        columns = "user,item" if name in ("train.csv", "test.csv") else "user,item,rank"
        (tmp_path / name).write_text("\n".join([columns, *lines, ""]))
    evaluation, gate = (line.split()[1:] for line in commands.splitlines())
    old = ["old.csv" if word == "lists.csv" else word for word in evaluation]
    assert main([*old[:-1], "old.npz"]) == 0
    assert main(evaluation) == 0
    assert main([*gate, "--deterministic", "new", "old"]) == 0
    assert "new is not worse than old in ndcg@10" in capsys.readouterr().out


def test_every_form_of_a_recommender_gives_the_same(first):
    namespace = dict(first[0])
    (block,) = (block for block in PYTHON if "lambda batch" in block)
    lines = [line for line in block.splitlines() if line.startswith("result = evaluate(")]
    assert len(lines) == 5
    run(block, namespace)
    recalls = set()
    for line in lines:
        run(line, namespace)
        recalls.add(round(namespace["result"]["recall@20"], 4))
    assert len(recalls) == 1


@pytest.mark.parametrize("name", metrics.names())
def test_every_metric_is_listed(name):
    section = README.partition("## Metrics\n")[2].partition("\n## ")[0]
    assert f"`{name}`" in section


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", README)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("marker", ["example", "test"])
def test_commands_are_found_behind_their_markers(marker):
    assert len(re.findall(rf"^<!-- {marker} -->\n```bash\n.+\n```$", README, flags=re.M)) == 1


def test_torch_scatter_is_built_by_the_line_that_is_shown():
    run_by_ci = re.search(r"grep -o '(.*)' README.md", (ROOT / ".ci" / "run").read_text())[1]
    (line,) = re.findall(run_by_ci, README)
    # Where its build is isolated, it does not find torch.
    assert "--no-build-isolation" in line
    assert f"```bash\n{line}\n```" in (ROOT / "docs" / "start.md").read_text()


def test_it_is_short():
    assert README.count("\n") <= MAX_LINES
