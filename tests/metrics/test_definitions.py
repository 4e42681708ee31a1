"""What is known about every metric, and what its docstring says."""

import pytest

from pyg_recmetrics import metrics


@pytest.mark.parametrize("name", metrics.names())
def test_docstrings_say_what_a_reader_needs(name):
    text = getattr(metrics, name).__doc__
    for section in (".. math::", "Args:", "Returns:", "NaN", "Source:", "Example:"):
        assert section in text, f"{name} lacks {section}"
