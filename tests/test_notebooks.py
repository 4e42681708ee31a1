"""The notebooks run in a clean kernel, and their outputs contain what they promise."""

import importlib.util
import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tests.support.tools import notebooks  # noqa: E402

NOTEBOOKS = {path.stem: path for path in notebooks.NOTEBOOKS}


def read(name):
    return nbformat.read(NOTEBOOKS[name], as_version=4)


def check(notebook, is_installed=importlib.util.find_spec):
    """Asserts that all cells ran in order, without warnings, and printed what they promise."""
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error", output.get("evalue")
            assert output.get("name") != "stderr", output.text
        printed = notebooks.text_of(cell)
        missing = notebooks.missing_promises(cell, is_installed)
        assert not missing, f"{missing} is not in the output:\n{printed}"
        assert "agree to 1e-6: False" not in printed


#: All trials of tuning, and enough of them.
TRIALS = "TRIALS = 8", "TRIALS = 2"


def test_all_are_known():
    assert set(NOTEBOOKS) == {"lightgcn", "migrate"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_from_a_clean_kernel(name, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("torchmetrics")
    notebook = read(name)
    for cell in notebooks.code_cells(notebook):
        # Enough to learn something. All epochs are run on LastFM.
        for all_of_them, some in (("MAX_EPOCHS, EVERY = 150", "MAX_EPOCHS, EVERY = 40"), TRIALS):
            cell.source = cell.source.replace(all_of_them, some)
    notebooks.execute(notebook, tmp_path)
    check(notebook)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_is_committed_with_its_outputs(name):
    notebook = read(name)
    nbformat.validate(notebook)
    check(notebook, is_installed=lambda package: True)
    cells = notebooks.code_cells(notebook)
    assert sum("promises" in cell.metadata for cell in cells) > len(cells) / 2
    for cell in cells:
        assert "promises" not in cell.metadata or cell.metadata["promises"]
        assert set(cell.metadata) <= {"promises", "promises_with"}  # and no execution times
        # Addresses and paths differ between machines and between runs.
        assert not re.search(r"\bat 0x|/(tmp|home|root|Users)/", notebooks.text_of(cell))


LASTFM = "RankingTask(num_users=1892, num_items=4489, truth=[2, 10533]"


@pytest.mark.slow
def test_lightgcn_runs_on_lastfm_where_it_is_there(lastfm_folder, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lastfm").symlink_to(lastfm_folder)
    notebook = read("lightgcn")
    for cell in notebooks.code_cells(notebook):
        cell.source = cell.source.replace(*TRIALS)
    notebooks.execute(notebook, tmp_path)
    check(notebook)
    assert LASTFM in notebooks.text_of(notebooks.code_cells(notebook)[2])


def test_the_outputs_of_lightgcn_are_those_of_lastfm():
    assert LASTFM in notebooks.text_of(notebooks.code_cells(read("lightgcn"))[2])


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # in PyG's reader
@pytest.mark.usefixtures("movielens_folder")
@pytest.mark.filterwarnings("ignore:.*count as relevant")  # stars, of which any may be
def test_other_data_is_one_changed_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    imports, load, split = (cell.source for cell in notebooks.code_cells(read("lightgcn"))[:3])
    first, *others = load.splitlines()
    assert first.startswith("DATASET = ")
    monkeypatch.chdir(tmp_path)
    imports = re.sub("%(config|pip)", "pass  # ", imports)
    exec("\n".join([imports, 'DATASET = "MovieLens100K"', *others, split]), {})
    assert "RankingTask(num_users=5, num_items=30, truth=[2, " in capsys.readouterr().out
