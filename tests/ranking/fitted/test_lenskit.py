"""Pipelines of LensKit: lists are those of its own batches."""

import pandas as pd
import pytest

from pyg_recmetrics import evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    ranked_lists,
    task_of_ids,
)

lenskit = pytest.importorskip("lenskit")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library

USER_IDS = [1000 - user for user in range(NUM_USERS)]
ITEM_IDS = [3 * item + 7 for item in range(NUM_ITEMS)]


def frame(part):
    user, item = edges()[part]
    return pd.DataFrame(
        {"user_id": [USER_IDS[u] for u in user], "item_id": [ITEM_IDS[i] for i in item]}
    )


@pytest.fixture(scope="module")
def pipeline():
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.pipeline import topn_pipeline

    made = topn_pipeline(ImplicitMFScorer(embedding_size=6, epochs=3))
    made.train(from_interactions_df(frame(0)))
    return made


def own_lists(pipeline, k):
    return lenskit.batch.recommend(pipeline, USER_IDS, n=k, n_jobs=1)


def test_lists_are_those_of_its_own_batches(pipeline):
    task = task_of_ids(USER_IDS, ITEM_IDS)
    found = {key.user_id: [*items.ids()] for key, items in own_lists(pipeline, 7).items()}
    expected = [[ITEM_IDS.index(id_) for id_ in found[user]] for user in USER_IDS]
    assert ranked_lists(pipeline, task, 7) == expected
    assert ranked_lists(own_lists(pipeline, 7), task, 7) == expected


def test_numbers_are_those_of_its_own_evaluation(pipeline):
    from lenskit.data import ItemListCollection
    from lenskit.metrics import RunAnalysis, ranking

    task, lists = task_of_ids(USER_IDS, ITEM_IDS), own_lists(pipeline, 5)
    analysis = RunAnalysis()
    for metric, name in ((ranking.Recall, "recall@5"), (ranking.NDCG, "ndcg@5")):
        analysis.add_metric(metric(5), label=name)
    truth = ItemListCollection.from_df(frame(1), ["user_id"])
    theirs = analysis.measure(lists, truth).global_metrics().to_dict()
    for recommender in (pipeline, lists):
        ours = evaluate(recommender, task, list(theirs), convention="lenskit")
        assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-6)


def test_what_is_no_pipeline_is_told_to_become_one():
    from lenskit.als import ImplicitMFScorer

    with pytest.raises(TypeError, match="topn_pipeline"):
        evaluate(ImplicitMFScorer(), task_of_ids(USER_IDS, ITEM_IDS), ["recall@5"])
