"""Times rankings on a GPU, checks them against the CPU, and prints one table.

    python benchmarks/gpu.py [FOLDER] [--device cuda] [--users 1000000] [--items 1000000]

Rows with Gowalla need `FOLDER`, see `benchmarks/evaluation.py`; the others draw embeddings of
`--users` and `--items`. Ranks of Gowalla have to be those of the CPU, bit by bit, before anything
is timed. The columns are the median time, what it is in units of 10^12 operations of the product of
all users and items, how many calls the host made to the device and how often it waited for it, and
the memory at the peak of a call. The second line says how far products are from the exact scores,
as a share of the bound that the ranking relies on: at most one.
"""

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from embeddings import Embeddings, random_embeddings, trained_embeddings
from evaluation import loop_of_pygs_example, pygs_metrics
from timing import in_turn, machine, medians
from torch.profiler import ProfilerActivity, profile

from pyg_recmetrics import evaluate, rank
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.ranking.recommenders import EmbeddingRecommender

#: How many users and items have their products compared with the bound.
NUM_COMPARED = 4096

NUM_RUNS = 5

#: What the names of the calls of CUDA start with that launch something.
LAUNCHES = ("cudaLaunch", "cuLaunch", "cudaMemcpy", "cudaMemset")

#: What is in the names of those that let the host wait.
WAIT = "Synchronize"


class Line(NamedTuple):
    """What is known of one row of the table."""

    name: str
    seconds: float
    tera_operations: float
    num_launches: int
    num_waits: int
    megabytes: float

    def __str__(self) -> str:
        return (
            f"| {self.name:58} | {1000 * self.seconds:10.2f} ms | {self.tera_operations:8.1f} "
            f"| {self.num_launches:8} | {self.num_waits:6} | {self.megabytes:8.0f} |"
        )


HEAD = f"| {'':58} | {'median':>13} | {'10^12/s':>8} | {'launches':>8} | {'waits':>6} | {'MB':>8} |"
RULE = "|".join(["", "-" * 60, *("-" * (width + 1) + ":" for width in (14, 9, 9, 7, 9)), ""])


def largest_share_of_bound(data: Embeddings) -> float:
    """How far a product is from the exact score, as a share of the bound, among some users."""
    user, item = data.user[:NUM_COMPARED], data.item[:NUM_COMPARED]
    recommender = EmbeddingRecommender(user, item, device=user.device)
    scaled = recommender.users(torch.arange(len(user), device=user.device))
    scores, (factor, norm) = recommender.products(scaled, torch.float32, Scratch(user.device))
    exact = scaled @ recommender.items.double(slice(None)).t()
    error = (scores.double() - exact).abs()
    return float((error / (factor.double().unsqueeze(1) * norm)).max())


def half_product(data: Embeddings, rows_at_once: int) -> None:
    """The product of all users and items in half precision, which is stored."""
    user, item = data.user.half(), data.item.half()
    for rows in user.split(rows_at_once):
        torch.mm(rows, item.t())


def product_and_top_k(data: Embeddings, rows_at_once: int) -> None:
    """The best 20 items of all users, with nothing masked."""
    for rows in data.user.split(rows_at_once):
        torch.mm(rows, data.item.t()).topk(20, dim=1)


def faiss_top_k(data: Embeddings) -> Callable[[], Any]:
    import faiss

    index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), data.item.size(1))
    index.add(data.item.cpu().numpy())
    user = data.user.cpu().numpy()
    return lambda: index.search(user, 20)


def has_faiss_for_gpus() -> bool:
    if importlib.util.find_spec("faiss") is None:
        return False
    import faiss

    return hasattr(faiss, "StandardGpuResources")


def measured(name: str, function: Callable[[], Any], data: Embeddings) -> Line:
    """Times a function after a call to warm up."""
    in_turn({name: function}, 1)
    median = medians(in_turn({name: function}, NUM_RUNS))[name]
    counts, megabytes = _watched(function, data.user.device)
    operations = 2.0 * len(data.user) * len(data.item) * data.user.size(1)
    launches = sum(count for call, count in counts.items() if call.startswith(LAUNCHES))
    waits = sum(count for call, count in counts.items() if WAIT in call)
    return Line(name, median, operations / median / 1e12, launches, waits, megabytes)


def _watched(function: Callable[[], Any], device: torch.device) -> tuple[dict[str, int], float]:
    if device.type != "cuda":
        return {}, float("nan")
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    function()
    megabytes = (torch.cuda.max_memory_allocated(device) - before) / 2**20
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiled:
        function()
    return {event.key: event.count for event in profiled.key_averages()}, megabytes


def check_against_the_cpu(data: Embeddings, on_cpu: Embeddings) -> None:
    """Raises if a rank is not that of the CPU."""
    for options in ({"k": 20, "keep_items": True}, {"k": 100}, {"full": True}):
        ranked, wanted = (rank((x.user, x.item), x.task, **options) for x in (data, on_cpu))
        if not torch.equal(ranked.rank.cpu(), wanted.rank):
            raise RuntimeError(f"ranks differ from those of the CPU: {options}")
        if wanted.lists is not None and not torch.equal(ranked.lists.item.cpu(), wanted.lists.item):
            raise RuntimeError(f"lists differ from those of the CPU: {options}")
    print("ranks and lists of Gowalla are those of the CPU: down to 20, to 100, and all")


def lines_of_gowalla(data: Embeddings) -> dict[str, Callable[[], Any]]:
    pair, task = (data.user, data.item), data.task
    return {
        "Gowalla, default metrics, to the printed table": lambda: str(evaluate(pair, task)),
        "Gowalla, every rank, with ROC-AUC and PR-AUC": lambda: str(
            evaluate(pair, task, ["recall@20", "roc_auc", "pr_auc"])
        ),
        "Gowalla, lists of 20": lambda: rank(pair, task, k=20, keep_items=True),
        "Gowalla, algorithm='dense'": lambda: rank(pair, task, k=20, algorithm="dense"),
        "Gowalla, torch.mm and topk(20), nothing masked": lambda: product_and_top_k(data, 4096),
        "Gowalla, loop of PyG's example": lambda: loop_of_pygs_example(data),
        "Gowalla, lists of 20 and PyG's metrics": lambda: pygs_metrics(data),
    }


def lines_of_many(data: Embeddings) -> dict[str, Callable[[], Any]]:
    size = f"{len(data.user):,} x {len(data.item):,}"
    rows_at_once = max(1, 2**30 // len(data.item))
    found: dict[str, Callable[[], Any]] = {
        f"{size}, product in half precision, stored": lambda: half_product(data, rows_at_once),
        f"{size}, ranks down to 20": lambda: rank((data.user, data.item), data.task, k=20),
        f"{size}, torch.mm and topk(20), nothing masked": lambda: product_and_top_k(
            data, rows_at_once
        ),
        f"{size}, every rank": lambda: rank((data.user, data.item), data.task, full=True),
    }
    if has_faiss_for_gpus():
        found[f"{size}, faiss on the GPU, nothing masked"] = faiss_top_k(data)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    args = parser.parse_args()
    device = torch.device(args.device)
    drawn = random_embeddings(args.users, args.items, num_relevant=20)
    many = Embeddings(drawn.user.to(device), drawn.item.to(device), drawn.task.to(device))
    print(machine(device))
    print(f"largest error of products: {largest_share_of_bound(many):.3f} of the bound")
    lines = []
    if args.folder is not None:
        gowalla = trained_embeddings(args.folder, args.device)
        check_against_the_cpu(gowalla, trained_embeddings(args.folder))
        lines = [(name, function, gowalla) for name, function in lines_of_gowalla(gowalla).items()]
    lines += [(name, function, many) for name, function in lines_of_many(many).items()]
    print(HEAD, RULE, sep="\n")
    for name, function, data in lines:
        print(measured(name, function, data), flush=True)


if __name__ == "__main__":
    main()
