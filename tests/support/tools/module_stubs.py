"""Writes the stub of `pyg_recmetrics.modules`, whose classes are made from the registry.

Editors and type checkers cannot see what is made when it is asked for. The stub shows it to them.
After a change of a metric, `python -m tests.support.tools.module_stubs` writes it again.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

from pyg_recmetrics import metrics, modules
from pyg_recmetrics.modules.ranking_metric import base_class, class_name

STUB = Path(inspect.getfile(modules)).with_suffix(".pyi")

HEAD = """\
# Written by tests/support/tools/module_stubs.py from the registry of metrics.
from typing import Literal

from typing_extensions import Unpack

from pyg_recmetrics.modules.ranking_metric import (
    MeanOverUsers as MeanOverUsers,
    OverAllUsers as OverAllUsers,
    PrecisionRecallCurve as PrecisionRecallCurve,
    RankingMetric as RankingMetric,
    RecallAtFixedPrecision as RecallAtFixedPrecision,
    StreamingMetric as StreamingMetric,
    TorchmetricsArguments,
    base_class as base_class,
    class_name as class_name,
    make_class as make_class,
)
from pyg_recmetrics.task import Catalogue
"""

TAIL = """
# The class of a metric of your own.
def __getattr__(name: str) -> type[RankingMetric]: ...
"""


def stub():
    """The stub of all classes that the package itself has."""
    definitions = [metrics.definition(name) for name in metrics.names()]
    own = [each for each in definitions if each.function.__module__.startswith("pyg_recmetrics.")]
    classes = "".join(stub_of(each) for each in own if base_class(each) is not None)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(
        command, input=HEAD + classes + TAIL, capture_output=True, text=True, check=True
    ).stdout


def stub_of(definition):
    """The stub of the class of a metric."""
    name = class_name(definition.name)
    made = getattr(modules, name)
    parameters = []
    for parameter in inspect.signature(made).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        hint = inspect.formatannotation(parameter.annotation).replace("typing.", "")
        hint = re.sub(r"Optional\[(\w+)\]", r"\1 | None", hint)
        hint = hint.replace("pyg_recmetrics.task.task.", "").replace("torch.", "")
        if parameter.kind is parameter.VAR_KEYWORD:
            parameters.append(f"**{parameter.name}: Unpack[TorchmetricsArguments]")
            continue
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}: {hint}{default}")
    return f'''
class {name}({made.__base__.__name__}):
    """{definition.summary}"""

    def __init__(self, {", ".join(parameters)}) -> None: ...
'''


if __name__ == "__main__":
    STUB.write_text(stub())
