"""Counts how often 95% intervals of a mean over runs hold the true mean.

    python -m benchmarks.coverage

Users and runs are drawn again and again. `Runs` computes one interval of each draw. The other is
the t-interval of the means of the runs, as if these were all that varies. The table replaces the
one in `benchmarks/README.md`. `python docs/pictures.py` draws it.
"""

import argparse
import math
import re
from itertools import product
from pathlib import Path

import torch
from scipy import stats
from torch import Tensor
from tqdm import tqdm

from pyg_recmetrics import Runs
from tests.support.cases.drawn_results import SD_OF_USERS, draw_runs, names_of, runs_of

README = Path(__file__).resolve().parent / "README.md"

NUM_USERS, NUM_RUNS = (200, 1858), (3, 5)
#: The standard deviations of the effect of a run.
DEVIATIONS = (0.0, 0.002, 0.004, 0.006, 0.01, 0.015, 0.02)
INTERVALS = ("`Runs`", "mean ± t over seeds")

#: How many draws are held at once.
NUM_AT_ONCE = 250

TABLE = re.compile(r"^\| interval .*?(?=^$)", flags=re.DOTALL | re.MULTILINE)


def held(values: Tensor) -> Tensor:
    """Returns how often each interval holds zero, of `[num_runs, num_draws, num_users]`."""
    num_runs, num_draws, _ = values.shape
    means = values.mean(dim=2)
    margin = stats.t.isf(0.025, num_runs - 1) * means.std(dim=0) / math.sqrt(num_runs)
    runs = Runs(runs_of(values))
    found = [runs.mean(name) for name in names_of(num_draws)]
    of_runs = torch.tensor([mean.low <= 0 <= mean.high for mean in found])
    return torch.stack([of_runs, means.mean(dim=0).abs() <= margin]).sum(dim=1)


def measure(num_draws: int) -> dict[tuple[int, int], Tensor]:
    """Returns the shares, `[num_intervals, num_deviations]`, by the numbers of users and runs."""
    shape = (len(INTERVALS), len(DEVIATIONS))
    counts = {sizes: torch.zeros(shape) for sizes in product(NUM_USERS, NUM_RUNS)}
    batches = list(product(counts, range(len(DEVIATIONS)), range(0, num_draws, NUM_AT_ONCE)))
    for sizes, column, first in tqdm(batches):
        num_users, num_runs = sizes
        values = draw_runs(
            num_runs,
            NUM_AT_ONCE,
            num_users,
            users=SD_OF_USERS,
            runs=DEVIATIONS[column],
            generator=torch.Generator().manual_seed(first),
        )
        counts[sizes][:, column] += held(values)
    return {sizes: count / num_draws for sizes, count in counts.items()}


def table(shares: dict[tuple[int, int], Tensor]) -> str:
    """Returns the table in Markdown."""
    head = ["interval", "users", "seeds", *(f"{x:g}" for x in DEVIATIONS)]
    rows = [head, ["---", *(["---:"] * (len(head) - 1))]]
    for row, interval in enumerate(INTERVALS):
        for (num_users, num_runs), share in shares.items():
            of_deviations = (f"{x:.3f}" for x in share[row].tolist())
            rows.append([interval, f"{num_users:,}", str(num_runs), *of_deviations])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=4000, help="a multiple of 250")
    args = parser.parse_args()
    found = table(measure(args.draws))
    print(found)
    README.write_text(TABLE.sub(found, README.read_text()))


if __name__ == "__main__":
    main()
