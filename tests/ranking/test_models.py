"""Models are asked by their `recommend`, and it is told if they leave off."""

import re
from contextlib import nullcontext

import pytest
import torch
from torch_geometric.nn import LightGCN
from torch_geometric.utils import to_torch_csr_tensor

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking.models import evaluation_mode, find_doubt
from tests.support.cases.recommender_forms import PlainModel, RecordingModel
from tests.support.cases.small_model import EDGES, NO_EDGES, SCORES, best

#: Models propagate over edges that may be the truth.
pytestmark = pytest.mark.filterwarnings("ignore:.*ground-truth edges leak")

ARGUMENTS = ("edge_index", "src_index", "dst_index", "k")


def mixed_model():
    """A model in training mode with a part that is frozen."""
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout()).train()
    model[0].eval()
    return model


def modes(model):
    return [module.training for module in model.modules()]


@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt])
def test_every_part_is_left_in_its_own_mode(error):
    model = mixed_model()
    before = modes(model)
    assert before == [True, False, True]

    with pytest.raises(error) if error else nullcontext(), evaluation_mode(model):
        assert modes(model) == [False] * 3
        assert not torch.is_grad_enabled()
        if error is not None:
            raise error
    assert modes(model) == before
    assert torch.is_grad_enabled()


def test_a_model_that_cannot_be_put_in_eval_mode_is_left_as_it_was():
    class Stubborn(torch.nn.Sequential):
        def eval(self):
            self[0].eval()
            raise RuntimeError("no")

    model = Stubborn(torch.nn.Dropout())
    with pytest.raises(RuntimeError, match="no"), evaluation_mode(model):
        pass
    assert modes(model) == [True, True]


TASK_OF_FOUND_MODEL = RankingTask(torch.tensor([[0, 0, 1], [0, 3, 4]]), num_users=2, num_items=5)
SEEN_TASK = RankingTask(
    torch.tensor([[0, 0, 1], [1, 3, 4]]),
    num_users=2,
    num_items=5,
    seen=torch.tensor([[0, 1], [0, 3]]),
    candidates=torch.tensor([0, 1, 3, 4]),
)
ITEMS = torch.arange(2, 7)
WEIGHT = torch.tensor([0.5, 2.0, 0.5, 2.0])


def test_without_a_signature_it_is_asked_as_that_of_pyg():
    class Compiled:
        __signature__ = "hidden"

        def __call__(self, edge_index, src_index, dst_index, k):
            assert torch.equal(edge_index, EDGES)
            return best(src_index, dst_index, k)

    ranked = rank(Passing(Compiled()), TASK_OF_FOUND_MODEL, k=2, edge_index=EDGES)
    assert torch.equal(ranked.rank, rank(SCORES, TASK_OF_FOUND_MODEL, k=2).rank)


def forms(record):
    """Yields `recommend` in forms that take edges and weights, and in one that takes neither."""

    def as_pyg_does(edge_index, edge_weight=None, src_index=None, dst_index=None, k=1):
        return record(src_index, dst_index, k, edge_index, edge_weight)

    def without_defaults(edge_index, edge_weight, src_index, dst_index, k):
        return record(src_index, dst_index, k, edge_index, edge_weight)

    def by_name_only(*, k, dst_index, src_index, edge_weight, edge_index, heat=1):
        return record(src_index, dst_index, k, edge_index, edge_weight)

    def passing_on(*args, **given):
        return as_pyg_does(*args, **given)

    def of_users(users, k=10, *, heat=1):
        return record(users, ITEMS, k) - 2

    yield from (as_pyg_does, without_defaults, by_name_only, passing_on, of_users)


class TestForms:
    """Whatever `recommend` looks like, it is given the same, and its ranks are those of scores."""

    @pytest.mark.parametrize("weight", [None, WEIGHT])
    @pytest.mark.parametrize("batch_size", [None, 1])
    def test_it_is_given_what_it_takes(self, weight, batch_size):
        got = []

        def record(src_index, dst_index, k, *edges):
            got.append(edges)
            return best(src_index, dst_index, k)

        for task in (TASK_OF_FOUND_MODEL, SEEN_TASK):
            weighted = task._with(edge_index=EDGES, edge_weight=weight)
            for recommend in forms(record):
                ranked = rank(Passing(recommend), weighted, batch_size=batch_size)
                assert torch.equal(ranked.rank, rank(SCORES, task).rank)
        for edge_index, edge_weight in filter(None, got):
            assert torch.equal(edge_index, EDGES)
            assert edge_weight is weight

    def test_weights_without_a_place_for_them_are_an_error(self):
        def recommend(edge_index, src_index, dst_index, k):
            return best(src_index, dst_index, k)

        task = TASK_OF_FOUND_MODEL._with(edge_index=EDGES, edge_weight=WEIGHT)
        message = (
            r"'recommender.recommend\(\)' needs to take 'edge_weight', as the edges have weights "
            r"\(got recommend\(edge_index, src_index, dst_index, k\)\)"
        )
        with pytest.raises(ValueError, match=message):
            rank(recommend, task)


class Passing:
    """An object whose `recommend` is a function of its own."""

    def __init__(self, recommend):
        self.recommend = recommend


class TestWhoIsAsked:
    def test_an_instance_may_have_a_recommend_of_its_own(self):
        model = LightGCN(7, embedding_dim=4, num_layers=1)
        model.recommend = lambda edge_index, src_index, dst_index, k: best(src_index, dst_index, k)

        class Replaced(LightGCN):
            def recommend(self, *, edge_index, src_index, dst_index, k):
                return best(src_index, dst_index, k)

        for own in (model, Replaced(7, embedding_dim=4, num_layers=1)):
            ranked = rank(own, TASK_OF_FOUND_MODEL, k=2, edge_index=EDGES)
            assert torch.equal(ranked.rank, rank(SCORES, TASK_OF_FOUND_MODEL, k=2).rank)

    def test_the_recommend_of_another_lightgcn_is_that_of_the_other(self):
        model, other = (LightGCN(7, embedding_dim=4, num_layers=1) for _ in range(2))
        model.recommend = other.recommend
        ranked = rank(model, TASK_OF_FOUND_MODEL, full=True, edge_index=EDGES)
        assert torch.equal(
            ranked.rank, rank(other, TASK_OF_FOUND_MODEL, full=True, edge_index=EDGES).rank
        )
        assert not torch.equal(
            ranked.rank,
            rank((-SCORES, torch.eye(5)), TASK_OF_FOUND_MODEL, full=True, edge_index=EDGES).rank,
        )

    def test_other_methods_are_functions_of_users(self):
        class Model(torch.nn.Module):
            def scores(self, users):
                assert not self.training
                return SCORES[users]

            def recommend(self, users):
                return SCORES[users]

        model = Model()
        wanted = rank(SCORES, TASK_OF_FOUND_MODEL, k=2).rank
        for function in (model.scores, model.recommend):
            assert torch.equal(rank(function, TASK_OF_FOUND_MODEL, k=2).rank, wanted)

    def test_wrappers_of_pytorch_are_looked_through(self):
        model = LightGCN(7, embedding_dim=4, num_layers=1)
        wanted = rank(model, TASK_OF_FOUND_MODEL, full=True, edge_index=EDGES).rank
        compiled = torch.compile(model)
        for wrapped in (
            compiled,
            torch.compile(torch.nn.DataParallel(model)),
            torch.nn.DataParallel(compiled),
            torch.optim.swa_utils.AveragedModel(model),
        ):
            wrapped.train()
            for algorithm in ("auto", "recommend"):
                options = {"full": True, "edge_index": EDGES, "algorithm": algorithm}
                assert torch.equal(rank(wrapped, TASK_OF_FOUND_MODEL, **options).rank, wanted)
            assert all(module.training for module in wrapped.modules())

    @pytest.mark.parametrize("embedding", [torch.rand(6, 4), torch.rand(7), torch.rand(7, 4) / 0])
    def test_a_lightgcn_with_other_embeddings_is_named(self, embedding):
        class Other(LightGCN):
            def get_embedding(self, edge_index, edge_weight=None):
                return embedding

        with pytest.raises(ValueError, match="'recommender"):
            rank(Other(7, 4, 1), TASK_OF_FOUND_MODEL, edge_index=EDGES)


NUM_USERS, NUM_ITEMS = 4, 6

#: Every user and every item has an edge. User 0 and item 0 share an id, as in a self-loop.
LOCAL = torch.tensor([[0, 0, 1, 1, 2, 3, 3], [0, 1, 2, 3, 4, 5, 0]])
FORWARD = LOCAL + torch.tensor([[0], [NUM_USERS]])
BOTH = torch.cat([FORWARD, FORWARD.flip([0])], dim=1)
FRIENDS = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
SIMILAR = FRIENDS + NUM_USERS
LOOPS = torch.arange(NUM_USERS + NUM_ITEMS).expand(2, -1)


def doubt(*edges, num_users=NUM_USERS):
    return find_doubt(torch.cat(edges, dim=1), num_users)


@pytest.mark.parametrize(
    "edges", [(BOTH, LOOPS), (LOOPS,), (BOTH[:, :0],), (FORWARD, FORWARD.flip([0])[:, :4])]
)
def test_sensible_graphs_are_not_doubted(edges):
    assert doubt(*edges) is None


@pytest.mark.parametrize(
    ("edges", "problem"),
    [
        ((FORWARD,), "7 edges run from users to items, 0 run from items to users"),
        ((FORWARD, FORWARD.flip([0])[:, :3]), ", 3 run from items to users"),
        ((FORWARD.flip([0]),), " 0 edges run from users to items"),
        ((BOTH, FRIENDS), "and 4 connect two users or two items"),
        ((LOCAL,), "2 edges run from users to items, 0 .* and 4 connect"),
        ((FRIENDS, SIMILAR), "and 8 connect two users"),
    ],
)
def test_what_is_odd_is_told(edges, problem):
    message = doubt(*edges)
    assert re.search(problem, message), message
    assert "'num_users' (4) on" in message


class TestModels:
    task = RankingTask(LOCAL, num_users=NUM_USERS, num_items=NUM_ITEMS)
    scores = torch.rand(NUM_USERS, NUM_ITEMS)

    @pytest.mark.parametrize(
        "model",
        [
            LightGCN(NUM_USERS + NUM_ITEMS, 4, 1),
            RecordingModel(scores, NUM_USERS),
            PlainModel(scores, NUM_USERS),
        ],
    )
    def test_models_that_propagate_warn_once(self, model):
        with pytest.warns(UserWarning, match="'edge_index' looks odd") as warned:
            rank(model, self.task, edge_index=FORWARD, batch_size=1)
        odd = [warning for warning in warned if "odd" in str(warning.message)]
        assert [warning.filename for warning in odd] == [__file__]
        rank(model, self.task, edge_index=BOTH)
        rank(self.scores, self.task, edge_index=FORWARD)

    @pytest.mark.filterwarnings("ignore:Sparse")  # which PyTorch calls beta
    def test_sparse_matrices_are_looked_at(self):
        model = LightGCN(NUM_USERS + NUM_ITEMS, 4, 1)
        size = (NUM_USERS + NUM_ITEMS,) * 2
        transposed = to_torch_csr_tensor(FORWARD.flip([0]), size=size)
        with pytest.warns(UserWarning, match=", 0 run from items to users"):
            by_matrix = rank(model, self.task, edge_index=transposed)
        with pytest.warns(UserWarning, match=", 0 run from items to users"):
            by_edges = rank(model, self.task, edge_index=FORWARD)
        assert torch.equal(by_matrix.rank, by_edges.rank)
        rank(model, self.task, edge_index=to_torch_csr_tensor(BOTH, size=size))


@pytest.mark.parametrize(
    "recommend",
    [
        lambda edge_index, src_index, dst_index: src_index,
        lambda graph, src_index, dst_index, k: k,
        lambda edge_index, src_index, dst_index, k, /: k,
        lambda src_index, dst_index, k: k,
        lambda users, not_these, k: users,
        lambda users, *, heat, k: users,
        lambda first, k: first,
        lambda user: user,
        lambda: None,
    ],
)
def test_other_forms_are_refused(recommend):
    with pytest.raises(TypeError, match=r"'recommender.recommend\(\)' needs to have one") as told:
        rank(Passing(recommend), TASK_OF_FOUND_MODEL, edge_index=NO_EDGES)
    _, *lines = str(told.value).splitlines()
    assert lines[:2] == [f"  - recommend({', '.join(ARGUMENTS)})", "  - recommend(users, k)"]
    assert lines[2].startswith("For any other, pass a function of users")


def test_items_without_their_place_are_numbered_from_zero():
    task = RankingTask(torch.tensor([[0, 1], [30, 30]]), num_users=25, num_items=40)
    with pytest.raises(ValueError, match=r"in \[0, 5\), or -1: a model that is given items"):
        rank(Passing(lambda users, k: best(users, ITEMS, k)), TASK_OF_FOUND_MODEL)
    shifted = Passing(lambda users, k: torch.arange(25, 40).repeat(len(users), 1))
    with pytest.warns(UserWarning, match="no item below 25, the number of users"):
        rank(shifted, task, k=15)
    few = Passing(lambda users, k: torch.tensor([[25, 26, 30]] * len(users)))
    rank(few, task, k=3)  # as the most popular items may well be


def test_the_mode_of_a_model_is_kept_by_calls_that_overlap():
    model = torch.nn.Dropout().train()
    first, second = evaluation_mode(model), evaluation_mode(model)
    # Both change whether gradients are on, and end in an order in which calls of one thread cannot.
    with torch.enable_grad():
        with first:
            second.__enter__()
        assert not model.training
        second.__exit__(None, None, None)
    assert model.training
    assert torch.is_grad_enabled()
