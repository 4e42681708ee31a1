"""The last items of each user are left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.transforms import LeaveLastOut
from tests.support.cases.graphs import FORMS, USER_ITEM, interactions, random_graphs, truth


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.integers(0, 2),
    test=st.integers(1, 3),
)
def test_the_last_items_are_left_out(form, graph, val, test):
    parts = LeaveLastOut(num_val=val, num_test=test)(graph.data(form))
    for user in range(graph.num_users):
        last = {}
        for (other, item), time in zip(graph.edges, graph.times, strict=True):
            if other == user:
                last[item] = max(time, last.get(item, time))
        mine = [{item for other, item in set(truth(part)) if other == user} for part in parts]
        if last:
            num_test = min(test, len(last) - 1)
            num_val = min(val, len(last) - 1 - num_test)
            assert [len(items) for items in mine[1:]] == [num_val, num_test]
        for earlier, later in ((0, 1), (1, 2), (0, 2)):
            for earlier_item in mine[earlier]:
                for later_item in mine[later]:
                    assert last[earlier_item] <= last[later_item]


def test_without_times_there_is_a_warning_unless_it_is_wanted():
    data = interactions()
    del data[USER_ITEM].time
    with pytest.warns(UserWarning, match="'time_attr=None' if this is what you want") as warned:
        *_, test = LeaveLastOut()(data)
    assert [warning.filename for warning in warned] == [__file__]
    *_, same = LeaveLastOut(time_attr=None)(data)
    assert truth(test) == truth(same)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="'seed' needs to be a non-negative integer"):
        LeaveLastOut(seed=-1)
    with pytest.raises(TypeError, match="'k'"):
        LeaveLastOut(k=1)


def test_it_says_what_it_is():
    assert repr(LeaveLastOut()) == (
        "LeaveLastOut(num_val=1, num_test=1, users=None, time_attr='time', seed=0)"
    )
