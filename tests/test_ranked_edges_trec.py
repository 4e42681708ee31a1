"""Files of runs and qrels, of any system."""

import gzip
import math
import random
import re
import resource
from pathlib import Path

import pytest

from pyg_recmetrics import EvaluationResult, RankedEdges, metrics
from tests.support.cases.strategies import ranks
from tests.support.tools.damage import damage_lines


@pytest.fixture
def write(tmp_path):
    def write(run, qrels="u 0 a 1\n"):
        for name, content in (("run", run), ("qrels", qrels)):
            content = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(content)
        return tmp_path / "run", tmp_path / "qrels"

    return write


@pytest.fixture
def little_memory():
    """Lets this process take no more than half a gigabyte more than it has."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs to know the memory of this process")
    num_pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = num_pages * resource.getpagesize() + 2**29
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("num_topics", [1, 40])
def test_ties_are_warned_of_and_ranked_in_every_way(write, num_topics):
    run = "".join(f"{u} Q0 d{d} 1 0.5 t\n" for u in range(num_topics) for d in range(10))
    paths = write(run, "".join(f"{u} 0 d9 1\n" for u in range(num_topics)))
    ranked = RankedEdges.from_trec(*paths)
    for ties, rank_of_all in (("index", 10), ("best", 1), ("worst", 10), ("mean", 5.5)):
        assert ranked.with_ties(ties).rank.tolist() == [rank_of_all] * num_topics
    with pytest.warns(UserWarning, match="depending on the order of ties"):
        assert EvaluationResult(ranked, "mrr").num_tied == num_topics


def test_what_trec_eval_ignores_is_ignored(write):
    plain = write("u Q0 a 1 2 t\nu Q0 b 2 1 t\n", "u 0 b 1\n")
    expected = RankedEdges.from_trec(*plain).rank.tolist()
    commented = write(
        "# a run\nu Q0 a 1 2 t and more\n#u Q0 c 1 9 t\nu Q0 b 2 1 t of it\n",
        "# judged by hand\nu 0 b 1\n# end\n",
    )
    again = RankedEdges.from_trec(*commented)
    assert again.rank.tolist() == expected == [2]
    assert (again.user_ids, again.item_ids) == (("u",), ("a", "b"))


#: Three judged topics, the last without a relevant document, and one that nobody judged.
JUDGED = (
    "".join(f"{u} Q0 d{d} 1 {9 - d} t\n" for u in (1, 2, 3, 4) for d in range(5)),
    "1 0 d0 2\n1 0 d3 1\n2 0 d1 1\n2 0 d2 0\n3 0 d0 0\n",
)


@pytest.mark.parametrize(
    ("level", "action", "mean"),
    [
        (None, "skip", (3 / 4 + 1 / 2) / 2),
        (None, "neg", (3 / 4 + 1 / 2 + 0) / 3),  # as trec_eval
        (2, "skip", 1.0),
        (2, "neg", 1 / 3),  # as trec_eval -l2
    ],
)
@pytest.mark.usefixtures("expect_lost_truth")
def test_means_are_over_judged_topics(write, level, action, mean):
    ranked = RankedEdges.from_trec(*write(*JUDGED), level=level)
    assert ranked.users.tolist() == [0, 1, 2]
    result = EvaluationResult(ranked, "map", empty_target_action=action)
    assert result["map"] == pytest.approx(mean)


@pytest.mark.usefixtures("expect_lost_truth")
def test_users_of_either_file_are_numbered_by_value_or_by_the_alphabet(write):
    ranked = RankedEdges.from_trec(*write("10 Q0 7 1 1 t\n9 Q0 7 1 1 t\n", "10 0 7 1\n200 0 7 1\n"))
    assert ranked.user_ids == ("9", "10", "200")
    assert metrics.recall(ranked, k=1).tolist() == pytest.approx([float("nan"), 1, 0], nan_ok=True)
    mixed = RankedEdges.from_trec(*write("x Q0 i9 1 1 t\n7 Q0 i10 1 1 t\n", "x 0 i9 1\n"))
    assert (mixed.user_ids, mixed.item_ids) == (("7", "x"), ("i10", "i9"))


RUN, QRELS = "u Q0 a 1 1 t\n", "u 0 a 1\n"


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (RUN + "\nu Q0 b 2 t\n", QRELS, r"run: line 3 needs to be 'user Q0 item .*u Q0 b 2 t"),
        *(
            (RUN + f"# it\nu Q0 b 1 {x} t\n", QRELS, "run: line 3 needs .* a finite score")
            for x in ("x", "nan", "1e999", "1_0", "\u0661")
        ),
        (RUN + "u Q0 a 2 0 t\n", QRELS, "run: line 2 needs .* each item of a user once"),
        (RUN, QRELS + "u 0 b yes\n", r"qrels: line 2 needs .* a finite relevance"),
        ("", QRELS, "run: lines .* are needed"),
        (RUN, "#\n", "qrels: Too many columns specified"),
        ("u Q0 café 1 1 t\n".encode("latin-1"), QRELS, "run: 'utf-8' codec can't decode"),
        (RUN + "u Q0 b\0 1 1 t\n", QRELS, "run: line 2 needs to be"),
        (
            gzip.compress(RUN.encode() * 99, mtime=0)[:-9],
            QRELS,
            "run: Compressed file ended before",
        ),
    ],
)
def test_malformed_lines_are_named(write, run, qrels, message):
    with pytest.raises(ValueError, match=message):
        RankedEdges.from_trec(*write(run, qrels))


def test_a_level_is_positive(write):
    with pytest.raises(ValueError, match="'level' needs to be positive"):
        RankedEdges.from_trec(*write(RUN, QRELS), level=0)


@pytest.mark.usefixtures("expect_lost_truth")
def test_one_long_list_takes_memory_for_its_lines_alone(write, little_memory):
    lines = [f"long Q0 i{item} 0 {-item} t\n" for item in range(60_000)]
    lines += [f"u{user} Q0 i{user} 0 1 t\n" for user in range(10_000)]
    judged = ["long 0 i59999 1\n", *(f"u{user} 0 i{user // 2 * 2} 1\n" for user in range(10_000))]
    # As a matrix, these lists would have 600 million places.
    ranked = RankedEdges.from_trec(*write("".join(lines), "".join(judged)))
    long = ranked.user_ids.index("long")
    assert float(metrics.mrr(ranked, k=60_000)[long]) == 1 / 60_000
    assert float(metrics.recall(ranked, k=1).sum()) == 5_000
    assert (ranked.lists.length(1) > 0).all()
    assert ranked.lists.length(7).sum() == 10_007
    assert ranked.lists.edges(100_000).size(1) == len(lines)


@pytest.mark.usefixtures("expect_lost_truth")
@pytest.mark.parametrize(
    "run",
    [
        b"\xef\xbb\xbfu Q0 a 1 1 t\n",  # the mark of UTF-8 that some editors write
        b"u Q0 b 1 0 t\n\xef\xbb\xbfu Q0 a 1 1 t\n",  # two such files that were joined
        b"u Q0 a 1 1 t\r\nu Q0 b 1 0 t\r\n",
        b"  u\tQ0\ta\t1\t1\tt\n\n \n",
        gzip.compress(b"u Q0 a 1 1 t\n", mtime=0),
        b"u Q0 a 1 1 t",
    ],
)
def test_harmless_forms_of_a_run_are_the_same(write, run):
    ranked = RankedEdges.from_trec(*write(run))
    assert ranked.user_ids == ("u",)
    assert ranks(ranked) == {(0, ranked.item_ids.index("a")): 1}


FIELD = re.compile(rb"[^ \t]+")


def split_naively(content, num_fields, number_field):
    """The fields of all lines of a file; `None` if it is damaged."""
    rows = []
    for line in re.split(rb"[\r\n]", content):
        fields = FIELD.findall(line[3:] if line.startswith(b"\xef\xbb\xbf") else line)
        if not fields or fields[0].startswith(b"#"):
            continue
        try:
            row = [field.decode() for field in fields[:num_fields]]
            number = float(row[number_field]) if len(row) == num_fields else math.nan
        except ValueError:
            return None
        if not math.isfinite(number) or not re.fullmatch(r"[-+.eE0-9]+", row[number_field]):
            return None
        pair = row[0], row[2]
        if re.search(r"[\0-\x1f]", "".join(pair)) or pair in {(r[0], r[2]) for r in rows}:
            return None
        rows.append([*row[:number_field], number])
    return rows or None


@pytest.mark.usefixtures("expect_lost_truth")
def test_damaged_files_are_named_or_read_as_they_stand(write):
    run = "".join(
        f"u{user} Q0 {item} {rank} {7 - rank} t\n"
        for user in range(3)
        for rank, item in enumerate([user, 9, 4, 7, 5], start=1)
    ).encode()
    qrels = "".join(f"u{user} 0 {item} {item % 3}\n" for user in range(4) for item in (4, 5, 7))
    generator = random.Random(0)
    num_read = 0
    for _ in range(120):
        damaged = damage_lines(run, generator), qrels.encode()
        if generator.random() < 0.4:
            damaged = run, damage_lines(qrels.encode(), generator)
        paths = write(*damaged)
        scored, judged = (
            split_naively(content, *form)
            for content, form in zip(damaged, ((6, 4), (4, 3)), strict=True)
        )
        is_whole = scored is not None and judged is not None
        if not is_whole or any(row[2].startswith("pyg_rec") for row in judged):
            with pytest.raises(ValueError, match=rf"{paths[0]}|{paths[1]}"):
                RankedEdges.from_trec(*paths)
            continue
        ranked = RankedEdges.from_trec(*paths)
        expected = {}
        for user, _, item, relevance in judged:
            if relevance > 0:
                scores = [row for row in scored if row[0] == user]
                scores.sort(key=lambda row: (-row[4], ranked.item_ids.index(row[2])))
                found = [row[2] for row in scores]
                expected[user, item] = found.index(item) + 1 if item in found else math.inf
        assert expected == {
            (ranked.user_ids[user], ranked.item_ids[item]): place
            for (user, item), place in ranks(ranked).items()
        }
        num_read += 1
    assert 12 < num_read < 108
