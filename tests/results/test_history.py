"""History: which evaluation is the best, and when to stop."""

import math

from hypothesis import given, strategies as st

from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results import History


class ResultStub(dict):
    """As much of a result as a history reads."""

    def __getitem__(self, metric):
        return super().__getitem__(str(metric))

    def to_dict(self):
        return dict(self)

    def _with(self, num_calls):
        return self


def history_of(values, monitor="recall@2", patience=None):
    history = History(parse(monitor), patience)
    for value in values:
        history.append(ResultStub({monitor: value}))
    return history


@given(
    values=st.lists(st.sampled_from([0.1, 0.2, 0.3, math.nan])),
    patience=st.none() | st.integers(1, 3),
    monitor=st.sampled_from(["recall@2", "mean_rank"]),
)
def test_the_best_and_when_to_stop(values, patience, monitor):
    history = history_of(values, monitor, patience)
    patience = math.inf if patience is None else patience
    sign = -1 if monitor == "mean_rank" else 1
    defined = [sign * value for value in values if not math.isnan(value)]
    if not defined:
        assert history.best is history.best_index is None
        assert not history.is_best
        assert history.should_stop == (len(values) >= patience)
        return
    first = [sign * value for value in values].index(max(defined))
    assert history.best_index == first
    assert history.best == {monitor: values[first]}
    assert history.is_best == (first == len(values) - 1)
    assert history.should_stop == (len(values) - first > patience)
