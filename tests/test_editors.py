"""What editors and type checkers see of the package."""

import re
from pathlib import Path
from types import ModuleType

import pyg_recmetrics


def test_type_checkers_see_every_public_name_and_no_other():
    seen = re.findall(r"\b(\w+) as \1\b", Path(pyg_recmetrics.__file__).read_text())
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
