"""What tables, recipes and warnings call the rows of a result."""

import pytest
import torch

from pyg_recmetrics import RankingTask, Runs, compare, evaluate, plot

pytestmark = pytest.mark.filterwarnings("ignore:.*may be too narrow")


def queries(**options):
    generator = torch.Generator().manual_seed(0)
    source, relation = (torch.randint(6, (80,), generator=generator) for _ in range(2))
    item = torch.randint(9, (80,), generator=generator)
    task = RankingTask.from_queries((source, relation), item, num_items=9, **options)
    return task, torch.rand(task.num_users, 9, generator=generator)


def test_queries_are_called_so():
    task, scores = queries()
    result = evaluate(scores, task, "recall@2")
    assert result.nouns == ("queries", "queries", "queries", "queries")
    assert "interval of the mean over queries\n" in str(result)
    assert "queries evaluated" in str(result)
    assert "relevant items of a query" in " ".join(result.recipe().split())
    assert str(result.by(task.query[:, 0])).splitlines()[0].split() == [
        *("group", "queries", "recall@2"),
    ]
    other = evaluate(scores.flip(1), task, "recall@2")
    assert "for other queries" in str(compare({"a": result, "b": other}))
    assert "for other queries and other runs" in str(Runs([result, other]))
    assert "users" not in str(result) + result.recipe().replace("averaged over users", "")


def test_edges_of_queries_are_called_so():
    task, scores = queries()
    result = evaluate(scores, task, "mrr", per="edge")
    assert result.nouns == ("queries", "edges", "edges", "queries")
    note = f"over edges, for other queries ({task.num_users} behind all rows)"
    assert note in str(result)
    assert "there are few queries (" in str(result)
    recipe = " ".join(result.recipe().split())
    assert "where R is one" in recipe
    assert "number of relevant items" not in recipe
    assert "each edge is ranked without the other relevant items of its query" in recipe
    frame = result.to_pandas(per_user=True)
    assert list(frame.columns) == ["user", "query_0", "query_1", "item", "mrr"]
    user, item = task.truth
    assert frame["query_1"].tolist() == task.query[user, 1].tolist()
    assert frame["item"].tolist() == item.tolist()


@pytest.mark.parametrize(
    ("options", "means", "drawn"),
    [
        ({}, "queries", "queries"),
        ({"per": "edge"}, "edges", "queries"),
        ({"per": "edge", "average_over": "person"}, "queries", "queries"),
    ],
)
def test_comparisons_and_runs_say_what_they_are_over(options, means, drawn):
    task, scores = queries()
    a, b = (evaluate(each, task, "mrr", **options) for each in (scores, scores.flip(1)))
    comparison = compare({"a": a, "b": b})
    assert f"mean difference over {means} ± " in str(comparison)
    table = str(Runs([a, b]).table())
    assert f"se {drawn}" in table
    assert "users" not in table


def test_few_edges_that_differ_are_called_so():
    task, scores = queries()
    a = evaluate(scores, task, "mrr", per="edge")
    # The first query is ranked the other way round.
    b = evaluate(torch.cat([-scores[:1], scores[1:]]), task, "mrr", per="edge")
    assert "few edges differ in mrr" in " ".join(str(compare({"a": a, "b": b})).split())


def test_persons_behind_queries_are_called_so():
    task, scores = queries(person=0)
    result = evaluate(scores, task, "mrr", per="edge")
    assert result.nouns == ("queries", "edges", "edges", "persons")
    averaged = evaluate(scores, task, "mrr", per="edge", average_over="person")
    assert averaged.nouns.means == "persons"
    assert "interval of the mean over persons" in str(averaged)
    assert "means are over 6 persons, each with the mean of its edges" in " ".join(
        averaged.recipe().split()
    )


def test_pictures_name_what_they_count():
    task, scores = queries(person=0)
    for options, noun, pronoun in (
        ({}, "queries", "that"),
        ({"per": "edge"}, "edges", "that"),
        ({"average_over": "person"}, "persons", "who"),
    ):
        result = evaluate(scores, task, "recall@2", **options)
        counted = f"{int((~result.contributions('recall@2').isnan()).sum())} {noun}"
        _, axes = plot.distribution(result, "recall@2")
        assert axes.get_ylabel() == f"share of {noun} {pronoun} reach it"
        for figure, _ in (plot.distribution(result, "recall@2"), plot.means(result)):
            assert any(
                counted in text.get_text()
                for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))
            )
