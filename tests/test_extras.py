"""Packages that only some features need."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyg_recmetrics.extras import requires_extra

ROOT = Path(__file__).resolve().parents[1]

#: What users install. All other extras are for a clone of the repository.
FOR_USERS = {"all", "statistics", "plot", "frames", "command"}


def packages_of(extra):
    """The packages of an extra, from pyproject.toml: Python 3.10 has no reader of it."""
    listed = re.search(rf"^{extra} = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), flags=re.M)
    return set(re.findall(r'"(.*?)"', listed[1]))


def test_one_extra_has_all_others_of_users():
    assert packages_of("all") > set().union(*map(packages_of, FOR_USERS - {"all"}))


def test_errors_and_pages_name_extras_of_users():
    named = set()
    for path in (*ROOT.glob("pyg_recmetrics/**/*.py"), *ROOT.glob("docs/**/*.md")):
        named |= set(
            re.findall(
                r"""requires_extra\("[^"]+", "(\w+)"|pyg-recmetrics\[(\w+)\]|extras? `(\w+)`""",
                path.read_text(),
            )
        )
    assert {name for names in named for name in names if name} == FOR_USERS


@pytest.mark.parametrize("error", [ImportError("no"), ModuleNotFoundError("no module 'scipy'")])
def test_a_failed_import_says_what_to_install(error):
    message = "'compare' needs scipy: pip install 'pyg-recmetrics[statistics]'"
    with (
        pytest.raises(ImportError, match=f"^{re.escape(message)}$") as raised,
        requires_extra("scipy", "statistics", "compare"),
    ):
        raise error
    assert raised.value.__cause__ is error


def test_the_package_the_extra_and_the_function_are_those_given():
    with (
        pytest.raises(ImportError, match=r"^'to_pandas' needs pandas: .*\[tables\]'$"),
        requires_extra("pandas", "tables", "to_pandas"),
    ):
        import pyg_recmetrics.no_such_module  # noqa: F401


@pytest.mark.parametrize("error", [ValueError("no"), AttributeError("no"), KeyboardInterrupt()])
def test_other_errors_pass_through(error):
    with (
        pytest.raises(type(error)) as raised,
        requires_extra("scipy", "statistics", "compare"),
    ):
        raise error
    assert raised.value is error


def test_nothing_happens_if_the_import_succeeds():
    with requires_extra("scipy", "statistics", "compare"):
        imported = re
    assert imported is re


def test_an_import_of_the_package_loads_no_other_that_pyg_does_without():
    code = (
        "import sys, torch_geometric, tqdm; before = set(sys.modules); import pyg_recmetrics; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(new - {'pyg_recmetrics'} - set(sys.stdlib_module_names)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
