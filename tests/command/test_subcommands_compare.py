"""The subcommands `compare`, `report` and `gate`."""

import json
import re

import numpy as np
import pytest
import torch
from scipy import stats

from pyg_recmetrics import RankingTask, compare, evaluate
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results.comparison import RecommenderPair
from pyg_recmetrics.results.verdicts import Equivalence

GATE = "gate bad.npz --baseline good0.npz --metric"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Saved results of 400 users: three good runs, a bad one, and one with noise of its own."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    users = torch.arange(400).repeat_interleave(3)
    wanted = torch.from_numpy(np.stack([generator.permutation(50)[:3] for _ in range(400)]))
    task = RankingTask(torch.stack([users, wanted.flatten()]), num_users=400, num_items=50)
    noise = torch.from_numpy(generator.normal(size=(5, 400, 50)))
    signal = torch.zeros(400, 50).double().scatter_(1, wanted, 1.0)
    made = {
        **{f"good{run}": 2 * signal + noise[run] for run in range(3)},
        "bad": signal + noise[3],
        "same": 2 * signal + 0.995 * noise[0] + 0.005 * noise[4],
    }
    found = {}
    for name, scores in made.items():
        found[name] = evaluate(scores, task, ["ndcg@10", "recall@10"])
        found[name].save(f"{name}.npz")
    return found


def test_the_table_is_that_of_the_function(results, run):
    status, out, _ = run("compare good0.npz bad.npz")
    assert status == 0
    assert out == f"{compare({'good0': results['good0'], 'bad': results['bad']})}\n"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("--metrics recall@10", {"metrics": ["recall@10"]}),
        ("--baseline good0", {"baseline": "good0"}),
        ("--equivalence 2%", {"equivalence": "2%"}),
        ("--deterministic bad good0", {"deterministic": ["bad", "good0"]}),
        ("--level 0.9", {"level": 0.9}),
    ],
)
def test_options_are_those_of_the_function(results, run, line, options):
    _, out, err = run(f"compare good0.npz bad.npz {line} --markdown")
    expected = compare({"good0": results["good0"], "bad": results["bad"]}, **options)
    assert (out, err) == (f"{expected.to_markdown()}\n", "")


def test_files_of_one_name_are_runs(results, run):
    _, out, _ = run("compare mf=good0.npz mf=good1.npz mf=good2.npz bad.npz --latex")
    assert "3 of mf" in out


def test_json_has_every_difference(results, run):
    _, out, _ = run("compare good0.npz bad.npz --json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert [each["verdict"] for each in found["differences"]] == ["better", "better"]
    assert found["claims"] == list(
        compare({"good0": results["good0"], "bad": results["bad"]}).claims()
    )


def test_folders_tell_files_of_one_name_apart(results, run, tmp_path):
    for name in ("good0", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.npz").rename(tmp_path / name / "result.npz")
    _, out, _ = run("compare good0/result.npz bad/result.npz")
    assert {"good0/result", "bad/result"} <= set(out.split())


@pytest.mark.parametrize(
    ("new", "old", "margin", "status", "part"),
    [
        ("same", "good0", "0.1%", 0, "same is not worse than good0 in ndcg@10 by more than 0.1%"),
        ("bad", "good0", "2%", 1, "bad is worse than good0 in ndcg@10 by more than 2% ("),
        ("good0", "good1", "0.1%", 2, "good0 may or may not be worse than good1 in ndcg@10 by"),
    ],
)
def test_the_gate_asks_whether_it_is_worse_by_more_than_a_margin(
    results, run, new, old, margin, status, part
):
    line = f"gate {new}.npz --baseline {old}.npz --metric ndcg@10 --margin {margin}"
    found, out, err = run(line)
    assert found == status
    assert part in out
    assert out.count("\n") == 1
    assert f"warning: one run of {new}, {old}: another seed" in err


@pytest.mark.parametrize(
    ("new", "old", "metric", "status", "part"),
    [
        ("none", "all", "ndcg@10", 1, "none is worse than all in ndcg@10 by more than 2% (-1"),
        ("all", "none", "ndcg@10", 0, "all is not worse than none in ndcg@10 by more than 2% (+1"),
        ("none", "all", "mean_rank", 1, "none is worse than all in mean_rank by more than 2% (+1"),
        ("one", "other", "ndcg@10", 2, "ndcg@10 has too few users for a test.\n"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_gate_decides_at_the_ends_of_a_range(
    tmp_path, monkeypatch, run, new, old, metric, status, part
):
    monkeypatch.chdir(tmp_path)
    for names, num_users in ((("all", "none", "zero"), 30), (("one", "other"), 1)):
        users = torch.arange(num_users)
        task = RankingTask(torch.stack([users, users * 0]), num_users=num_users, num_items=20)
        for name in names:
            scores = torch.arange(20.0) * (-1 if name in ("all", "one") else 1)
            evaluate(scores, task, ["ndcg@10", "mean_rank"]).save(f"{name}.npz")
    line = f"gate {new}.npz --baseline {old}.npz --metric {metric} --margin 2%"
    found, out, _ = run(line)
    assert (found, part in out, "nan" in out) == (status, True, False), out
    as_json = json.loads(run(f"{line} --json")[1])
    assert (as_json["status"], f"{as_json['sentence']}\n") == (found, out)


@pytest.mark.parametrize("num_differing", [0, 12, 29, 30])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_gate_does_not_decide_by_few_who_differ_in_one_direction(
    tmp_path, monkeypatch, run, num_differing
):
    """The others may be unseen."""
    monkeypatch.chdir(tmp_path)
    users = torch.arange(400)
    task = RankingTask(torch.stack([users, users * 0]), num_users=400, num_items=20)
    for name, lost in (("old", 0), ("new", num_differing)):
        scores = -torch.arange(20.0).repeat(400, 1)
        scores[:lost, 0] = -30.0
        evaluate(scores, task, ["ndcg@10"]).save(f"{name}.npz")
    for new, old in (("old", "new"), ("new", "old")):
        status, out, err = run(f"gate {new}.npz --baseline {old}.npz --metric ndcg@10 --margin 10%")
        assert (status == 2) == (num_differing < 30), out
        side = "better" if new == "old" else "worse"
        assert (f"{new} is {side} for all of them" in out) == (0 < num_differing < 30)
        assert "ndcg@10 above 0.99: the recommender may know the truth" in err
        found = json.loads(
            run(f"gate {new}.npz --baseline {old}.npz --metric ndcg@10 --margin 10% --json")[1]
        )
        assert all(caution in err for caution in found["cautions"])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_margin_that_is_a_share_is_as_uncertain_as_the_old_mean(sign):
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 1, 50, generator=generator, dtype=torch.double)
    metric = parse("ndcg@10" if sign == 1 else "mean_rank")
    pair = RecommenderPair(metric, ("a", "b"), [a.numpy().T, b.numpy().T], None, (None, None))
    for size in (0.02, 0.3):
        lost = sign * (a - (1 - sign * size) * b)[0].numpy()
        expected = stats.ttest_1samp(lost, 0, alternative="greater").pvalue
        worse = stats.ttest_1samp(sign * (a - b)[0].numpy(), 0, alternative="less").pvalue
        found = pair.p_of_margin(Equivalence(size, is_share=True))
        assert found == pytest.approx((expected, worse))


def test_the_margin_is_that_of_a_test_of_one_side(results, run):
    values = [results[name].per_user["ndcg@10"] for name in ("good0", "good1")]
    difference = (values[0] - values[1]).double().numpy()
    low = stats.ttest_1samp(difference, 0).confidence_interval(0.90).low
    for margin, status in ((-low * 1.001, 0), (-low * 0.999, 2)):
        line = f"gate good0.npz --baseline good1.npz --metric ndcg@10 --margin {margin}"
        assert run(line)[0] == status
        found = json.loads(run(f"{line} --json")[1])
        assert (found["p_value"] <= 1 - found["level"]) == (status == 0)


def test_the_gate_takes_runs_levels_and_those_without_a_seed(results, run):
    line = "gate good0.npz good1.npz --baseline bad.npz --metric ndcg@10 --margin 1%"
    status, out, _ = run(f"{line} --deterministic bad --level 0.99")
    assert (status, out.startswith("good0 is not worse than bad")) == (0, True)
    status, out, _ = run(f"{line} --json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["status"], found["verdict"]) == (0, "is not worse than")
    assert found["mean_a"] == pytest.approx(
        (results["good0"]["ndcg@10"] + results["good1"]["ndcg@10"]) / 2
    )


def test_a_page_is_written(results, run, tmp_path):
    status, out, err = run("report good0.npz bad.npz -o page.html --title Models --equivalence 2%")
    assert (status, out) == (0, "")
    assert err == "pyg-recmetrics: wrote page.html\n"
    page = (tmp_path / "page.html").read_text()
    assert "<title>Models</title>" in page
    assert "smaller than 2%" in page


def test_a_page_of_one_recommender_is_written_to_the_usual_file(results, run, tmp_path):
    assert run("report good0.npz --quiet") == (0, "", "")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("compare good0.npz", "needs to hold at least two results"),
        ("compare good0.npz text.npz", "needs to be a saved result (got text.npz: "),
        (
            "gate bad.npz --baseline good0.npz --metric mrr@3 --margin 1% --deterministic bat",
            "'--deterministic' needs to be one of ['bad', 'good0'] (got 'bat')",
        ),
        ("report good0.npz bad.npz -o bad.npz", "bad.npz: --output needs to be another file"),
        ("gate bad.npz --baseline good0.npz --metric map@3 --margin 1%x", "(got '1%x')"),
        ("gate bad.npz --baseline bad.npz --metric mrr@3 --margin 1%", "bad.npz twice)"),
        (f"{GATE} ndcg@10 --margin 2", "'--margin' needs to be less than 1, the largest diff"),
        (f"{GATE} ndcg@10 --margin 100%", "which is less than 100% (got '100%')"),
        (f"{GATE} coverage@5 --margin 2%", "a value for every user"),
        (f"{GATE} ndcg@50 --margin 2%", "; write --metrics of 'evaluate' down to @50"),
        (f"{GATE} ndcg@10 --margin 2% --level 0.4", "than 0.5 (got 0.4)"),
    ],
)
def test_mistakes_are_told(results, run, tmp_path, line, part):
    (tmp_path / "text.npz").write_text("no archive")
    status, out, err = run(line)
    assert (status, out) == (3, "")
    assert part in err
    assert "Traceback" not in err
    assert not re.search(r"\w\(\.\.\.", err), "Python"
