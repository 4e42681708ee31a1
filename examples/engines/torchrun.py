"""Evaluates in the processes of `torch.distributed`, which `torchrun` starts.

    torchrun --nproc-per-node 2 examples/engines/torchrun.py

Nothing has to be brought home: every process returns the result of all.
"""

import torch.distributed as dist
from problem import METRICS, compare, make

from pyg_recmetrics import distributed, evaluate


def main() -> None:
    dist.init_process_group("gloo")
    task, model = make()  # the same in every process
    result = distributed.evaluate(model, task, METRICS)  # each ranks its part of the users
    if dist.get_rank() == 0:
        compare("torchrun", result, evaluate(model, task, METRICS))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
