"""Lines of run and qrels files: those of every size are read as they stand."""

import gzip
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyg_recmetrics.ranked_edges import trec_lines
from pyg_recmetrics.ranked_edges.trec_lines import read_files

#: Ids that fill one word, several words, or more than are packed.
IDS = st.one_of(
    st.text("ab", min_size=1, max_size=3),
    st.sampled_from(
        ["a" * 8, "a" * 9, "a" * 31, "a" * 32, "a" * 33, "b" * 33, "a" * 5000, "é" * 16]
    ),
    st.text("0é\u3000\x85", min_size=1, max_size=40),
)


@st.composite
def files(draw):
    """The users, items and numbers of a run and its qrels."""
    ids = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    pair = st.tuples(st.sampled_from(["u", "v", "w" * 40]), st.sampled_from(ids))
    return [
        [(*each, draw(st.integers(-9, 9))) for each in draw(st.lists(pair, unique=True))]
        for _ in range(2)
    ]


def write(folder, run, qrels):
    """Writes both files, with an empty line now and then."""
    texts = (
        "".join(f"{u} Q0 {i} 1 {n / 8} t\n" + "\n" * (n == 3) for u, i, n in run),
        "".join(f"{u}\t0  {i} {n}\r\n" for u, i, n in qrels),
    )
    for name, text in zip(("run", "qrels"), texts, strict=True):
        (folder / name).write_bytes(text.encode())
    return folder / "run", folder / "qrels"


def rows_of(lines, found):
    columns = (lines.user.tolist(), lines.item.tolist(), lines.value.tolist())
    return [
        (found.users[user], found.items[item], value)
        for user, item, value in zip(*columns, strict=True)
    ]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=files(),
    num_bytes=st.sampled_from([1, 7, 100, 2**16]),
    factor=st.sampled_from([0, 0x9E3779B97F4A7C15]),
    is_split_at_once=st.booleans(),
)
def test_what_is_written_is_read(case, num_bytes, factor, is_split_at_once, tmp_path):
    run, qrels = case
    at_once = trec_lines._read_block if is_split_at_once else lambda *args: None
    # Without the factor, the hash of an id forgets most of its first letters.
    with patch.multiple(
        trec_lines, NUM_BYTES=num_bytes, _FACTOR=np.uint64(factor), _read_block=at_once
    ):
        found = read_files(*write(tmp_path, run, qrels))
    assert rows_of(found.scored, found) == [(u, i, n / 8) for u, i, n in run]
    assert rows_of(found.judged, found) == [(u, i, n) for u, i, n in qrels]
    assert found.users == list(dict.fromkeys(u for u, _, _ in run + qrels))
    assert sorted(found.items) == sorted({i for _, i, _ in run + qrels})


def test_items_of_the_same_hash_differ(tmp_path):
    items = [f"doc{n:05}suffix{m}" for n in range(20) for m in range(2)] * 2
    run = [(f"u{place // 40}", item, 0) for place, item in enumerate(items)]
    with patch.object(trec_lines, "_FACTOR", np.uint64(0)):
        found = read_files(*write(tmp_path, run, []))
    assert len(found.items) == 40
    assert [row[1] for row in rows_of(found.scored, found)] == items


@pytest.mark.parametrize("num_bytes", [5, 2**16])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("u Q0 i 1 1\n", "needs to be 'user Q0 item rank score tag' \\(got 'u Q0 i 1 1'\\)"),
        ("u Q0 i 1 1 t u\n", "needs to be 'user Q0 item rank score tag'"),
        ("u Q0 i 1 one t\n", "needs a finite number as 'score' \\(got 'one'\\)"),
        ("u Q0 i 1 inf t\n", "needs a finite number as 'score' \\(got 'inf'\\)"),
        ("u Q0 a0 1 1 t\n", "repeats item 'a0' of user 'u'"),
    ],
)
def test_a_wrong_line_among_many_is_named(tmp_path, bad, message, num_bytes):
    good = [f"u Q0 a{number} 1 {number}e-1 t\n" for number in range(3000)]
    (tmp_path / "qrels").write_text("")
    for place in (1, 2999):
        run = "\n" + "".join([*good[:place], bad, *good[place:]])
        (tmp_path / "run").write_text(run)
        with (
            patch.object(trec_lines, "NUM_BYTES", num_bytes),
            pytest.raises(ValueError, match=f"run, line {place + 2} {message}"),
        ):
            read_files(tmp_path / "run", tmp_path / "qrels")


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_file_without_lines_is_named_before_it_fills_the_memory(tmp_path, is_compressed):
    run, qrels = write(tmp_path, [("u", "i", 1)], [])
    if is_compressed:
        with gzip.open(run, "wb") as file:
            for _ in range(64):
                file.write(b"long" * 2**18)
    else:
        with run.open("ab") as file:
            file.truncate(2**33)  # which takes no room on the disk
    with (
        patch.object(trec_lines, "_read_line_by_line", side_effect=AssertionError),
        pytest.raises(ValueError, match=r"run, line \d needs to be .* more than 1,048,576 bytes"),
    ):
        read_files(run, qrels)


def test_lines_may_be_long(tmp_path):
    items = ["a" * 2**19, "b" * 2**19]
    found = read_files(*write(tmp_path, [("u", item, 1) for item in items], []))
    assert sorted(found.items) == items
