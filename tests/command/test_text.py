"""Tables of text: what is read, and at which line a mistake is found."""

import csv
import gzip
import os

import numpy as np
import pytest

from pyg_recmetrics.command import text
from pyg_recmetrics.command.ids import Ids
from pyg_recmetrics.command.tables import open_table

EVALUATE = "evaluate -q --lists lists.csv --test"

#: A compressed file without its end. The time of its making would be in its name.
CUT_SHORT = gzip.compress(b"user,item\na,b\n", mtime=0)[:-4]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.csv").write_text("user,item,rank\nann,tea,1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "user,item\nann,tea\nbob,jam\n"),
        ("t.csv", "\ufeffuser;item\r\nann;tea\r\n\r\nbob;jam"),
        ("t.csv", 'user, item, "a, b"\nann, tea, "1\n2"\nbob, jam, 3\n'),
        ("t.tsv", "item\tuser\ntea\tann\njam\tbob\n"),
        ("t.inter", "user_id:token\titem_id:token\nann\ttea\nbob\tjam\n"),
        ("t.jsonl", '{"user": "ann", "item": "tea"}\n\n{"item": "jam", "user": "bob"}\n'),
        ("t.qrels", "ann 0 tea 1\nbob 0 jam 1\n"),
        ("t", "ann 0 tea 1\nbob 0 jam 1\n"),
        ("t.txt", "user|item\nann|tea\nbob|jam\n"),
        ("t.data", '{"user": "ann", "item": "tea"}\n{"item": "jam", "user": "bob"}\n'),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_same_rows_are_read_from_every_format(folder, run, name, content, packed):
    path = folder / (f"{name}.gz" if packed else name)
    data = content.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    (folder / "lists.csv").write_text("user,item,rank\nann,tea,1\nbob,tea,1\n")
    status, out, err = run(f"{EVALUATE} {path.name} --metrics recall@1 --markdown")
    assert status == 0, err
    assert "0.5000" in out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "t.csv: the file needs to hold rows (got none)"),
        ("t.csv", "user,item\n", "t.csv: the file needs to hold rows (got none)"),
        ("t.csv", "user,item,item\na,b,c\n", "columns need to have different names (got 'item' "),
        ("t.csv", "user,item\nann,tea\nbob\n", "line 3: 2 fields are needed, as 'user item'"),
        ("t.csv", "user,item\n\nann,tea\n\nbob,\n", "t.csv, line 5: column 'item' needs to hold"),
        ("t.csv", 'user,item\n"a\nb",tea\nbob,\n', "t.csv, line 4: column 'item' needs to hold"),
        ("t.csv", "user,item\nann,tea\n,jam\n", "t.csv, line 3: column 'user' needs to hold an id"),
        ("t.csv", "who,item\nann,tea\n", "no column has a usual name for a user, so --user-column"),
        ("t.csv", "user,what\nann,tea\n", "no column has a usual name for an item, so --item-col"),
        ("t.tsv", "1\t2\n3\t4\n", "if the file has no header, --columns names its columns"),
        ("t.dat", "1::2\n", "fields need to be separated by one sign, such as a comma (got '::')"),
        ("t.csv", b"user,item\nann,tea\nb\xe9b,jam\n", "t.csv, line 3: the file needs to be text"),
        ("t.jsonl", '{"user": 1, "item": 2}\n{oops\n', "line 2: the line needs to be JSON ("),
        ("t.jsonl", "[1]\n", "t.jsonl, line 1: the line needs to be an object of JSON"),
        ("t.jsonl", '{"user": 1, "item": 2}\n{"user": 1}\n', "line 2: there is no 'item', which"),
        ("t.jsonl", '{"user": 1, "item": 2}\n{"user": true, "item": 2}\n', "line 2: column 'user'"),
        ("t.qrels", "a 0 b 1\na 0 c\n", "t.qrels, line 2: 4 fields are needed, as 'user iteration"),
        ("t.qrels", "a 0 b one\n", "line 1: column 'relevance' needs to hold a finite number (got"),
        ("t.csv.gz", CUT_SHORT, "t.csv.gz: the file cannot be read"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_at_its_line(folder, run, name, content, message):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)
    status, out, err = run(f"{EVALUATE} {name}")
    assert (status, out) == (3, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("value", ["high", "", "nan", "inf"])
def test_a_rating_that_is_no_number_is_found_at_its_line(folder, run, value):
    (folder / "t.csv").write_text(f"user,item,rating\nann,tea,5\nbob,tea,{value}\n")
    status, _, err = run(f"{EVALUATE} t.csv --rating-column rating")
    assert status == 3
    assert "t.csv, line 3: column 'rating' needs to hold a finite number (got " in err


@pytest.mark.parametrize(
    ("row", "got"), [("1,later", "'later'"), ("1,", "nothing"), ("1,2024-13-01", "'2024-13-01'")]
)
def test_a_time_that_is_none_is_found_at_its_line(folder, run, row, got):
    (folder / "t.csv").write_text(f"user,item,time\n1,2,2024-01-01\n1,{row}\n")
    status, _, err = run("split t.csv --how temporal")
    assert status == 3
    assert "t.csv, line 3: column 'time' needs to hold a number or a date such as 2024-05-31" in err
    assert err.endswith(f"(got {got})\n")


@pytest.mark.parametrize("vector", ["[0.5]", "[0.5, x]", "[]", "[1, 2, 3]"])
def test_a_vector_of_another_form_is_found_at_its_line(folder, run, vector):
    (folder / "t.csv").write_text("user,item\n1,1\n")
    (folder / "i.csv").write_text("id,vector\n1,[1 2]\n")
    (folder / "u.csv").write_text(f'id,vector\n1,"[1, 2]"\n2,"{vector}"\n')
    status, _, err = run("evaluate -q --test t.csv --users u.csv --items i.csv")
    assert status == 3
    assert "u.csv, line 3: column 'vector' needs to hold a vector of" in err


def test_lines_are_right_beyond_the_first_group_of_rows(folder, run, monkeypatch):
    monkeypatch.setattr(text, "_ROWS_AT_ONCE", 3)
    rows = [f"u{n},i{n}" for n in range(10)]
    for wrong, message in (("u10", "2 fields are needed"), ("u10,", "column 'item'")):
        (folder / "t.csv").write_text("\n".join(["user,item", *rows, wrong, "z,z", ""]))
        status, _, err = run(f"{EVALUATE} t.csv")
        assert status == 3
        assert f"t.csv, line 12: {message}" in err


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_groups_of_rows_hold_what_a_loop_reads(folder, monkeypatch, at_once):
    monkeypatch.setattr(text, "_ROWS_AT_ONCE", at_once)
    generator = np.random.default_rng(0)
    rows = [(f"u{a}", f'i"{b}, x') for a, b in generator.integers(0, 9, size=(50, 2)).tolist()]
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([("user", "item"), *rows])
    ids = Ids()
    table = open_table(folder / "t.csv")
    found = np.concatenate([batch.ids("item", ids) for batch in table.batches(["item"])])
    written = list(ids)
    assert [written[number] for number in found] == [item for _, item in rows]
    assert list(ids) == list(dict.fromkeys(item for _, item in rows))


def test_a_pipe_is_refused_as_it_cannot_be_read_twice(folder, run):
    os.mkfifo("pipe.csv")
    status, _, err = run(f"{EVALUATE} pipe.csv")
    assert status == 3
    assert "pipe.csv: the file is read twice, which a pipe cannot be" in err


def test_memory_does_not_grow_with_the_rows(folder):
    import tracemalloc

    with open("t.csv", "w") as file:
        file.write("user,item,text\n")
        file.writelines(f"{n % 50},{n % 7},{'x' * 40}\n" for n in range(200_000))
    table, ids = open_table(folder / "t.csv"), Ids()
    tracemalloc.start()
    for batch in table.batches(["user"]):
        batch.ids("user", ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (folder / "t.csv").stat().st_size
