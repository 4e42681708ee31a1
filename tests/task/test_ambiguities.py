"""What has two meanings is refused, or said aloud, with what to write instead: one row for each."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from pyg_recmetrics import RankedEdges, RankingTask, evaluate

USERS, ITEMS = 100, 50
RATES = ("user", "rates", "item")


def rated_graph(low=1, high=6):
    generator = torch.Generator().manual_seed(0)
    pair = torch.randperm(USERS * ITEMS, generator=generator)[:1000]
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = USERS, ITEMS
    data[RATES].edge_index = torch.stack([pair // ITEMS, pair % ITEMS])
    data[RATES].edge_label = torch.randint(low, high, (1000,), generator=generator)
    return data


def link_split(data, **options):
    options = {"edge_types": [RATES], "num_val": 0.1, "num_test": 0.2, **options}
    return RandomLinkSplit(**options)(data)


def shifted(*stars, form=torch.Tensor.long, **options):
    def read():
        test = link_split(rated_graph(*stars), **options)[2]
        if "edge_label" in test[RATES]:
            test[RATES].edge_label = form(test[RATES].edge_label)
        return RankingTask.from_data(test, threshold=2)

    return read


def reversed_truth():
    graph = HeteroData({"user": {"num_nodes": USERS}, "item": {"num_nodes": ITEMS}})
    graph["item", "rated_by", "user"].edge_index = rated_graph()[RATES].edge_index.flip([0])
    graph["item", "rated_by", "user"].edge_label_index = torch.tensor([[3], [60]])
    return RankingTask.from_data(graph)


def split_as_directed(**options):
    graph = Data(num_nodes=USERS + ITEMS, num_users=USERS)
    forward = rated_graph()[RATES].edge_index + torch.tensor([[0], [USERS]])
    graph.edge_index = torch.cat([forward, forward.flip([0])], dim=1)
    return RankingTask.from_data(RandomLinkSplit(num_test=0.2)(graph)[2], **options)


def frames(**changes):
    train = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [10, 11, 12], "stars": [1, 5, 3]})
    test = pd.DataFrame({"user_id": [1, 2], "item_id": [11, 12], "stars": [1, 5]})
    given = {"train": train, "test": test, **changes}
    return RankingTask.from_frames(**{name: x for name, x in given.items() if x is not None})


def texts(column):
    return pd.DataFrame({"user_id": [1, 2], "item_id": [11, 12]}).astype({column: str})


SCORES, GRADES = torch.tensor([[0.1, 0.2, 0.3], [0.8, 0.1, 0.05]]), [[0, 1, 0], [1, 0, 0]]

REFUSED = {
    "ratings that sampled negatives have shifted": (shifted(), "neg_sampling_ratio=0.0"),
    "apart": (shifted(split_labels=True), "neg_sampling_ratio=0.0"),
    "ratings beside negatives of one's own": (shifted(2, 5), r"edge_label\.float\(\)"),
    "items as users": (reversed_truth, r"edge_type=\('item', 'rated_by', 'user'\)"),
    "an undirected graph split as directed": (split_as_directed, "is_undirected=True"),
    "users of two types": (lambda: frames(test=texts("user_id")), r"'int'.*'str'|'str'.*'int'"),
    "a frame of items": (lambda: frames(items=texts("item_id")), r"'items' .*frame\['column'\]"),
    "items that are none": (lambda: frames(items=[12, 11]), r"'items' .* 1 item \(10\)"),
    "items that repeat": (lambda: frames(items=[10, 11, 12, 12]), "12 more than once"),
    "a matrix of scores": (lambda: RankedEdges.from_pairs(SCORES, GRADES), "'indexes' .*arange"),
}

SAID = {
    "stars from zero on beside negatives": (shifted(0, 5), r"adds one .*ratio=0\.0.*float\(\)"),
    "stars as labels": (
        lambda: RankingTask.from_data(link_split(rated_graph(), neg_sampling_ratio=0.0)[2]),
        "all 200 ratings .* from 1 to 5. .*'threshold'",
    ),
    "grades that are not read": (
        lambda: frames(
            test=pd.DataFrame({"user_id": [1, 2], "item_id": [11, 12], "label": [0, 1]})
        ),
        "'test' has 1 row whose 'label' .*rating='label'",
    ),
    "stars in a column": (lambda: frames(rating="stars"), "from 1 to 5. .*'threshold'"),
    "a test frame alone": (lambda: frames(train=None), r"items=catalogue\['item_id'\]"),
    "negative grades of pairs": (
        lambda: RankedEdges.from_pairs([0.3, 0.2, 0.1], [-1, 2, 0]),
        "1 numbers of 'target' are negative",
    ),
    "negative grades of lists": (
        lambda: RankedEdges.from_topk([[0, 1]], [[0, 0], [0, 1]], [-1.0, 2.0]),
        "1 numbers of 'edge_label_weight' are negative",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize("case", SAID)
def test_said_once(case):
    make, message = SAID[case]
    with pytest.warns(UserWarning, match=message) as given:
        make()
    assert len(given) == 1


def test_what_is_plain_is_taken_as_it_is():
    graph = rated_graph()
    stars = graph[RATES].edge_label
    of_pair = dict(zip(map(tuple, graph[RATES].edge_index.t().tolist()), stars, strict=True))
    task = RankingTask.from_data(link_split(graph, neg_sampling_ratio=0.0)[2], threshold=4)
    assert all(of_pair[pair] >= 4 for pair in map(tuple, task.truth.t().tolist()))
    shifted(1, 2)()  # all likes: labels of one value
    for low in (0, 1):
        shifted(low, 6, form=torch.Tensor.float)()
    del graph[RATES].edge_label
    both = ToUndirected()(graph)
    test = link_split(both, rev_edge_types=[("item", "rev_rates", "user")])[2]
    assert RankingTask.from_data(test).truth.size(1) == 200


CATALOGUES = {
    "a sequence": list,
    "an array": np.array,
    "a tensor": torch.tensor,
    "a column of pandas": pd.Series,
    "an array of Arrow": pa.array,
}


@pytest.mark.parametrize("form", CATALOGUES)
def test_candidates_are_the_catalogue_whatever_part_is_read(form):
    draw = np.random.default_rng(0)
    item_ids = draw.permutation(300)[:200].tolist()
    frame = pd.DataFrame(
        {"user_id": draw.integers(0, 60, 900), "item_id": draw.choice(item_ids, 900)}
    )
    frame = frame.drop_duplicates()
    train, test = frame[: len(frame) // 2], frame[len(frame) // 2 :]
    items = CATALOGUES[form](item_ids)
    scores = {user: draw.normal(size=200) for user in range(60)}

    def recalls(train, test):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*nothing could be learned")
            task = RankingTask.from_frames(train=train, test=test, items=items)
        assert task.item_ids == tuple(item_ids)  # in the order that was given
        rows = np.stack([scores[user] for user in task.user_ids])
        values = evaluate(rows, task, "recall@20").per_user["recall@20"]
        return dict(zip(task.user_ids, values.tolist(), strict=True))

    whole, parts = recalls(train, test), {}
    for part in range(5):
        parts |= recalls(*(rows[rows.user_id % 5 == part] for rows in (train, test)))
    assert {u: x for u, x in parts.items() if x == x} == {u: x for u, x in whole.items() if x == x}
