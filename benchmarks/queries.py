"""Times rankings for queries that are no users, side by side with the evaluators of others.

    python benchmarks/queries.py

The triples have the sizes and the skew of FB15k-237, and the models are PyG's, with random weights.
PyKEEN ranks by the same weights in the same process, in the filtered setting and both directions.
The loop of PyG's models ranks tails alone, in the raw setting, one triple at a time. Both are so
slow that they are given a few triples; ours is also timed on all. TGB's evaluator is given the
scores of positives with negatives of their own. Before a time is printed, ranks have to agree.
Peers that are not installed are left out.
"""

import argparse
import importlib.util
import logging
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from timing import in_turn, machine, medians
from torch import Tensor
from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel, RotatE, TransE
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, evaluate

NUM_ENTITIES, NUM_RELATIONS = 14_541, 237
NUM_TRAIN, NUM_VALID = 272_115, 17_535
METRICS = ("mrr", "hit_rate@1", "hit_rate@10", "mean_rank", "adjusted_mean_rank_index")

#: How many triples PyKEEN scores at once.
BATCH_SIZE = 32

#: A score in single precision may be rounded to either side of another one, so that other kernels
#: have other ranks. At least this share of ranks has to be the same.
SHARE_OF_EQUAL = 0.95


class Triples(NamedTuple):
    """The parts of a split, each of shape `[3, num_triples]`."""

    train: Tensor
    valid: Tensor
    test: Tensor

    def first(self, num_test: int) -> "Triples":
        return self._replace(test=self.test[:, :num_test])


def random_triples(num_test: int) -> Triples:
    """Draws triples whose relations have domains and ranges of very different sizes."""
    generator = torch.Generator().manual_seed(0)
    num_drawn = 650_000 + 2 * num_test

    def draw(size: int | Tensor, exponent: float) -> Tensor:
        uniform = torch.rand(num_drawn, generator=generator, dtype=torch.double)
        return (size * uniform**exponent).long()

    def parts_of_entities(smallest: int, largest: int) -> tuple[Tensor, Tensor]:
        share = torch.rand(NUM_RELATIONS, generator=generator) ** 3
        start = torch.randint(NUM_ENTITIES, (NUM_RELATIONS,), generator=generator)
        return start, (smallest + largest * share).long()

    relation = draw(NUM_RELATIONS, 2.2)
    (head_start, num_heads), (tail_start, num_tails) = (
        parts_of_entities(60, 4000),
        parts_of_entities(15, 3000),
    )
    head = (head_start[relation] + draw(num_heads[relation], 1.5)) % NUM_ENTITIES
    tail = (tail_start[relation] + draw(num_tails[relation], 2.5)) % NUM_ENTITIES
    triples = torch.stack([head, relation, tail]).unique(dim=1)
    triples = triples[:, torch.randperm(triples.size(1), generator=generator)]
    return Triples(
        *triples.split([NUM_TRAIN, NUM_VALID, triples.size(1) - NUM_TRAIN - NUM_VALID], 1)
    )


def models(dim: int) -> dict[str, KGEModel]:
    """Returns PyG's models, with as many numbers for each entity in all of them."""
    torch.manual_seed(0)
    sizes = NUM_ENTITIES, NUM_RELATIONS
    return {
        "DistMult": DistMult(*sizes, dim),
        "ComplEx": ComplEx(*sizes, dim // 2),
        "RotatE": RotatE(*sizes, dim // 2),
        "TransE, L2": TransE(*sizes, dim, p_norm=2.0),
        "TransE, L1": TransE(*sizes, dim, p_norm=1.0),
    }


def ours(model: KGEModel, data: Triples) -> EvaluationResult:
    task = RankingTask.from_triples(
        data.test,
        [data.train, data.valid],
        num_entities=NUM_ENTITIES,
        num_relations=NUM_RELATIONS,
    )
    result = evaluate(model, task, METRICS, per="edge", convention="pykeen")
    result.to_dict()
    return result


def loop_of_pyg(model: KGEModel, data: Triples) -> tuple[float, float, float]:
    means: tuple[float, float, float] = model.test(*data.test, batch_size=NUM_ENTITIES, log=False)
    return means


def pykeen_evaluator(model: KGEModel, data: Triples) -> Callable[[], object]:
    """Returns PyKEEN's evaluator on the weights of a model, which returns all ranks."""
    from pykeen import models as theirs
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.triples import CoreTriplesFactory

    train, valid, test = (triples.t().contiguous() for triples in data)
    factory = CoreTriplesFactory(train, num_entities=NUM_ENTITIES, num_relations=NUM_RELATIONS)
    options = {"scoring_fct_norm": int(model.p_norm)} if isinstance(model, TransE) else {}
    kind = getattr(theirs, type(model).__name__)
    peer = kind(triples_factory=factory, embedding_dim=model.hidden_channels, **options)
    tables = (*peer.entity_representations, *peer.relation_representations)
    for table, weight in zip(tables, weights_for_pykeen(model), strict=True):
        table.constrainer = None
        table._embeddings.weight.data = weight
    peer.eval()

    def run() -> object:
        evaluator = RankBasedEvaluator(filtered=True, clear_on_finalize=False)
        evaluator.evaluate(
            peer,
            test,
            batch_size=BATCH_SIZE,
            use_tqdm=False,
            additional_filter_triples=[train, valid],
        )
        return evaluator.ranks

    return run


def weights_for_pykeen(model: KGEModel) -> tuple[Tensor, Tensor]:
    """Returns the embeddings of entities and relations; complex ones as pairs of numbers."""
    entity, relation = model.node_emb.weight.detach(), model.rel_emb.weight.detach()
    if isinstance(model, DistMult):
        return entity, relation
    if isinstance(model, TransE):
        return F.normalize(entity, p=model.p_norm, dim=1), relation
    entities = torch.stack([entity, model.node_emb_im.weight.detach()], dim=2).flatten(1)
    if isinstance(model, RotatE):
        relations = torch.stack([relation.cos(), relation.sin()], dim=2)
    else:
        relations = torch.stack([relation, model.rel_emb_im.weight.detach()], dim=2)
    return entities, relations.flatten(1)


def check_ranks(name: str, model: KGEModel, data: Triples) -> float:
    """Returns the share of ranks that PyKEEN has, too."""
    result = ours(model, data)
    task = result.task
    query = task.query[task.truth[0]]
    rows = zip(*query.t().tolist(), task.truth[1].tolist(), strict=True)
    rank = dict(zip(rows, result.ranked.rank.tolist(), strict=True))
    triples = data.test.t().tolist()
    mine = [rank[h, r, t] for h, r, t in triples]
    mine += [rank[t, r + NUM_RELATIONS, h] for h, r, t in triples]
    ranks = pykeen_evaluator(model, data)()
    theirs = np.concatenate([*ranks["tail", "realistic"], *ranks["head", "realistic"]])
    share = float((theirs == mine).mean())
    if share < SHARE_OF_EQUAL:
        raise RuntimeError(f"{name} has other ranks in PyKEEN: {share:.1%} are the same")
    return share


def time_triples(
    name: str, model: KGEModel, data: Triples, num_few: int, num_of_loop: int, num_runs: int
) -> list[str]:
    """Returns a row: times for each rank, and how many times as long others take."""
    few, fewer = data.first(num_few), data.first(num_of_loop)
    functions: dict[str, Callable[[], object]] = {
        "all": lambda: ours(model, data),
        "few": lambda: ours(model, few),
        "loop": lambda: loop_of_pyg(model, fewer),
    }
    num_ranks = {"all": 2 * data.test.size(1), "few": 2 * num_few, "loop": num_of_loop}
    share = "-"
    if importlib.util.find_spec("pykeen"):
        share = f"{check_ranks(name, model, data.first(BATCH_SIZE)):.1%}"
        functions["pykeen"], num_ranks["pykeen"] = pykeen_evaluator(model, few), 2 * num_few
    ours(model, few)
    times = in_turn(functions, num_runs)
    each = {key: 1000 * median / num_ranks[key] for key, median in medians(times).items()}
    row = [name, f"{each['all'] * num_ranks['all'] / 1000:.1f} s"]
    row += [f"{each[key]:.2f} ms" if key in each else "-" for key in ("all", "few", "pykeen")]
    for key in ("few", "all"):
        row.append(f"{each['pykeen'] / each[key]:.0f}" if "pykeen" in each else "-")
    row += [f"{each['loop']:.2f} ms", f"{each['loop'] / each['all']:.0f}", share]
    return [*row, "/".join(str(len(times[key])) for key in functions)]


def time_negatives(num_positives: int, num_negatives: int, num_runs: int) -> list[list[str]]:
    """Returns rows: the seconds, and their ratio to the first."""
    generator = torch.Generator().manual_seed(0)
    # Scores of a few levels, many of which are tied.
    positive = (32 * torch.randn(num_positives, generator=generator)).round() / 32 + 1
    negative = (32 * torch.randn(num_positives, num_negatives, generator=generator)).round() / 32

    def from_negatives() -> EvaluationResult:
        ranked = RankedEdges.from_negatives(positive, negative)
        return EvaluationResult(ranked, ["mrr", "hit_rate@10"], convention="tgb")

    functions: dict[str, Callable[[], object]] = {"`RankedEdges.from_negatives`": from_negatives}
    if importlib.util.find_spec("tgb"):
        from tgb.linkproppred.evaluate import Evaluator

        given = {"y_pred_pos": positive, "y_pred_neg": negative, "eval_metric": ["hits@", "mrr"]}
        evaluator = Evaluator("tgbl-wiki")
        theirs, result = evaluator.eval(given), from_negatives()
        for name, value in (("mrr", theirs["mrr"]), ("hit_rate@10", theirs["hits@10"])):
            if abs(result[name] / float(value) - 1) > 1e-6:
                raise RuntimeError(f"TGB has another {name}: {value}")
        functions["TGB's `Evaluator`"] = lambda: evaluator.eval(given)
    from_negatives()
    times = in_turn(functions, num_runs)
    median = medians(times)
    first = next(iter(median.values()))
    return [
        [name, f"{value:.2f} s", f"{value / first:.2f}", str(len(times[name]))]
        for name, value in median.items()
    ]


def print_table(head: list[str], rows: list[list[str]]) -> None:
    aligned = ["---", *(["---:"] * (len(head) - 1))]
    print("\n".join(f"| {' | '.join(row)} |" for row in [head, aligned, *rows]), end="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--test", type=int, default=20_000, help="test triples")
    parser.add_argument("--few", type=int, default=128, help="test triples of PyKEEN")
    parser.add_argument("--loop", type=int, default=10, help="test triples of PyG's loop")
    parser.add_argument("--dim", type=int, default=200, help="numbers for each entity")
    parser.add_argument("--positives", type=int, default=20_000)
    parser.add_argument("--negatives", type=int, default=999)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    # PyKEEN says much.
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    data = random_triples(args.test).first(args.test)
    rows = [
        time_triples(name, model, data, args.few, args.loop, args.runs)
        for name, model in tqdm(models(args.dim).items(), unit=" models")
    ]
    print(machine())
    head = ["model", f"{args.test:,} triples", "a rank", f"a rank of {args.few} triples"]
    head += [f"PyKEEN, a rank of {args.few} triples", "ratio, the same triples"]
    head += ["ratio, all triples", f"PyG's loop, a rank of {args.loop} tails", "ratio, all triples"]
    print_table([*head, "equal ranks", "runs"], rows)
    rows = time_negatives(args.positives, args.negatives, args.runs)
    print_table([f"{args.positives:,} x {args.negatives:,}", "median", "ratio", "runs"], rows)


if __name__ == "__main__":
    main()
