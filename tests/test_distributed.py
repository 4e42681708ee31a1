"""Several processes rank together: the same results, and the same errors."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from pyg_recmetrics import Catalogue, RankedEdges, metrics, modules, rank
from pyg_recmetrics.ranking.recommenders import name_users_in_errors
from tests.support.machines import processes

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="needs torch.distributed's gloo"
)


#: How many processes evaluate together.
SIZES = [2, 3]

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each number of processes, which the last of them was killed while filling."""
    folder = tmp_path_factory.mktemp("processes")
    command = [sys.executable, "-m", processes.__name__, folder, *map(str, SIZES)]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=240
    )
    codes = [" ".join([*["0"] * (size - 1), "-9"]) for size in SIZES]
    # Gloo of PyTorch 2.8 says which processes it has connected.
    told = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert told == codes, done.stderr
    return {size: folder / str(size) for size in SIZES}


@pytest.fixture(scope="module", params=SIZES)
def seen(request, folders):
    """What each process has seen, and after that, what became of those that were not killed."""
    folder = folders[request.param]
    by_process = [
        torch.load(folder / f"{process}.pt", weights_only=False) for process in range(request.param)
    ]
    for process, before in enumerate(by_process[:-1]):
        before["killed"] = torch.load(folder / f"{process}.killed.pt")
    return by_process


def assert_same(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.usefixtures("expect_ties")
def test_every_process_has_the_results_of_a_single_one(seen):
    wanted = processes.results()
    for process in seen:
        assert process["results"].keys() == wanted.keys()
        for name, value in wanted.items():
            for one, other in zip(process["results"][name], value, strict=True):
                assert one == other if isinstance(other, str | None) else True, name
                if not isinstance(other, str | None):
                    assert_same(one, other)


def test_processes_stop_together(seen):
    for process in seen:
        for name in ("margin", "margin with lists"):
            assert "stopped='margin'" in process["results"][name][1], name


def test_all_raise_if_one_does(seen):
    users = processes.small_task().truth[0].unique().tolist()
    for name, culprit, error in (
        ("one", 1, "ValueError: no such item (while 4 users were ranked: "),
        ("first", 0, "IndexError: no such user (while 4 users were ranked: "),
        ("interrupt", 1, "KeyboardInterrupt"),
    ):
        for number, process in enumerate(seen):
            message, is_training = process["failures"][name]
            told = f"RuntimeError: process {culprit} of {len(seen)} on {HOST} could not rank: "
            start = error if number == culprit else told + error
            assert message.startswith(start)
            named = re.findall(r"\d+", message.removeprefix(start))
            assert {int(user) for user in named} <= set(users[culprit :: len(seen)])
            assert len(named) == (0 if name == "interrupt" else 4)
            assert is_training


def test_also_for_arguments_of_one(seen):
    for number, process in enumerate(seen):
        told = (
            ""
            if number == 1
            else f"RuntimeError: process 1 of {len(seen)} on {HOST} could not rank: "
        )
        wanted = f"{told}ValueError: 'k' needs to be a positive integer (got 0)"
        assert process["failures"]["argument"] == wanted
        assert "'recommender' needs to hold scores" in process["failures"]["shape"]


#: What differs between processes, by the argument that the error names.
DIFFERENT = {
    "data": ["task", "candidates", "colliding candidates", "weight"],
    "k": ["depth"],
    "ties": ["ties"],
    "margin": ["margin", "level"],
    "keep_items": ["kept items"],
    "metrics": ["metric", "convention"],
    "recommender": [
        "edges of a model",
        "edges of a LightGCN",
        "embeddings",
        "biases",
        "scores",
        "popularity",
        "lists",
        "function",
        "pairs",
        "weights of a model",
        "weights of a LightGCN",
        "RotatE",
        "TransE",
        "OwnScores",
        "recommend",
        "kind",
    ],
    "seed": ["seed"],
    "catalogue": ["category"],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_processes_that_do_different_things_are_told(seen, name):
    for process in seen:
        for what in DIFFERENT[name]:
            wanted = f"ValueError: '{name}' needs to be the same in every process"
            assert process["failures"][what].startswith(wanted), what


def test_an_error_that_cannot_be_sent_ends_all_processes(seen):
    for number, process in enumerate(seen):
        told = (
            ""
            if number == 1
            else f"RuntimeError: process 1 of {len(seen)} on {HOST} could not rank: "
        )
        assert process["failures"]["odd letters"].startswith(f"{told}ValueError: ")
        assert process["failures"]["without words"].startswith(f"{told}Silent: ")


def test_all_goes_on_after_an_error(seen):
    wanted = rank(processes.embeddings(), processes.small_task(), k=5).rank
    for process in seen:
        assert_same(process["failures"]["afterwards"], wanted)


def test_one_process_warns(seen):
    assert len(seen[0]["failures"]["warned"]) == 2
    assert all(not process["failures"]["warned"] for process in seen[1:])


def test_the_first_process_warns_of_what_was_left_out_in_another(seen):
    (message,) = seen[0]["failures"]["left out"]
    assert message.startswith("'recommender' gives too few items")
    assert not any(process["failures"]["left out"] for process in seen[1:])


def test_a_process_can_rank_by_itself(seen):
    wanted = rank(processes.embeddings(), processes.small_task(), k=5).rank
    assert_same(seen[1]["alone"], wanted)


def test_a_killed_process_is_an_error_in_the_others(seen):
    for process in seen[:-1]:
        assert "Error: " in process["killed"]


def test_metric_classes_are_merged_by_torchmetrics(seen):
    pytest.importorskip("torchmetrics")
    parts = [modules.Recall(k=1) for _ in seen]
    for number, metric in enumerate(parts[:-1]):
        lists = torch.arange(number + 1).unsqueeze(1)
        metric.update(lists, torch.zeros(2, 1, dtype=torch.long))
    total, count = (sum(metric.get(part) for metric in parts) for part in ("sum", "count"))
    for number, process in enumerate(seen):
        mean, own_afterwards = process["synchronised"]
        torch.testing.assert_close(mean, (total / count).float())
        assert_same(own_afterwards, parts[number].get("count"))


def test_metrics_of_all_users_together_merge_before_they_are_computed(seen):
    pytest.importorskip("torchmetrics")
    lists = torch.cat([processes.lists_of(process) for process in range(len(seen))])
    ranked = RankedEdges.from_topk(lists, torch.zeros(2, 1, dtype=torch.long))
    ranked = ranked.with_catalogue(Catalogue(processes.NUM_ITEMS))
    wanted = [
        metrics.parse(f"{name}@2")(ranked).float()
        for name in ("coverage", "gini", "entropy", "personalization")
    ]
    for process in seen:
        torch.testing.assert_close(process["synchronised over all"], wanted)


def test_curves_merge_before_they_are_computed(seen):
    pytest.importorskip("torchmetrics")
    parts = [processes.pairs_of(process) for process in range(len(seen))]
    preds, target, indexes = (torch.cat(part) for part in zip(*parts, strict=True))
    ranked = RankedEdges.from_pairs(preds, target, indexes)  # whose queries all processes share
    for process in seen:
        for curve, max_k in zip(process["synchronised curves"], (3, None), strict=True):
            wanted = metrics.precision_recall_curve(ranked, max_k)
            for value, expected in zip(curve, wanted, strict=True):
                torch.testing.assert_close(value, expected.to(value.dtype))


def test_the_example_under_torchrun():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", ROOT / "examples" / "distributed.py"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("users evaluated") == 1
    assert "2 processes" in done.stdout
    assert "the same ranks" in done.stdout


class TestNamingUsers:
    def test_an_error_names_the_users_it_was_raised_for(self):
        with pytest.raises(ZeroDivisionError) as raised, name_users_in_errors(torch.arange(30)):
            _ = 1 / 0
        noted = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        assert "(while 30 users were ranked: 0, 1, 2, 3, 4 and 25 more)" in noted

    def test_before_python_3_11_the_message_does(self):
        class OldError(ValueError):
            add_note = None

        with (
            pytest.raises(OldError, match=r"no item \(while 2 users"),
            name_users_in_errors(torch.arange(2)),
        ):
            raise OldError("no item")
