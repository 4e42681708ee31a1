"""Prints results on standard output, in the form that the options ask for."""

import argparse
import json
import math
from typing import Any

from pyg_recmetrics.tables import Tabular


def print_result(result: Tabular, as_json: Any, options: argparse.Namespace) -> None:
    """Prints a result as a table, or in another form.

    Args:
        result (Tabular): The result.
        as_json (Any): What stands for it in JSON.
        options (Namespace): The options `json`, `markdown` and `latex`.
    """
    if options.json:
        print(json.dumps(as_json, indent=2, ensure_ascii=False, allow_nan=False))
    elif options.markdown:
        print(result.to_markdown())
    elif options.latex:
        print(result.to_latex())
    else:
        print(result)


def as_number(value: Any) -> Any:
    """Returns a value as JSON can hold it, which has no `NaN` and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
