"""What a race says."""

import pytest

from pyg_recmetrics import metrics
from pyg_recmetrics.results import Race
from pyg_recmetrics.results.race import Entrant
from pyg_recmetrics.results.verdicts import RacedPair, swapped

PAIRS = [
    RacedPair("a", "b", "better", 0.03, 0.01, 0.05, 256),
    RacedPair("a", "c", "equivalent", 0.0001, -0.001, 0.0015, 900),
    RacedPair("b", "c", "undecided", -0.02, -0.05, 0.01, 256),
]
ENTRANTS = [
    Entrant("a", 0.21, 900, 0.5, None),
    Entrant("b", 0.18, 256, 0.125, "a"),
    Entrant("c", 0.2099, 900, 0.25, None),
]


def make(pairs=PAIRS, entrants=ENTRANTS):
    return Race(
        metrics.parse("ndcg@20"),
        pairs,
        entrants,
        [pairs[:1]],
        equivalence=0.002,
        level=0.95,
        num_users=30_000,
    )


def test_the_best_are_those_that_did_not_lose():
    assert make().best == ("a", "c")
    assert make().winner is None
    assert make(entrants=ENTRANTS[:2]).winner == "a"


def test_a_pair_is_found_both_ways():
    assert make().pair("a", "b") == PAIRS[0]
    other = make().pair("b", "a")
    assert other == ("b", "a", "worse", -0.03, -0.05, -0.01, 256)
    assert swapped(other) == PAIRS[0]
    assert make().pair("c", "b").verdict == "undecided"
    with pytest.raises(
        ValueError, match=r"need to name two of \['a', 'b', 'c'\] \(got 'a' and 'a'"
    ):
        make().pair("a", "a")


def test_the_table_says_what_became_of_each():
    assert str(make()).splitlines() == [
        "recommender  ndcg@20  users  seconds                 verdict",
        "------------------------------------------------------------",
        "a             0.2100    900     0.50  equivalent to the best",
        "b             0.1800    256     0.12            worse than a",
        "c             0.2099    900     0.25  equivalent to the best",
        "a is better than b: +0.0300 ± .0200, after 256 users",
        "a and c are equivalent: +0.0001 (-0.0010 to 0.0015), after 900 users",
        "between b and c it is undecided: -0.0200 ± .0300, after 256 users",
        "bounds and verdicts are about all 30,000 users, and hold together with 95% confidence",
        "equivalent: less than 0.002 apart",
    ]


def test_what_is_better_by_little_is_both():
    small = RacedPair("a", "b", "worse", -0.001, -0.0015, -0.0005, 9000)
    text = str(make([small], ENTRANTS[:2]))
    assert "b is better than a, by less than what matters: +0.0010 ± .0005" in text


def test_a_race_may_be_open():
    race = make([RacedPair("a", "c", "undecided", 0.0, -0.1, 0.1, 900)], ENTRANTS[::2])
    assert "may be the best" in str(race)
    assert repr(race) == "Race(2 recommenders, best: a, c)"


def test_data_frames_have_a_row_for_each_recommender_or_pair():
    pytest.importorskip("pandas")
    frame = make().to_pandas()
    assert list(frame.columns) == list(Entrant._fields)
    assert frame["worse_than"].isna().tolist() == [True, False, True]
    pairs = make().to_pandas(pairs=True)
    assert list(pairs.columns) == list(RacedPair._fields)
    assert pairs["verdict"].tolist() == ["better", "equivalent", "undecided"]
