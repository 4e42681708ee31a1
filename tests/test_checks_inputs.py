"""The door: whatever holds the same numbers gives the same results, and all else is named."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import LightGCN

from pyg_recmetrics import (
    Catalogue,
    Evaluator,
    RankedEdges,
    RankingTask,
    checks,
    datasets,
    evaluate,
    modules,
    rank,
    transforms,
)

TRUTH = torch.tensor([[0, 0, 1, 2], [1, 3, 2, 0]])
SEEN = torch.tensor([[0, 1, 1, 2], [0, 0, 3, 2]])
NUM_USERS, NUM_ITEMS = 3, 4
SCORES = torch.rand(NUM_USERS, NUM_ITEMS, generator=torch.Generator().manual_seed(0))
METRICS = ["recall@1", "mrr@3", "ndcg@2", "roc_auc"]

#: Seen edges in both directions, as a homogeneous graph numbers them.
SHIFT = torch.tensor([[0], [NUM_USERS]])
BOTH = torch.cat([SEEN + SHIFT, (SEEN + SHIFT).flip(0)], dim=1)


def edge_forms(edges):
    """The same edges in everything that people hold, by name."""
    matrix = torch.zeros(NUM_USERS, NUM_ITEMS)
    matrix[tuple(edges)] = 1
    scipy_matrix = scipy.sparse.csr_matrix(matrix.numpy())
    shape = (NUM_USERS, NUM_ITEMS)
    with_zeros = scipy.sparse.coo_array(
        (np.array([*np.ones(edges.size(1)), 0.0]), ([*edges[0], 1], [*edges[1], 1])), shape
    )
    return {
        "EdgeIndex": EdgeIndex(edges, sparse_size=shape),
        "sorted EdgeIndex": EdgeIndex(edges, sparse_size=shape).sort_by("col")[0],
        "int32": edges.int(),
        "array": edges.numpy(),
        "big-endian array": edges.numpy().astype(">i8"),
        "reversed array": edges.flip(1).numpy()[:, ::-1],
        "read-only array": np.broadcast_to(edges.numpy(), edges.shape),
        "lists": edges.tolist(),
        "pair of tensors": (edges[0], edges[1]),
        "pair of columns": [pd.Series(edges[0]), pl.Series(edges[1].numpy())],
        "torch COO": matrix.to_sparse(),
        "torch CSR": matrix.to_sparse_csr(),
        "scipy CSR": scipy_matrix,
        "scipy LIL": scipy_matrix.tolil(),
        "stored zeros": with_zeros,
        "booleans": scipy_matrix.astype(bool),
    }


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Sparse CS[RC] tensor support")
    NAMES = list(edge_forms(TRUTH))
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CS[RC] tensor support:UserWarning")


def pairs(edges):
    return sorted(zip(*edges.tolist(), strict=True))


def numbers_of(truth, seen, own):
    """What every door makes of edges."""
    task = RankingTask(truth, num_users=3, num_items=4, seen=seen, candidates=own)
    lists, metric = SCORES.argsort(descending=True), modules.NDCG(k=2)
    ranked, catalogue = RankedEdges.from_topk(lists, truth), Catalogue(4, seen=seen)
    metric.update(lists, truth)
    assert task.weight is ranked.weight is None
    assert type(catalogue.seen) is torch.Tensor
    yield from (task.truth, task.seen, task.candidates, ranked.rank, metric.compute())
    yield from (catalogue.popularity, *evaluate(SCORES, task, METRICS).per_user.values())


@pytest.mark.parametrize("name", NAMES)
def test_edges_of_every_form_are_the_same_at_every_door(name):
    forms = (edge_forms(edges)[name] for edges in DRAWN.values())
    for one, other in zip(numbers_of(*forms), numbers_of(*DRAWN.values()), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


#: Truth, seen edges and candidates.
DRAWN = {
    "truth": TRUTH,
    "seen": SEEN,
    "own": torch.tensor([[0, 0, 0, 1, 1, 1, 2, 2], [1, 2, 3, 1, 2, 3, 0, 1]]),
}


def torch_coo(index, values, shape):
    return torch.sparse_coo_tensor(index, values, shape, check_invariants=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.half, torch.bool])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_parts_of_an_entry_are_added_up_without_overflow(dtype, layout):
    ones = torch.ones(257, dtype=dtype)
    if layout == torch.sparse_coo:
        index = torch.tensor([[0] * 256 + [1], [1] * 256 + [0]])
        matrix = torch_coo(index, ones, (2, 3))
    else:  # which may hold an entry twice, although it is not checked then
        index = torch.tensor([1] * 256 + [0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = torch.sparse_csr_tensor(torch.tensor([0, 256, 257]), index, ones, (2, 3))
    task = RankingTask(matrix, num_users=2, num_items=3)
    assert task.truth.tolist() == [[0, 1], [1, 0]]
    assert task.weight is None if dtype == torch.bool else task.weight.tolist() == [256, 1]
    seen = RankingTask([[0, 1], [0, 1]], num_users=2, num_items=3, seen=matrix).seen
    assert seen.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_an_embedding_is_read_as_a_lookup_gives_it(norm_type):
    user = torch.nn.Embedding(3, 4)
    item = torch.nn.Embedding(20, 4, max_norm=0.5, norm_type=norm_type)
    before = item.weight.detach().clone()
    task = RankingTask([[0, 1, 2], [3, 8, 11]], num_users=3, num_items=20)
    ranked = rank((user, item), task, full=True)
    assert torch.equal(item.weight, before)
    looked_up = item(torch.arange(20)).detach()
    assert not torch.equal(looked_up, before)
    assert torch.equal(ranked.rank, rank((user.weight, looked_up), task, full=True).rank)


def test_weights_of_messages_may_be_integers():
    torch.manual_seed(3)
    model = LightGCN(num_nodes=7, embedding_dim=4, num_layers=2)
    task = RankingTask(TRUTH, num_users=3, num_items=4)
    weight = [1, 5, 2, 1, 1, 5, 2, 1]
    matrix = scipy.sparse.coo_matrix((weight, tuple(BOTH.numpy())), (7, 7))
    embedding = model.get_embedding(BOTH, torch.tensor(weight) / 1.0).detach()
    wanted = evaluate((embedding[:3], embedding[3:]), task, METRICS).to_dict()
    assert evaluate(model, task, METRICS, edge_index=BOTH).to_dict() != wanted
    assert evaluate(model, task, METRICS, edge_index=matrix).to_dict() == wanted
    assert evaluate(model, task, METRICS, edge_index=matrix / 1.0).to_dict() == wanted


class TestMatrices:
    """Sparse matrices that are not in their simplest form."""

    index = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 2, 0, 0]])  # two entries are there twice

    @pytest.mark.usefixtures("expect_lost_truth")
    @pytest.mark.parametrize("values", [[1, 2, 1, 4, 1], [1, 1, 1, 1, 1], [2, -2, 3, 1, -3]])
    def test_entries_in_several_parts_add_up(self, values):
        rows, columns = self.index.numpy()
        coo = scipy.sparse.coo_matrix((np.array(values, dtype=np.int8), (rows, columns)), (3, 4))
        forms = (
            coo.tocsr(),
            coo.toarray(),
            coo,
            torch_coo(self.index, torch.tensor(values), (3, 4)),
        )
        tasks = [RankingTask.from_matrix(test=form) for form in forms]
        tasks += [RankingTask(form, num_users=3, num_items=4) for form in (coo, coo.tocsr())]
        for task in tasks:
            assert torch.equal(task.truth, tasks[0].truth)
            weights = [None if w is None else w.tolist() for w in (task.weight, tasks[0].weight)]
            assert weights[0] == weights[1]

    def test_what_is_not_coalesced_is_left_so(self):
        matrix = torch_coo(self.index, torch.ones(5), (3, 4))
        RankingTask(matrix, num_users=3, num_items=4)
        assert not matrix.is_coalesced()

    @pytest.mark.parametrize("name", ["truth", "seen", "candidates"])
    def test_the_shape_is_that_of_the_task(self, name):
        edges = {"truth": TRUTH, "seen": SEEN, "candidates": DRAWN["own"]}
        for matrix in (torch.eye(9).to_sparse(), EdgeIndex(edges[name], sparse_size=(9, 9))):
            with pytest.raises(ValueError, match=rf"'{name}' .* of shape \[3, 4\] \(got"):
                RankingTask(**edges | {name: matrix}, num_users=3, num_items=4)

    def test_lists_and_truth_have_the_same_users(self):
        matrix = scipy.sparse.csr_matrix((5, 4), dtype=int)
        with pytest.raises(ValueError, match=r"'edge_label_index' .* of shape \[3, any\]"):
            RankedEdges.from_topk(SCORES.argsort(descending=True), matrix)


def test_sparse_tensors_of_torch_sparse():
    sparse = pytest.importorskip("torch_sparse", reason="needs torch_sparse")
    rating = torch.tensor([4.0, 2.0, 5.0, 1.0])
    shape = (NUM_USERS, NUM_ITEMS)
    truth = sparse.SparseTensor(row=TRUTH[0], col=TRUTH[1], value=rating, sparse_sizes=shape)
    seen = sparse.SparseTensor(row=SEEN[0], col=SEEN[1], sparse_sizes=shape)
    tasks = (
        RankingTask(truth, num_users=3, num_items=4, seen=seen),
        RankingTask.from_matrix(train=seen, test=truth),
    )
    wanted = RankingTask(TRUTH, num_users=3, num_items=4, seen=SEEN, weight=rating)
    for task in tasks:
        for field in ("truth", "seen", "weight"):
            assert torch.equal(getattr(task, field), getattr(wanted, field)), field
    ranked = RankedEdges.from_topk(SCORES.argsort(descending=True), truth)
    assert ranked.weight.sum() == rating.sum()


class TestData:
    """`EdgeIndex` in PyG's data, as its loaders and its example of recommendations hold it."""

    def test_hetero(self):
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = NUM_USERS, NUM_ITEMS
        store = data["user", "rates", "item"]
        store.edge_index = EdgeIndex(SEEN, sparse_size=(3, 4)).sort_by("row")[0]
        store.edge_label_index = EdgeIndex(TRUTH, sparse_size=(3, 4))
        task = RankingTask.from_data(data)
        assert pairs(task.truth) == pairs(TRUTH)
        assert pairs(task.seen) == pairs(SEEN)
        assert type(task.edge_index) is torch.Tensor

    @pytest.mark.filterwarnings(
        "ignore:(Sparse invariant checks|Converting sparse tensor):UserWarning"
    )
    @pytest.mark.parametrize("form", ["array", "lists", "scipy", "torch COO", "pair"])
    def test_message_passing_edges_of_any_form(self, form):
        values = np.ones(BOTH.size(1), dtype=np.float32)
        matrix = scipy.sparse.coo_matrix((values, tuple(BOTH.numpy())), (7, 7))
        forms = {
            "array": BOTH.numpy(),
            "lists": BOTH.tolist(),
            "scipy": matrix.tocsr(),
            "torch COO": torch.from_numpy(matrix.toarray()).t().to_sparse(),  # as PyG has it
            "pair": (BOTH[0], BOTH[1].numpy()),
        }
        model = LightGCN(num_nodes=7, embedding_dim=4, num_layers=1)
        task = RankingTask(TRUTH, num_users=3, num_items=4)
        wanted = evaluate(model, task, METRICS, edge_index=BOTH).to_dict()
        evaluator = Evaluator(task, METRICS, edge_index=forms[form]).to("cpu")
        assert evaluator(model).to_dict() == wanted
        assert rank(model, task, full=True, edge_index=forms[form]).depth is None

    def test_a_model_is_given_its_own_edge_index(self):
        given = []

        class Model:
            def recommend(self, edge_index, src_index, dst_index, k):
                given.append(edge_index)
                return dst_index[:k].expand(len(src_index), -1)

        edge_index = EdgeIndex(BOTH, sparse_size=(7, 7))
        task = RankingTask(TRUTH, num_users=3, num_items=4)
        evaluate(Model(), task, "recall@1", edge_index=edge_index)
        assert len(given) > 0
        assert all(edges is edge_index for edges in given)


class TestRecommenders:
    task = RankingTask(TRUTH, num_users=3, num_items=4)
    embeddings = (torch.nn.Embedding(3, 2), torch.nn.Embedding(4, 2))

    def ranks(self, recommender):
        return rank(recommender, self.task, full=True).rank.tolist()

    def test_labels_in_another_order_are_refused(self):
        """Numbers are read by position, so labels that say something else would be ignored."""
        ids = {"user_ids": ["x", "y", "z"], "item_ids": [9, 7, 8, 6]}
        task = RankingTask(TRUTH, num_users=3, num_items=4, **ids)
        scores = pd.DataFrame(SCORES.numpy(), index=ids["user_ids"], columns=ids["item_ids"])
        lists = pd.DataFrame(SCORES.argsort(descending=True)[:, :2].numpy(), index=ids["user_ids"])
        tables = tuple(pd.DataFrame(np.eye(n, 4)) for n in (3, 4))
        for form in (scores, scores.iloc[0], lists, tables):
            rank(form, task)
        by_item = tables[1].set_axis([9, 8, 7, 6])
        for form in (
            scores[::-1],
            scores[[6, 7, 8, 9]],
            scores.iloc[0].sort_index(),
            lists[::-1],
            (tables[0], by_item),
        ):
            with pytest.raises(ValueError, match="'recommender' needs to be labelled by the orig"):
                rank(form, task)
        for name in ("item_embedding", "item_category"):
            with pytest.raises(ValueError, match=f"'{name}' needs to be labelled by the original"):
                Catalogue(4, **{name: by_item})

    def test_arrays_in_files_are_not_copied(self, tmp_path):
        table = np.memmap(tmp_path / "items", dtype=np.float32, mode="w+", shape=(4, 2))
        table[:] = self.embeddings[1].weight.detach().numpy()
        table.flush()
        mapped = np.memmap(tmp_path / "items", dtype=np.float32, mode="r", shape=(4, 2))
        assert checks.as_tensor(mapped, "x").data_ptr() == mapped.ctypes.data
        assert self.ranks((self.embeddings[0], mapped)) == self.ranks(self.embeddings)

    def test_what_requires_a_gradient_leaves_no_graph(self):
        scores = SCORES.clone().requires_grad_()
        ranked = rank(torch.nn.Parameter(SCORES), TRUTH)
        assert torch.equal(ranked.rank, rank(SCORES, TRUTH).rank)
        assert self.ranks(scores) == self.ranks(SCORES)
        weight = torch.rand(4, requires_grad=True)
        assert not RankedEdges.from_topk(SCORES.argsort(), TRUTH, weight).weight.requires_grad
        ranked = RankedEdges.from_pairs(weight, weight, torch.tensor([0, 0, 1, 1]))
        assert not ranked.weight.requires_grad


@pytest.mark.parametrize("of", [np.int64, np.uint8, np.int16, torch.tensor])
def test_integers_of_other_libraries_are_taken(of):
    """Integers of other libraries, wherever there is a size, a cut-off or a seed."""
    task = RankingTask(TRUTH, num_users=of(3), num_items=of(4))
    assert (type(task.num_users), type(task.num_items)) == (int, int)
    ranked = rank(SCORES, task, k=of(2), batch_size=of(2), keep_items=of(1), seed=of(3))
    assert (type(ranked.depth), ranked.lists.to_matrix().shape) == (int, (3, 1))
    for ties in ("random", "mean"):
        rank(SCORES, task, ties=ties, seed=of(3)).with_ties("random", seed=of(1))
    result = evaluate(SCORES, task, "recall@2", batch_size=of(2), keep_items=of(2), seed=of(1))
    split = transforms.PerUserSplit(num_val=of(1), num_test=of(2), seed=of(1))
    again = transforms.PerUserSplit(num_val=1, num_test=2, seed=1)
    graph = datasets.synthetic_interactions(of(20), of(30), mean_degree=5)
    for one, other in zip(split(graph), again(graph), strict=True):
        edges = (part["user", "rates", "item"].edge_label_index for part in (one, other))
        assert torch.equal(*edges)
    assert result["recall@2"] == evaluate(SCORES, task, "recall@2")["recall@2"]
    data = Data(num_nodes=7, edge_index=SEEN, edge_label_index=TRUTH + torch.tensor([[0], [3]]))
    data.edge_index = SEEN + torch.tensor([[0], [3]])
    assert RankingTask.from_data(data, num_users=of(3)).num_users == 3


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "'x' needs to be a tensor, an array or a list of numbers (got NoneType)"),
        ([1, None], ValueError, "'x' needs to hold numbers (got object)"),
        (np.array(["2020"], dtype="M8[Y]"), ValueError, "'x' needs to hold numbers (got datetime"),
        ([[1, 2], [3]], ValueError, "'x' needs to hold numbers in rows of one length"),
        ([torch.ones(2), torch.ones(3)], ValueError, "'x' needs to hold parts of one shape"),
        ([torch.ones(1), torch.ones(1).to("meta")], ValueError, "'x' needs to hold parts on one"),
        (np.ma.masked_array([1, 2], [True, False]), TypeError, "'x' needs to hold a number every"),
        (np.array([2**63], dtype=np.uint64), ValueError, "'x' needs to hold 64-bit integers"),
        (np.zeros(2, dtype=np.longdouble), ValueError, "'x' needs to hold numbers (got"),
        (scipy.sparse.eye(2), TypeError, "'x' needs to be dense, as 'toarray()' makes it"),
        (torch.eye(2).to_sparse(), ValueError, "'x' needs to be a dense tensor (got torch.sparse"),
    ],
)
def test_what_holds_no_numbers_is_named(value, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        checks.as_tensor(value, "x")
