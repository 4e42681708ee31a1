"""The picture of a race."""

import pytest

from pyg_recmetrics import metrics, plot
from pyg_recmetrics.plot.picture import description_of
from pyg_recmetrics.results import Race, RacedPair
from pyg_recmetrics.results.recipe import QUERIES
from tests.results.test_race import ENTRANTS, PAIRS

pytest.importorskip("matplotlib")


LOOKS = [
    [PAIRS[0], RacedPair("a", "c", "undecided", 0.001, -0.02, 0.03, 256), PAIRS[2]],
    [PAIRS[1]],
]


@pytest.fixture
def race():
    return Race(
        metrics.parse("ndcg@20"),
        PAIRS,
        ENTRANTS,
        LOOKS,
        equivalence=0.002,
        level=0.95,
        num_users=30_000,
    )


def test_there_is_a_line_for_each_that_was_compared_with_the_best(race):
    _, axes = plot.race(race)
    lines = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["b", "c"]
    assert lines["b"].get_xydata().tolist() == [[256, -0.03]]
    assert lines["c"].get_xydata().tolist() == [[256, -0.001], [900, -0.0001]]
    assert description_of(lines["b"]).text == (
        "b - a: -0.0300 (-0.0500 to -0.0100) after 256 users, worse"
    )
    assert axes.get_ylabel() == "ndcg@20, difference from a"
    assert axes.get_xscale() == "log"


def test_queries_are_not_called_users():
    raced = Race(
        metrics.parse("ndcg@20"),
        PAIRS,
        ENTRANTS,
        LOOKS,
        equivalence=0.002,
        level=0.95,
        num_users=30_000,
        nouns=QUERIES,
    )
    _, axes = plot.race(raced)
    assert axes.get_xlabel() == "queries ranked"
    (line,) = (line for line in axes.lines if line.get_label() == "b")
    assert "after 256 queries" in description_of(line).text


def test_bands_are_the_bounds(race):
    _, axes = plot.race(race)
    band = axes.collections[2].get_paths()[0].vertices  # after the band and the end of b
    assert {(256.0, -0.03), (256.0, 0.02), (900.0, -0.0015), (900.0, 0.001)} <= {
        tuple(map(float, point)) for point in band.round(6)
    }


def test_others_may_be_what_all_are_compared_with(race):
    _, axes = plot.race(race, "c")
    assert axes.get_ylabel() == "ndcg@20, difference from c"
    assert [line.get_label() for line in axes.lines[1:]] == ["a", "b"]


def test_other_things_are_an_error(race):
    with pytest.raises(TypeError, match="'race' needs to be a 'Race'"):
        plot.race(ENTRANTS)
    with pytest.raises(ValueError, match=r"'against' needs to be one of \['a', 'b', 'c'\]"):
        plot.race(race, "d")
