"""The files of a ranking that goes on: what comes back, and what is refused."""

import json
import os
import random
import re

import pytest
import torch

from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.ranking.resume_folder import ResumeFolder
from tests.support.tools.damage import damage_bytes

IDENTITY = {"task": torch.arange(3), "depth": 5}
USERS = torch.tensor([0, 3, 4])
PART = {
    "users": USERS,
    "rank": torch.tensor([1, NOT_RETRIEVED, 126]),
    "lists": torch.tensor([[2, -1], [40_000, 0], [1, 2]]),
    "noted": torch.tensor([-(2**40), 0]),
    "empty": torch.empty(0, dtype=torch.long),
}


def parts(folder, kind="users"):
    return [part for _, part in folder.read(kind)]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert values.dtype == torch.long
        assert torch.equal(values, other[name]), name


@pytest.mark.parametrize("largest", [0, 126, 127, 128, 2**15 - 1, 2**31 - 1, 2**31, 2**62])
def test_what_is_written_comes_back(largest, tmp_path):
    folder = ResumeFolder(tmp_path / "new" / "folder", IDENTITY)
    part = PART | {"rank": torch.tensor([largest, NOT_RETRIEVED, -largest])}
    folder.write("users", USERS, part)
    folder.write("lists", USERS, PART)
    for again in (folder, ResumeFolder(folder.path, IDENTITY)):
        assert_same(parts(again)[0], part)
        assert_same(parts(again, "lists")[0], PART)


def test_a_file_is_named_by_its_users(tmp_path):
    folder = ResumeFolder(tmp_path, IDENTITY)
    folder.write("users", USERS, PART)
    folder.write("users", USERS.clone(), PART)
    folder.write("users", USERS + 1, PART)
    assert len(parts(folder)) == 2


def test_small_numbers_take_few_bytes(tmp_path):
    folder = ResumeFolder(tmp_path, IDENTITY)
    rank = torch.randint(1, 100, (50_000,))
    rank[::2] = NOT_RETRIEVED
    folder.write("users", USERS, {"rank": rank})
    (file,) = tmp_path.glob("users-*")
    assert file.stat().st_size < 52_000


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"task": torch.arange(4)}, "another task"),
        ({"depth": 6}, "another depth"),
        ({"depth": 6, "task": torch.ones(3)}, "another task, another depth"),
        ({"more": 1}, "another more"),
    ],
)
def test_the_folder_of_something_else_is_refused(changes, what, tmp_path):
    ResumeFolder(tmp_path, IDENTITY)
    with pytest.raises(ValueError, match=rf"'resume' needs .* of the same .*, of {what}\)"):
        ResumeFolder(tmp_path, IDENTITY | changes)


def test_so_is_that_of_another_version(tmp_path, monkeypatch):
    ResumeFolder(tmp_path, IDENTITY)
    monkeypatch.setattr("pyg_recmetrics.ranking.resume_folder.__version__", "0.0.1")
    with pytest.raises(ValueError, match="of another version of pyg_recmetrics"):
        ResumeFolder(tmp_path, IDENTITY)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"3", b"\xff", b"null"])
def test_so_is_one_that_does_not_say_what_it_belongs_to(content, tmp_path):
    ResumeFolder(tmp_path, IDENTITY)
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"whose manifest\.json cannot be read"):
        ResumeFolder(tmp_path, IDENTITY)


def test_a_folder_of_other_files_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / ".hidden").touch()
    with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))}, which holds 'thesis.tex'"):
        ResumeFolder(tmp_path, IDENTITY)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "thesis.tex"]


def test_hidden_files_do_not_matter(tmp_path):
    (tmp_path / ".DS_Store").touch()
    ResumeFolder(tmp_path, IDENTITY)
    assert json.loads((tmp_path / "manifest.json").read_text())["depth"] == 5


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        ResumeFolder(tmp_path / "file", IDENTITY)


def test_the_file_of_another_ranking_is_not_read(tmp_path):
    other = ResumeFolder(tmp_path / "other", IDENTITY | {"depth": 6})
    other.write("users", USERS, PART)
    folder = ResumeFolder(tmp_path / "mine", IDENTITY)
    for file in other.path.glob("users-*"):
        (folder.path / file.name).write_bytes(file.read_bytes())
    assert parts(folder) == [None]


def test_a_damaged_file_is_not_read_or_says_the_same(tmp_path):
    folder = ResumeFolder(tmp_path, IDENTITY)
    folder.write("users", USERS, PART)
    (file,) = tmp_path.glob("users-*")
    content = file.read_bytes()
    draw = random.Random(0)
    ends = [content[:size] for size in (0, 1, len(content) // 2, len(content) - 1)]
    num_unread = 0
    for damaged in (*ends, *(damage_bytes(content, draw) for _ in range(500))):
        file.write_bytes(damaged)
        (part,) = parts(folder)
        num_unread += part is None
        if part is not None:  # where dates are kept, for example
            assert_same(part, PART)
    assert num_unread > 300


def test_what_a_killed_process_left_is_removed(tmp_path):
    ResumeFolder(tmp_path, IDENTITY)
    (tmp_path / ".pyg_recmetrics-00c0ffee-1.tmp").write_bytes(b"half a f")
    folder = ResumeFolder(tmp_path, IDENTITY)
    assert os.listdir(tmp_path) == ["manifest.json"]
    assert parts(folder) == []
