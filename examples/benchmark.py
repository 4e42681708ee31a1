"""Makes the table of a paper: LightGCN and its baselines, all of them tuned alike.

    python examples/benchmark.py                             # two synthetic data sets, no download
    python examples/benchmark.py --data FOLDER --trials 8    # train.txt and test.txt in FOLDER

Each recommender of `recommenders.py` has the same number of random trials. The best of them, and
the number of its epochs, is the one with the best NDCG on a tenth of each user's training edges.
The recommender is then trained on all training edges, with several seeds if it has any. The test
edges decide nothing. It takes a minute, and on LastFM ten minutes on two cores.
"""

import argparse
import time
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from recommenders import EPOCHS_PER_CHECKPOINT, RECOMMENDERS, Recommender, Settings
from torch_geometric.data import HeteroData
from tqdm import tqdm

from pyg_recmetrics import (
    Benchmark,
    Comparison,
    EvaluationResult,
    Evaluator,
    RankingTask,
    Runs,
    compare,
    datasets,
    plot,
    report,
    transforms,
)

Bar: TypeAlias = "tqdm[Any]"

METRICS = ["ndcg@20", "recall@20", "r_precision"]

#: The users, the items, and the mean number of items of a user.
SHAPES = {"Dense": (600, 150, 20.0), "Sparse": (800, 800, 8.0)}


def load(folder: Path | None) -> dict[str, HeteroData]:
    """Returns data with training edges as `edge_index` and test edges as `edge_label_index`."""
    if folder is not None:
        return {"": datasets.read_lightgcn(folder)}
    split = transforms.PerUserSplit(num_test=0.2)
    return {
        name: split(datasets.synthetic_interactions(users, items, mean_degree=degree))[2]
        for name, (users, items, degree) in SHAPES.items()
    }


def tune(
    recommender: Recommender, task: RankingTask, num_trials: int, max_epochs: int, bar: Bar
) -> tuple[Settings, int]:
    """Returns the settings that are best for a task, and at which checkpoint they are."""
    generator = np.random.default_rng(0)
    found = []
    for trial in range(1, num_trials + 1):
        bar.set_postfix_str(f"trial {trial} of {num_trials}")
        settings = recommender.draw(generator)
        evaluator = Evaluator(task, "ndcg@20", patience=4)
        checkpoints = islice(recommender(task, settings), max_epochs // EPOCHS_PER_CHECKPOINT)
        for number, checkpoint in enumerate(checkpoints, start=1):
            found.append((evaluator(checkpoint)["ndcg@20"], number, settings))
            if evaluator.should_stop:
                break
        bar.update()
    _, number, settings = max(found, key=itemgetter(0))
    return settings, number


def run(
    recommender: Recommender,
    validation: RankingTask,
    evaluator: Evaluator,
    args: argparse.Namespace,
    bar: Bar,
) -> EvaluationResult | Runs:
    """Tunes a recommender, trains it on all training edges with each seed, and evaluates it."""
    start = time.process_time()
    settings, num_checkpoints, num_trials = Settings(), 1, 0
    if recommender.space:
        num_trials = args.trials
        settings, num_checkpoints = tune(recommender, validation, num_trials, args.epochs, bar)
    seconds = time.process_time() - start
    results = []
    for seed in range(args.seeds if recommender.has_seed else 1):
        bar.set_postfix_str(f"seed {seed}")
        start = time.process_time()
        *_, trained = islice(recommender(evaluator.task, settings, seed), num_checkpoints)
        of_run = time.process_time() - start
        results.append(evaluator(trained).with_trials(num_trials, seconds + of_run))
        bar.update()
    return Runs(results) if recommender.has_seed else results[0]


def draw(comparisons: Mapping[str, Comparison], benchmark: Benchmark, path: Path) -> None:
    """Saves a picture of all means, and of LightGCN minus each of the others."""
    figure = Figure(figsize=(11, 6 * len(benchmark)), layout="constrained")
    rows = figure.subfigures(len(benchmark), 2, squeeze=False)
    for (left, right), (data_set, results) in zip(rows, benchmark.items(), strict=True):
        plot.means(results, figure=left)
        plot.differences(comparisons[data_set].select(name="LightGCN"), figure=right)
    figure.savefig(path, dpi=150)


def main() -> Benchmark:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds train.txt and test.txt")
    parser.add_argument("--report", type=Path, metavar="FILE", default="benchmark.html")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to save a picture")
    parser.add_argument("--trials", type=int, default=4, help="of each that can be tuned")
    parser.add_argument("--seeds", type=int, default=3, help="of each that has any, at least two")
    parser.add_argument("--epochs", type=int, default=250, help="the maximum")
    args = parser.parse_args()

    recommenders = dict(RECOMMENDERS)
    if find_spec("implicit") is None:
        del recommenders["iALS"]
        print("iALS is left out: pip install implicit")
    deterministic = [name for name, model in recommenders.items() if not model.has_seed]
    data_sets = load(args.data)
    results: dict[str, dict[str, EvaluationResult | Runs]] = {}
    splits = {}
    of_one = sum(
        (args.trials if model.space else 0) + (args.seeds if model.has_seed else 1)
        for model in recommenders.values()
    )
    with tqdm(total=of_one * len(data_sets)) as bar:
        for data_set, data in data_sets.items():
            train_data, _, validation_data = transforms.PerUserSplit(num_test=0.1)(data)
            splits[data_set] = train_data, validation_data, data
            validation = RankingTask.from_data(validation_data)
            evaluator = Evaluator(RankingTask.from_data(data), METRICS, keep_items=True)
            results[data_set] = {}
            for name, model in recommenders.items():
                bar.set_description(f"{data_set} {name}".strip())
                results[data_set][name] = run(model, validation, evaluator, args, bar)

    benchmark = Benchmark(results, proposed="LightGCN", deterministic=deterministic)
    print(f"\n{benchmark}\n\n{benchmark.to_latex()}\n")
    # A difference of less than two per cent is too small to matter here.
    comparisons = {
        data_set: compare(of_all, equivalence="2%", deterministic=deterministic)
        for data_set, of_all in results.items()
    }
    for data_set, comparison in comparisons.items():
        print(data_set, *comparison.select("ndcg@20", "LightGCN").claims(), sep="\n")
    path = report(
        benchmark,
        args.report,
        split=splits.get(""),
        comparison=comparisons.get(""),
        title="LightGCN and its baselines, tuned alike",
    )
    print(f"The report is in {path.resolve()}")
    if args.picture is not None:
        draw(comparisons, benchmark, args.picture)
    return benchmark


if __name__ == "__main__":
    main()
