"""The subcommands `metrics` and `conventions`."""

import json

import pytest

from pyg_recmetrics import conventions, metrics


def test_all_metrics_are_listed(run):
    _, out, _ = run("metrics")
    listed = [line.split()[0].removesuffix("@k") for line in out.splitlines()[2:]]
    assert listed == list(metrics.names())


@pytest.mark.parametrize("name", metrics.names())
def test_a_metric_is_explained(run, name):
    status, out, _ = run(f"metrics {name}")
    assert status == 0
    about = metrics.definition(name)
    assert about.docstring.summary in out
    assert about.docstring.formula in out
    assert all(alias in out for alias in about.aliases)


def test_names_elsewhere_are_spelled_out(run):
    _, out, _ = run("metrics NDCG@5 --json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert found["name"] == "ndcg"
    assert found["in"]["rectools"] == "ndcg(gain=binary,ideal=k)@10"
    assert found["bounds"] == [0, 1]
    assert json.loads(run("metrics mean_rank --json")[1])["bounds"][1] is None


def test_all_conventions_are_shown(run):
    assert run("conventions")[1] == f"{conventions.table()}\n"
    assert run("conventions --markdown")[1] == f"{conventions.table().to_markdown()}\n"
    assert run("conventions --latex")[1] == f"{conventions.table().to_latex()}\n"


@pytest.mark.parametrize("name", conventions.CONVENTIONS)
def test_a_convention_is_explained(run, name):
    status, out, _ = run(f"conventions {name} --json --quiet")
    assert status == 0
    found = json.loads(out)
    about = conventions.get(name)
    assert (found["source"], found["note"]) == (about.source, about.note)
    assert all(about.resolve(spelled) for spelled in found["metrics"].values())
    assert about.source.split()[0] in run(f"conventions {name}")[1]


@pytest.mark.parametrize(
    "line", ["metrics --markdown", "metrics --latex -q", "metrics mrr --latex"]
)
def test_other_forms_are_tables_too(run, line):
    status, out, _ = run(line)
    assert status == 0
    assert out.count("\n") > 5


@pytest.mark.parametrize(
    ("line", "part"), [("metrics ndgc", "ndgc"), ("conventions recbol", "recbol")]
)
def test_unknown_names_are_told(run, line, part):
    status, out, err = run(line)
    assert (status, out) == (3, "")
    assert part in err
