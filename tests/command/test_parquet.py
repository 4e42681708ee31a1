"""Tables in Parquet files."""

import pytest

from tests.support.machines.missing_packages import hide_package

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.csv").write_text("user,item,rank\n1,5,1\n2,5,1\n")
    return tmp_path


def write(name="t.parquet", **columns):
    pq.write_table(pa.table(columns), name)


LINE = "evaluate -q --lists lists.csv --metrics recall@1 --markdown --test"


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
def test_ids_of_any_type_are_those_of_text(folder, run, user):
    write(user=user, item=pa.array([5, 6]))
    status, out, err = run(f"{LINE} t.parquet")
    assert status == 0, err
    assert "0.5000" in out


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1, None], "item": [1, 2]}, "t.parquet, row 2: column 'user' needs to hold a"),
        ({"user": [1.5], "item": [1]}, "t.parquet: column 'user' needs to hold ids, texts or"),
        ({"user": [True], "item": [1]}, "t.parquet: column 'user' needs to hold ids, texts or"),
        ({"user": [""], "item": [1]}, "t.parquet: column 'user' needs to hold ids, texts or"),
        ({"who": [1], "item": [1]}, "t.parquet: no column has a usual name for a user"),
        ({"user": [], "item": []}, "t.parquet: the file needs to hold rows (got none)"),
    ],
)
def test_what_is_no_id_is_told(folder, run, columns, message):
    write(**columns)
    status, out, err = run(f"{LINE} t.parquet")
    assert (status, out) == (3, "")
    assert message in err


@pytest.mark.parametrize("rating", [["a"], [float("nan")], [None]])
def test_what_is_no_rating_is_told(folder, run, rating):
    write(user=[1], item=[5], rating=rating)
    status, _, err = run(f"{LINE} t.parquet --rating-column rating")
    assert status == 3
    assert "t.parquet" in err
    assert "column 'rating' needs to hold" in err


@pytest.mark.parametrize("vectors", [[[1.0], [1.0, 2.0]], [[], []], [["a"], ["b"]], [1.0, None]])
def test_what_is_no_vector_is_told(folder, run, vectors):
    write(user=[1], item=[5])
    write("u.parquet", id=[1, 2], features=vectors)
    write("i.parquet", id=[5], features=[[1.0]])
    line = "evaluate -q --test t.parquet --users u.parquet --items i.parquet"
    status, _, err = run(line)
    assert status == 3
    assert "u.parquet" in err
    assert "column 'features' needs to hold" in err


def test_vectors_may_be_of_a_fixed_size_and_half_precision(folder, run):
    write(user=[1, 2], item=[5, 6])
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0, 0.0, 1.0], pa.float32()), 2)
    write("u.parquet", id=[1, 2], features=fixed)
    write("i.parquet", id=[6, 5], features=pa.array([[0, 1], [1, 0]], pa.list_(pa.int16())))
    line = "evaluate -q --test t.parquet --users u.parquet --items i.parquet --metrics recall@1"
    assert "1.0000" in run(line)[1]


def test_what_is_no_parquet_is_told(folder, run):
    (folder / "t.parquet").write_text("user,item\n")
    status, _, err = run(f"{LINE} t.parquet")
    assert status == 3
    assert "t.parquet: the file needs to be in Parquet" in err


def test_a_file_is_known_by_its_first_bytes(folder, run):
    write("t", user=[1, 2], item=[5, 6])
    assert run(f"{LINE} t")[0] == 0


def test_without_pyarrow_the_error_says_what_to_install(folder, run, monkeypatch):
    write(user=[1], item=[5])
    hide_package(monkeypatch, "pyarrow")
    status, out, err = run(f"{LINE} t.parquet")
    assert (status, out) == (3, "")
    assert "'t.parquet' needs pyarrow: pip install 'pyg-recmetrics[all]'" in err
