"""Real trackers write numbers to a folder, and their files hold them under the names we gave."""

import sqlite3
from contextlib import closing

import pytest

from pyg_recmetrics import evaluate
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK

METRICS = ["recall@1", "ndcg(gain=exponential)@2", "precision(normalizer=min)@3", "mean_rank"]
NAMES = ["recall_1", "ndcg_gain_exponential_2", "precision_normalizer_min_3", "mean_rank"]
#: What the result of every epoch is measured from.
EPOCHS = (BAD_SCORES, GOOD_SCORES)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the trackers


@pytest.fixture
def wanted():
    """The values by name, at every epoch. Trackers may round to single precision."""
    results = [evaluate(scores, TASK, METRICS) for scores in EPOCHS]
    return {
        name: pytest.approx([result[metric] for result in results], rel=1e-6)
        for name, metric in zip(NAMES, METRICS, strict=True)
    }


@pytest.fixture
def mlflow(monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow")
    pytest.importorskip("sqlalchemy", reason="needs sqlalchemy, for MLflow's database")
    pytest.importorskip("alembic", reason="needs alembic, for MLflow's database")
    return mlflow


def read_mlflow(folder):
    """The values of every metric in the order of the steps, from the tables of the database."""
    values = {}
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        for name, value in database.execute("SELECT key, value FROM metrics ORDER BY step"):
            values.setdefault(name, []).append(float(value))
    return values


def test_mlflow_takes_the_names(mlflow, tmp_path, wanted):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    with mlflow.start_run():
        for epoch, scores in enumerate(EPOCHS):
            mlflow.log_metrics(evaluate(scores, TASK, METRICS).to_dict("_"), epoch)
    assert read_mlflow(tmp_path) == wanted
