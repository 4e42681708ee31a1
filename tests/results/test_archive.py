"""Files of results: what is loaded is what was saved."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest
import torch
from random_tasks import random_scores, random_task

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    compare,
    conventions,
    evaluate,
    metrics,
)

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
            for name in ("seen", "item_embedding", "item_category"):
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
        assert [row.difference for row in compare(result, loaded)] == [0.0] * len(result)

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
        with pytest.raises(ValueError, match=r"new\.npz: .* in format 99 instead of 2 to 3"):
            EvaluationResult.load(tmp_path / "new.npz")
