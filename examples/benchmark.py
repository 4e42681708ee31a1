"""Makes the table of a paper: LightGCN and its baselines on several data sets.

    python examples/benchmark.py                    # two synthetic data sets, no download
    python examples/benchmark.py --lastfm FOLDER    # and LastFM: train.txt and test.txt in FOLDER

LightGCN is compared with the better of matrix factorisation and the most popular items. The
synthetic data sets have another shape: many interactions with few items, and few with many. The
models are those of `report.py`, trained with three seeds each. A tenth of each user's training
edges says when to stop. All of it takes minutes on two cores.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from report import lightgcn, matrix_factorisation
from torch import Tensor
from torch_geometric.data import HeteroData

from pyg_recmetrics import (
    Benchmark,
    EvaluationResult,
    Evaluator,
    RankingTask,
    Runs,
    datasets,
    plot,
    report,
    transforms,
)

METRICS = ["ndcg@20", "recall@20", "coverage@20", "novelty@20"]

#: The users, the items, and the mean number of items of a user.
SHAPES = {"Dense": (1200, 200, 30.0), "Sparse": (1500, 1500, 8.0)}


def load(lastfm: Path | None) -> dict[str, HeteroData]:
    """Returns data with training edges as `edge_index` and test edges as `edge_label_index`."""
    split = transforms.PerUserSplit(num_test=0.2)
    found = {
        name: split(datasets.synthetic_interactions(users, items, mean_degree=degree))[2]
        for name, (users, items, degree) in SHAPES.items()
    }
    return found if lastfm is None else {"LastFM": datasets.read_lightgcn(lastfm), **found}


class Stopwatch:
    """Counts runs, and the seconds that each recommender takes to be trained and ranked."""

    def __init__(self) -> None:
        self.seconds: dict[str, dict[str, float]] = {}
        self.num_runs = 0

    def time(
        self, data_set: str, name: str, run: Callable[[], EvaluationResult]
    ) -> EvaluationResult:
        start = time.perf_counter()
        result = run()
        of_one = self.seconds.setdefault(data_set, {})
        of_one[name] = of_one.get(name, 0.0) + time.perf_counter() - start
        self.num_runs += 1
        return result


def run_all(
    data_set: str, data: HeteroData, num_seeds: int, max_epochs: int, stopwatch: Stopwatch
) -> dict[str, EvaluationResult | Runs]:
    """Trains and evaluates all recommenders on a data set."""
    _, _, validation_data = transforms.PerUserSplit(num_test=0.1)(data)
    validation, test = RankingTask.from_data(validation_data), RankingTask.from_data(data)
    evaluator = Evaluator(test, METRICS, keep_items=True)
    models: dict[str, Callable[[int], tuple[Tensor, Tensor]]] = {
        "LightGCN": lambda seed: lightgcn(validation, test, seed, max_epochs),
        "Matrix factorisation": lambda seed: matrix_factorisation(validation, seed, max_epochs),
    }
    results: dict[str, EvaluationResult | Runs] = {}
    for name, train in models.items():
        runs = (partial(evaluate_seed, evaluator, train, seed) for seed in range(num_seeds))
        results[name] = Runs(stopwatch.time(data_set, name, run) for run in runs)
    popularity = torch.bincount(test.seen[1], minlength=test.num_items).float()
    name = "Most popular"
    results[name] = stopwatch.time(data_set, name, partial(evaluator, popularity))
    return results


def evaluate_seed(
    evaluator: Evaluator, train: Callable[[int], tuple[Tensor, Tensor]], seed: int
) -> EvaluationResult:
    return evaluator(train(seed))


def main() -> Benchmark:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lastfm", type=Path, metavar="FOLDER", help="has train.txt and test.txt")
    parser.add_argument("--report", type=Path, metavar="FILE", default="benchmark.html")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to save a picture")
    parser.add_argument("--seeds", type=int, default=3, help="of each model, at least two")
    parser.add_argument("--epochs", type=int, default=150, help="the maximum")
    args = parser.parse_args()

    stopwatch, start = Stopwatch(), time.perf_counter()
    results = {
        data_set: run_all(data_set, data, args.seeds, args.epochs, stopwatch)
        for data_set, data in load(args.lastfm).items()
    }
    benchmark = Benchmark(
        results, ["ndcg@20", "recall@20"], proposed="LightGCN", deterministic=["Most popular"]
    )
    print(f"\n{benchmark}\n\n{benchmark.to_latex()}\n")
    for data_set, seconds in stopwatch.seconds.items():
        told = ", ".join(f"{name} {of_name:.1f}" for name, of_name in seconds.items())
        print(f"Seconds on {data_set}: {told}")
    path = report(benchmark, args.report, title="Three recommenders")
    if args.picture is not None:
        plot.differences(benchmark.comparisons).figure.savefig(args.picture, dpi=150)
    taken = time.perf_counter() - start
    print(f"{stopwatch.num_runs} runs and the page took {taken:.0f} seconds")
    print(f"The report is in {path.resolve()}")
    return benchmark


if __name__ == "__main__":
    main()
