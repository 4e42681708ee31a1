"""Measures how long the package takes to import, beside PyG.

python benchmarks/import_time.py
"""

import statistics
import subprocess
import sys

MEASURE = """
import time
start = time.perf_counter()
import torch_geometric
middle = time.perf_counter()
from pyg_recmetrics import evaluate
print(middle - start, time.perf_counter() - middle)
"""

NUM_RUNS = 11


def main() -> None:
    times = []
    for _ in range(NUM_RUNS):
        run = subprocess.run(
            [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
        )
        times.append([float(number) for number in run.stdout.split()])
    pyg, ours = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"import torch_geometric: {pyg:.2f} s")
    print(f"from pyg_recmetrics import evaluate, after that: {ours:.2f} s ({ours / pyg:.2f} of it)")


if __name__ == "__main__":
    main()
