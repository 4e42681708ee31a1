"""Files of every format: what is read, and what is refused."""

import csv
import gzip
import io

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from pyg_recmetrics.command.reading import read_ids, read_table
from pyg_recmetrics.task.data_frames import find_column, number_texts

pa = pytest.importorskip("pyarrow")

EVALUATE = "evaluate -q --lists lists.csv --metrics recall@1 --markdown --test"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.csv").write_text("user,item,rank\nann,tea,1\nbob,tea,1\n")
    return tmp_path


def write(path, content):
    if isinstance(content, dict):
        pa.parquet.write_table(pa.table(content), path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "user,item\nann,tea\nbob,jam\n"),
        ("t.csv", "\ufeffuser;item\r\nann;tea\r\n\r\nbob;jam"),
        ("t.csv", 'user, item, "a, b"\nann, tea, "1, 2"\nbob, jam, 3\n'),
        ("t.tsv", "item\tuser\ntea\tann\njam\tbob\n"),
        ("t.inter", "user_id:token\titem_id:token\nann\ttea\nbob\tjam\n"),
        ("t.jsonl", '{"user": "ann", "item": "tea"}\n\n{"item": "jam", "user": "bob"}\n'),
        ("t.qrels", "ann 0 tea 1\nbob 0\tjam 1 \n"),
        ("t.txt", "user|item\nann|tea\nbob|jam\n"),
        ("t.data", '{"user": "ann", "item": "tea"}\n{"item": "jam", "user": "bob"}\n'),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_same_rows_are_read_from_every_text(folder, run, name, content, packed):
    path = folder / (f"{name}.gz" if packed else name)
    write(path, gzip.compress(content.encode()) if packed else content)
    status, out, err = run(f"{EVALUATE} {path.name}")
    assert status == 0, err
    assert "0.5000" in out


@pytest.mark.parametrize("name", ["t.parquet", "t"])
@pytest.mark.parametrize(
    "user",
    [
        pa.array([1, 2], pa.uint8()),
        pa.array([1.0, 2.0]),
        pa.array(["1", "2"]),
        pa.array(["1", "2"], pa.large_string()),
        pa.array(["1", "2"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_ids_of_any_type_are_those_of_text(folder, run, user, name):
    write(folder / name, {"user": user, "item": pa.array([5, 6])})
    write(folder / "lists.csv", "user,item,rank\n1,5,1\n2,5,1\n")
    status, out, err = run(f"{EVALUATE} {name}")
    assert status == 0, err
    assert "0.5000" in out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", 'user\titem\nann\ttea\nbob\t"jam\ncat\tjam\ndan\t"\n'),
        ("t.inter", 'user_id:token\titem_id:token\nann\ttea\n"bob\tjam\ncat\tjam\ndan"\tjam\n'),
    ],
)
def test_a_quote_in_tabs_is_a_letter_and_no_row_is_lost(folder, run, name, content):
    write(folder / name, content)
    write(
        folder / "lists.csv", "user,item,rank\n" + "".join(f"{x},tea,1\n" for x in ("ann", "cat"))
    )
    status, out, err = run(f"{EVALUATE} {name} --json".replace(" --markdown", ""))
    assert status == 0, err
    assert '"num_users": 4' in out


#: A compressed file without its end, and one whose middle is damaged.
WHOLE = gzip.compress(b"user,item\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(999)))
DAMAGED = WHOLE[:200] + bytes(byte ^ 255 for byte in WHOLE[200:210]) + WHOLE[210:]

BUFFER = io.BytesIO()
pa.parquet.write_table(pa.table({"user": [*range(99)], "item": [*range(99)]}), BUFFER)
BROKEN = BUFFER.getvalue()[:4] + b"\xff" * 60 + BUFFER.getvalue()[64:]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(
            (name, "", f"{name}: the file is empty")
            for name in ("t.csv", "t.qrels", "t.jsonl", "t.parquet")
        ),
        ("t.csv", "user,item\n", "the file needs to hold rows (got none)"),
        ("t.csv", "who,item\nann,tea\n", "one column needs to have a usual name for users"),
        ("t.csv", "user,item\nann,tea\nbob,jam,1\n", "Expected 2 fields in line 3, saw 3"),
        ("t.csv", "user,item\nann,tea\n\nbob,\n", "integers or texts of one line (got '' in row 2"),
        ("t.csv", "user,item\nann,tea\nuser,item\nbob,jam\n", "a row repeats the names of the col"),
        ("t.csv", b"user,item\nann,tea\nb\xe9b,jam\n", "'utf-8' codec can't decode byte 0xe9"),
        ("t.csv", "user,item,x\nann,tea,\n\nbob,jam\n", "line 4 needs to hold 3 fields"),
        ("t.tsv", "user\titem\tx\nann\ttea\n", "line 2 needs to hold 3 fields"),
        ("t.csv", "user,item,x\nann,tea,a\nbob,jam,b\0c\n", "line 3 needs to hold text (got a NUL"),
        ("t.jsonl", '{"user": 1, "item": 2}\n{oops\n', "a name for object member. in row 1"),
        *(("t.jsonl", x, "changed from object to array") for x in ("[1]\n", "[" * 99_999)),
        ("t.jsonl", '{"user": 12345678901234567890, "item": 2}\n', "integers or texts of one line"),
        ("t.jsonl", '{"user": 1, "item": {"id": 2}}\n', "(got {'id': 2} in row 1)"),
        ("t.qrels", "a 0 b 1\na 0 c\n", "line 2 needs to be 'user 0 item relevance'"),
        ("t.csv.gz", DAMAGED, "Error -3 while decompressing data"),
        ("t.parquet", BROKEN, "t.parquet: "),
        ("t.parquet", {"user": [], "item": []}, "the file needs to hold rows (got none)"),
        ("t.parquet", {"user": [1, None], "item": [1, 2]}, "(got None in row 2)"),
        ("t.parquet", {"user": [True], "item": [1]}, "column 'user' needs to hold ids"),
        *(
            (
                "t.csv --rating-column x",
                f"user,item,x\nann,tea,5\nbob,tea,{x}\n",
                f"(got {x!r} in row 2)",
            )
            for x in ("high", "", "nan", "inf", "1e999", "1_000", "٣")
        ),
        ("t.jsonl --rating-column x", '{"user": 1, "item": 2, "x": true}', "(got True in row 1)"),
        *(
            ("t.parquet --rating-column x", {"user": [1], "item": [5], "x": x}, "finite numbers")
            for x in (["a"], [float("nan")], [None])
        ),
        ("t.csv --columns user item", "user_id,item_id\n1,2\n", "of a file that has a header"),
        ("t.csv --columns user item time", "1,2\n", "3 columns are needed"),
        ("t.csv --user-column who", "user,item\n1,2\n", "one column needs to have 'who' for users"),
    ],
)
def test_a_wrong_file_is_named_and_nothing_is_written(folder, run, name, content, message):
    name, *options = name.split()
    write(folder / name, content)
    status, out, err = run(f"{EVALUATE} {name} -o out.npz {' '.join(options)}")
    assert (status, out) == (3, "")
    assert err.startswith(f"pyg-recmetrics: error: {name}: ")
    assert message in err
    assert not (folder / "out.npz").exists()


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ('id,vector\n1,0.5\n2,"[1, 2]"\n', "'[1, 2]' in row 2"),
        *(
            ({"id": [1, 2], "vector": [[1.0], other]}, got)
            for other, got in (
                ([1.0, 2.0], "[1.0, 2.0] in row 2"),
                (None, "None in row 2"),
                ([None], "[None] in row 2"),
            )
        ),
        ({"id": [1, 2], "vector": [{"a": 1.0}, {"a": 2.0}]}, "{'a': 1.0} in row 1"),
    ],
)
def test_a_vector_of_another_form_is_told(folder, run, content, got):
    write(folder / "t.csv", "user,item\n1,1\n")
    write(folder / "i.csv", "id,vector\n1,1\n")
    write(folder / "u", content)
    status, _, err = run("evaluate -q --test t.csv --users u --items i.csv")
    assert status == 3
    assert "u: column 'vector' needs to hold" in err
    assert f"(got {got}" in err


def test_vectors_may_be_of_a_fixed_size_and_of_integers(folder, run):
    write(folder / "t.parquet", {"user": [1, 2], "item": [5, 6]})
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0, 0.0, 1.0], pa.float32()), 2)
    write(folder / "u.parquet", {"id": [1, 2], "features": fixed})
    short = pa.array([[0, 1], [1, 0]], pa.list_(pa.int16()))
    write(folder / "i.parquet", {"id": [6, 5], "features": short})
    line = "evaluate -q --test t.parquet --users u.parquet --items i.parquet --metrics recall@1"
    assert "1.0000" in run(line)[1]


TEXT = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\t"), min_size=1)


@given(
    form=st.sampled_from(["csv", "tsv", "inter", "jsonl", "parquet", "qrels", "csv.gz"]),
    rows=st.lists(st.tuples(TEXT | st.integers().map(str), TEXT), min_size=2, max_size=9),
)
@settings(max_examples=70, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path, form, rows):
    path = tmp_path / f"t.{form}"
    frame = pd.DataFrame(rows, columns=["user_id", "item_id"], dtype=object)
    if form in ("tsv", "inter"):
        path.write_text("".join(f"{a}\t{b}\n" for a, b in [("user_id", "item_id"), *rows]))
    elif form == "qrels":
        assume(not any(user.startswith("#") for user, _ in rows))  # which begins a comment
        path.write_text("".join(f"{a} 0 {b} 1\n" for a, b in rows))
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif form == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    frame = read_table(path).read(user=None, item=None)
    assert [*frame.itertuples(index=False, name=None)] == rows


def test_the_most_usual_name_comes_first_and_others_are_not_found():
    assert find_column(["movie_id", "item_id"], "item") == "item_id"
    assert find_column(["id", "user"], "user", "id") == "user"
    assert find_column(["username_hash", "used"], "user") is None


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["10", "9", "-1", "9"], [-1, 9, 10]),
        (["9" * 18], [10**18 - 1]),
        *(
            (["10", "9", odd], sorted(["10", "9", odd]))
            for odd in ("007", "1.0", "-0", "1e3", " 1")
        ),
        *((["1", odd], sorted(["1", odd])) for odd in ("a", "٣", "9" * 19, "1_0")),
    ],
)
def test_ids_are_integers_if_all_are_written_so(written, ids):
    found, (numbers,) = number_texts([pd.Series(written, dtype=object)])
    assert found == ids
    assert [str(found[number]) for number in numbers] == written


TITLES = ["Heroes", "Low", 'Up "live"', "It", "O, k"]


def as_csv(titles, end):
    rows = [f"{user},tea,{title}" for user, title in zip("abcde", titles, strict=True)]
    return end.join(["user,item,title", *rows]) + end


def quoted(title):
    return '"' + title.replace('"', '""') + '"'


@pytest.mark.parametrize(
    ("option", "end", "packed"),
    [("--test", "\n", True), ("--train", "\r\n", False), ("--lists", "\r\n", True)],
)
@pytest.mark.parametrize("strays", [[0], [2], [4], [0, 2], [0, 1, 2, 3], [1, 4]])
def test_a_stray_quote_is_an_error_with_its_line(folder, run, strays, option, end, packed):
    titles = [quoted(title) for title in TITLES]
    for place in strays:
        titles[place] = titles[place].removesuffix('"')
    content = as_csv(titles, end).encode()
    (folder / "odd.csv").write_bytes(gzip.compress(content) if packed else content)
    (folder / "t.csv").write_text("user,item\nann,tea\n")
    files = {"--test": "t.csv", "--lists": "lists.csv"} | {option: "odd.csv"}
    status, out, err = run(["evaluate", "-q", *(x for pair in files.items() for x in pair)])
    assert (status, out) == (3, "")
    assert f"odd.csv: line {strays[0] + 2} needs to close the quote" in err


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("sign", "letter"), [(",", ""), (";", ""), (",", "u")])
def test_a_pair_of_stray_quotes_around_rows_is_an_error(folder, place, sign, letter):
    rows = [[f"{letter}{user}", f"{letter}{10 * user}", f"title {user}"] for user in range(1, 6)]
    rows[1][2], rows[3][2] = '"two', 'four"'
    ordered = [["user", "item", "title"], *rows]
    for row in ordered:
        row.insert(place, row.pop())
    (folder / "t.csv").write_text("".join(sign.join(row) + "\n" for row in ordered))
    with pytest.raises(ValueError, match=r"t\.csv: line 3 needs to close the quote .* line 5"):
        read_table(folder / "t.csv")


def test_tabs_may_stand_between_quoted_fields_as_r_writes_them(folder):
    whole = pd.DataFrame({"user": ["u1", "u2"], "item": ['"i"', "i2"], "note": ["two, here", "x"]})
    whole.to_csv(folder / "t.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONNUMERIC)
    assert read_table(folder / "t.tsv").data.to_pandas().to_dict("list") == whole.to_dict("list")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("head", ["", "item_id", "movieId", "id"])
@pytest.mark.parametrize("packed", [False, True])
def test_ids_are_the_lines_of_a_file_whatever_its_form(folder, head, end, packed):
    ids = ["9", "a\u2028b", "x y", "10\x0b"]
    content = ("\ufeff" + end.join([head, *ids] if head else ids) + end).encode()
    (folder / "ids").write_bytes(gzip.compress(content) if packed else content)
    assert read_ids(folder / "ids") == ids


def test_ids_that_are_no_text_are_an_error_with_the_file(folder):
    (folder / "ids").write_bytes(b"9\n\xff\n")
    with pytest.raises(ValueError, match=r"ids: .*utf-8"):
        read_ids(folder / "ids")
