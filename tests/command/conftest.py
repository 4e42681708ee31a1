import numpy as np
import pandas as pd
import pytest

from pyg_recmetrics.__main__ import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with interactions and recommenders of 40 users and 25 items, as they are held."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    users, items = generator.normal(size=(40, 4)), generator.normal(size=(25, 4))
    scores = users @ items.T + generator.gumbel(size=(40, 25))
    rows = [
        (user, item, place % 5 + 1, 1000 + place)
        for user in range(40)
        for place, item in enumerate(generator.permutation((-scores[user]).argsort()[:10]).tolist())
    ]
    whole = pd.DataFrame(rows, columns=["userId", "movieId", "rating", "timestamp"])
    is_test = whole.groupby("userId").cumcount() >= 7
    whole[is_test].to_csv("test.csv", index=False)
    whole[~is_test].to_csv("train.csv", index=False)
    popularity = np.bincount(whole.movieId[~is_test], minlength=25)
    vectors = {"u": users, "i": items, "ones": np.ones((40, 1)), "popular": popularity[:, None]}
    for name, values in vectors.items():
        frame = pd.DataFrame(values).add_prefix("x").rename_axis("id")
        frame.sample(frac=1, random_state=0).to_csv(f"{name}.csv")
    return tmp_path


@pytest.fixture
def run(capsys):
    """Runs the command: returns its exit status, and what it prints on both streams."""

    def run_command(line):
        status = main(line.split() if isinstance(line, str) else line)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run_command
