"""Files are replaced at once, and name themselves in errors."""

import os
import subprocess
import sys

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, report
from pyg_recmetrics.files import replacing

RESULT = evaluate(
    torch.arange(30.0).repeat(200, 1),
    RankingTask([[*range(200)], [3] * 200], num_users=200, num_items=30),
    "mrr@30",
    keep_items=True,
)
WRITERS = {
    "save": lambda path: RESULT.save(path),
    "report": lambda path: report(RESULT, path),
    "run": lambda path: RESULT.to_trec(path, path.with_name("qrels")),
    "qrels": lambda path: RESULT.to_trec(path.with_name("run"), path),
}


@pytest.mark.parametrize("kind", ["save", "report", "run"])
def test_a_full_disk_leaves_the_old_file(kind, tmp_path):
    if kind == "report":
        pytest.importorskip("matplotlib")
    path = tmp_path / "file"
    path.write_text("what was there before")
    script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from tests.test_files import WRITERS
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    WRITERS[{kind!r}](Path({str(path)!r}))
except OSError as error:
    print(error.filename)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(path), done.stderr
    assert path.read_text() == "what was there before"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("kind", WRITERS)
def test_an_error_names_the_file(kind, tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "missing" / "file"):
        if kind == "report":
            pytest.importorskip("matplotlib")
        with pytest.raises(OSError, match=r"folder|missing"):
            WRITERS[kind](path)


def test_only_leftovers_of_the_dead_are_removed(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as mine:
        mine.write(b"first")
        with replacing(path) as other:
            other.write(b"second")
        assert path.read_bytes() == b"second"
        assert len(os.listdir(tmp_path)) == 2
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]
