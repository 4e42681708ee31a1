"""Recommenders of given scores, functions and lists."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.fast import searching
from tests.support.cases.embeddings import assert_same_ranks
from tests.support.tools.largest_tensor import LargestTensor

TRUTH = torch.tensor([[0, 0, 1], [2, 1, 0]])
TASK = RankingTask(TRUTH, num_users=2, num_items=3)


def test_a_function_may_overwrite_the_users_that_it_is_given():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])

    def overwriting(users):
        result = scores[users]
        users.zero_()
        return result

    for batch_size in (None, 1):
        ranked = rank(overwriting, TASK, batch_size=batch_size, keep_items=True)
        wanted = rank(scores, TASK, keep_items=True)
        assert torch.equal(ranked.rank, wanted.rank)
        assert torch.equal(ranked.pred_index_mat, wanted.pred_index_mat)


DTYPES = [torch.half, torch.bfloat16, torch.float, torch.double]


@settings(max_examples=100)
@given(
    data=st.data(),
    seed=st.integers(0, 2**30),
    num_items=st.integers(20, 600),
    num_levels=st.sampled_from([1, 5, 10**6]),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(["matrix", "function", "one score per item"]),
)
@pytest.mark.filterwarnings("ignore:.*have a score of '-inf'")
@pytest.mark.filterwarnings("ignore:.*taken out of the truth")
def test_a_search_of_given_scores_finds_what_sorting_does(
    data, seed, num_items, num_levels, dtype, form
):
    generator = torch.Generator().manual_seed(seed)
    shape = (5, num_items)
    scores = (torch.randint(-num_levels, num_levels, shape, generator=generator) / 64).to(dtype)
    share_masked = data.draw(st.sampled_from([0, 0.1, 0.9]))
    is_masked = torch.rand(shape, generator=generator) < share_masked
    is_masked[:, 0] = False
    scores.masked_fill_(is_masked, -torch.inf)
    recommender = {
        "matrix": scores,
        "function": lambda users: scores[users],
        "one score per item": scores[0],
    }[form]
    candidates = torch.arange(0, num_items, data.draw(st.sampled_from([1, 2, 7])))
    pairs = [torch.randint(n, (30,), generator=generator) for n in shape]
    task = RankingTask(
        torch.tensor([[0, 0, 1, 3], [0, 14, 0, 7]]),  # users 2 and 4 have no truth
        num_users=5,
        num_items=num_items,
        seen=torch.stack([pairs[0], pairs[1].clamp(min=1)]),
        candidates=data.draw(st.sampled_from([None, candidates])),
    )
    k = data.draw(st.integers(1, 10) | st.integers(1, num_items - 1))
    options = {"k": k, "keep_items": data.draw(st.booleans())}
    dense = rank(recommender, task, algorithm="dense", **options)
    batch_size = data.draw(st.sampled_from([None, 1, 2]))
    ranked = rank(recommender, task, algorithm="search", batch_size=batch_size, **options)
    assert_same_ranks(ranked, dense)
    assert torch.equal(ranked.num_candidates, dense.num_candidates)
    if options["keep_items"]:
        assert torch.equal(ranked.pred_index_mat, dense.pred_index_mat)


@pytest.mark.parametrize("algorithm", ["dense", "search"])
@pytest.mark.parametrize("options", [{}, {"keep_items": True}, {"batch_size": 2}])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_given_scores_are_never_written_to(algorithm, options, dtype, tmp_path):
    generator = torch.Generator().manual_seed(0)
    truth, seen = (torch.randint(30, (2, 60), generator=generator) for _ in range(2))
    task = RankingTask(
        truth[:, truth[1] < 10], num_users=30, num_items=400, seen=seen[:, seen[1] >= 10]
    )
    table = torch.randn(30, 400, generator=generator).numpy().astype(dtype)
    before = table.copy()
    whole = torch.from_numpy(table)
    for recommender in (table, whole, whole[0]):
        rank(recommender, task, k=7, algorithm=algorithm, **options)
    options = options | {"batch_size": 1}
    rank(lambda users: whole[users[0] :][:1], task, k=7, algorithm=algorithm, **options)
    assert np.array_equal(table, before)
    # To write to a file that is mapped for reading would end the process.
    table.tofile(tmp_path / "scores")
    mapped = np.memmap(tmp_path / "scores", dtype=dtype, mode="r", shape=table.shape)
    ranked = rank(mapped, task, k=7, algorithm=algorithm, **options)
    assert_same_ranks(ranked, rank(table, task, k=7, algorithm="dense"))


def test_a_given_matrix_is_not_copied(monkeypatch):
    monkeypatch.setattr(searching, "NUM_VALUES", 2048)
    scores = torch.rand(50, 2000, generator=torch.Generator().manual_seed(0))
    task = RankingTask(torch.arange(50).repeat(2, 1), num_users=50, num_items=2000)
    for options in ({}, {"keep_items": True}):
        with LargestTensor() as largest:
            rank(scores, task, k=5, algorithm="search", **options)
        assert 0 < largest.numel < scores.numel() // 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_precisions_are_taken(dtype):
    scores = torch.tensor([[0, 2, 1], [2, 0, 1]], dtype=dtype)
    for recommender in (scores, lambda users: scores[users], (scores, torch.eye(3, dtype=dtype))):
        assert rank(recommender, TASK).rank.tolist() == [1, 2, 1]


WRONG_SCORES = [
    (torch.rand(2, 3).to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    (torch.rand(2, 3).to(torch.float8_e4m3fn), r"16 to 64 bits \(got torch.float8_e4m3fn\)"),
    (torch.rand(2, 3).to(torch.float8_e5m2), r"16 to 64 bits \(got torch.float8_e5m2\)"),
    (torch.rand(2, 3, dtype=torch.complex64), "torch.complex64"),
    (torch.rand(2, 3) > 0.5, "torch.bool"),
    (torch.tensor(0.5), r"shape \[2, 3\] \(got \[\]\)"),
    (torch.empty(0, 0), r"shape \[2, 3\] \(got \[0, 0\]\)"),
    (torch.rand(2, 3, 1), r"shape \[2, 3\] \(got \[2, 3, 1\]\)"),
]


@pytest.mark.parametrize(("scores", "message"), WRONG_SCORES)
def test_wrong_scores_are_named(scores, message):
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank(scores, TASK)
    with pytest.raises(ValueError, match=rf"'recommender\(\)' needs to .*{message}"):
        rank(lambda users: scores, TASK)


@pytest.mark.parametrize(("part", "message"), WRONG_SCORES[:5])
def test_wrong_embeddings_are_named(part, message):
    for recommender in ((part, torch.rand(3, 3)), (torch.rand(2, 2), part.transpose(0, 1))):
        with pytest.raises(ValueError, match="'recommender' needs to "):
            rank(recommender, TASK)
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank((part, torch.rand(3, 3)), TASK)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        ((torch.empty(2, 0), torch.empty(3, 0)), r"one dimension or more \(got 0\)"),
        ((torch.empty(2, 0), torch.empty(3, 0), torch.rand(3)), r"one dimension or more"),
        ((torch.rand(()), torch.rand(3, 3)), r"user embeddings of shape"),
        (torch.empty(2, 0).long(), r"item ids of shape \[2, K\] \(got \[2, 0\]\)"),
        (torch.tensor(3), r"item ids of shape \[2, K\] \(got \[\]\)"),
        (torch.empty(0), r"one score per item of shape \[3\] \(got \[0\]\)"),
        (torch.zeros(2, 3).long().to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    ],
)
def test_what_is_empty_is_named(recommender, message):
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank(recommender, TASK)


class TestIntegers:
    task = RankingTask([[0, 0, 1], [2, 3, 0]], num_users=2, num_items=4)

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.long])
    @pytest.mark.parametrize(
        "as_array", [torch.Tensor.clone, torch.Tensor.numpy, torch.Tensor.tolist]
    )
    def test_scores_are_no_lists(self, dtype, as_array):
        counts = torch.tensor([[3, 2, 1, 0], [0, 1, 0, 3]], dtype=dtype)
        with pytest.raises(ValueError, match=r"write evaluate\(recommender.float\(\).*\[:, :20\]"):
            rank(as_array(counts), self.task)
        assert rank(counts.float(), self.task).rank.tolist()

    def test_one_user_of_many_tells_that_they_are_scores(self):
        scores = torch.rand(700_000, 7).argsort()
        task = RankingTask([[0], [1]], num_users=700_000, num_items=7)
        rank(scores, task)
        scores[650_000, 0] = scores[650_000, 1]
        with pytest.raises(ValueError, match="some repeat in a row"):
            rank(scores, task)

    @pytest.mark.parametrize(
        "lists",
        [
            torch.rand(2, 4).argsort(),
            torch.tensor([[2, 1, 0, 3], [0, -1, -1, -1]]),
            torch.tensor([[-1, -1, -1, -1], [0, -1, 2, -1]]),
        ],
    )
    def test_full_lists_stay_lists(self, lists):
        found = rank(lists, self.task, keep_items=True, full=True)
        assert torch.equal(found.pred_index_mat, lists)

    def test_items_that_come_twice_are_warned_about(self):
        lists = torch.tensor([[2, 2, 3], [0, -1, -1]])
        with pytest.warns(UserWarning, match="recommends an item more than once to a user"):
            ranked = rank(lists, self.task, k=3)
        assert ranked.rank.tolist() == [1, 3, 1]

    @pytest.mark.parametrize("as_rows", [list, tuple, lambda rows: [*map(torch.tensor, rows)]])
    @pytest.mark.parametrize("num_users", [2, 3, 4])  # two and three may be parts of embeddings
    def test_nested_lists_are_lists(self, as_rows, num_users):
        rows = [[2, 1], [3, 0], [0, 1], [1, 2]][:num_users]
        task = RankingTask([[0, 1], [1, 3]], num_users=num_users, num_items=4)
        assert rank(as_rows(rows), task, k=2).rank.tolist() == [2, 1]

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([[2, 1], [3]], r"lists of one length.*dict\(zip.*got 1 to 2 items"),
            ([["a", "b"], ["c", "d"]], r"dict\(zip\(task.user_ids, lists\)\).*starts with 'a'"),
            ([[2], [1], [0]], r"item ids of shape \[2, K\] \(got \[3, 1\]\)"),
        ],
    )
    def test_other_nested_lists_are_named(self, rows, message):
        with pytest.raises(ValueError, match=message):
            rank(rows, self.task)
