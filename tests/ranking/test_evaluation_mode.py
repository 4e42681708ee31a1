"""Models are ranked in eval mode and left as they were found, by one thread or several."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking import evaluation_mode as room
from pyg_recmetrics.ranking.evaluation_mode import evaluation_mode
from tests.support.cases.recommender_forms import RecordingModel

TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def mixed_model():
    """A model in training mode with a part that is frozen."""
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout()).train()
    model[0].eval()
    return model


def modes(model):
    return [module.training for module in model.modules()]


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    yield
    assert not room._modes


@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt])
def test_every_part_is_left_in_its_own_mode(error):
    model = mixed_model()
    before = modes(model)
    assert before == [True, False, True]

    def use():
        with evaluation_mode(model):
            assert modes(model) == [False] * 3
            assert not torch.is_grad_enabled()
            if error is not None:
                raise error

    if error is None:
        use()
    else:
        with pytest.raises(error):
            use()
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


def test_evaluations_inside_of_others_restore_nothing_too_early():
    model = mixed_model()
    before = modes(model)
    with evaluation_mode(model):
        with evaluation_mode(model):
            pass
        assert modes(model) == [False] * 3
    assert modes(model) == before


@torch.enable_grad()  # as the two overlap in one thread, which mixes up gradients
def test_models_that_share_a_part_leave_it_as_the_first_found_it():
    shared = torch.nn.Dropout()
    first, second = torch.nn.Sequential(shared), torch.nn.Sequential(shared, torch.nn.Dropout())
    one, other = evaluation_mode(first), evaluation_mode(second)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert modes(first) == [True, False]  # the second still needs the shared part
    assert modes(second) == [False] * 3
    other.__exit__(None, None, None)
    assert modes(first) == [True, True]
    assert modes(second) == [True] * 3


class Holder:
    """An object that is no module, but has one."""

    def __init__(self):
        self.model = mixed_model()

    def scores(self, users):
        assert modes(self.model) == [False] * 3
        return torch.rand(len(users), 3)

    def recommend(self, edge_index, src_index, dst_index, k):
        assert modes(self.model) == [False] * 3
        return dst_index[:k].expand(len(src_index), -1)


@pytest.mark.parametrize(
    "form",
    [
        lambda holder: holder,
        lambda holder: holder.recommend,
        lambda holder: holder.scores,
        lambda holder: functools.partial(holder.scores),
    ],
)
def test_modules_of_an_object_are_in_eval_mode(form):
    holder = Holder()
    rank(form(holder), TASK, edge_index=NO_EDGES)
    assert modes(holder.model) == [True, False, True]


def test_the_module_whose_method_was_borrowed_is_in_eval_mode():
    lender, borrower = Holder(), torch.nn.Identity()
    borrower.recommend = lender.recommend
    rank(borrower, TASK, edge_index=NO_EDGES)
    assert modes(lender.model) == [True, False, True]


def test_threads_share_a_model():
    """Two evaluations overlap, so that the first ends while the second is still ranking."""
    both_rank, first_is_done = threading.Barrier(2, timeout=20), threading.Event()
    seen = []

    class Model(RecordingModel):
        def recommend(self, *args, **options):
            both_rank.wait()
            if threading.current_thread().name.endswith("_1"):
                assert first_is_done.wait(20)
            seen.append(self.training)
            return super().recommend(*args, **options)

    model = Model(torch.rand(2, 3), 2).train()

    def evaluate(number):
        threading.current_thread().name = f"evaluation_{number}"
        rank(model, TASK, edge_index=NO_EDGES)
        first_is_done.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(evaluate, range(2)))
    assert seen == [False, False]
    assert model.training


def test_many_threads_never_rank_in_training_mode():
    seen = []

    class Model(RecordingModel):
        def recommend(self, *args, **options):
            seen.append(self.training)
            return super().recommend(*args, **options)

    model = Model(torch.rand(2, 3), 2).train()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: rank(model, TASK, edge_index=NO_EDGES, batch_size=1), range(100)))
    assert len(seen) == 200
    assert not any(seen)
    assert model.training
