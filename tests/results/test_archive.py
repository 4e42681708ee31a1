"""Files of results: what is loaded is what was saved."""

import os
import random
import tempfile

import numpy as np
import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
)
from tests.support.cases.random_tasks import random_scores
from tests.support.tools.damage import damage_archive, damage_bytes, read_members, write_members
from tests.support.tools.everything import everything


def make_rich_result():
    """A result in which nearly everything is known that a file can hold."""
    task = RankingTask(
        torch.tensor([[0, 0, 1, 3, 4], [1, 2, 0, 3, 4]]),
        num_users=6,
        num_items=7,
        seen=torch.tensor([[0, 1, 4], [0, 4, 1]]),
        weight=torch.tensor([0.7, 2.5, 3.0, 1.5, 2.0], requires_grad=True),
        threshold=0.7,
        candidates=torch.cartesian_prod(torch.arange(6), torch.arange(6)).t(),
        users=torch.tensor([0, 1, 2, 3, 4]),
        user_ids=("ann", "böb", "", "d", "e", "f"),
        item_ids=(3, "3", 0.5, 2**60, -1, 0, "x"),
    )
    convention = conventions.Convention(
        "mine",
        "a paper",
        {"recall": {}, "ndcg": {}, "coverage": {}, "diversity": {}, "calibration": {}},
        without_cut_off=("mrr",),
        population=conventions.Population(min_pos_test=1),
    )
    return evaluate(
        random_scores(task, seed=3),
        task,
        ["recall@2", "ndcg@2", "coverage@2", "diversity(over=embedding)@2", "calibration@2"],
        keep_items=True,
        catalogue=Catalogue(
            7,
            item_category=torch.arange(7) % 3,
            # NumPy has no such numbers.
            item_embedding=torch.randn(7, 2, generator=torch.Generator().manual_seed(0)).bfloat16(),
        ),
        convention=convention,
    )


def assert_same(result, loaded):
    assert everything(result) == everything(loaded)


def saved_and_loaded(result):
    with tempfile.TemporaryDirectory() as folder:
        result.save(f"{folder}/result")
        return EvaluationResult.load(f"{folder}/result")


class TestFiles:
    def test_all_that_is_known_comes_back(self, tmp_path):
        result = make_rich_result()
        loaded = saved_and_loaded(result)
        assert_same(result, loaded)
        result.save(tmp_path / "result.npz")
        with np.load(tmp_path / "result.npz") as arrays:
            seen = [name for name in arrays if np.array_equal(arrays[name], result.task.seen)]
        assert len(seen) == 1  # what the task and its catalogue share

    def test_lists_without_a_task(self):
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1, 2]]), torch.tensor([[0], [1]]))
        result = EvaluationResult(ranked.with_catalogue(Catalogue(3)), ["mrr@2", "coverage@2"])
        assert_same(result, loaded := saved_and_loaded(result))
        assert loaded.task is None

    def test_other_ids_are_not_saved(self, tmp_path):
        task = RankingTask([[0], [1]], num_users=1, num_items=2, item_ids=[("a", 1), ("a", 2)])
        with pytest.raises(TypeError, match=r"'ranked.item_ids' needs to hold .* \(got tuple\)"):
            evaluate(torch.rand(1, 2), task, "mrr@2").save(tmp_path / "result.npz")
        assert os.listdir(tmp_path) == []


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("number", "version"), [(5, "version 0.2, 0.3 or 0.4"), (10, "version"), (99, "a later")]
    )
    def test_those_of_other_versions_are_refused(self, number, version, tmp_path):
        make_rich_result().save(tmp_path / "file")
        header, arrays = read_members((tmp_path / "file").read_bytes())
        (tmp_path / "file").write_bytes(write_members(header | {"format": number}, arrays))
        with pytest.raises(ValueError, match=rf"file: {version} .* wrote it: evaluate again"):
            EvaluationResult.load(tmp_path / "file")

    def test_what_is_no_result_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            EvaluationResult.load(tmp_path / "none.npz")
        (tmp_path / "text").write_text("hello")
        np.savez(tmp_path / "other.npz", a=np.ones(3))
        for name in ("text", "other.npz"):
            with pytest.raises(ValueError, match=rf"'path' .* \(got .*{name}: it is damaged, or"):
                EvaluationResult.load(tmp_path / name)


class TestDamagedFiles:
    @pytest.mark.parametrize("damage", [damage_bytes, damage_archive])
    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_damage_is_found_or_harmless(self, tmp_path, damage):
        path, result = tmp_path / "result.npz", make_rich_result()
        result.save(path)
        content, generator, num_found = path.read_bytes(), random.Random(0), 0
        for _ in range(200):
            path.write_bytes(damage(content, generator))
            try:
                loaded = EvaluationResult.load(path)
            except ValueError as error:
                num_found += 1
                assert str(path) in str(error)  # noqa: PT017 (there may be none)
                assert "it is damaged" in str(error)  # noqa: PT017
            else:
                assert_same(result, loaded)
        assert num_found > 100

    def test_a_pickle_is_never_read(self, tmp_path):
        path = tmp_path / "result.npz"
        make_rich_result().save(path)
        with np.load(path) as file:
            arrays = {**file, "ranked.rank": np.array([Unpickled()] * 3, dtype=object)}
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=r"result\.npz: it is damaged"):
            EvaluationResult.load(path)


class Unpickled:
    """Whatever is made of this by a pickle ends the process."""

    def __reduce__(self):
        return os._exit, (1,)
