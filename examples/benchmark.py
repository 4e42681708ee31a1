"""Makes the table of a paper: LightGCN and its baselines, all of them tuned alike.

    python examples/benchmark.py                             # synthetic data, no download
    python examples/benchmark.py --data FOLDER --trials 8    # train.txt and test.txt in FOLDER

Each recommender of `recommenders.py` has the same number of random trials. The best of them, and
the number of its epochs, is the one with the best NDCG on a tenth of each user's training edges.
The recommender is then trained on all training edges, with several seeds if it has any. The test
edges decide nothing. It takes a minute, and on LastFM ten minutes on two cores. The seconds in the
table are those of the processor, for all trials and one run.
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
    evaluate,
    plot,
    report,
    transforms,
)

Bar: TypeAlias = "tqdm[Any]"

TUNED_FOR = "ndcg@20"
METRICS = [TUNED_FOR, "recall@20", "r_precision"]


def load(folder: Path | None) -> HeteroData:
    """Returns data with training edges as `edge_index` and test edges as `edge_label_index`."""
    if folder is not None:
        return datasets.read_lightgcn(folder)
    data = datasets.synthetic_interactions(num_users=600, num_items=300)
    return transforms.PerUserSplit(num_test=0.2)(data)[2]


def tune(
    recommender: Recommender, task: RankingTask, num_trials: int, max_epochs: int, bar: Bar
) -> tuple[Settings, int]:
    """Returns the settings that are best for a task, and at which checkpoint they are."""
    generator = np.random.default_rng(0)
    found = []
    for trial in range(1, num_trials + 1):
        bar.set_postfix_str(f"trial {trial} of {num_trials}")
        settings = recommender.draw(generator)
        evaluator = Evaluator(task, TUNED_FOR, patience=6)
        checkpoints = islice(recommender(task, settings), max_epochs // EPOCHS_PER_CHECKPOINT)
        for number, checkpoint in enumerate(checkpoints, start=1):
            found.append((evaluator(checkpoint)[TUNED_FOR], number, settings))
            if evaluator.should_stop:
                break
    _, number, settings = max(found, key=itemgetter(0))
    return settings, number


def run(
    recommender: Recommender,
    validation: RankingTask,
    test: RankingTask,
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
        *_, trained = islice(recommender(test, settings, seed), num_checkpoints)
        of_run = time.process_time() - start
        result = evaluate(trained, test, METRICS, keep_items=True)
        results.append(result.with_trials(num_trials, seconds + of_run))
    return Runs(results) if recommender.has_seed else results[0]


def run_all(
    data: HeteroData, validation_data: HeteroData, args: argparse.Namespace
) -> dict[str, EvaluationResult | Runs]:
    """Tunes, trains and evaluates all recommenders."""
    validation, test = RankingTask.from_data(validation_data), RankingTask.from_data(data)
    recommenders = dict(RECOMMENDERS)
    if find_spec("implicit") is None:
        del recommenders["iALS"]
        print("iALS is left out: pip install implicit")
    results = {}
    with tqdm(recommenders.items()) as bar:
        for name, recommender in bar:
            bar.set_description(name)
            results[name] = run(recommender, validation, test, args, bar)
    return results


def draw(
    results: Mapping[str, EvaluationResult | Runs], comparison: Comparison, path: Path
) -> None:
    """Saves a picture of the means, and of LightGCN minus each of the others."""
    figure = Figure(figsize=(11, 3.5), layout="constrained")
    ((left, right),) = figure.subfigures(1, 2, squeeze=False)
    plot.means(results, TUNED_FOR, figure=left)
    plot.differences(comparison.select(name="LightGCN"), figure=right)
    figure.savefig(path, dpi=150)


def main() -> Benchmark:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds train.txt and test.txt")
    parser.add_argument("--report", type=Path, metavar="FILE", default="benchmark.html")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to save a picture")
    parser.add_argument("--trials", type=int, default=4, help="of each that can be tuned")
    parser.add_argument("--seeds", type=int, default=3, help="of each that has any, at least two")
    parser.add_argument("--epochs", type=int, default=300, help="the maximum")
    args = parser.parse_args()
    for name, least in {"trials": 1, "seeds": 2, "epochs": EPOCHS_PER_CHECKPOINT}.items():
        if (number := getattr(args, name)) < least:
            parser.error(f"--{name} needs to be at least {least} (got {number}): --{name} {least}")

    data = load(args.data)
    train_data, _, validation_data = transforms.PerUserSplit(num_test=0.1)(data)
    results = run_all(data, validation_data, args)
    deterministic = [name for name in results if not RECOMMENDERS[name].has_seed]
    benchmark = Benchmark(results, proposed="LightGCN", deterministic=deterministic)
    # A difference of less than two per cent is too small to matter here.
    comparison = compare(results, TUNED_FOR, equivalence="2%", deterministic=deterministic)
    print(f"\n{benchmark}\n\n{benchmark.to_latex()}\n")
    print(*comparison.select(name="LightGCN").claims(), sep="\n")
    path = report(
        {"synthetic data" if args.data is None else args.data.name: results},
        args.report,
        split=(train_data, validation_data, data),
        comparison=comparison,
        title="LightGCN and its baselines, tuned alike",
    )
    print(f"The report is in {path.resolve()}")
    if args.picture is not None:
        draw(results, comparison, args.picture)
    return benchmark


if __name__ == "__main__":
    main()
