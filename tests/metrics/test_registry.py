"""The registry of metrics."""

from pyg_recmetrics import metrics


def test_names_are_those_of_public_functions():
    for name in metrics.names():
        assert getattr(metrics, name).__name__ == name
        assert name in metrics.__all__
        assert metrics.definition(name).docstring.summary.endswith(".")
