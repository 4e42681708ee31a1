"""Conventions for queries that are no users, against the real libraries on the same scores.

Most scores are tied. Where a library has single precision, its own ranks are compared, and means
of them in double precision, to 1e-9.
"""

import numpy as np
import pytest
import torch
from torch_geometric.nn.kge import DistMult

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, evaluate

pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers, and of ties

NUM_ENTITIES, NUM_RELATIONS = 300, 7
RANKS_OF_PYKEEN = {"best": "optimistic", "mean": "realistic", "worst": "pessimistic"}


def draw(*size, seed=0):
    """Scores of few levels, so that many are tied."""
    return (4 * torch.randn(size, generator=torch.Generator().manual_seed(seed))).round() / 4


class Graph:
    """Skewed triples, and a model of integers, so that every score is exact and tied."""

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        sizes = torch.tensor([NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES])
        uniform = torch.rand(6000, 3, generator=generator)
        triples = (sizes * uniform ** torch.tensor([2.0, 1.0, 3.0])).long().unique(dim=0)
        triples = triples[torch.randperm(len(triples), generator=generator)]
        self.test, self.train, self.valid = triples[:500], triples[500:3000], triples[3000:]
        self.task = RankingTask.from_triples(
            self.test.t(),
            [self.train.t(), self.valid.t()],
            num_entities=NUM_ENTITIES,
            num_relations=NUM_RELATIONS,
        )
        self.model = DistMult(NUM_ENTITIES, NUM_RELATIONS, 4)
        for table in (self.model.node_emb, self.model.rel_emb):
            values = torch.randint(-1, 2, table.weight.shape, generator=generator)
            table.weight.data = values.float()

    def evaluate(self, metrics, **options):
        return evaluate(self.model, self.task, metrics, per="edge", convention="pykeen", **options)

    def by_triple(self, values):
        """Values of the rows of a result in the order of the triples, for tails and for heads."""
        query = self.task.query[self.task.truth[0]].t()
        rows = zip(*query.tolist(), self.task.truth[1].tolist(), strict=True)
        value = dict(zip(rows, values.tolist(), strict=True))
        triples = self.test.tolist()
        return {
            "tail": [value[h, r, t] for h, r, t in triples],
            "head": [value[t, r + NUM_RELATIONS, h] for h, r, t in triples],
        }


@pytest.fixture(scope="module")
def graph():
    return Graph()


@pytest.fixture(scope="module")
def of_pykeen(graph):
    """PyKEEN's evaluator, after it has ranked the test triples."""
    evaluation = pytest.importorskip("pykeen.evaluation")
    from pykeen import models
    from pykeen.triples import CoreTriplesFactory

    factory = CoreTriplesFactory(
        mapped_triples=graph.train, num_entities=NUM_ENTITIES, num_relations=NUM_RELATIONS
    )
    model = models.DistMult(triples_factory=factory, embedding_dim=4)
    tables = (*model.entity_representations, *model.relation_representations)
    for table, ours in zip(tables, (graph.model.node_emb, graph.model.rel_emb), strict=True):
        table.constrainer = table.normalizer = None
        table._embeddings.weight.data = ours.weight.data.clone()
        assert torch.equal(table(indices=None), ours.weight)
    evaluator = evaluation.RankBasedEvaluator(filtered=True, clear_on_finalize=False)
    evaluator.evaluate(
        model,
        graph.test,
        batch_size=50,
        use_tqdm=False,
        additional_filter_triples=[graph.train, graph.valid],
    )
    return evaluator


class TestPyKEEN:
    @pytest.mark.parametrize("ties", RANKS_OF_PYKEEN)
    def test_every_rank_of_every_triple(self, graph, of_pykeen, ties):
        result = graph.evaluate("mrr", ties=ties)
        assert bool((result.ranked.num_tied > 0).all())
        ranked = graph.by_triple(result.ranked.rank)
        num_candidates = graph.by_triple(result.ranked.num_candidates)
        for side in ("tail", "head"):
            theirs = np.concatenate(of_pykeen.ranks[side, RANKS_OF_PYKEEN[ties]])
            assert ranked[side] == theirs.tolist()
            assert num_candidates[side] == np.concatenate(of_pykeen.num_candidates[side]).tolist()

    def test_the_means_of_its_ranks(self, graph, of_pykeen):
        ranking = pytest.importorskip("pykeen.metrics.ranking")
        ranks, num_candidates = (
            np.concatenate([np.concatenate(found[side]) for side in sides]).astype(float)
            for found, sides in (
                (of_pykeen.ranks, [("head", "realistic"), ("tail", "realistic")]),
                (of_pykeen.num_candidates, ["head", "tail"]),
            )
        )
        kinds = {
            "mrr": ranking.InverseHarmonicMeanRank(),
            "mean_rank": ranking.ArithmeticMeanRank(),
            "adjusted_mean_rank": ranking.AdjustedArithmeticMeanRank(),
            "adjusted_mean_rank_index": ranking.AdjustedArithmeticMeanRankIndex(),
            **{f"hit_rate@{k}": ranking.HitsAtK(k=k) for k in (1, 3, 5, 10)},
        }
        theirs = {
            name: float(kind(ranks=ranks, num_candidates=num_candidates))
            for name, kind in kinds.items()
        }
        assert dict(graph.evaluate(list(kinds))) == pytest.approx(theirs, rel=1e-9, abs=1e-9)


class OneAgainstMany:
    """Positives against 200 negatives each, most of them tied."""

    positive, negative = draw(400, seed=1) + 0.5, draw(400, 200, seed=2)
    names = ("mrr", "hit_rate@1", "hit_rate@3", "hit_rate@10")

    def measure(self, convention, negative=None, **options):
        negative = self.negative if negative is None else negative
        ranked = RankedEdges.from_negatives(self.positive, negative, **options)
        return EvaluationResult(ranked, self.names, convention=convention)


def ranks_of(reciprocal_rank):
    """The ranks, which are multiples of one half, of reciprocals in single precision."""
    assert np.asarray(reciprocal_rank).dtype == np.float32
    twice = 2 / np.asarray(reciprocal_rank, dtype=float)
    assert abs(twice - twice.round()).max() < 1e-3
    return twice.round() / 2


def check_means(result, ranks):
    """Compares a result with the ranks of positives, and with means in double precision."""
    assert result.ranked.rank.tolist() == ranks.tolist()
    theirs = {
        name: float(np.mean(1 / ranks if name == "mrr" else ranks <= int(name.partition("@")[2])))
        for name in result
    }
    assert dict(result) == pytest.approx(theirs, rel=1e-9)


class TestOGB(OneAgainstMany):
    def evaluate(self, name, negative):
        evaluate_links = pytest.importorskip("ogb.linkproppred").Evaluator(name).eval
        return evaluate_links({"y_pred_pos": self.positive, "y_pred_neg": negative})

    def test_negatives_of_each_positive(self):
        theirs = self.evaluate("ogbl-citation2", self.negative)
        ours = self.measure("ogb")
        assert float((ours.ranked.num_tied > 0).float().mean()) > 0.5
        check_means(ours, ranks_of(theirs["mrr_list"].numpy()))
        for k in (1, 3, 10):
            assert ours.per_user[f"hit_rate@{k}"].tolist() == theirs[f"hits@{k}_list"].tolist()

    @pytest.mark.parametrize("num_negatives", [30, 50, 5000])
    @pytest.mark.parametrize(("name", "k"), [("ogbl-collab", 50), ("ogbl-ppa", 100)])
    def test_negatives_that_all_share(self, name, k, num_negatives):
        negative = draw(num_negatives, seed=3)
        ranked = RankedEdges.from_negatives(self.positive, negative, ties="worst")
        ours = EvaluationResult(ranked, f"hit_rate@{k}", convention="ogb")[f"hit_rate@{k}"]
        assert ours == pytest.approx(self.evaluate(name, negative)[f"hits@{k}"], rel=1e-9)
        # Among fewer negatives, everything is a hit, which it counts without a look at scores.
        assert (ours == 1) == (num_negatives < k)
        by_best = ranked.with_ties("best").is_hit(k).double().mean()
        assert by_best > ours or num_negatives < 5000

    def test_the_roc_auc_of_all_pairs(self):
        negative = draw(700, seed=3)
        ranked = RankedEdges.from_negatives(self.positive, negative)
        ours = EvaluationResult(ranked, "roc_auc", convention="ogb")["roc_auc"]
        theirs = self.evaluate("ogbl-vessel", negative)["rocauc"]
        assert ours == pytest.approx(theirs, rel=1e-9)


class TestTGB(OneAgainstMany):
    def evaluate(self, positive, negative, k=10):
        peer = pytest.importorskip("tgb.linkproppred.evaluate")
        given = {"y_pred_pos": positive, "y_pred_neg": negative, "eval_metric": ["mrr", "hits@"]}
        return peer.Evaluator("tgbl-wiki", k_value=k).eval(given)

    def test_negatives_of_each_positive(self):
        ours = self.measure("tgb")
        for k in (1, 3, 10):
            # One by one, as it returns nothing but means.
            theirs = [
                self.evaluate(*pair, k)
                for pair in zip(self.positive.split(1), self.negative.split(1), strict=True)
            ]
            hits = ours.per_user[f"hit_rate@{k}"]
            assert hits.tolist() == [values[f"hits@{k}"] for values in theirs]
        check_means(ours, ranks_of([values["mrr"] for values in theirs]))


def test_lists_of_relbench():
    """Lists of ten items, of which most users like some."""
    metrics = pytest.importorskip("relbench.metrics")
    generator = torch.Generator().manual_seed(0)
    lists = torch.rand(500, 60, generator=generator).argsort(dim=1)[:, :10]
    is_truth = torch.rand(500, 60, generator=generator) < 0.2
    is_truth[::7] = False
    is_truth[1::7, 2:] = False
    hits = is_truth.gather(1, lists).numpy()
    theirs = float(metrics.map(hits, is_truth.sum(dim=1).numpy()))
    task = RankingTask(is_truth.nonzero().t(), num_users=500, num_items=60)
    ours = evaluate(lists, task, "map@10", convention="relbench")["map@10"]
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.fixture
def mind():
    return pytest.importorskip("recommenders.models.deeprec.deeprec_utils")


class TestMIND:
    names = ("roc_auc", "mrr", "ndcg@5", "ndcg@10", "hit_rate@5")

    def impressions(self, levels=None):
        """The scores and clicks of impressions of 3 to 60 items, some of them clicked."""
        generator = np.random.default_rng(0)
        case = []
        for size in generator.integers(3, 61, 500):
            scores = generator.permutation(size) % (levels or size)
            clicks = generator.random(size) < 0.15
            clicks[:2] = True, False
            case.append((scores.astype(np.float32), clicks[generator.permutation(size)]))
        return case

    def ranked(self, case):
        scores, clicks = (np.concatenate(column) for column in zip(*case, strict=True))
        impression = np.repeat(np.arange(len(case)), [len(own) for own, _ in case])
        return RankedEdges.from_pairs(scores, clicks, impression)

    def theirs(self, mind, case):
        functions = {
            "roc_auc": mind.roc_auc_score,
            "mrr": mind.mrr_score,
            "ndcg@5": lambda *given: mind.ndcg_score(*given, k=5),
            "ndcg@10": lambda *given: mind.ndcg_score(*given, k=10),
            "hit_rate@5": lambda *given: mind.hit_score(*given, k=5),
        }
        return {
            name: [float(function(clicks.astype(int), scores)) for scores, clicks in case]
            for name, function in functions.items()
        }

    def test_every_impression(self, mind):
        case = self.impressions()
        ours = EvaluationResult(self.ranked(case), self.names, convention="mind")
        for name, values in self.theirs(mind, case).items():
            assert ours.per_user[name].tolist() == pytest.approx(values, rel=1e-9, abs=1e-9)
            assert ours[name] == pytest.approx(np.mean(values), rel=1e-9)

    def test_any_order_of_equal_scores_is_within_the_range_that_is_told(self, mind):
        case = self.impressions(levels=6)
        ours = EvaluationResult(self.ranked(case), self.names, convention="mind")
        theirs = self.theirs(mind, case)
        assert ours.per_user["roc_auc"].tolist() == pytest.approx(theirs["roc_auc"], rel=1e-9)
        for name in self.names[1:]:
            low, high = ours.tie_range(name)
            assert low < np.mean(theirs[name]) < high
