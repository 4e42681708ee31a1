"""Long rankings that end before their time: they go on, and nobody could tell."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random

import pytest
import torch
import torch.distributed as dist
from torch_geometric.nn import LightGCN

from pyg_recmetrics import Evaluator, PairScorer, RankingTask, evaluate, rank
from pyg_recmetrics.ranking import finished
from pyg_recmetrics.ranking.finished import Tables
from pyg_recmetrics.ranking.resume_folder import ResumeFolder
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.machines import kills
from tests.support.machines.interruptions import Interruptions, assert_same, in_pieces

ROOT = Path(__file__).resolve().parents[2]

TASK = random_task(40, 30, truth_share=0.1, seen_share=0.2, seed=1)
SCORES = random_scores(TASK, 2)
EMBEDDINGS = SCORES, torch.eye(30)
NUM_RANKED = int((TASK.degree > 0).sum())


def interrupted(num_chunks, seconds=0, **options):
    """Ranks some users, five at once, and returns who they were."""
    with Interruptions(num_chunks, seconds) as ranked:
        rank(**{"recommender": EMBEDDINGS, "data": TASK, "k": 5, "batch_size": 5} | options)
    return torch.cat(ranked.users) if ranked.users else torch.empty(0)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What became of rankings whose processes were killed, and the folder of their results."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("needs torch.distributed's gloo")
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, "-m", kills.__name__, folder],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return folder, {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", kills.rankings())
def test_processes_are_killed_and_go_on(name, killed):
    folder, became = killed
    codes, num_ranked = became[name]
    # Those who are killed after some time may have been faster.
    assert sum(code == -9 for group in codes for code in group) >= 2
    assert codes[-1] == [0]
    assert_same(torch.load(folder / name / "result.pt"), kills.seen(kills.rankings()[name]))
    if name == "counts":  # each user in one pass: nobody who was written is ranked again
        assert num_ranked == int((kills.rankings()[name].args[1].degree > 0).sum())


@pytest.mark.parametrize("name", kills.rankings())
def test_the_last_to_rank_may_be_another_number_of_processes(name, killed):
    """The folder is that of a finished ranking, whoever reads it."""
    folder, _ = killed
    with Interruptions(0) as nobody:
        found = kills.seen(kills.rankings()[name], resume=folder / name / "resume")
    assert nobody.users == []
    assert_same(found, kills.seen(kills.rankings()[name]))


@pytest.mark.parametrize("name", kills.rankings())
@pytest.mark.parametrize("seed", range(3))
def test_one_process_goes_on(name, seed, tmp_path):
    ranking = kills.rankings()[name]
    found, num_interrupted = in_pieces(partial(kills.seen, ranking, resume=tmp_path), Random(seed))
    assert_same(found, kills.seen(ranking))
    assert num_interrupted > 0


def test_a_finished_folder_ranks_nobody(tmp_path):
    wanted = rank(EMBEDDINGS, TASK, k=5, keep_items=True)
    interrupted(None, resume=tmp_path, keep_items=True)
    with Interruptions(0) as nobody:
        assert_same(rank(EMBEDDINGS, TASK, k=5, keep_items=True, resume=str(tmp_path)), wanted)
    assert nobody.users == []


def test_nobody_is_ranked_twice(tmp_path):
    draw = Random(0)
    users = [interrupted(draw.randint(0, 2), resume=tmp_path) for _ in range(30)]
    assert torch.equal(torch.cat(users).sort().values, TASK.degree.nonzero().squeeze(1))


def test_files_are_written_now_and_then_and_at_the_end(tmp_path, monkeypatch):
    for chunks_per_file in (1, 2, 1000):
        folder = tmp_path / str(chunks_per_file)
        ticks = iter(range(1000))
        monkeypatch.setattr(finished.time, "monotonic", lambda ticks=ticks: float(next(ticks)))
        interrupted(None, chunks_per_file, resume=folder)
        num_files = len(list(folder.glob("users-*")))
        assert num_files == {1: 8, 2: 4, 1000: 1}[chunks_per_file]


def test_who_is_not_settled_is_not_kept(tmp_path):
    """All scores are equal, so that the first algorithm settles nobody."""
    options = {"recommender": SCORES * 0, "algorithm": "dense", "resume": tmp_path}
    num_chunks = -(-NUM_RANKED // 5)
    assert interrupted(num_chunks, **options).numel() == NUM_RANKED
    assert list(tmp_path.glob("users-*")) == []
    assert interrupted(num_chunks + 2, **options).numel() == NUM_RANKED + 10
    assert interrupted(None, **options).numel() == 2 * (NUM_RANKED - 10)
    wanted = rank(SCORES * 0, TASK, k=5, algorithm="dense")
    assert_same(rank(SCORES * 0, TASK, k=5, algorithm="dense", resume=tmp_path), wanted)


@pytest.mark.parametrize("ties", ["index", "mean", "random"])
@pytest.mark.parametrize("algorithm", ["auto", "dense", "search", "direct", "count"])
def test_other_ties_and_algorithms_go_on(ties, algorithm, tmp_path):
    scores = SCORES.mul(8).floor()
    tables = scores, torch.eye(30)
    interrupted(3, recommender=tables, resume=tmp_path)
    again = rank(tables, TASK, k=5, ties=ties, seed=3, algorithm=algorithm, resume=tmp_path)
    assert_same(again, rank(tables, TASK, k=5, ties=ties, seed=3))


def test_another_device_goes_on(tmp_path, device):
    interrupted(3, resume=tmp_path)
    again = rank(tuple(x.to(device) for x in EMBEDDINGS), TASK.to(device), k=5, resume=tmp_path)
    assert again.rank.device.type == torch.device(device).type
    assert_same(again.to("cpu"), rank(EMBEDDINGS, TASK, k=5))


class Model(torch.nn.Module):
    """Ranks by a table that is no part of its state."""

    def __init__(self, scores, version=0.0):
        super().__init__()
        self.scores = scores
        self.register_buffer("version", torch.tensor(version))

    def recommend(self, edge_index, src_index, dst_index, k):
        return dst_index[self.scores[src_index].topk(k).indices]


class Ranker:
    """Ranks by a table, and has no state that anybody knows."""

    def __init__(self, scores):
        self.scores = scores

    def recommend(self, users, k):
        return self.scores[users].topk(k).indices


def changed(table):
    """Another table, by a bit."""
    table = table.clone()
    table[3, 4] = table[3, 4].nextafter(torch.tensor(2.0))
    return table


def gcn(weight):
    model = LightGCN(70, embedding_dim=2, num_layers=1)
    torch.nn.init.constant_(model.embedding.weight, weight)
    return model


EDGES = torch.tensor([[0, 41, 1, 42], [41, 0, 42, 1]])
RECOMMENDERS = {
    "embeddings": (EMBEDDINGS, (changed(SCORES), EMBEDDINGS[1])),
    "biases": ((*EMBEDDINGS, torch.zeros(30)), (*EMBEDDINGS, torch.ones(30))),
    "kind": (EMBEDDINGS, SCORES),
    "scores": (SCORES, SCORES + 0.1),
    "a function": (lambda users: SCORES[users], lambda users: SCORES[users] + 0.1),
    "pairs": (
        PairScorer(lambda user, item: SCORES[user, item]),
        PairScorer(lambda user, item: SCORES[user, item] + 0.1),
    ),
    "popularity": (torch.arange(30.0), torch.arange(30.0).flip(0)),
    "lists": (SCORES.argsort()[:, :20], SCORES.argsort(descending=True)[:, :20]),
    "a model": (Model(SCORES), Model(SCORES, version=1.0)),
    "a LightGCN": (gcn(1.0), gcn(2.0)),
    "an object": (Ranker(SCORES), Ranker(-SCORES)),
}


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_another_recommender_is_refused(name, tmp_path):
    one, other = RECOMMENDERS[name]
    options = {"k": 5, "edge_index": EDGES, "resume": tmp_path}
    wanted = rank(one, TASK, **options)
    with pytest.raises(ValueError, match=r"'resume' needs .*, of another recommender\)"):
        rank(other, TASK, **options)
    assert_same(rank(one, TASK, **options), wanted)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("model", [Model(SCORES), gcn(1.0)])
def test_so_is_a_model_that_propagates_over_other_edges(model, tmp_path):
    rank(model, TASK, k=5, edge_index=EDGES, resume=tmp_path)
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0])
    sparse = torch.sparse_coo_tensor(EDGES, torch.full((4,), 2.0), (70, 70)).to_sparse_csr()
    for changes in (
        {"edge_index": EDGES[:, :2]},
        *([{"edge_index": EDGES, "edge_weight": weight}] if isinstance(model, LightGCN) else []),
        {"edge_index": sparse},
    ):
        with pytest.raises(ValueError, match="of another recommender"):
            rank(model, TASK, k=5, resume=tmp_path, **changes)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"k": 6}, "depth"),
        ({"k": None, "full": True}, "depth"),
        ({"keep_items": True}, "number of items to keep"),
        ({"data": TASK.select_users(torch.arange(39))}, "task"),
        ({"data": TASK.to_dict() | {"exclude_seen": False}}, "task"),
    ],
)
def test_so_is_anything_else(changes, what, tmp_path):
    options = {"recommender": EMBEDDINGS, "data": TASK, "k": 5, "resume": tmp_path}
    rank(**options)
    if isinstance(changes.get("data"), dict):
        changes = {"data": RankingTask.from_dict(changes["data"])}
    with pytest.raises(ValueError, match=rf", of another {what}\)"):
        rank(**options | changes)


@pytest.mark.parametrize("damage", ["cut off", "flipped", "of another ranking"])
def test_a_damaged_file_is_ranked_again(damage, tmp_path):
    interrupted(3, resume=tmp_path)
    file = sorted(tmp_path.glob("users-*"))[1]
    content = bytearray(file.read_bytes())
    match damage:
        case "cut off":
            del content[len(content) // 2 :]
        case "flipped":
            content[len(content) // 2] ^= 1
        case "of another ranking":
            rank(EMBEDDINGS, TASK, k=6, resume=tmp_path / "other")
            (other,) = (tmp_path / "other").glob("users-*")
            content = other.read_bytes()
    file.write_bytes(content)
    with pytest.warns(UserWarning, match=rf"files that are damaged.* again: {file.name}"):
        again = rank(EMBEDDINGS, TASK, k=5, resume=tmp_path)
    assert_same(again, rank(EMBEDDINGS, TASK, k=5))
    assert file.exists()


def test_so_is_a_file_of_others(tmp_path, monkeypatch):
    parts = [(tmp_path / "strange.npz", {"users": torch.tensor([99])})]
    monkeypatch.setattr(ResumeFolder, "read", lambda *_: parts)
    with pytest.warns(UserWarning, match=r"ranked again: strange\.npz"):
        assert_same(rank(EMBEDDINGS, TASK, k=5, resume=tmp_path), rank(EMBEDDINGS, TASK, k=5))


def test_a_part_is_about_users_of_the_task():
    task = random_task(9, 30, truth_share=0.1, seen_share=0, users=torch.arange(8))
    edges, users = torch.zeros_like(task.truth[0]), torch.zeros(9, 3).long()
    tables = Tables(task, {"rank": edges}, {"lists": users}, torch.tensor([0, 5]))
    part = tables.of(torch.tensor([2, 5]))
    assert tables.fit(part)
    for changes in (
        {"users": torch.tensor([2, 8])},
        {"users": torch.tensor([2, -1])},
        {"users": torch.tensor([[2, 5]])},
        {"users": torch.tensor([2])},
        {"rank": part["rank"][1:]},
        {"lists": part["lists"][:, 1:]},
        {"noted": torch.tensor(0)},
        {"more": torch.tensor(0)},
    ):
        assert not tables.fit({**part, **changes}), changes
    for name in part:
        assert not tables.fit({other: part[other] for other in part if other != name}), name
    known = {**part, "rank": part["rank"] + 7, "lists": part["lists"] + 1, "noted": part["users"]}
    tables.put(known)
    assert tables.noted.tolist() == [2, 5]
    assert users.sum(dim=1).tolist() == [0, 0, 3, 0, 0, 3, 0, 0, 0]
    assert torch.equal(edges, 7 * torch.isin(task.truth[0], part["users"]).long())


def test_users_are_finished_if_all_processes_know_it(tmp_path, monkeypatch):
    """As where one of them does not see a file yet."""
    interrupted(3, resume=tmp_path)

    def unknown_to_others(values):
        values[: TASK.num_users // 2] = 0

    monkeypatch.setattr(finished.processes, "take_smallest", unknown_to_others)
    users = interrupted(None, resume=tmp_path)
    assert set(TASK.degree[:20].nonzero().squeeze(1).tolist()) <= set(users.tolist())
    assert users.numel() < NUM_RANKED


def test_what_is_wrong_is_not_kept(tmp_path):
    """Scores that nothing can be ranked by are an error again."""
    scores = SCORES.clone()
    last = int(TASK.degree.nonzero()[-1])
    scores[last, 3:5] = torch.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="finite"), Interruptions():
            rank(scores, TASK, k=5, batch_size=2, resume=tmp_path)
    lists = SCORES.argsort()[:, :20].clone()
    lists[last] = 99
    for _ in range(2):
        with pytest.raises(ValueError, match="item ids in"), Interruptions():
            rank(lists, TASK, k=5, batch_size=2, resume=tmp_path / "lists")


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": ["ndcg@5", "coverage@3"], "keep_items": 7},
        {"metrics": ["roc_auc", "coverage@3", "r_precision"]},
        {"metrics": ["ndcg@5"], "per": "edge"},
        {"metrics": ["ndcg@5"], "ties": "mean", "convention": "recometrics"},
        {"metrics": ["ndcg@5", "recall@5"], "margin": 0.2, "max_users": 20},
    ],
)
def test_an_evaluation_goes_on(options, tmp_path):
    draw = Random(0)
    wanted = evaluate(SCORES, TASK, **options)
    found, _ = in_pieces(
        lambda batch_size: evaluate(
            SCORES, TASK, **options, batch_size=batch_size, resume=tmp_path
        ),
        draw,
    )
    with Interruptions(0):
        again = Evaluator(TASK, **options)(SCORES, resume=tmp_path)
    for result in (found, again):
        assert str(result) == str(wanted)
        assert_same(result.ranked, wanted.ranked)
        assert_same(dict(result.per_user), dict(wanted.per_user))


def test_a_margin_goes_on_to_a_tighter_one(tmp_path):
    task = random_task(2000, 30, truth_share=0.05, seen_share=0, seed=4)
    scores = random_scores(task, 5)
    for margin in (0.05, 0.02):
        with Interruptions() as ranked:
            result = evaluate(scores, task, ["ndcg@5"], margin=margin, resume=tmp_path)
        assert result.sampling == evaluate(scores, task, ["ndcg@5"], margin=margin).sampling
    assert 0 < torch.cat(ranked.users).numel() < result.sampling.num_ranked


@pytest.mark.parametrize("resume", [3, True, ["folder"], b"folder"])
def test_a_folder_is_given_by_its_path(resume):
    for function in (rank, evaluate):
        with pytest.raises(TypeError, match=r"'resume' needs to be .*the path of a folder"):
            function(EMBEDDINGS, TASK, resume=resume)
