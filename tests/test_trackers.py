"""Real trackers write numbers to a folder, and their files hold them under the names we gave."""

import csv
import logging
import sqlite3
from contextlib import closing

import pytest
import torch

from pyg_recmetrics import Evaluator, evaluate
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


@pytest.fixture
def pl():
    pl = pytest.importorskip("lightning.pytorch", reason="needs Lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    return pl


def read_mlflow(folder):
    """The values of every metric in the order of the steps, from the tables of the database."""
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        return in_order(database.execute("SELECT key, value FROM metrics ORDER BY step"))


def in_order(rows):
    values = {}
    for name, value in rows:
        values.setdefault(name, []).append(float(value))
    return values


class TestMLflow:
    def test_it_takes_the_names(self, mlflow, tmp_path, wanted):
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
        with mlflow.start_run():
            for epoch, scores in enumerate(EPOCHS):
                mlflow.log_metrics(evaluate(scores, TASK, METRICS).to_dict("_"), epoch)
        assert read_mlflow(tmp_path) == wanted


class TestLightning:
    def fit(self, pl, logger, folder):
        evaluator = Evaluator(TASK, METRICS)

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.scores = torch.nn.Parameter(BAD_SCORES.clone())

            def training_step(self, batch):
                return self.scores.sum() * 0

            def on_train_epoch_start(self):
                self.scores.data = EPOCHS[self.current_epoch]

            def on_train_epoch_end(self):
                self.log_dict(evaluator(self.scores.detach()).to_dict("_"))

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.0)

        trainer = pl.Trainer(
            accelerator="cpu",
            logger=logger,
            max_epochs=len(EPOCHS),
            default_root_dir=folder,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Module(), torch.utils.data.DataLoader(torch.zeros(4, 1)))

    def test_its_csv_logger(self, pl, tmp_path, wanted):
        self.fit(pl, pl.loggers.CSVLogger(tmp_path, name="", version=""), tmp_path)
        with (tmp_path / "metrics.csv").open() as file:
            rows = list(csv.DictReader(file))
        read = in_order((name, row[name]) for row in rows for name in row)
        assert {name: read[name] for name in NAMES} == wanted
        assert set(read) - {"epoch", "step"} == set(NAMES)
