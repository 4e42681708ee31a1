"""Files of results: what is loaded is what was saved."""

import dataclasses
import json
import os
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    compare,
    conventions,
    evaluate,
    metrics,
)
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.tools.damage import damage_archive, damage_bytes, read_members, write_members

#: A result in format 5, as it was written before truth edges and persons had names of their own.
FORMAT_5 = Path(__file__).with_name("format_5.npz")
#: A result of some users in format 8, before it said how many users each mean is over.
FORMAT_8 = Path(__file__).with_name("format_8.npz")
#: Two runs of one task in format 5.
RUNS_IN_FORMAT_5 = Path(__file__).with_name("runs_in_format_5.npz")

METRICS = ["recall@2", "recall@3", "ndcg(gain=exponential)@3", "r_precision"]


def make_task(**options):
    return random_task(40, 9, truth_share=0.25, seen_share=0.25, **options)


def make_result(task=None, **options):
    task = make_task() if task is None else task
    return evaluate(random_scores(task, seed=1), task, options.pop("metrics", METRICS), **options)


def assert_same(result, loaded):
    assert result.to_dict() == loaded.to_dict()
    assert list(result) == list(loaded)
    for name, value in result.per_user.items():
        assert torch.equal(value.nan_to_num(-1), loaded.per_user[name].nan_to_num(-1))
    assert str(result) == str(loaded)
    assert result.recipe() == loaded.recipe()
    assert result.convention == loaded.convention
    assert result.definitions == loaded.definitions
    for field in dataclasses.fields(result.ranked):
        saved, read = getattr(result.ranked, field.name), getattr(loaded.ranked, field.name)
        if isinstance(saved, torch.Tensor):
            assert torch.equal(saved, read)
            assert saved.dtype == read.dtype
        elif field.name == "lists" and saved is not None:
            assert torch.equal(saved.item, read.item)
            assert torch.equal(saved.ptr, read.ptr)
        elif field.name == "catalogue" and saved is not None:
            assert repr(saved) == repr(read)
            for name in ("seen", "item_embedding", "item_category", "propensity"):
                assert str(getattr(saved, name)) == str(getattr(read, name))
        else:
            assert saved == read


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
                    "propensity": torch.full((9,), 0.5),
                },
            ),
            ({}, {"convention": "trec_eval", "metrics": ["mrr@3"]}),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*taken out of the truth")
    def test_what_is_loaded_is_what_was_saved(self, tmp_path, task_options, options):
        result = make_result(make_task(**task_options), **options)
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert_same(result, loaded)
        more = [metrics.recall(shown.ranked, k=1).nan_to_num(-1) for shown in (loaded, result)]
        assert torch.equal(*more)
        assert str(loaded.by_degree(2)) == str(result.by_degree(2))
        differences = [row.difference for row in compare({"a": result, "b": loaded})]
        assert differences == [0.0] * len(result)

    @pytest.mark.parametrize("exclude_seen", [True, False])
    def test_popularity_is_known_afterwards_and_stored_once(self, tmp_path, exclude_seen):
        task = make_task(exclude_seen=exclude_seen)
        result = make_result(task)
        for path in (tmp_path / "once.npz", tmp_path / "again.npz"):
            result.save(path)
            result = EvaluationResult.load(path)
            with np.load(path) as arrays:
                same = [name for name in arrays if np.array_equal(arrays[name], task.seen.numpy())]
            assert len(same) == 1
        assert result.task.exclude_seen == exclude_seen
        scores = random_scores(task, seed=2)
        for name in ("popularity@3", "recall@3"):
            assert evaluate(scores, result.task, name) == evaluate(scores, task, name)
        buckets = [str(shown.recall_by_popularity(3)) for shown in (result, make_result(task))]
        assert buckets[0] == buckets[1]
        assert buckets[0].count("\n") > 4

    def test_weights_and_candidates_of_each_user(self, tmp_path):
        truth = torch.tensor([[0, 0, 1], [1, 2, 0]])
        task = RankingTask(
            truth,
            num_users=2,
            num_items=3,
            weight=torch.tensor([0.7, 2.5, 3.0]),
            threshold=0.7,
            candidates=torch.tensor([[0, 0, 0, 1, 1], [0, 1, 2, 0, 1]]),
        )
        result = evaluate(torch.tensor([0.3, 0.2, 0.1]), task, ["ndcg@2", "dcg@2"])
        result.save(str(tmp_path / "result"))
        loaded = EvaluationResult.load(str(tmp_path / "result"))
        assert_same(result, loaded)
        assert torch.equal(loaded.task.weight, task.weight)
        assert loaded.task.threshold == task.threshold == pytest.approx(0.7)
        assert torch.equal(loaded.task.candidates, task.candidates)

    def test_queries(self, tmp_path):
        test, known = torch.tensor([[0, 1, 4], [1, 0, 2]]).t(), torch.tensor([[0], [1], [5]])
        for task in (
            RankingTask.from_triples(test, known, num_entities=6),
            RankingTask.from_events([0, 0, 1], [1, 2, 2], [5, 2**60, 7], [True] * 3, num_items=6),
        ):
            result = evaluate(torch.rand(task.num_users, 6), task, "mrr")
            result.save(tmp_path / "result.npz")
            loaded = EvaluationResult.load(tmp_path / "result.npz")
            assert_same(result, loaded)
            assert torch.equal(loaded.task.query, task.query)
            assert loaded.task.num_relations == task.num_relations
            assert repr(loaded.task) == repr(task)

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
        result = make_result(metrics=["map@3", "mrr@3"], convention=convention)
        result.save(tmp_path / "result.npz")
        assert_same(result, EvaluationResult.load(tmp_path / "result.npz"))

    def test_from_another_device(self, device, tmp_path):
        task = make_task()
        scores = random_scores(task, seed=1).to(device)
        result = evaluate(scores, task.to(device), METRICS)
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert loaded.ranked.rank.device.type == "cpu"
        assert loaded.to_dict() == pytest.approx(result.to_dict())

    def test_the_file_holds_no_pickle(self, tmp_path):
        make_result(keep_items=True).save(tmp_path / "result.npz")
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
        with pytest.raises(ValueError, match=r"new\.npz: .* in format 99, and"):
            EvaluationResult.load(tmp_path / "new.npz")

    def test_files_of_format_5_are_read(self):
        result = EvaluationResult.load(FORMAT_5)
        # User 0 has relevant items at the ranks 1 and 3, user 1 at 1, and user 2 at 3.
        assert result["recall@2"] == (1 / 2 + 1 + 0) / 3
        assert result["mrr"] == pytest.approx((1 + 1 + 1 / 3) / 3)
        assert result.ranked.edge_label_index.tolist() == [[0, 0, 1, 2], [2, 1, 0, 3]]
        assert result.person.tolist() == result.task.person.tolist() == [0, 1, 0, 2]

    def test_runs_of_format_5_are_read(self):
        first, second = Runs.load(RUNS_IN_FORMAT_5)
        # The first run recommends what is relevant to users 0 and 1, the second to user 0 alone.
        assert (first["recall@1"], second["recall@1"]) == (2 / 3, 1 / 3)
        assert first.ranked.edge_label_index.tolist() == [[0, 1, 2], [2, 0, 1]]
        assert first.person.tolist() == second.task.person.tolist() == [0, 1, 0]

    def test_files_of_format_8_are_read(self):
        # Four of eight users with truth were ranked, and two users without truth count as zero.
        result = EvaluationResult.load(FORMAT_8)
        assert result.sampling.num_counted == {"recall@1": 10, "mrr": 10}
        assert result["mrr"] == pytest.approx(0.8 * float(result.per_user["mrr"].nanmean()))
        assert "the mean over all 10 users is within it" in str(result)

    def test_original_ids_are_words_or_numbers(self, tmp_path):
        kinds = {"ann": ["ann", "böb", ""], "mixed": [3, "3", 0.5], "large": [2**60, -1, 0]}
        for ids in kinds.values():
            task = RankingTask([[0, 1], [2, 1]], num_users=2, num_items=3, item_ids=ids)
            evaluate(torch.rand(2, 3), task, "mrr@2").save(tmp_path / "result.npz")
            loaded = EvaluationResult.load(tmp_path / "result.npz")
            assert loaded.ranked.item_ids == loaded.task.item_ids == tuple(ids)
            assert [type(id_) for id_ in loaded.task.item_ids] == [type(id_) for id_ in ids]
        task = RankingTask([[0], [1]], num_users=1, num_items=2, item_ids=[("a", 1), ("a", 2)])
        with pytest.raises(TypeError, match=r"'ranked.item_ids' needs to hold .* \(got tuple\)"):
            evaluate(torch.rand(1, 2), task, "mrr@2").save(tmp_path / "result.npz")

    def test_numbers_that_numpy_lacks(self, tmp_path):
        embedding = torch.tensor([[1.0, 0.1], [0.3, 2.0], [1e-30, 1e30]], dtype=torch.bfloat16)
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1, 2]]), torch.tensor([[0], [1]]))
        catalogue = Catalogue(3, item_embedding=embedding)
        result = EvaluationResult(ranked.with_catalogue(catalogue), ["diversity(over=embedding)@3"])
        result.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert_same(result, loaded)
        assert loaded.ranked.catalogue.item_embedding.dtype == torch.bfloat16
        assert torch.equal(loaded.ranked.catalogue.item_embedding, embedding)

    def test_weights_that_require_a_gradient(self, tmp_path):
        weight = torch.tensor([2.0, 1.0], requires_grad=True)
        lists, truth = torch.tensor([[0, 1, 2]]), torch.tensor([[0, 0], [1, 2]])
        result = EvaluationResult(RankedEdges.from_topk(lists, truth, weight), "ndcg@3")
        assert not result.per_user["ndcg@3"].requires_grad
        result.save(tmp_path / "result.npz")
        assert_same(result, EvaluationResult.load(tmp_path / "result.npz"))


@pytest.fixture
def small_result():
    return make_result(metrics=["recall@2"])


@contextmanager
def small_files():
    """Files of this process, such as that of its output, cannot grow beyond a kilobyte."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def folder_of_nobody():
    """A folder of a user who may not write everything, as whom this process acts."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    if user == 0:
        nobody = 65534
        os.chown(folder, nobody, nobody)
        os.seteuid(nobody)
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


class TestSaving:
    def test_what_fails_leaves_the_old_file_and_no_other(self, small_result, tmp_path):
        path = tmp_path / "result.npz"
        path.write_bytes(b"what was there before")
        with small_files(), pytest.raises(OSError, match=re.escape(str(path))):
            small_result.save(path)
        assert path.read_bytes() == b"what was there before"
        assert os.listdir(tmp_path) == ["result.npz"]

    def test_what_is_interrupted_leaves_the_old_file_and_no_other(
        self, small_result, tmp_path, monkeypatch
    ):
        def interrupt(file, **arrays):
            file.write(b"half of it")
            raise KeyboardInterrupt

        path = tmp_path / "result.npz"
        path.write_bytes(b"what was there before")
        monkeypatch.setattr(np, "savez_compressed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            small_result.save(path)
        assert path.read_bytes() == b"what was there before"
        assert os.listdir(tmp_path) == ["result.npz"]

    def test_a_process_that_is_killed_leaves_the_old_file(self, small_result, tmp_path):
        path = tmp_path / "result.npz"
        small_result.save(path)
        script = (
            "import os, signal, sys, numpy as np\n"
            "from pyg_recmetrics import EvaluationResult\n"
            "result = EvaluationResult.load(sys.argv[1])\n"
            "def kill(file, **arrays):\n"
            "    file.write(b'half of it')\n"
            "    file.flush()\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
            "np.savez_compressed = kill\n"
            "result.save(sys.argv[1])\n"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", script, path], env=environment, check=False)
        assert len(os.listdir(tmp_path)) == 2  # it could not clean up
        assert_same(small_result, EvaluationResult.load(path))
        small_result.save(path)
        assert os.listdir(tmp_path) == ["result.npz"]

    @pytest.mark.parametrize("name", ["user_ids", "zeros", "header"])
    def test_a_bomb_is_refused_before_it_goes_off(self, name, small_result, tmp_path):
        path, size = tmp_path / "bomb.npz", 2**27
        small_result.save(path)
        with np.load(path) as file:
            arrays = dict(file)
        if name == "header":
            header = json.loads(str(arrays["header"]))
            arrays["header"] = np.array(json.dumps(header | {"more": " " * (size // 4)}))
        else:
            name = next(key for key in arrays if key != "header") if name == "user_ids" else name
            arrays[name] = np.zeros(size // 8, dtype=np.int64)
        np.savez_compressed(path, **arrays)
        del arrays
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"bomb\.npz: (it has|its header|'.*' is large)"):
            EvaluationResult.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < size // 8

    def test_the_mode_of_a_file_is_kept(self, small_result, tmp_path):
        path = tmp_path / "result.npz"
        small_result.save(path)
        (tmp_path / "other").write_text("")
        modes = [stat.S_IMODE(file.stat().st_mode) for file in (path, tmp_path / "other")]
        assert modes[0] == modes[1]
        path.chmod(0o640)
        small_result.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    @pytest.mark.parametrize("is_there", [True, False])
    def test_a_link_is_written_through(self, small_result, tmp_path, is_there):
        (tmp_path / "folder").mkdir()
        target, link = tmp_path / "folder" / "target", tmp_path / "link"
        if is_there:
            target.write_text("")
        link.symlink_to(Path("folder") / "target")
        small_result.save(link)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert_same(small_result, EvaluationResult.load(target))
        assert os.listdir(target.parent) == ["target"]

    def test_what_is_no_file_is_written_to_and_not_replaced(self, small_result, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with ThreadPoolExecutor(1) as other:
            received = other.submit(pipe.read_bytes)
            small_result.save(pipe)
            (tmp_path / "copy").write_bytes(received.result())
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert_same(small_result, EvaluationResult.load(tmp_path / "copy"))

    def test_many_may_save_at_once(self, small_result, tmp_path):
        path = tmp_path / "result.npz"
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(small_result.save, [path] * 40))
        assert os.listdir(tmp_path) == ["result.npz"]
        assert_same(small_result, EvaluationResult.load(path))

    def test_what_nobody_could_load_is_not_saved(self, small_result, tmp_path):
        ranked = dataclasses.replace(small_result.ranked, rank=small_result.ranked.rank.flip(0))
        by_hand = EvaluationResult(ranked, "recall@2")
        with pytest.raises(ValueError, match="'rank' needs to rise"):
            by_hand.save(tmp_path / "result.npz")
        assert os.listdir(tmp_path) == []

    def test_what_cannot_be_written_is_named(self, small_result, tmp_path):
        with pytest.raises(IsADirectoryError, match=re.escape(f"'{tmp_path}'")):
            small_result.save(tmp_path)
        with pytest.raises(FileNotFoundError, match=re.escape(f"'{tmp_path}/none/result'")):
            small_result.save(tmp_path / "none" / "result")
        with pytest.raises(IsADirectoryError, match=re.escape(f"'{tmp_path}'")):
            EvaluationResult.load(tmp_path)

    def test_what_must_not_be_written_is_named(self, small_result, folder_of_nobody):
        path = folder_of_nobody / "result.npz"
        path.write_bytes(b"protected")
        path.chmod(0o400)
        with pytest.raises(PermissionError, match=re.escape(f"'{path}'")):
            small_result.save(path)
        assert path.read_bytes() == b"protected"
        folder_of_nobody.chmod(0o500)
        with pytest.raises(PermissionError, match=re.escape(f"'{folder_of_nobody}/other'")):
            small_result.save(folder_of_nobody / "other")


def make_rich_result():
    """A result in which everything is known that a file can hold."""
    task = RankingTask(
        torch.tensor([[0, 0, 1, 3, 4], [1, 2, 0, 3, 4]]),
        num_users=6,
        num_items=7,
        seen=torch.tensor([[0, 1, 4], [0, 4, 1]]),
        weight=torch.tensor([1.0, 2.5, 3.0, 1.5, 2.0]),
        candidates=torch.arange(6),
        users=torch.tensor([0, 1, 2, 3, 4]),
    )
    result = evaluate(
        random_scores(task, seed=3),
        task,
        ["recall@2", "ndcg@2", "coverage@2", "diversity(over=embedding)@2", "calibration@2"],
        keep_items=True,
        item_category=torch.arange(7) % 3,
        item_embedding=torch.randn(7, 2, generator=torch.Generator().manual_seed(0)),
    )
    named = dataclasses.replace(result.ranked, user_ids=tuple("abcdef"), item_ids=tuple("tuvwxyz"))
    return EvaluationResult(named, result.metrics, task=task)


class TestDamagedFiles:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("damage", [damage_bytes, damage_archive])
    @pytest.mark.filterwarnings("ignore:Duplicate name", "ignore:.*taken out of the truth")
    def test_damage_is_found_or_harmless(self, tmp_path, damage, seed):
        path = tmp_path / "result.npz"
        result = make_rich_result()
        result.save(path)
        content = path.read_bytes()
        generator = random.Random(seed)
        num_found = 0
        for _ in range(300):
            path.write_bytes(damage(content, generator))
            try:
                loaded = EvaluationResult.load(path)
            except ValueError as error:
                num_found += 1
                assert str(path) in str(error)  # noqa: PT017 (there may be none)
            else:
                assert_same(result, loaded)
        assert num_found > 150

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("ranked.rank", lambda rank: rank * 0, r"'rank' .* above 0 \(got 0\)"),
            ("ranked.rank", lambda rank: -rank, "'rank' .* above 0"),
            ("ranked.rank", lambda rank: rank[:-1], "'ranked.rank' needs to be"),
            ("ranked.edge_label_index", lambda edges: edges - 5, "'edge_label_index' .* above -1"),
            ("ranked.ptr", lambda ptr: ptr * 2**40, "'ptr' needs to point at the edges"),
            ("ranked.weight", lambda weight: weight * np.nan, "'weight' needs to hold finite"),
            ("ranked.lists.ptr", lambda ptr: ptr * 2**40, "'ptr' needs to rise"),
            (
                "ranked.lists.item",
                lambda item: item + 9 * (item >= 0),
                "'item_ids' needs to hold all items",
            ),
            ("ranked.catalogue.seen", lambda seen: seen + 9, r"'seen' .* item ids in \[0, 7\)"),
            ("ranked.catalogue.item_category", np.negative, "'item_category' needs to be zero"),
            ("task.truth", lambda truth: truth[:, ::-1].copy(), "'truth' is not in canonical form"),
            ("ranked.users", lambda users: users + 2, r"'users' .* user ids in \[0, 6\)"),
            ("task.candidates", lambda ids: ids * 0, "'truth' is not in canonical form"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*taken out of the truth")
    def test_what_was_changed_is_named(self, tmp_path, name, change, message):
        path = tmp_path / "result.npz"
        make_rich_result().save(path)
        header, arrays = read_members(path.read_bytes())
        arrays[name] = np.ascontiguousarray(change(arrays[name]))
        path.write_bytes(write_members(header, arrays))
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: .*({message})"):
            EvaluationResult.load(path)

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("metrics", ["recall@2", "fame@3"], "'metrics' needs to name known metrics"),
            ("metrics", ["recall@9"], "'k' needs to be at most 2, the depth"),
            ("metrics", [], "'metrics' needs to name at least one"),
            ("metrics", 5, "TypeError"),
            ("empty_target_action", "none", "'empty_target_action' needs to be one of"),
            ("num_left_out", -1, "'num_left_out' needs to be a non-negative integer"),
            ("num_left_out", True, "'num_left_out' needs to be a non-negative integer"),
            ("convention", {}, "'convention' needs to hold"),
            ("convention", None, "TypeError"),
            ("task", {"num_users": 5}, r"'task' needs to have the users .*, 6 \(got 5\)"),
            ("task", {"num_users": 6}, "RankingTask"),
            ("ranked", [], "'ranked' needs to be a dictionary"),
            ("color", "red", "'fields' needs to hold"),
        ],
    )
    def test_a_header_that_was_changed_is_named(self, tmp_path, field, value, message):
        path = tmp_path / "result.npz"
        ranked = RankedEdges.from_topk(torch.zeros(6, 2).long(), torch.tensor([[0], [0]]))
        # There are no other arrays than those of the ranking.
        EvaluationResult(dataclasses.replace(ranked, depth=2), "recall@2").save(path)
        header, arrays = read_members(path.read_bytes())
        header["fields"][field] = value
        kept = {} if field == "ranked" else arrays
        path.write_bytes(write_members(header, kept))
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: .*({message})"):
            EvaluationResult.load(path)

    def test_a_pickle_is_never_read(self, tmp_path):
        path = tmp_path / "result.npz"
        make_result().save(path)
        header, arrays = read_members(path.read_bytes())
        arrays["ranked.rank"] = np.array([Unpickled()] * 3, dtype=object)
        with path.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)
        with pytest.raises(ValueError, match=r"result\.npz: .*allow_pickle"):
            EvaluationResult.load(path)


class Unpickled:
    """Whatever is made of this by a pickle ends the process."""

    def __reduce__(self):
        return os._exit, (1,)
