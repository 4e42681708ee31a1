"""The subcommand `evaluate`, compared with loops over what pandas reads."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate

DATA = "evaluate -q --test test.csv --train train.csv"
VECTORS = "--users u.csv --items i.csv"
POPULAR = "--users ones.csv --items popular.csv"


def naive_recall(ranked, truth, k):
    """The mean recall of lists, as a loop."""
    recalls = [
        len(set(ranked[user][:k]) & relevant) / len(relevant) for user, relevant in truth.items()
    ]
    return sum(recalls) / len(recalls)


def array(name):
    return pd.read_csv(f"{name}.csv", index_col="id").sort_index().to_numpy()


def held():
    """The test items of every user, and lists by the scores without what the user has seen."""
    test, train = pd.read_csv("test.csv"), pd.read_csv("train.csv")
    scores = array("u") @ array("i").T
    truth = test.groupby("userId").movieId.apply(set).to_dict()
    seen = train.groupby("userId").movieId.apply(set).to_dict()
    ranked = {
        user: [item for item in (-scores[user]).argsort().tolist() if item not in seen[user]]
        for user in truth
    }
    return truth, ranked


def means(run, line):
    status, out, err = run(f"{line} --json")
    assert status == 0, err
    return {name: each["mean"] for name, each in json.loads(out)["metrics"].items()}


def write_vectors(name, form):
    """Vectors in another form: one column of them, or a column for each number."""
    frame = pd.read_csv(f"{name}.csv")
    values = frame.drop(columns="id").to_numpy()
    packed = pd.DataFrame({"id": frame["id"], "features": values.tolist()})
    if form == "jsonl":
        packed.to_json(f"{name}.jsonl", orient="records", lines=True)
    elif form == "tsv":
        frame.to_csv(f"{name}.tsv", sep="\t", index=False)
    else:
        (packed if form == "parquet" else frame).to_parquet(f"{name}.{form}")


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "tsv", "pq"])
def test_embeddings_are_ranked_in_any_form(files, run, form):
    if form != "csv":
        write_vectors("u", form)
        write_vectors("i", form)
    truth, ranked = held()
    line = f"{DATA} --users u.{form} --items i.{form} --metrics recall@5"
    assert means(run, line) == {"recall@5": pytest.approx(naive_recall(ranked, truth, 5))}


def test_ids_may_be_any_text_and_files_of_different_formats_share_them(files, run):
    truth, ranked = held()
    for name, column in (("test", "userId"), ("train", "userId"), ("u", "id")):
        frame = pd.read_csv(f"{name}.csv")
        frame[column] = "ann-" + frame[column].astype(str)
        frame.to_csv(f"{name}.csv", index=False)
    pd.read_csv("test.csv").to_json("test.jsonl", orient="records", lines=True)
    line = f"evaluate -q --test test.jsonl --train train.csv {VECTORS}"
    found = means(run, f"{line} --metrics recall@5")
    assert found["recall@5"] == pytest.approx(naive_recall(ranked, truth, 5))


def test_lists_share_the_items_of_embeddings_if_an_option_names_them(files, run):
    (files / "test.csv").write_text("user,item\n0,1\n1,2\n")
    (files / "lists.csv").write_text("user,item,rank\n0,1,1\n1,9,1\n")
    (files / "items.txt").write_text("".join(f"{item}\n" for item in range(25)))
    run(f"evaluate --test test.csv {VECTORS} -o a.npz")
    run("evaluate --test test.csv --lists lists.csv --item-ids items.txt -o b.npz")
    tasks = [EvaluationResult.load(name).task for name in ("a.npz", "b.npz")]
    assert tasks[0].item_ids == tasks[1].item_ids == (*range(25),)


def api(**options):
    """What the public function says of the same files."""
    given = {"rating": options.pop("rating", None), "threshold": options.pop("threshold", None)}
    exclude_seen = options.pop("exclude_seen", True)
    task = RankingTask.from_frames(
        train=pd.read_csv("train.csv"),
        test=pd.read_csv("test.csv"),
        user="userId",
        item="movieId",
        exclude_seen=exclude_seen,
        **given,
    )
    popular = torch.from_numpy(array("popular")[:, 0]).double()
    return evaluate(popular[torch.tensor(task.item_ids)], task, **options).to_dict()


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("--metrics ndcg@5 coverage@3", {"metrics": ["ndcg@5", "coverage@3"]}),
        ("", {}),
        ("--convention recbole --metrics ndcg@5", {"convention": "recbole", "metrics": "ndcg@5"}),
        
        ("--ties random --seed 3 --batch-size 7", {"ties": "random", "seed": 3, "batch_size": 7}),
        ("--rating-column rating --metrics ndcg@5", {"rating": "rating", "metrics": "ndcg@5"}),
        ("--threshold 4", {"rating": "rating", "threshold": 4.0}),
        ("--threshold 4 --empty-target-action neg", {
            "rating": "rating", "threshold": 4.0, "empty_target_action": "neg",
        }),
        ("--include-seen", {"exclude_seen": False}),
        
        ("--margin 0.3 --metrics ndcg@5", {"margin": 0.3, "metrics": "ndcg@5"}),
        ("--user-column userId --item-column movieId", {}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_options_are_those_of_the_function(files, run, line, options):
    assert means(run, f"{DATA} {POPULAR} {line}") == pytest.approx(api(**options))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_ends_of_a_mean_over_drawn_users_are_its_bounds(files, run):
    users = np.arange(5000)
    pd.DataFrame({"userId": users, "movieId": users % 25}).to_csv("test.csv", index=False)
    pd.DataFrame({"id": users, "x0": 1.0}).to_csv("ones.csv", index=False)
    line = "evaluate -q --test test.csv --margin 0.2 --metrics ndcg@5 -o part.npz --json"
    _, out, _ = run(f"{line} {POPULAR}")
    found, part = json.loads(out)["metrics"]["ndcg@5"], EvaluationResult.load("part.npz")
    assert part.user_counts.num_evaluated < 5000
    assert (found["low"], found["high"]) == pytest.approx(part.bounds("ndcg@5"))


def test_columns_of_lists_are_named_too_where_they_have_these_names(files, run):
    others = {"userId": "listener", "movieId": "artist"}
    for name in ("test", "train"):
        pd.read_csv(f"{name}.csv").rename(columns=others).to_csv(f"{name}.csv", index=False)
    named = "--user-column listener --item-column artist --metrics mrr@2"
    found = []
    for user, item in (("listener", "artist"), ("user", "item")):
        lists = pd.DataFrame({user: [0, 1], item: [1, 2], "rank": [1, 1]})
        lists.to_csv("lists.csv", index=False)
        found.append(means(run, f"{DATA} --lists lists.csv {named}"))
    assert found[0] == found[1]


def test_files_without_a_header_have_their_columns_named(files, run):
    expected = means(run, f"{DATA} {POPULAR}")
    for name in ("test", "train"):
        pd.read_csv(f"{name}.csv").to_csv(f"{name}.data", sep="\t", index=False, header=False)
    (files / "lists.data").write_text("0\t1\t1\n1\t2\t1\n")
    line = "evaluate -q --test test.data --train train.data --columns user item rating time"
    assert means(run, f"{line} {POPULAR}") == expected
    found = means(run, f"{line} --lists lists.data --list-columns user item rank --metrics mrr@1")
    assert math.isfinite(found["mrr@1"])


@pytest.mark.parametrize(
    ("option", "start"),
    [("", "metric"), ("--markdown", "| metric"), ("--latex", r"\begin{tabular}")],
)
def test_the_table_is_that_of_the_result(files, run, option, start):
    status, out, err = run(f"{DATA} {VECTORS} {option} --output result.npz")
    assert (status, err) == (0, "")
    result = EvaluationResult.load("result.npz")
    form = {"": str(result), "--markdown": result.to_markdown(), "--latex": result.to_latex()}
    assert out == f"{form[option]}\n"
    assert out.startswith(start)


def test_json_has_intervals_and_nothing_that_json_lacks(files, run):
    _, out, _ = run(f"{DATA} {VECTORS} --metrics recall@5 gini@5 --json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert set(found["metrics"]["recall@5"]) == {"mean", "low", "high"}
    assert set(found["metrics"]["gini@5"]) == {"mean"}
    assert found["num_users"] == 40


def test_recommended_items_are_kept_if_asked_for(files, run):
    run(f"{DATA} {VECTORS} -o without.npz")
    run(f"{DATA} {VECTORS} --keep-items -o with.npz")
    kept = [EvaluationResult.load(f"{name}.npz").ranked.lists for name in ("without", "with")]
    assert kept[0] is None
    assert kept[1] is not None


def test_it_says_how_files_are_read_and_what_could_not_be_learned(files, run):
    (files / "test.csv").write_text("user,item,stars\n0,1,5\n77,2,4\n77,2,4\n")
    (files / "lists.csv").write_text("user,item,score\n0,1,0.5\n77,99,0.2\n88,1,0.2\n")
    line = "evaluate --test test.csv --train train.csv --lists lists.csv --metrics recall@1"
    status, out, err = run(line)
    assert status == 0
    assert "recall" in out
    for part in (
        "train.csv (CSV): users from 'userId', items from 'movieId'",
        "test.csv: rows that repeat an interaction, which counts once: 1",
        "'lists.csv' has lists of 1 user that the task does not have ('88')",
        "test.csv: 'stars' is not used, so all rows are equally relevant",
        "'test.csv' has 1 user (77) that '--train' does not have, so nothing could be learned",
        "lists.csv (CSV): users from 'user', items from 'item', scores from 'score'",
        "warning: Items of 'lists.csv' are no candidates, as the task does not have them: 1 ('99')",
        "The candidates are the whole catalogue with --item-ids FILE",
    ):
        assert part in err
    assert run(f"{line} --quiet")[2].count("pyg-recmetrics: warning") == err.count("warning")


@pytest.fixture
def ann(files):
    """A user whose items are 9 and 10, in files of their own."""
    (files / "ann.csv").write_text("user,item\nann,9\nann,10\n")
    return files


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        # Of equal scores, the lower id comes first, in the order of numbers.
        ("lists.csv", "user,item,score\nann,30,0.5\nann,10,0.5\n", 1),
        ("lists.run", "ann Q0 30 1 0.5 me\nann Q0 10 2 0.5 me\n", 1),
        # Ranks before scores, but for a run.
        ("lists.csv", "user,item,score,rank\nann,30,0.9,2\nann,10,0.1,1\n", 1),
        ("lists.run", "ann Q0 30 2 0.9 me\nann Q0 10 1 0.1 me\n", 2),
    ],
)
def test_the_order_of_lists_is_as_documented(ann, run, name, content, first):
    (ann / name).write_text(content)
    found = means(run, f"evaluate -q --test ann.csv --lists {name} --metrics mrr")
    assert found == {"mrr": pytest.approx(1 / first)}


ITEM_IDS = "--lists l.csv --item-ids items.txt"
RANKED = "user,item,rank\nann,9,1\n"


@pytest.mark.parametrize(
    ("line", "lists", "ids", "message"),
    [
        ("--lists l.csv", f"{RANKED}ann,10,3\n", "", "rank the items of every user as 1, 2, 3"),
        ("--lists l.csv", f"{RANKED}ann,9,2\n", "", "'l.csv' needs to list every item once"),
        (
            "--lists l.csv",
            "user,item,rank\nbob,9,1\n",
            "",
            "'l.csv' needs to hold lists by the orig",
        ),
        (ITEM_IDS, RANKED, "9\n10\n\n11\n", "items.txt, line 3: an id is needed (got nothing)"),
        (ITEM_IDS, RANKED, "9\n10\n9\n", "'items.txt' needs to hold every id once (got '9' more"),
        (f"{VECTORS} --item-ids items.txt", "", "9\n", "needs --lists (and --item-ids)"),
        ("--users l.csv --items i.csv", "id,x\nann,1\nann,2\n", "", "'l.csv' needs to hold every"),
        (
            "--users l.csv --items i.csv",
            "id\nann\n",
            "",
            "l.csv: numbers are needed beside the col",
        ),
    ],
)
def test_what_does_not_fit_is_told(ann, run, line, lists, ids, message):
    (ann / "l.csv").write_text(lists)
    (ann / "items.txt").write_text(ids)
    status, out, err = run(f"evaluate -q --test ann.csv {line}")
    assert (status, out) == (3, "")
    assert message in err


@pytest.mark.parametrize("taken", ["test.csv", "train.csv", "u.csv", "i.csv", "link.csv"])
def test_an_input_is_no_output(files, run, taken):
    (files / "link.csv").symlink_to("i.csv")
    before = (files / taken).read_bytes()
    status, out, err = run(f"{DATA} {VECTORS} -o {taken}")
    assert (status, out) == (3, "")
    assert f"{taken}: --output needs to be another file than" in err
    assert (files / taken).read_bytes() == before


@pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
@pytest.mark.parametrize("seed", range(2))
def test_other_rows_of_lists_do_not_change_the_order_of_equal_scores(tmp_path, run, seed):
    draw = np.random.default_rng(seed)
    pairs = [(user, item) for user in range(3) for item in (2, 9, 10, 11, 100)]
    scores = draw.integers(0, 2, len(pairs)).tolist()
    rows = [(*pair, score) for pair, score in zip(pairs, scores, strict=True)]
    test = [(user, int(draw.choice([9, 10, 100]))) for user in range(3)]
    means = []
    for more, ids in (
        ([], ""),
        ([(7, "promo", 0)], ""),
        ([(0, "x 1", -1), (1, 3.5, -2)], ""),
        ([(8, 10**18, 5)], ""),
        ([], "promo\n"),
    ):
        frames = {"test": pd.DataFrame(test, columns=["user", "item"])}
        frames["lists"] = pd.DataFrame([*rows, *more], columns=["user", "item", "score"])
        for name, frame in frames.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        (tmp_path / "items.txt").write_text(f"{ids}100\n11\n10\n9\n2\n")
        line = ["--test", "test.csv", "--lists", "lists.csv", "--item-ids", "items.txt"]
        line = [tmp_path / x if "." in x else x for x in line]
        status, out, err = run(["evaluate", "-q", "--json", *map(str, line), "--metrics", "mrr@4"])
        assert status == 0, err
        means.append(json.loads(out)["metrics"]["mrr@4"]["mean"])
    task = RankingTask.from_frames(test=frames["test"], items=[2, 9, 10, 11, 100])
    by_hand = torch.tensor(scores).view(3, 5).float()
    assert means == [evaluate(by_hand, task, "mrr@4")["mrr@4"]] * 5
