"""Packages that only some features need."""

import re
import subprocess
import sys

import pytest

from pyg_recmetrics.extras import requires_extra


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
