"""The plain file is what `evaluate` computes: for every user, to the last bit."""

import re
import warnings

import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate, plain
from tests.support.cases.recommender_forms import PlainModel, RecordingModel
from tests.test_lines import ROOT, lines_of_code

#: The cut-offs in turn: below the largest degree, and above the number of items.
KS = ((1, 3, 10), (2,), (5, 90))

#: Two scores that differ by less than this part of the largest may be rounded to the same.
CLOSE = 1e-5


class World:
    """A random graph: some truth is also seen, some users have no truth, and some more than k."""

    def __init__(self, seed):
        draw = torch.Generator().manual_seed(seed)
        self.num_users, self.num_items = torch.randint(8, 50, (2,), generator=draw).tolist()
        self.off = torch.tensor([[0], [self.num_users]])
        share = torch.rand(self.num_users, self.num_items, generator=draw)
        taste = torch.rand(self.num_users, 1, generator=draw).pow(2)
        self.seen = (share < 0.3 * taste).nonzero().t() + self.off
        self.truth = ((share > 0.28 * taste) & (share < taste)).nonzero().t() + self.off
        self.edge_index = torch.cat([self.seen, self.seen.flip([0])], dim=1)
        self.scores = torch.rand(self.num_users, self.num_items, generator=draw)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.lightgcn = LightGCN(self.num_users + self.num_items, 8, 2)

    def models(self, device):
        """Models with a `recommend`, and the scores by which each of them ranks."""
        scores = self.scores.to(device)
        yield RecordingModel(scores, self.num_users), scores
        yield PlainModel(scores, self.num_users), scores
        lightgcn = self.lightgcn.to(device)
        with torch.no_grad():
            nodes = lightgcn.get_embedding(self.edge_index.to(device)).double()
        users, items = nodes.split([self.num_users, self.num_items])
        yield lightgcn, users @ items.t()

    def task(self, exclude_seen, device):
        return RankingTask(
            self.truth - self.off,
            num_users=self.num_users,
            num_items=self.num_items,
            seen=self.seen - self.off,
            exclude_seen=exclude_seen,
        ).to(device)


def has_no_ties(scores):
    """Which users have no two scores that are close to each other."""
    gaps = scores.sort(dim=1).values.diff(dim=1)
    return (gaps > CLOSE * scores.abs().max()).all(dim=1)


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_it_is_evaluate_for_every_user_to_the_last_bit(exclude_seen, device):
    num_compared = 0
    for seed in range(6):
        world = World(seed)
        edge_index = world.edge_index.to(device)
        counts = world.num_users, world.num_items
        for model, scores in world.models(device):
            options = {"ks": KS[seed % 3], "exclude_seen": exclude_seen, "batch_size": 17}
            by_hand = plain.evaluate(model, world.truth.to(device), edge_index, *counts, **options)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*are also in 'seen'")
                task = world.task(exclude_seen, device)
                result = evaluate(model, task, list(by_hand), edge_index=edge_index)
            is_clear = has_no_ties(scores)
            num_compared += int(is_clear.sum())
            for name, value in by_hand.items():
                assert value.device == edge_index.device
                expected = result.per_user[name]
                # A card adds up the parts of an NDCG in another order.
                rounding = 1e-15 if device.type == "cuda" and name.startswith("ndcg") else 0.0
                torch.testing.assert_close(
                    value[is_clear], expected[is_clear], rtol=rounding, atol=0.0, equal_nan=True
                )
    assert num_compared > 200


def test_it_takes_edges_in_either_direction_and_more_than_once():
    world = World(0)
    model, _ = next(world.models("cpu"))
    counts = world.num_users, world.num_items
    expected = plain.evaluate(model, world.truth, world.edge_index, *counts)
    twice = torch.cat([world.truth, world.truth.flip([0])], dim=1)
    for truth, edges in ((world.truth.flip([0]), world.seen), (twice, world.seen.flip([0]))):
        for name, value in plain.evaluate(model, truth, edges, *counts).items():
            torch.testing.assert_close(value, expected[name], rtol=0, atol=0, equal_nan=True)


def test_it_is_short_and_stands_on_torch_and_pyg_alone():
    text = (ROOT / "pyg_recmetrics" / "plain.py").read_text()
    assert lines_of_code(text) <= 45
    assert set(re.findall(r"^(?:from|import) (\S+)", text, flags=re.MULTILINE)) == {
        "typing",
        "torch",
        "torch_geometric.utils",
    }
