"""Times every way through the package side by side with the bare matrix product.

    python benchmarks/paths.py [FOLDER] [--rows NAME ...] [--runs 5]

Each row evaluates one kind of recommender or one kind of task, on random embeddings; those with
Gowalla need `FOLDER`, see `benchmarks/evaluation.py`. All rows of the same data run in one process,
in turn, once to warm up and then five times. The output is a table of medians in Markdown:

- `product` is the ratio to the bare product of all users and items in single precision, in strips
  of 64 users by all items that go to one buffer. This is what a loop over users does, and what
  goals are relative to, unless `by` says otherwise.
- `tiles` is the ratio to the same product in tiles of 1,024 users by 4,096 items, as in
  `benchmarks/evaluation.py`. These tiles stay in the cache, so it takes less time.
- `by` is what the goal is relative to: the product in strips; `topk(20)`, `torch.topk` of the same
  score matrix; `itself`, all calls to the function or model without any evaluation; or a sum.
- `ratio` is the ratio to that, which should be at most `goal`. Rows without a goal are there so
  that no way is left out.
- `MB` is the resident memory at the peak of the first call, above what there was before it. It
  includes the result.

Before a row is timed, its ranks and lists of some users are compared with those of
`algorithm="dense"`. Rows without `bfloat16` run in a process of its own whose libraries are told
that the processor has AVX2 and nothing beyond; they are relative to what runs in that process.
"""

import argparse
import functools
import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from embeddings import (
    Embeddings,
    product_in_strips,
    product_in_tiles,
    random_embeddings,
    trained_embeddings,
)
from evaluation import K, check_unmasked, names_of_every_metric, unmasked_lists
from timing import extra_memory, in_turn, machine, medians
from torch import Tensor

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    evaluate,
    rank,
)

#: What makes the libraries behave as on a processor without `bfloat16` and AVX-512.
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "FAISS_OPT_LEVEL": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}

#: The share of ranks that may differ where a model rounds its scores in its own way.
ROUNDED = 1e-3

Recommender = Any


class Recorder:
    """A function that scores or recommends, and can repeat the calls of an evaluation.

    Args:
        function (callable): The function.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        self.calls.append((args, kwargs))
        return self.function(*args, **kwargs)

    def repetition(self) -> Callable[[], None]:
        """Returns a function that repeats all calls so far."""
        calls = tuple(self.calls)

        def repeat() -> None:
            for args, kwargs in calls:
                self.function(*args, **kwargs)

        return repeat


class RecordedModel(Recorder):
    """A model whose `recommend` is the function."""

    def recommend(self, users: Tensor, k: int) -> Tensor:
        return self(users, k)


def pair(data: Embeddings) -> Recommender:
    return data.user, data.item


def with_biases(data: Embeddings) -> Recommender:
    generator = torch.Generator().manual_seed(0)
    return data.user, data.item, torch.randn(len(data.item), generator=generator)


def scores(data: Embeddings) -> Recommender:
    return data.scores


def with_negative_scores(data: Embeddings) -> Recommender:
    """One more dimension takes the same from all scores."""
    largest = float(data.scores.max())
    user = torch.cat([data.user, torch.ones(len(data.user), 1)], dim=1)
    return user, torch.cat([data.item, torch.full((len(data.item), 1), -largest - 1)], dim=1)


def with_few_scores(data: Embeddings) -> Recommender:
    """Scores of which one in a hundred is not zero, as those of neighbourhood models."""
    best = data.scores.topk(len(data.item) // 100, dim=1).values
    return (data.scores - best[:, -1:]).clamp(min=0)


def decoder(data: Embeddings) -> Recommender:
    return Recorder(lambda users: data.user[users] @ data.item.t())


def model(data: Embeddings) -> Recommender:
    def recommend(users: Tensor, k: int) -> Tensor:
        return (data.user[users] @ data.item.t()).topk(k, dim=1).indices

    return RecordedModel(recommend)


def whole_task(data: Embeddings) -> RankingTask:
    return data.task


def task_of_candidates(data: Embeddings, candidates: Tensor) -> RankingTask:
    return RankingTask(
        data.task.truth,
        num_users=data.task.num_users,
        num_items=data.task.num_items,
        seen=data.task.seen,
        candidates=candidates,
    )


def items_with_truth(data: Embeddings) -> RankingTask:
    return task_of_candidates(data, data.task.truth[1].unique())


def sampled_items(data: Embeddings) -> RankingTask:
    """Each user has its truth and a hundred random items as candidates."""
    users = torch.arange(len(data.user)).repeat_interleave(100)
    items = torch.randint(len(data.item), users.shape, generator=torch.Generator().manual_seed(0))
    return task_of_candidates(data, torch.cat([data.task.truth, torch.stack([users, items])], 1))


def nothing(data: Embeddings) -> dict[str, Callable[[], np.ndarray]]:
    return {}


class Row(NamedTuple):
    """One way through the package.

    Attributes:
        name: What it is called in the table, and chosen by.
        data: Makes the embeddings. Rows of the same data are timed in turn.
        call: Ranks or evaluates a recommender on a task.
        goal: What the ratio to `by` should be at most; `None` if there is no goal.
        by: The names of what the goal is relative to.
        recommender: Makes the recommender.
        exact: Makes the same recommender in a form whose exact scores are known; `None` if it is
            that already.
        task: Makes the task.
        beside: Makes peers that are timed beside it.
        is_without_bfloat16: Whether the processor is told to be an older one.
    """

    name: str
    data: Callable[[], Embeddings]
    call: Callable[..., EvaluationResult | RankedEdges] = evaluate
    goal: float | None = None
    by: tuple[str, ...] = ("product",)
    recommender: Callable[[Embeddings], Recommender] = pair
    exact: Callable[[Embeddings], Recommender] | None = None
    task: Callable[[Embeddings], RankingTask] = whole_task
    beside: Callable[[Embeddings], Mapping[str, Callable[[], np.ndarray]]] = nothing
    is_without_bfloat16: bool = False


class Line(NamedTuple):
    """What is known of one line of the table."""

    name: str
    seconds: float
    num_runs: int
    by_product: float
    by_tiles: float
    ratio: float | None = None
    row: Row | None = None
    megabytes: float | None = None

    def __str__(self) -> str:
        cells = [self.name, f"{self.seconds:.2f} s", f"{self.by_product:.2f}"]
        cells += [f"{self.by_tiles:.2f}", str(self.num_runs)]
        if self.row is not None:
            cells.append(f"{self.megabytes:.0f}")
            if self.row.goal is not None and self.ratio is not None:
                is_met = "yes" if self.ratio <= self.row.goal else "no"
                cells += [" + ".join(self.row.by), f"{self.ratio:.2f}"]
                cells += [f"{self.row.goal:.2f}", is_met]
        return line_of_table(cells)


#: The columns of the table, and how wide they are: to the left are texts, to the right numbers.
COLUMNS = {
    "": -52,
    "median": 8,
    "product": 7,
    "tiles": 6,
    "runs": 4,
    "MB": 5,
    "by": -17,
    "ratio": 6,
    "goal": 4,
    "met": -3,
}


def line_of_table(cells: Iterable[str]) -> str:
    """Returns a line of the table. Cells that are not given are empty."""
    given = [*cells]
    given += [""] * (len(COLUMNS) - len(given))
    padded = [
        cell.ljust(-width) if width < 0 else cell.rjust(width)
        for cell, width in zip(given, COLUMNS.values(), strict=True)
    ]
    return f"| {' | '.join(padded)} |"


def head_of_table() -> str:
    rules = ("-" * -width if width < 0 else "-" * (width - 1) + ":" for width in COLUMNS.values())
    return f"{line_of_table(COLUMNS)}\n{line_of_table(rules)}"


lists_of_20 = partial(rank, k=K, keep_items=True)
ranks_to_20 = partial(rank, k=K)

MAIN = partial(random_embeddings, 10_000, 41_000)
SMALL = partial(random_embeddings, 2_000, 41_000)
DEEP = partial(random_embeddings, 4_000, 40_000)
MATRIX = partial(random_embeddings, 6_000, 41_000)
ML_1M = partial(random_embeddings, 6_040, 3_706, num_relevant=30, num_seen=130)


def rows(folder: Path | None) -> list[Row]:
    found = [
        Row("default metrics", MAIN, goal=0.4),
        Row("lists of 20", MAIN, lists_of_20, goal=0.6, beside=unmasked_lists),
        Row("coverage@20", MAIN, partial(evaluate, metrics=["coverage@20"]), goal=0.6),
        Row("item biases", MAIN, goal=0.5, recommender=with_biases),
        Row("roc_auc", MAIN, partial(evaluate, metrics=["roc_auc"]), goal=1.5),
        Row("R=200", partial(random_embeddings, 5_000, 41_000, num_relevant=200), goal=1.0),
        Row("R=500", partial(random_embeddings, 2_000, 41_000, num_relevant=500), goal=1.5),
        Row("k=500", DEEP, partial(rank, k=500), goal=1.5),
        Row("k=2000", DEEP, partial(rank, k=2000), goal=1.5),
        Row("3,000,000 items", partial(random_embeddings, 256, 3_000_000), goal=0.6),
        Row("MovieLens-1M", ML_1M, goal=2.0),
    ]
    if folder is not None:
        gowalla = partial(trained_embeddings, folder)
        every_metric = partial(evaluate, metrics=names_of_every_metric())
        found += [
            Row("Gowalla, default metrics", gowalla),
            Row("Gowalla, every metric to 100", gowalla, every_metric, goal=0.65),
        ]
    matrix = partial(Row, data=MATRIX, recommender=scores)
    small = partial(Row, data=SMALL, call=ranks_to_20)
    return [
        *found,
        matrix("score matrix", goal=1.0, by=("topk(20)",)),
        matrix("lists of a score matrix", call=lists_of_20),
        Row("function", MATRIX, goal=1.0, by=("itself", "topk(20)"), recommender=decoder),
        Row(
            "recommend",
            MATRIX,
            ranks_to_20,
            goal=1.2,
            by=("itself",),
            recommender=model,
            exact=pair,
        ),
        small("negative scores", recommender=with_negative_scores),
        small("half precision", recommender=lambda data: (data.user.half(), data.item.half())),
        small(
            "double precision", recommender=lambda data: (data.user.double(), data.item.double())
        ),
        small("candidates for all", task=items_with_truth),
        small("sampled candidates", task=sampled_items),
        small("few scores", recommender=with_few_scores),
        small("scores in double precision", recommender=lambda data: data.scores.double()),
        Row("default metrics without bfloat16", MAIN, goal=1.0, is_without_bfloat16=True),
        *of_gowalla_without_bfloat16(folder),
    ]


def of_gowalla_without_bfloat16(folder: Path | None) -> list[Row]:
    if folder is None:
        return []
    row = partial(Row, data=partial(trained_embeddings, folder), is_without_bfloat16=True)
    every_metric = partial(evaluate, metrics=names_of_every_metric())
    return [
        row("Gowalla, default metrics without bfloat16", goal=0.65, beside=unmasked_lists),
        row("Gowalla, every metric to 100 without bfloat16", call=every_metric, goal=1.0),
    ]


def check(row: Row, data: Embeddings, recommender: Recommender, result: RankedEdges) -> None:
    """Raises if ranks or lists differ from those of all exact scores, sorted."""
    task = row.task(data)
    num_checked = max(8, 4_000_000 // task.num_items)
    users = torch.arange(0, task.num_users, -(-task.num_users // num_checked))
    exact = recommender if row.exact is None else row.exact(data)
    expected = rank(
        exact,
        task.select_users(users),
        k=result.depth,
        full=result.depth is None,
        keep_items=False if result.lists is None else result.lists.width,
        algorithm="dense",
    )
    is_checked = torch.isin(result.edge_label_index[0], users)
    found = [*result.edge_label_index[:, is_checked], result.rank[is_checked]]
    wanted = [*expected.edge_label_index, expected.rank]
    if result.lists is not None and expected.lists is not None:
        found.append(result.lists.to_matrix()[users])
        wanted.append(expected.lists.to_matrix()[users])
    most = 0.0 if row.exact is None else ROUNDED
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape or float((one != other).float().mean()) > most:
            raise RuntimeError(f"{row.name} differs from algorithm='dense'")


def ranked(result: EvaluationResult | RankedEdges) -> RankedEdges:
    return result if isinstance(result, RankedEdges) else result.ranked


def measure(chosen: Sequence[Row], num_runs: int) -> list[Line]:
    """Times rows of the same data, after checking and warming up."""
    data = chosen[0].data()
    functions: dict[str, Callable[[], object]] = {
        "product": lambda: product_in_strips(data),
        "product in tiles": lambda: product_in_tiles(data),
    }
    if any("topk(20)" in row.by for row in chosen):
        functions["topk(20)"] = lambda: data.scores.topk(K)
    for function in functions.values():
        function()
    megabytes = {}
    for row in chosen:
        recommender, task = row.recommender(data), row.task(data)
        run = partial(row.call, recommender, task)
        result, megabytes[row.name] = extra_memory(run)
        if isinstance(recommender, Recorder):
            functions[f"{row.name}, itself"] = recommender.repetition()
        check(row, data, recommender, ranked(result))
        functions[row.name] = run
        for name, list_items in row.beside(data).items():
            check_unmasked(data, name, list_items())
            functions[name] = list_items
    times = in_turn(functions, num_runs)
    median = medians(times)
    by_name = {row.name: row for row in chosen}
    size = f"{len(data.user):,} users x {len(data.item):,} items"

    def line(name: str) -> Line:
        ratios = median[name] / median["product"], median[name] / median["product in tiles"]
        full_name = f"{name}, {size}" if name == "product" else name
        known = Line(full_name, median[name], len(times[name]), *ratios)
        if name not in by_name:
            return known
        row = by_name[name]
        references = [f"{name}, itself" if by == "itself" else by for by in row.by]
        ratio = median[name] / sum(median[reference] for reference in references)
        return known._replace(ratio=ratio, row=row, megabytes=megabytes[name])

    return [line(name) for name in functions]


def forget_bfloat16() -> None:
    """Makes this process believe that its processor has AVX2 and nothing beyond."""
    known = torch.cpu.get_capabilities()
    newer = {name: False for name in known if name.startswith(("amx", "avx512"))}
    torch.cpu.get_capabilities = lambda: {**known, **newer}  # type: ignore[assignment]


def measure_without_bfloat16(folder: Path | None, names: set[str], num_runs: int) -> list[str]:
    """Measures in a process whose libraries have been told that there is no `bfloat16`."""
    forget_bfloat16()
    chosen = [row for row in rows(folder) if row.name in names]
    groups = itertools.groupby(chosen, key=lambda row: row.data)
    return [str(line) for _, group in groups for line in measure(list(group), num_runs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="all of them by default")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    every = rows(args.folder)
    names = args.rows or [row.name for row in every]
    if unknown := set(names) - {row.name for row in every}:
        parser.error(
            f"no row is called {sorted(unknown)} (there are {[row.name for row in every]})"
        )
    print(machine(), flush=True)
    chosen = [row for row in every if row.name in names]
    here = [row for row in chosen if not row.is_without_bfloat16]
    print(head_of_table(), flush=True)
    for _, group in itertools.groupby(here, key=lambda row: row.data):
        print(*measure(list(group), args.runs), sep="\n", flush=True)
    if len(here) < len(chosen):
        os.environ |= AVX2
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            left = {row.name for row in chosen if row.is_without_bfloat16}
            done = process.submit(measure_without_bfloat16, args.folder, left, args.runs)
            print(*done.result(), sep="\n")


if __name__ == "__main__":
    main()
