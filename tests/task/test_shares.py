"""Processes that hold a share of a task each: what they say is what one process says of all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate
from pyg_recmetrics.task.shares import check_one_task
from tests.support.machines import shares

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

#: How many processes evaluate together.
SIZES = [1, 2, 3, 4]

TRUTH = torch.tensor([[0, 0, 1], [1, 2, 0]])
NONE = torch.empty(2, 0, dtype=torch.long)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What each process of each group has seen."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("needs torch.distributed's gloo")
    folder = tmp_path_factory.mktemp("shares")
    command = [sys.executable, "-m", shares.__name__, folder, *map(str, SIZES)]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300
    )
    wanted = [" ".join(["0"] * size) for size in SIZES]
    assert done.stdout.splitlines() == wanted, done.stderr
    return {
        size: [torch.load(folder / str(size) / f"{me}.pt") for me in range(size)] for size in SIZES
    }


@pytest.mark.parametrize("size", SIZES)
def test_random_cases_are_those_of_a_single_process(seen, size):
    sizes = torch.tensor([process["sizes"] for process in seen[size]])
    assert sizes.shape == (size, shares.NUM_CASES)
    assert size < 3 or bool((sizes == 0).any())
    for process in seen[size]:
        assert len(process["differing"]) == shares.NUM_CASES
        assert not {seed: found for seed, found in process["differing"].items() if found}


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("same integer", "'user_ids' of a share needs to hold users that no other process has"),
        ("same name", "no other process has (got 'ann' in processes 0 and {last})"),
        ("same number", "no other process has (got 7 in processes 0 and {last})"),
        ("same query", "'query' of a share needs to hold users that no other process has"),
        ("number of items", "'num_items' needs to be the same in every process"),
        ("candidates", "'candidates' needs to be the same in every process"),
        ("exclude_seen", "'exclude_seen' needs to be the same in every process"),
        ("not a share", "needs to be the same in every process"),
        ("weights of one", "'weight' needs to be given in every process, or in none"),
        ("other items", "'recommender' needs to be the same in every process"),
        ("nobody has truth", "'truth' needs to hold an edge that can be retrieved"),
        ("one argument", "'k' needs to be a positive integer (got 0)"),
        ("margin", "'margin' needs all users"),
        ("race", "'margin' needs all users"),
        ("random ties", "ties='random' draws the places of all users together"),
        ("person", "'person' needs to be None with 'is_share=True'"),
        ("no ids", "'is_share=True' needs 'user_ids' (or 'query')"),
        ("empty in another", "if it is 'error' (got 2 without)"),
        ("bootstrap", "method='bootstrap' needs the users of all processes: call 'gather()'"),
        ("save", "'save' needs the users of all processes"),
        ("per_item", "'per_item' needs the users of all processes"),
        ("to_trec", "'to_trec' needs the users of all processes"),
        ("compare", "'results' needs the users of all processes"),
        ("to_ranx", "'to_ranx' needs the users of all processes"),
    ],
)
def test_every_process_says_why_not(seen, size, what, wanted):
    for process in seen[size]:
        message = process["refusals"][what]
        assert "Error: " in message
        assert wanted.format(last=size - 1) in message


@pytest.mark.parametrize("size", [2, 3])
def test_all_goes_on_after_an_error(seen, size):
    assert all(process["refusals"]["afterwards"] for process in seen[size])


def test_it_is_known_of_every_method_whether_it_is_about_all():
    about_share = {"contributions", "curve", "top_k", "is_share", "person"}
    refused = {"per_item", "save", "to_trec", "to_ranx"}
    about_means = {"get", "items", "keys", "values", "to_dict", "to_pandas", "bounds", "nouns"}
    about_table = {"table", "to_markdown", "to_latex", "recipe"}
    counts = {"num_evaluated", "num_without_truth", "num_left_out", "num_tied"}
    counts |= {"num_with_few_candidates"}
    together = {"by", "by_degree", "by_item_group", "recall_by_popularity", "tie_range"}
    together |= {"confidence_interval", "gather"}
    known = about_share | refused | about_means | about_table | counts | together | {"load"}
    assert {name for name in dir(EvaluationResult) if not name.startswith("_")} == known


def test_without_other_processes_a_share_is_all():
    scores = torch.tensor([0.3, 0.9, 0.1])
    options = {"num_users": 2, "num_items": 3, "user_ids": ["ann", "bob"]}
    share, whole = (RankingTask(TRUTH, is_share=x, **options) for x in (True, False))
    found, wanted = (evaluate(scores, task, ["recall@1", "mrr"]) for task in (share, whole))
    assert dict(found) == dict(wanted)
    assert str(found) == str(wanted)
    assert found.is_share
    assert not found.gather().is_share


def test_a_share_may_be_empty():
    task = RankingTask(NONE, num_users=0, num_items=3, seen=NONE, user_ids=[], is_share=True)
    assert task.degree.tolist() == task.users.tolist() == []
    assert "is_share=True" in repr(task)
    with pytest.raises(ValueError, match=r"'truth' needs to hold .* \(got none in any process\)"):
        check_one_task(task)


def test_a_share_may_be_without_truth_that_can_be_retrieved():
    options = {"num_users": 2, "num_items": 3, "user_ids": [4, 8], "is_share": True}
    with pytest.warns(UserWarning, match="also in 'seen'"):
        task = RankingTask(TRUTH, seen=TRUTH, **options)
    assert task.truth.numel() == 0
    assert task.select_users([1]).users.tolist() == [1]
    weighted = RankingTask(TRUTH, weight=torch.tensor([1, 2, 1]), threshold=3.0, **options)
    assert weighted.weight.numel() == 0


def test_a_share_stays_one():
    task = RankingTask(TRUTH, num_users=2, num_items=3, user_ids=["a", "b"], is_share=True)
    assert RankingTask.from_dict(task.to_dict()).is_share
    assert task.select_users([0]).is_share
    assert task.to("cpu").is_share
    with pytest.raises(ValueError, match="'person' needs to be None"):
        task.with_person([0, 1])
    with pytest.raises(TypeError, match="'is_share' needs to be a boolean"):
        RankingTask(TRUTH, num_users=2, num_items=3, is_share="yes")


def test_the_example_under_torchrun():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    example = [ROOT / "examples" / "sharded.py", "--num-users", "500", "--num-items", "200"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", *example],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("500 users evaluated") == 1
    assert "process 0 of 2: 300 users" in done.stdout
    assert "process 1 of 2: 200 users" in done.stdout
