"""Files are replaced at once, and name themselves in errors."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, report
from pyg_recmetrics.utils import replacing

RESULT = evaluate(
    torch.arange(30.0),
    RankingTask([[*range(200)], [3] * 200], num_users=200, num_items=30),
    "mrr@30",
    keep_items=True,
)
WRITERS = {
    "save": lambda path: RESULT.save(path),
    "report": lambda path: report(RESULT, path),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_leaves_the_old_file(kind, tmp_path):
    if kind == "report":
        pytest.importorskip("matplotlib")
    path = tmp_path / "file"
    path.write_text("what was there before")
    script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from tests.test_utils_files import WRITERS
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


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def test_what_is_interrupted_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_mode_of_a_file_is_kept(tmp_path):
    path = tmp_path / "file"
    write(path)
    (tmp_path / "other").write_text("")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.chmod(0o640)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_written_through(tmp_path, is_there):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if is_there:
        target.write_text("old")
    link.symlink_to(Path("folder") / "target")
    write(link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert os.listdir(target.parent) == ["target"]


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        received = other.submit(pipe.read_bytes)
        write(pipe)
        assert received.result() == b"new"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_many_may_write_at_once(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([number]) * 10_000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [path] * 40, contents))
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]
