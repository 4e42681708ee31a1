"""Checks that a seed decides, from the command line."""

import time
import traceback


def check_seeds(check, first, last=None):
    """Checks one seed, and shows how it fails; or all seeds from the one to the other.

    Args:
        check (callable): Is given a seed, and returns whether it led to numbers. It raises an
            `AssertionError` if anything is wrong.
        first (str): The first seed.
        last (str, optional): The end of the seeds.
    """
    seeds = range(int(first), int(first) + 1 if last is None else int(last))
    num_failed = num_measured = 0
    start = time.process_time()
    for seed in seeds:
        try:
            num_measured += check(seed)
        except AssertionError as failure:
            num_failed += 1
            print(failure, flush=True)
            if last is None:
                traceback.print_exception(failure.__cause__)
    seconds = time.process_time() - start
    print(f"{len(seeds)} cases, {num_measured} to numbers, {num_failed} failed, {seconds:.0f} s")
    return int(num_failed > 0)
