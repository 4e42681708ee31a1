"""Several processes hold a part of the items each, and rank as one process that holds all."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranking.schedule import Schedule
from pyg_recmetrics.ranking.sharded import ShardedRecommender
from pyg_recmetrics.ranking.shards import find_shards
from tests.support.machines import shards

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="needs torch.distributed's gloo"
)

#: How many processes rank together.
SIZES = [1, 2, 3, 4]

#: How many of them do all else that is tested.
GROUPS = [2, 3]


def start(folder, seeds, sizes):
    """What all processes of groups of some sizes found, by size."""
    command = [sys.executable, "-m", shards.__name__, folder, str(seeds.start), str(seeds.stop)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *map(str, sizes)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    codes = [" ".join("0" * size) if size != 2 else "0 -9" for size in sizes]
    assert done.stdout.splitlines() == codes, done.stderr
    return {
        size: [
            torch.load(folder / str(size) / f"{process}.pt", weights_only=False)
            for process in range(size)
        ]
        for size in sizes
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shards")


@pytest.fixture(scope="module")
def found(folder):
    return start(folder, SEEDS, SIZES)


@pytest.fixture(scope="module", params=GROUPS)
def group(request, found):
    return found[request.param]


def differences(one, other, name=""):
    """Where two values differ, in words."""
    if isinstance(one, dict | tuple | list):
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            one, other, names = one.values(), other.values(), list(one)
        else:
            names = range(len(one))
        parts = zip(one, other, names, strict=True)
        return [found for a, b, part in parts for found in differences(a, b, f"{name} {part}")]
    if torch.is_tensor(one):
        is_same = one.dtype == other.dtype and one.shape == other.shape
        is_same = is_same and bool(((one == other) | (one.isnan() & other.isnan())).all())
    else:
        is_same = one == other
    return [] if is_same else [f"{name}: {one} and {other}"]


def check_cases(found, seeds):
    for seed in seeds:
        case = shards.ShardCase(seed)
        wanted = shards.fields_of(case.rank())
        for group in found.values():
            for number, process in enumerate(group):
                wrong = differences(process[seed], wanted)
                assert not wrong, f"{case.words}, process {number} of {len(group)}: {wrong}"


#: The random cases that are ranked every time.
SEEDS = range(12)


def test_random_cases_are_ranked_as_by_one_process(found):
    check_cases(found, SEEDS)


@pytest.mark.slow
def test_more_random_cases(tmp_path):
    seeds = range(5000, 5040)
    check_cases(start(tmp_path, seeds, [2, 4]), seeds)


def test_an_evaluation_is_that_of_one_process(group):
    wanted = shards.evaluations()
    for process in group:
        assert not differences(process["evaluations"], wanted)


class TestBytes:
    """What is sent, against the formula of the documentation, by processes that form a ring."""

    @staticmethod
    def chunks(calls):
        """The edges, the users and the calls of each chunk."""
        found, of_chunk = [], []
        for call in calls:
            if call[0] == "start":
                of_chunk = []
                found.append((*call[1:], of_chunk))
            elif call[0] == "end":
                of_chunk = []
            else:
                of_chunk.append(call)
        return found

    def test_all_ranks_take_sixteen_bytes_of_an_edge(self, group):
        size = len(group)
        for process in group:
            for num_edges, _, calls in self.chunks(process["sent"]["all ranks"]):
                num_bytes = 4 * num_edges + 12 * num_edges + 4 * len(calls)
                assert len(calls) == 2
                assert sum(call[-1] for call in calls) == 2 * (size - 1) / size * num_bytes

    def test_to_a_depth_open_edges_take_twelve(self, group):
        size = len(group)
        user, item, _ = shards.plain_tables()
        ranked = rank((user, item), shards.plain_task(), k=20)
        for process in group:
            num_open = 0
            for num_edges, num_users, calls in self.chunks(process["sent"]["to a depth"]):
                of_chunk = (calls[-1][2] - 1) / 3
                num_bytes = 4 * num_edges + 8 * num_users + 12 * of_chunk + 4 * len(calls)
                assert len(calls) == 3
                assert sum(call[-1] for call in calls) == 2 * (size - 1) / size * num_bytes
                num_open += of_chunk
            assert (ranked.rank <= 20).sum() <= num_open < 0.1 * ranked.rank.numel()

    def test_lists_take_twelve_for_what_is_within_reach(self, group):
        size = len(group)
        for process in group:
            for num_edges, num_users, calls in self.chunks(process["sent"]["lists"]):
                num_open, num_listed = (calls[2][2] - 1) / 3, calls[-1][2] / 3
                num_bytes = 4 * num_edges + 16 * num_users + 12 * num_open + 4 * 4
                num_bytes = 2 * (size - 1) / size * num_bytes + (size - 1) * (8 + 12 * num_listed)
                assert len(calls) == 6
                assert sum(call[-1] for call in calls) == num_bytes
                # The best twenty of each user lie in any shard, and hardly more are told.
                assert num_listed * size >= 20 * num_users
                assert num_listed <= 2 * 20 * num_users / size

    def test_processes_send_alike(self, group):
        for name in shards.COUNTED:
            assert all(process["sent"][name] == group[0]["sent"][name] for process in group)

    def test_what_all_know_is_not_sent_again(self, group):
        calls = group[0]["sent"]["all ranks"]
        last = max(number for number, call in enumerate(calls) if call[0] == "end")
        assert sum(call[-1] for call in calls[last + 1 :]) < 100


#: What is said of parts that do not belong together, the same in every process but for those that
#: could not go on.
ERRORS = {
    "overlap": "'item_offset' needs to put the item embeddings of all processes side by side",
    "gap": r"'item_offset' needs .* side by side, so that each of 4000 items is in one of them "
    r"\(got \[1, ",
    "too few": "'item_offset' needs to put",
    "too few rows": r"'recommender' needs to hold embeddings of 4000 items in all processes "
    r"together \(got \d+ \+ .* = 3999 rows\)",
    "offset of a DTensor": "'item_offset' needs tensors .* says by itself",
    "offset of scores": r"'item_offset' needs tensors \(user, item\) .* \(got Tensor\)",
    "columns": r"'recommender' needs to hold item embeddings .* Shard\(0\) \(got .S",
    "partial": r"'recommender' needs to hold item embeddings .* Shard\(0\) \(got .P",
    "users along the same axis": "'recommender' needs to hold user embeddings that each process",
    "whole bias": r"'recommender' needs to hold item biases .* \(got a plain tensor\)",
    "replicated bias": "'recommender' needs to hold item biases that are sharded as",
    "bias of one": "'recommender' needs to be the same in every process",
    "long bias": r"'recommender' needs to hold item biases of shape .* \(got \[4000\]\)",
    "other users": "'recommender' needs to hold the same user embeddings",
    "other dimension": "'recommender' needs to hold embeddings of one dimension",
    "other type": "'recommender' needs to hold embeddings of one .*float64",
    "large bias": "'recommender' needs to have scores in the range of single precision",
    "dense": "'algorithm' needs to be 'auto' for embeddings that several processes hold",
    "recommend": "'item_offset' needs algorithm='auto'",
    "chunks": "'options' needs? to be the same",
    "one offset": "'recommender' and 'options' need to be the same",
    "other mesh": r"'recommender' needs to be on a mesh of one or two axes",
    "two meshes": "'recommender' needs to hold embeddings on one mesh",
    "other parts": "'resume' needs to be a folder of the same ranking.* of another recommender",
    "alone": r"'recommender' needs to be on a mesh .* which are 1 \(got",
    "alone with a part": r"'item_offset' needs to put .* \(got \[\d+, \d+\)\)",
}

#: What goes wrong in one process.
ERRORS_OF_ONE = {
    "other offsets": (0, "ValueError: 'item_offset' needs to be a non-negative integer (got -1)"),
    "NaN": (1, "ValueError: 'recommender' needs to hold finite numbers"),
    **dict.fromkeys(shards.STEPS, (1, "MemoryError: no room for a shard")),
}


def test_parts_that_do_not_belong_together_are_refused_by_all(group):
    for process in group:
        failures = process["failures"]
        assert set(failures) == {*ERRORS, *ERRORS_OF_ONE, "resumed", "afterwards"}
        for name, wanted in ERRORS.items():
            assert re.match(f"ValueError: {wanted}", failures[name]), failures[name]


def test_an_error_in_one_process_is_told_in_all_and_they_go_on(group):
    wanted = rank(tuple(shards.plain_tables()[:2]), shards.plain_task(), k=5).rank
    for number, process in enumerate(group):
        for name, (culprit, message) in ERRORS_OF_ONE.items():
            told = process["failures"][name]
            assert message in told
            assert told.startswith("RuntimeError: ") == (number != culprit), told
        assert torch.equal(process["failures"]["afterwards"], wanted)


def test_all_stop_if_one_fails_where_others_share_the_users(found):
    wanted = rank(tuple(shards.plain_tables()[:2]), shards.plain_task(), k=5).rank
    for number, process in enumerate(found[4]):
        error, afterwards = process["mesh"]
        told = "process 1 of 4" if number != 1 else "MemoryError"
        assert told in error
        assert "no room for a shard" in error
        assert torch.equal(afterwards, wanted)


def test_the_others_name_a_killed_process(found, folder):
    assert len(found[2]) == 2
    error = torch.load(folder / "2" / "0.killed.pt")
    assert error.startswith("RuntimeError: process 1 of 2")


def test_a_folder_keeps_who_is_finished(group):
    tables = tuple(shards.plain_tables()[:2])
    wanted = shards.fields_of(rank(tables, shards.plain_task(), k=5, keep_items=True))
    for process in group:
        assert not differences(process["failures"]["resumed"], [wanted, wanted])


class TestAlone:
    """What a process that is the only one says of its part, which is all there is."""

    def test_it_ranks_all_items(self):
        tables = tuple(shards.plain_tables())
        wanted, found = (
            rank(tables, shards.plain_task(), full=True, **options)
            for options in ({}, {"item_offset": 0})
        )
        assert not differences(*map(shards.fields_of, (found, wanted)))

    def test_on_any_device(self, device):
        task = shards.plain_task().to(device)
        tables = tuple(table.to(device) for table in shards.plain_tables())
        for options in ({"full": True}, {"k": 5, "keep_items": True}):
            wanted, found = (
                rank(tables, task, **options, **others) for others in ({}, {"item_offset": 0})
            )
            assert not differences(*map(shards.fields_of, (found, wanted)))

    def test_it_evaluates_all_items(self):
        tables = tuple(shards.plain_tables())
        wanted, found = (
            evaluate(tables, shards.plain_task(), ["ndcg@5", "coverage@5"], **options)
            for options in ({}, {"item_offset": 0})
        )
        assert wanted.to_dict() == found.to_dict()

    def test_a_folder_keeps_who_is_finished(self, tmp_path):
        user, item, _ = shards.plain_tables()
        task, options = shards.plain_task(), {"k": 3, "item_offset": 0, "resume": tmp_path}
        wanted = rank((user, item), task, **options)
        assert not differences(
            *map(shards.fields_of, (rank((user, item), task, **options), wanted))
        )
        with pytest.raises(ValueError, match="of another recommender"):
            rank((user, item.flip(0)), task, **options)

    def test_an_embedding_module_is_its_weight(self):
        user, item, _ = shards.plain_tables()
        modules = [torch.nn.Embedding.from_pretrained(table) for table in (user, item)]
        found = rank(modules, shards.plain_task(), k=3, item_offset=0).rank
        assert torch.equal(found, rank((user, item), shards.plain_task(), k=3).rank)

    def test_top_k_are_the_best_items(self):
        task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        user, item = torch.tensor([[1.0], [-1.0]]), torch.tensor([[1.0], [2.0], [3.0]])
        shards_of_one = find_shards((user, item), 0, task)
        recommender = ShardedRecommender(shards_of_one, task)
        recommender.join()
        (chunk,) = Schedule(task, torch.arange(2), 2).chunks(lambda depth: 2)
        assert recommender.top_k(chunk, 2).tolist() == [[2, 1], [0, 1]]

    def test_a_model_has_no_offset(self):
        with pytest.raises(ValueError, match=r"'item_offset' needs tensors .* \(got function\)"):
            rank(lambda users: None, shards.plain_task(), item_offset=0)
