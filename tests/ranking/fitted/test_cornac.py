"""Models of Cornac: scores are its own, by its ids."""

import numpy as np
import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    lists_of_scores,
    ranked_lists,
    recipe_of,
    task_of_ids,
    task_of_positions,
)

cornac = pytest.importorskip("cornac")

USER_IDS = [f"u{100 - user}" for user in range(NUM_USERS)]
ITEM_IDS = [f"i{3 * item}" for item in range(NUM_ITEMS)]

MODELS = {
    "BPR": lambda: cornac.models.BPR(k=8, max_iter=5, seed=1, verbose=False),
    "MF": lambda: cornac.models.MF(k=8, max_iter=5, seed=1, verbose=False),
    "ItemKNN": lambda: cornac.models.ItemKNN(k=5, seed=1, verbose=False),
    "MostPop": cornac.models.MostPop,
}


def fitted(name, user_ids=USER_IDS, item_ids=ITEM_IDS):
    # Rows are numbered as they come, so that positions are not rows.
    train = edges()[0].T[np.random.default_rng(1).permutation(edges()[0].shape[1])]
    rows = [
        (user_ids[user], item_ids[item], 1.0 + (3 * user + 5 * item) % 7)
        for user, item in train.tolist()
    ]
    return MODELS[name]().fit(cornac.data.Dataset.from_uir(rows, seed=1))


def own_scores(model, user_ids, item_ids):
    return np.array(
        [
            [model.score(model.uid_map[user])[model.iid_map[item]] for item in item_ids]
            for user in user_ids
        ]
    )


@pytest.mark.parametrize("name", MODELS)
def test_lists_are_those_of_its_own_scores(name):
    model, task = fitted(name), task_of_ids(USER_IDS, ITEM_IDS)
    scores = own_scores(model, USER_IDS, ITEM_IDS)
    assert ranked_lists(model, task, 7) == lists_of_scores(scores, task, 7)
    words = recipe_of(model, task)
    assert f"the scores of {name} of Cornac" in words


def test_numbers_are_those_of_its_own_evaluation():
    model, task = fitted("MF"), task_of_ids(USER_IDS, ITEM_IDS)
    names = {user: row for row, user in enumerate(USER_IDS)}
    train, test = (
        model.train_set,
        [(USER_IDS[user], ITEM_IDS[item], 1.0) for user, item in edges()[1].T.tolist()],
    )
    test_set = cornac.data.Dataset.build(
        test, global_uid_map=train.uid_map, global_iid_map=train.iid_map, exclude_unknowns=True
    )
    metrics = [cornac.metrics.Recall(k=5), cornac.metrics.NDCG(k=5), cornac.metrics.Precision(k=5)]
    theirs, by_user = cornac.eval_methods.base_method.ranking_eval(
        model, metrics, train_set=train, test_set=test_set
    )
    ours = evaluate(model, task, ["recall@5", "ndcg@5", "precision@5"])
    assert len(by_user[0]) == len({*edges()[1][0].tolist()}) <= len(names)
    for name, their in zip(("recall@5", "ndcg@5", "precision@5"), theirs, strict=True):
        assert ours[name] == pytest.approx(their, abs=1e-6)


def test_what_it_does_not_know_is_never_retrieved_and_said():
    with pytest.warns(
        UserWarning, match=r"does not know 1 of 41 items \('other'\)\. They are never"
    ):
        lists = ranked_lists(fitted("MF"), task_of_ids(USER_IDS, [*ITEM_IDS, "other"]), 41)
    assert all(NUM_ITEMS not in row for row in lists)
    with pytest.warns(UserWarning, match=r"does not know 1 of 31 users \('new'\)\. They count as"):
        lists = ranked_lists(fitted("MF"), task_of_ids([*USER_IDS, "new"], ITEM_IDS), 40)
    assert {*lists[NUM_USERS]} == {-1}
    with pytest.raises(ValueError, match=r"got none of 0, 1, .* that Cornac knows: 'u"):
        evaluate(fitted("MF"), task_of_positions(), ["recall@5"])


def test_a_fit_is_needed():
    with pytest.raises(ValueError, match=r"needs to be fitted \(got a MF of Cornac without a fit"):
        evaluate(cornac.models.MF(), task_of_positions(), ["recall@5"])


@pytest.mark.filterwarnings("ignore:.*can never be retrieved")
def test_a_user_it_does_not_know_has_nothing_retrieved():
    model = fitted("MF")
    task = task_of_ids([*USER_IDS, "new"], ITEM_IDS)
    truth = torch.cat([task.truth, torch.tensor([[NUM_USERS], [0]])], dim=1)
    with_new = RankingTask(
        truth,
        num_users=NUM_USERS + 1,
        num_items=NUM_ITEMS,
        seen=task.seen,
        user_ids=task.user_ids,
        item_ids=task.item_ids,
    )
    with pytest.warns(UserWarning, match="does not know 1 of 31 users"):
        result = evaluate(model, with_new, ["recall@5", "ndcg@5"])
    known = evaluate(model, task_of_ids(USER_IDS, ITEM_IDS), ["recall@5", "ndcg@5"])
    for name in known:
        assert float(result.per_user[name][NUM_USERS]) == 0
        assert result.per_user[name][:-1].nan_to_num(-1).equal(known.per_user[name].nan_to_num(-1))
