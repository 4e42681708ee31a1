"""The subcommands `metrics` and `conventions`, which explain definitions."""

import argparse
from contextlib import suppress
from typing import Any

from pyg_recmetrics import conventions as all_conventions
from pyg_recmetrics import metrics as all_metrics
from pyg_recmetrics.command.notes import DONE, as_number, print_result
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.tables import Table

#: The cut-off of examples.
_K = 10


def metrics(options: argparse.Namespace) -> int:
    """Prints a table of all metrics, or all that is known about one."""
    if options.name is None:
        described = [_describe(name) for name in all_metrics.names()]
        rows = [[each["spelling"], each["range"], each["summary"]] for each in described]
        table = Table(["metric", "range", "what it says"], rows, num_left=3)
        print_result(table, described, options)
        return DONE
    name = _name_of(options.name)
    definition = all_metrics.definition(name)
    parameters = {
        parameter: ", ".join(map(str, about.words)) or "a number"
        for parameter, about in definition.parameters.items()
    }
    return _print(_describe(name) | {"parameters": parameters, "in": _elsewhere(name)}, options)


def conventions(options: argparse.Namespace) -> int:
    """Prints all conventions on one toy ranking, or all that is known about one."""
    if options.name is None:
        known = [_describe_convention(each) for each in all_conventions.CONVENTIONS.values()]
        print_result(all_conventions.table(), known, options)
        return DONE
    return _print(_describe_convention(all_conventions.get(options.name)), options)


def _print(described: dict[str, Any], options: argparse.Namespace) -> int:
    """Prints what is known, a line each."""
    rows = []
    for name, value in described.items():
        within = value if isinstance(value, dict) else {"": value}
        for key, each in within.items():
            words = ", ".join(map(str, each)) if isinstance(each, list) else str(each)
            rows.append([f"{name.replace('_', ' ')} {key}".rstrip(), words or "-"])
    print_result(Table(rows[0], rows[1:], num_left=2), described, options)
    return DONE


def _describe(name: str) -> dict[str, Any]:
    definition = all_metrics.definition(name)
    low, high = definition.range
    return {
        "name": name,
        "spelling": f"{name}@k" if definition.has_cut_off else name,
        "summary": definition.docstring.summary,
        "formula": definition.docstring.formula,
        "range": f"{low:g} to {high:g}",
        "bounds": [as_number(low), as_number(high)],
        "better": "higher" if definition.higher_is_better else "lower",
        "aliases": list(definition.aliases),
    }


def _elsewhere(name: str) -> dict[str, str]:
    """Returns how each library spells what has the name of a metric there."""
    spelled = {}
    for convention in all_conventions.CONVENTIONS.values():
        other = convention.other_names.get(name, name)
        if convention.metrics is None or other in convention.metrics:
            spelled[convention.name] = _resolved(convention, other)
    return spelled


def _describe_convention(convention: Convention) -> dict[str, Any]:
    names = all_metrics.names() if convention.metrics is None else list(convention.metrics)
    return {
        "name": convention.name,
        "source": convention.source,
        "note": convention.note,
        "empty_target_action": convention.empty_target_action,
        "population": convention.population.describe(),
        "metrics": {name: _resolved(convention, name) for name in names},
    }


def _resolved(convention: Convention, name: str) -> str:
    k = _K if all_metrics.definition(name).has_cut_off else None
    return str(convention.resolve(Metric(name, k)))


def _name_of(given: str) -> str:
    """Returns the name of a metric, whether or not it is given with a cut-off that it needs."""
    if "@" not in given:
        with suppress(ValueError):
            return parse(given).name
        given = f"{given}@{_K}"
    return parse(given).name
