"""Files are replaced at once, and name themselves in errors."""

import os
import resource
import stat
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


@pytest.fixture
def full_disk():
    """Lets no file have more than 500 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("write_it", [RESULT.save, lambda path: report(RESULT, path)])
def test_a_full_disk_leaves_the_old_file(write_it, tmp_path, full_disk):
    pytest.importorskip("matplotlib")
    path = tmp_path / "file"
    path.write_text("what was there before")
    with pytest.raises(OSError, match="too large") as raised:
        write_it(path)
    assert raised.value.filename == str(path)
    assert path.read_text() == "what was there before"
    assert os.listdir(tmp_path) == ["file"]


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
