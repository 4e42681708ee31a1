"""The notebooks run in a clean kernel, and their outputs contain what they promise."""

import importlib.util
import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import notebooks  # noqa: E402

# What the notebook prints only if recometrics is installed.
WITH_RECOMETRICS = "all 9 agree to 1e-6: True"
NOTEBOOKS = {path.stem: path for path in notebooks.NOTEBOOKS}


def read(name):
    return nbformat.read(NOTEBOOKS[name], as_version=4)


def cell_with_recometrics(notebook):
    (cell,) = (c for c in notebook.cells if "import calc_reco_metrics" in c.source)
    return cell


def check(notebook):
    """Asserts that all cells ran in order, without warnings, and printed what they promise."""
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error", output.get("evalue")
            assert output.get("name") != "stderr", output.text
        missing = notebooks.missing_promises(cell)
        assert not missing, f"{missing} is not in the output:\n{notebooks.text_of(cell)}"


def test_all_are_known():
    assert set(NOTEBOOKS) == {"lightgcn", "migrate"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_from_a_clean_kernel(name, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    pytest.importorskip("torchmetrics")
    notebook = read(name)
    if name == "migrate" and importlib.util.find_spec("recometrics"):
        cell_with_recometrics(notebook).metadata["promises"].append(WITH_RECOMETRICS)
    notebooks.execute(notebook, tmp_path)
    check(notebook)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_is_committed_with_its_outputs(name):
    notebook = read(name)
    nbformat.validate(notebook)
    check(notebook)
    cells = notebooks.code_cells(notebook)
    assert sum("promises" in cell.metadata for cell in cells) > len(cells) / 2
    for cell in cells:
        assert "promises" not in cell.metadata or cell.metadata["promises"]
        assert set(cell.metadata) <= {"promises"}  # and no execution times
        # Addresses and paths differ between machines and between runs.
        assert not re.search(r"\bat 0x|/(tmp|home|root|Users)/", notebooks.text_of(cell))


def test_is_committed_with_the_numbers_of_recometrics():
    assert WITH_RECOMETRICS in notebooks.text_of(cell_with_recometrics(read("migrate")))


@pytest.mark.parametrize("name", ["LastFM", "MovieLens100K"])
def test_other_data_is_one_changed_line(name, tmp_path, request):
    notebook = read("lightgcn")
    notebook.cells = notebooks.code_cells(notebook)[:3]
    source = notebook.cells[1].source
    assert source.count('DATASET = "synthetic"\n') == 1
    notebook.cells[1].source = source.replace('DATASET = "synthetic"', f'DATASET = "{name}"')
    if name == "LastFM":
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "lastfm").symlink_to(request.getfixturevalue("lastfm_folder"))
        expected = "RankingTask(num_users=1892, num_items=4489, truth=[2, 10533]"
    else:
        request.getfixturevalue("movielens_folder")
        expected = "RankingTask(num_users=5, num_items=8, truth=[2, "
    notebooks.execute(notebook, tmp_path)
    assert expected in notebooks.text_of(notebook.cells[2])


def test_a_cell_that_raises_fails(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        notebooks.execute(notebook, tmp_path)


def test_a_promise_that_is_not_kept_fails():
    cell = nbformat.v4.new_code_cell("", metadata={"promises": ["recall@20", "ndcg@20"]})
    cell.execution_count = 1
    cell.outputs = [nbformat.v4.new_output("stream", text="recall@20  0.1234\n")]
    assert notebooks.missing_promises(cell) == ["ndcg@20"]
    with pytest.raises(AssertionError, match="ndcg@20"):
        check(nbformat.v4.new_notebook(cells=[cell]))
