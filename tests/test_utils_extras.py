"""Packages that only some features need."""

import re
from pathlib import Path

import pytest

from pyg_recmetrics.utils import requires_package
from tests.support.machines.other_process import run_python

ROOT = Path(__file__).resolve().parents[1]

#: What users install. All other extras are for a clone of the repository.
FOR_USERS = {"all", "plot", "command"}


def packages_of(extra):
    """The packages of an extra, from pyproject.toml: Python 3.10 has no reader of it."""
    listed = re.search(rf"^{extra} = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), flags=re.M)
    return set(re.findall(r'"(.*?)"', listed[1]))


def test_one_extra_has_all_others_of_users():
    assert packages_of("all") >= set().union(*map(packages_of, FOR_USERS - {"all"}))


def test_packages_that_errors_name_come_with_the_extra_of_all():
    named = set()
    for path in ROOT.glob("pyg_recmetrics/**/*.py"):
        for packages in re.findall(r"""requires_package\("([^"]+)\"""", path.read_text()):
            named |= set(packages.split(" and "))
    known = {re.split(r"[><=]", package)[0] for package in packages_of("all")}
    assert named == known


def test_nothing_installs_the_package_by_a_name_that_it_does_not_own():
    for path in (*ROOT.glob("pyg_recmetrics/**/*.py"), *ROOT.glob("docs/**/*.md")):
        assert not re.search(r"pip install .*pyg-recmetrics", path.read_text()), path


@pytest.mark.parametrize("error", [ImportError("no"), ModuleNotFoundError("no module 'pyarrow'")])
def test_a_failed_import_says_what_to_install(error):
    message = "'evaluate' needs pyarrow: pip install pyarrow"
    with (
        pytest.raises(ImportError, match=f"^{re.escape(message)}$") as raised,
        requires_package("pyarrow", "evaluate"),
    ):
        raise error
    assert raised.value.__cause__ is error


def test_an_import_of_the_package_loads_no_other_that_pyg_does_without():
    code = (
        "import sys, pyg_recmetrics as p; assert 'torch' not in sys.modules; "
        "import torch_geometric, tqdm; before = set(sys.modules); "
        "import pyg_recmetrics.ranking.models; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "assert all(hasattr(p, x) for x in p.__all__) and set(p.__all__) == set(dir(p)); "
        "assert p.results.compare is p.compare and not hasattr(p, 'nonsense'); "
        "print(*sorted(new - {'pyg_recmetrics'} - set(sys.stdlib_module_names)))"
    )
    done = run_python("-c", code)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
