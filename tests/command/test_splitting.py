"""The subcommand `split`."""

import json

import pandas as pd
import pytest

READ = {
    "csv": pd.read_csv,
    "jsonl": lambda path: pd.read_json(path, lines=True),
    "parquet": pd.read_parquet,
}


def write(form):
    whole = pd.read_csv("all.csv")
    if form == "parquet":
        whole.to_parquet("all.parquet", index=False)
    elif form == "jsonl":
        whole.to_json("all.jsonl", orient="records", lines=True)


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("how", ["per-user", "leave-last-out", "temporal"])
def test_every_row_is_in_one_of_the_files_as_it_was(files, run, form, how):
    write(form)
    status, _, _ = run(f"split all.{form} --how {how} --val 0.1 --test 0.2 -o parts")
    assert status == 0
    parts = [READ[form](f"parts/{name}.{form}") for name in ("train", "val", "test")]
    key = ["userId", "movieId"]
    together = pd.concat(parts).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(
        together, pd.read_csv("all.csv").sort_values(key, ignore_index=True)
    )


def test_the_last_items_are_tested(files, run):
    run("split all.csv --how leave-last-out --val 1 --test 2 -o parts")
    whole = pd.read_csv("all.csv").sort_values(["userId", "timestamp"])
    last = whole.groupby("userId").tail(2)
    found = pd.read_csv("parts/test.csv")
    assert {*found.itertuples(index=False)} == {*last.itertuples(index=False)}


def test_moments_divide_all_users_alike(files, run):
    whole = pd.read_csv("all.csv")
    dates = pd.to_datetime(whole.timestamp, unit="D").dt.strftime("%Y-%m-%d")
    whole.assign(when=dates).drop(columns="timestamp").to_csv("all.csv", index=False)
    run("split all.csv --how temporal --time-column when --val 0.2 --test 0.2 -o parts")
    train, val, test = (pd.read_csv(f"parts/{name}.csv") for name in ("train", "val", "test"))
    assert train.when.max() < val.when.min() <= val.when.max() < test.when.min()


def test_times_of_parquet_may_be_dates(files, run):
    whole = pd.read_csv("all.csv")
    dated = whole.assign(timestamp=pd.to_datetime(whole.timestamp, unit="D"))
    dated.to_parquet("all.parquet", index=False)
    for form in ("csv", "parquet"):
        run(f"split all.{form} --how temporal -o {form}")
    rows = [
        {*map(tuple, frame[["userId", "movieId"]].itertuples(index=False))}
        for frame in (pd.read_csv("csv/test.csv"), pd.read_parquet("parquet/test.parquet"))
    ]
    assert rows[0] == rows[1]


def test_the_same_rows_are_drawn_from_every_format(files, run):
    for form in READ:
        write(form)
        run(f"split all.{form} --how per-user --test 3 -o {form}")
    csv, *others = (READ[form](f"{form}/test.{form}") for form in READ)
    for other in others:
        pd.testing.assert_frame_equal(csv, other)


def test_seeds_give_other_splits_and_the_same_again(files, run):
    for folder, seed in (("a", 0), ("b", 1), ("c", 1)):
        run(f"split all.csv --how per-user --test 3 --seed {seed} --output {folder}")
    texts = [(files / folder / "test.csv").read_text() for folder in "abc"]
    assert texts[0] != texts[1] == texts[2]
    assert not (files / "a" / "val.csv").exists()  # nothing validates by default


def test_a_core_leaves_out_rows_and_says_so(files, run):
    core = [f"{user},{item}" for user in "abc" for item in "xyz"]
    (files / "few.csv").write_text("\n".join(["user,item", *core, "d,x", "a,w", ""]))
    status, _, err = run("split few.csv --how per-user --k-core 3 -o parts")
    assert status == 0
    texts = [(files / "parts" / f"{name}.csv").read_text() for name in ("train", "test")]
    rows = [row for text in texts for row in text.splitlines()[1:]]
    assert sorted(rows) == core
    assert "2 of 11 rows are in none of these files: " in err
    assert "or there are too few others for --k-core" in err


def test_repeated_interactions_are_left_out_and_it_says_why(files, run):
    rows = [f"{user},{item},{time}" for time, (user, item) in enumerate(["ax", "bx", "ay", "by"])]
    again = ["a,x,8", "b,z,9"]
    (files / "again.csv").write_text("\n".join(["user,item,time", *rows, *again, ""]))
    status, _, err = run("split again.csv --how temporal --val 0 --test 2 -o parts")
    assert status == 0
    assert (files / "parts" / "test.csv").read_text() == "user,item,time\nb,y,3\nb,z,9\n"
    reason = "in none of these files: their user has the item in an earlier file\n"
    assert f"1 of 6 rows are {reason}" in err


def test_files_without_a_header_are_divided(files, run):
    (files / "plain.tsv").write_text('1\t"a b"\t3\n1\tc\t4\n1\td\t5\n2\tc\t1\n2\td\t7\n')
    line = "split plain.tsv --how per-user --test 1 --columns user item time -o parts"
    assert run(line)[0] == 0
    texts = [(files / "parts" / f"{name}.tsv").read_text() for name in ("train", "test")]
    assert sorted("".join(texts).splitlines()) == [
        *('1\t"a b"\t3', "1\tc\t4", "1\td\t5", "2\tc\t1", "2\td\t7"),
    ]


def test_columns_may_have_any_name(files, run):
    whole = pd.read_csv("all.csv").rename(columns={"userId": "who", "movieId": "what"})
    whole.to_csv("all.csv", index=False)
    assert run("split all.csv --how per-user -o parts")[0] == 3
    line = "split all.csv --how per-user --user-column who --item-column what -o parts"
    assert run(line)[0] == 0


@pytest.mark.parametrize("form", ["", "--json", "--markdown", "--latex"])
def test_it_prints_the_report_of_the_split(files, run, form):
    _, out, err = run(f"split all.csv --how per-user --val 0.1 -q -o parts {form}")
    assert err == ""
    if form == "--json":
        found = json.loads(out)
        assert found["has_leaks"] is False
        assert found["train"]["num_edges"] == len(pd.read_csv("parts/train.csv"))
    else:
        assert "none of the leaks that were looked for" in out


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("split all.csv --how per-user --test 1.5", "'num_test' needs to be a positive integer or"),
        ("split all.csv --how temporal --seed 1", "--seed needs a split at random"),
        ("split test.csv --how temporal --time-column when", "one column needs to have 'when'"),
        ("split test.csv --how per-user", "test.csv: --output needs to be another file"),
        ("split all.csv --how per-user --val x", "a number is needed"),
        ("split none.csv --how per-user", "none.csv: No such file or directory"),
    ],
)
def test_mistakes_are_told(files, run, line, part):
    status, out, err = run(line)
    assert (status, out) == (3, "")
    assert part in err


def test_a_missing_column_of_times_is_warned_about(files, run):
    pd.read_csv("all.csv").drop(columns="timestamp").to_csv("all.csv", index=False)
    status, _, err = run("split all.csv --how leave-last-out -q -o parts")
    assert status == 0
    assert err.count("warning: ") == 1
    assert "all.csv has no column of times, so the last items of users are drawn at random" in err
