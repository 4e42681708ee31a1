"""Times how the cost of a ranking grows, and writes it to `benchmarks/growth.json`.

    python benchmarks/growth.py

Each series changes one number: users, items, dimensions, k, or the relevant items R of a user. At
each point, one process times ranks down to k, ranks with lists of k items, all ranks, and the bare
product of all users and items, in turn. The shortest times count, since other programs that run
between two points only add to them. `python docs/pictures.py` draws them.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from embeddings import product_in_strips, random_embeddings
from timing import in_turn, machine

from pyg_recmetrics import rank

FILE = Path(__file__).resolve().parent / "growth.json"

#: What does not change in a series.
FIXED = {"users": 4_000, "items": 40_000, "dimensions": 64, "k": 20, "R": 7}

#: The points of each series, and what is fixed at another number there.
SERIES: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "users": ((1_000, 2_000, 4_000, 8_000, 16_000), {}),
    "items": ((10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000), {"users": 128}),
    "dimensions": ((16, 32, 64, 128, 256), {}),
    "k": ((10, 20, 50, 100, 200, 500, 1_000), {}),
    "R": ((1, 3, 10, 30, 100, 300, 1_000), {"users": 2_000}),
}


def measure(sizes: dict[str, int], num_runs: int) -> dict[str, float]:
    """Returns the seconds of everything that is timed at one point."""
    data = random_embeddings(
        sizes["users"], sizes["items"], dim=sizes["dimensions"], num_relevant=sizes["R"]
    )
    pair = (data.user, data.item)
    functions: dict[str, Callable[[], object]] = {
        "bare product": partial(product_in_strips, data),
        "ranks down to k": partial(rank, pair, data.task, k=sizes["k"]),
        "lists of k items": partial(rank, pair, data.task, k=sizes["k"], keep_items=True),
        "all ranks": partial(rank, pair, data.task, full=True),
    }
    for function in functions.values():
        function()
    times = in_turn(functions, num_runs)
    return {name: round(min(seconds), 4) for name, seconds in times.items()}


def write(growth: dict[str, Any]) -> None:
    """Writes the file with one line for each series, in which changes can be seen."""
    lines = (f"{json.dumps(name)}: {json.dumps(series)}" for name, series in growth.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--series", nargs="+", choices=SERIES, default=list(SERIES))
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    print(machine(), flush=True)
    growth = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in args.series:
        points, other = SERIES[name]
        fixed = FIXED | other
        del fixed[name]
        seconds = []
        for point in points:
            seconds.append(measure(fixed | {name: point}, args.runs))
            shown = ", ".join(f"{what} {value:.3f} s" for what, value in seconds[-1].items())
            print(f"{name} {point:,}: {shown}", flush=True)
        by_what = {what: [each[what] for each in seconds] for what in seconds[0]}
        growth[name] = {"fixed": fixed, "points": points, "seconds": by_what}
        write(growth)


if __name__ == "__main__":
    main()
