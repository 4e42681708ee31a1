"""Times the doors through which ranks come that something else computed.

    python benchmarks/doors.py [--runs 5]

Scored pairs stand beside `torch.sort` of as many 64-bit numbers in random order, and files of a run
and its qrels beside pytrec_eval, which reads them and computes one metric. Everything runs in one
process, several times in turn. `MB` is the resident memory at the peak of the first call, above
what there was before it. Before the benchmark prints a time, it checks that values agree.
"""

import argparse
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytrec_eval
import torch
from timing import extra_memory, in_turn, machine, medians
from torch import Tensor

from pyg_recmetrics import RankedEdges, metrics

NUM_QUERIES, NUM_PAIRS = 20_000, 1_000
NUM_USERS, NUM_LINES, NUM_JUDGED = 1_000, 1_000, 50


def one_against_many(scores: Tensor, pair: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns scored pairs in the order given: the first of every query is relevant."""
    query, item = pair // NUM_PAIRS, pair % NUM_PAIRS
    return scores.view(-1)[pair], item == 0, query


def doors_of_pairs() -> dict[str, Callable[[], object]]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(NUM_QUERIES, NUM_PAIRS, generator=generator)
    num_above = (scores > scores[:, :1]).sum(dim=1)
    number = torch.arange(scores.numel())
    orders = {
        "query by query": number,
        "item by item": number.view(NUM_QUERIES, NUM_PAIRS).t().reshape(-1),
        "in random order": torch.randperm(number.numel(), generator=generator),
    }
    doors: dict[str, Callable[[], object]] = {
        "torch.sort of 20,000,000 numbers": orders["in random order"].sort
    }
    for name, order in orders.items():
        pairs = one_against_many(scores, order)
        found = RankedEdges.from_pairs(*pairs).num_above
        if found is None or not torch.equal(found, num_above):
            raise RuntimeError(f"from_pairs, {name}, differs from counting")
        doors[f"`from_pairs`, 20,000 x 1,000, {name}"] = partial(RankedEdges.from_pairs, *pairs)
    return doors


def write_files(folder: Path) -> None:
    generator = random.Random(0)
    with (folder / "run").open("w") as run, (folder / "qrels").open("w") as qrels:
        for user in range(NUM_USERS):
            items = generator.sample(range(100_000), NUM_LINES)
            run.writelines(
                f"q{user} Q0 doc-{item} {rank} {NUM_LINES - rank + generator.random():.6f} tag\n"
                for rank, item in enumerate(items, start=1)
            )
            qrels.writelines(
                f"q{user} 0 doc-{item} {generator.randrange(2)}\n" for item in items[:NUM_JUDGED]
            )


def recall_of_pytrec_eval(folder: Path) -> float:
    with (folder / "run").open() as run, (folder / "qrels").open() as qrels:
        judged, scored = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
    values = pytrec_eval.RelevanceEvaluator(judged, {"recall.20"}).evaluate(scored).values()
    return sum(value["recall_20"] for value in values) / len(values)


def recall_of_files(folder: Path) -> float:
    ranked = RankedEdges.from_trec(folder / "run", folder / "qrels")
    return float(metrics.recall(ranked, 20).nanmean())


def doors_of_files(folder: Path) -> dict[str, Callable[[], object]]:
    write_files(folder)
    theirs, ours = recall_of_pytrec_eval(folder), recall_of_files(folder)
    if abs(theirs - ours) > 1e-12:
        raise RuntimeError(f"from_trec has a recall of {ours}, and pytrec_eval of {theirs}")
    return {
        "pytrec_eval, 1,000,000 lines and 50,000 judgements": partial(
            recall_of_pytrec_eval, folder
        ),
        "`from_trec`, the same": partial(recall_of_files, folder),
    }


def measure(doors: dict[str, Callable[[], object]], num_runs: int) -> None:
    """Prints a row for each door, with the ratio to the first."""
    megabytes = {name: extra_memory(function)[1] for name, function in doors.items()}
    median = medians(in_turn(doors, num_runs))
    first = next(iter(median.values()))
    for name, seconds in median.items():
        print(f"| {name} | {seconds:.2f} s | {seconds / first:.2f} | {megabytes[name]:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    num_runs = parser.parse_args().runs
    print(machine())
    print("| | median | ratio | MB |\n|---|---:|---:|---:|")
    measure(doors_of_pairs(), num_runs)
    with tempfile.TemporaryDirectory() as folder:
        measure(doors_of_files(Path(folder)), num_runs)


if __name__ == "__main__":
    main()
