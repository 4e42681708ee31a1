"""Times the splits side by side with a plain sort of the same edges.

    python benchmarks/splits.py

Everything runs in one process, several times in turn, and is reported as the ratio of medians to
`torch.sort` of one 64-bit number for every edge, in random order.
"""

import argparse
from collections.abc import Callable

import torch
from timing import in_turn, machine, medians
from torch_geometric.data import HeteroData
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from pyg_recmetrics.transforms import (
    JoinedUsers,
    KCore,
    LeaveLastOut,
    PerUserSplit,
    SeparatedUsers,
    TemporalSplit,
    check_split,
)

USER_ITEM = ("user", "rates", "item")


def random_graph(num_edges: int, num_users: int, num_items: int) -> HeteroData:
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = num_users, num_items
    # Squares of uniform numbers make some users and items much more active than others.
    user, item = (
        (torch.rand(num_edges, generator=generator, dtype=torch.double) ** 2 * size).long()
        for size in (num_users, num_items)
    )
    data[USER_ITEM].edge_index = torch.stack([user, item])
    data[USER_ITEM].time = torch.randint(2**40, (num_edges,), generator=generator)
    return data


def contenders(data: HeteroData) -> dict[str, Callable[[], object]]:
    edge_index = data[USER_ITEM].edge_index
    number = edge_index[0] * data["item"].num_nodes + edge_index[1]
    undirected = ToUndirected()(data)
    random = RandomLinkSplit(edge_types=USER_ITEM, neg_sampling_ratio=0.0)
    parts = PerUserSplit()(data)
    return {
        "torch.sort of all edges": lambda: number.sort(),
        "RandomLinkSplit of PyG, without negative samples": lambda: random(data),
        "PerUserSplit": lambda: PerUserSplit()(data),
        "PerUserSplit, separated users": lambda: PerUserSplit(users=SeparatedUsers())(data),
        "PerUserSplit, joined users": lambda: PerUserSplit(users=JoinedUsers())(data),
        "PerUserSplit, with reverse edges": lambda: PerUserSplit()(undirected),
        "LeaveLastOut, at random": lambda: LeaveLastOut(time_attr=None)(data),
        "LeaveLastOut, by time": lambda: LeaveLastOut()(data),
        "TemporalSplit": lambda: TemporalSplit()(data),
        "KCore(5)": lambda: KCore(5)(data),
        "check_split": lambda: check_split(*parts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    functions = contenders(random_graph(args.edges, args.users, args.items))
    for function in functions.values():
        function()
    times = in_turn(functions, args.runs)
    median = medians(times)
    bare = median["torch.sort of all edges"]
    print(machine())
    print(f"{args.edges:,} edges, {args.users:,} users, {args.items:,} items")
    print(f"{'':56}{'median':>9}{'ratio':>8}{'runs':>6}")
    for name, seconds in median.items():
        print(f"{name:56}{seconds:8.2f}s{seconds / bare:8.2f}{len(times[name]):6}")


if __name__ == "__main__":
    main()
