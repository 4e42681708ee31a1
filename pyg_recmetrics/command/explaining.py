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
    described_one = _describe(name)
    definition = all_metrics.definition(name)
    elsewhere = _elsewhere(name)
    parameters = {
        parameter: ", ".join(map(str, about.words)) or "a number"
        for parameter, about in definition.parameters.items()
    }
    rows = [
        ["what it says", described_one["summary"]],
        ["formula", described_one["formula"]],
        ["range", described_one["range"]],
        ["better", "higher" if definition.higher_is_better else "lower"],
        ["other names", ", ".join(definition.aliases) or "-"],
        *(["argument", f"{parameter}: {values}"] for parameter, values in parameters.items()),
        *([f"in {library}", spelled] for library, spelled in elsewhere.items()),
    ]
    table = Table([described_one["spelling"], ""], rows, num_left=2)
    print_result(table, described_one | {"parameters": parameters, "elsewhere": elsewhere}, options)
    return DONE


def conventions(options: argparse.Namespace) -> int:
    """Prints all conventions on one toy ranking, or all that is known about one."""
    if options.name is None:
        known = [_describe_convention(each) for each in all_conventions.CONVENTIONS.values()]
        print_result(all_conventions.table(), known, options)
        return DONE
    convention = all_conventions.get(options.name)
    described = _describe_convention(convention)
    rows = [[name, spelled] for name, spelled in described["metrics"].items()]
    about = f"{convention.source}. {convention.note}".rstrip()
    notes = [about, f"users without ground truth: {convention.empty_target_action}"]
    if conditions := convention.population.describe():
        notes.append(f"evaluates users with {', '.join(conditions)}")
    head = [f"in {convention.name}", "the same spelled out"]
    print_result(Table(head, rows, tuple(notes), num_left=2), described, options)
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
