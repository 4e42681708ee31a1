"""The documentation builds without warnings, its code runs, and its tables are complete."""

import doctest
import importlib
import importlib.util
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pictures
import pytest
import torch
from page_code import code_of
from reference_pages import FOR_THE_PACKAGE, HOOKS, PARTS, is_for_users
from tables import with_tables

import pyg_recmetrics
from pyg_recmetrics import plot

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("migration/*.md")])
#: The pages about other libraries. Each fills `theirs` and `ours` with the same metrics.
MIGRATION = sorted(set(DOCS.glob("migration/*.md")) - {DOCS / "migration" / "index.md"})
#: What the code of a page needs that not everybody has, and what installs it. Elsewhere it is not
#: run. Where it is, warnings are ignored, as these packages give many.
NEEDED = {
    "migration/implicit.md": ("the extra 'peers'", "cornac", "implicit", "scipy"),
    "migration/torchmetrics.md": ("the extra 'peers'", "torchmetrics"),
    "migration/ranx.md": ("the extra 'peers'", "ranx"),
    "migration/recometrics.md": ("the extra 'peers'", "recometrics"),
    "migration/lenskit.md": ("tests/peers.txt", "lenskit"),
    "migration/recbole.md": ("tests/peers.txt", "recbole", "sklearn", "tensorboard"),
    "migration/recommenders.md": ("tests/peers.txt", "recommenders"),
}

#: What single blocks need that no extra but 'trackers' installs. Elsewhere they are not run. Where
#: they are, warnings are ignored, as these packages give many.
OPTIONAL = ("lightning", "mlflow", "tensorboard", "torch_sparse")

#: Persons without a name, and clauses without a subject: who reads these has to read twice.
RIDDLES = re.compile(
    r"\b(?:whom|whoever|(?:no|any|some|every)body(?:'s)?|says so|keeps apart|what becomes of"
    r"|what changes)\b",
    flags=re.IGNORECASE,
)

#: A block of code, and the block of its output if the page shows it.
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
#: A line whose comment says which tensor or which number it returns.
LINE_WITH_VALUE = re.compile(r"^(.*\S)  # (tensor\(.*\))$", flags=re.MULTILINE)
LINE_WITH_NUMBER = re.compile(r"^(.*\S)  # (\d[\d.]*)$", flags=re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


def words(output):
    """What is printed between the numbers, however the columns are aligned."""
    return re.sub(r"-{3,}|\s+", " ", NUMBER.sub("#", output)).split()


def numbers(output):
    return [float(number.replace(",", "")) for number in NUMBER.findall(output)]


def name_of(page):
    return page.relative_to(DOCS).as_posix()


def run(page, capsys):
    """Runs the code of a page, compares what it prints, and returns its variables."""
    installed_by, *packages = NEEDED.get(name_of(page), ("",))
    for package in packages:
        pytest.importorskip(package, reason=f"needs {package}, which {installed_by} installs")
    torch.manual_seed(0)
    namespace = {}
    for code, shown in BLOCK.findall(page.read_text()):
        optional = [name for name in OPTIONAL if name in code]
        if any(importlib.util.find_spec(name) is None for name in optional):
            continue
        with warnings.catch_warnings():
            if packages or optional:
                warnings.simplefilter("ignore")  # of these packages
            exec(code, namespace)
        printed = capsys.readouterr().out
        if shown:
            assert words(printed) == words(shown), printed
            # Training adds up in another order on another machine.
            assert numbers(printed) == pytest.approx(numbers(shown), rel=0.2, abs=0.02), printed
        if "ours = evaluate(" in code:
            theirs, ours = namespace["theirs"], namespace["ours"]
            assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-6)
        for expression, value in LINE_WITH_VALUE.findall(code):
            assert repr(eval(expression, namespace)).startswith(value[:-1]), expression
        for expression, value in LINE_WITH_NUMBER.findall(code):
            assert eval(expression, namespace) == pytest.approx(float(value), abs=5e-5), expression
    return namespace


@pytest.mark.parametrize("page", sorted({*PAGES} - {*MIGRATION}), ids=name_of)
@pytest.mark.usefixtures("definitions")
def test_the_python_of_every_page_runs_and_prints_what_the_page_shows(page, capsys):
    run(page, capsys)  # other pages are run by the next test


@pytest.mark.parametrize("page", MIGRATION, ids=name_of)
def test_the_python_of_a_migration_page_does_too_and_its_numbers_agree(
    page, capsys, monkeypatch, tmp_path
):
    if page.stem == "recbole":
        monkeypatch.chdir(tmp_path)  # where RecBole writes logs
        # It gives numpy names, which the next test is not to find.
        names = ("bool", "complex", "float", "int", "long", "object", "str", "unicode")
        for name in (*names, "complex_", "float_", "unicode_"):
            monkeypatch.setitem(vars(np), name, vars(np).get(name))
    namespace = run(page, capsys)
    assert len(namespace["theirs"]) >= 3
    assert isinstance(namespace["ours"], pyg_recmetrics.EvaluationResult)


def test_the_first_migration_page_lists_all_others():
    index = (DOCS / "migration" / "index.md").read_text()
    linked = re.findall(r"\[From [^]]*\]\((\w+)\.md\)", index)
    assert sorted(linked) == [page.stem for page in MIGRATION]


@pytest.mark.slow
def test_every_picture_is_drawn_by_the_code_above_it(tmp_path):
    pytest.importorskip("matplotlib")
    pictures.draw(tmp_path)
    drawn = {path.name for path in (tmp_path / "images").iterdir()}
    shown = {name for page in PAGES for name in re.findall(r"\(images/(.*?)\)", page.read_text())}
    of_functions = {f"{name}.png" for name in plot.__all__ if name.islower()}
    assert drawn == of_functions | {"growth.png", "coverage.png", "margin.png", "speed.png"}
    assert (
        drawn | {"report.png", "lastfm_report.png"}
        == shown
        == {path.name for path in (DOCS / "images").iterdir()}
    )


def test_every_time_on_the_page_of_speed_was_measured():
    times = re.findall(r"\d[\d.]* (?:m?s|h|MB)\b", (DOCS / "speed.md").read_text())
    measured = (ROOT / "benchmarks" / "README.md").read_text()
    assert len(times) > 30
    assert [time for time in times if time not in measured] == []


def test_neither_pages_nor_the_package_have_a_word_that_readers_stumbled_over():
    """Neither prose nor docstrings, comments, messages and names, whose words `_` separates."""
    texts = [path for path in (ROOT / "pyg_recmetrics").rglob("*.*") if path.suffix != ".pyc"]
    for path in (*PAGES, ROOT / "README.md", *texts):
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        assert RIDDLES.findall(prose.replace("_", " ")) == [], path


def test_what_was_printed_is_of_this_version():
    texts = [page.read_text() for page in (*PAGES, ROOT / "README.md", *ROOT.glob("*/*.ipynb"))]
    found = {
        version for text in texts for version in re.findall(r"pyg_recmetrics (\d[\d.]*\d)", text)
    }
    assert found == {pyg_recmetrics.__version__}


def test_the_first_page_has_the_first_code_of_the_readme():
    assert code_of(DOCS / "index.md")[0] == code_of(ROOT / "README.md")[0]


#: Folders that only a build of the site has.
BUILT = {"_build", "generated", "jupyter_execute", "notebooks", "reference"}


def slug(heading):
    """What GitHub calls a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def read_page(path):
    """A page in Markdown without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_links_lead_to_files_of_the_repository_and_to_their_headings():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *ROOT.glob("examples/*.md")]
    lost = []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", read_page(page)):
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", path):
                continue
            file = (page.parent / path).resolve() if path else page
            is_built = file.is_relative_to(DOCS) and BUILT & set(file.relative_to(DOCS).parts)
            headings = re.findall(r"^#+ (.*)$", read_page(file), flags=re.M) if anchor else []
            if not file.exists() or is_built or (anchor and anchor not in map(slug, headings)):
                lost.append((page.relative_to(ROOT).as_posix(), link))
    assert lost == []


def test_pages_can_be_read_without_a_build():
    for page in PAGES:  # GitHub shows directives of Sphinx as they are written
        assert re.findall(r"^(?::::.*|```\{.*)$", page.read_text(), flags=re.MULTILINE) == [], page


@pytest.mark.parametrize("page", ["metrics", "conventions"])
def test_tables_of_pages_are_those_of_the_package(page):
    text = (DOCS / f"{page}.md").read_text()
    assert text == with_tables(DOCS / f"{page}.md"), "run python docs/tables.py"
    assert text.count("written by docs/tables.py") == 1


def test_the_numbers_of_the_first_picture_follow_from_its_ranks():
    shown = re.findall(r">([\w@]+)</text><text[^>]*>(\d\.\d\d)<", (DOCS / "idea.html").read_text())
    lists, relevant = torch.tensor([[0, 1, 2, 3, 4, 5, -1]]), torch.tensor([[0, 0], [1, 4]])
    result = pyg_recmetrics.evaluate(
        lists, pyg_recmetrics.RankingTask(relevant, num_users=1, num_items=6), list(dict(shown))
    )
    assert len(shown) == 5
    for metric, value in shown:
        assert f"{result[metric]:.2f}" == value


def code_of_docstrings(explained):
    """The code of the examples of a class with its methods and its bases, or of a function."""
    values = [explained]
    if inspect.isclass(explained):
        bases = [base for base in explained.__mro__ if base.__module__.startswith("pyg_recmetrics")]
        values += [*bases, *(value for base in bases for value in vars(base).values())]
    docstrings = (getattr(value, "__doc__", None) or "" for value in values)
    parser = doctest.DocTestParser()
    return "".join(x.source for text in docstrings for x in parser.get_examples(text))


def public_methods(explained):
    """The methods of a class that people call, by their names."""
    for name, value in vars(explained).items():
        method = getattr(value, "__func__", value)
        if inspect.isfunction(method) and name[0] != "_" and is_for_users(explained, name):
            yield name


@pytest.mark.parametrize("name", PARTS)
def test_every_class_every_method_and_every_function_has_an_example(name):
    without = []
    for documented in PARTS[name].documented:
        value = PARTS[name].value(documented)
        code = code_of_docstrings(value)
        if inspect.isclass(value):
            called = [f".{method}(" for method in public_methods(value)]
            without += [f"{documented}{call}" for call in called if call not in code]
            without += [] if code else [documented]
        elif f"{documented}(" not in code:
            without += [documented]
    assert without == []


#: The classes that the reference explains, and their bases.
CLASSES = {
    base.__name__: base
    for part in PARTS.values()
    for name in part.documented
    for base in getattr(part.value(name), "__mro__", ())
    if base.__module__.startswith("pyg_recmetrics")
}


def has(value, name):
    """Whether something has an attribute, or its class annotates one that instances have."""
    annotated = (getattr(base, "__annotations__", ()) for base in getattr(value, "__mro__", ()))
    return hasattr(value, name) or any(name in names for names in annotated)


def test_every_method_that_the_reference_leaves_out_exists():
    left_out = [(kind, name) for kind, names in FOR_THE_PACKAGE.items() for name in names]
    assert [each for each in left_out if not has(CLASSES[each[0]], each[1])] == []
    assert [name for name in HOOKS if not any(has(kind, name) for kind in CLASSES.values())] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_every_dotted_name_on_a_page_exists(page):
    public = {name: getattr(pyg_recmetrics, name) for name in dir(pyg_recmetrics)}
    known = {name: value for name, value in public.items() if inspect.ismodule(value)}
    known |= {**CLASSES, "pyg_recmetrics": pyg_recmetrics}
    lost = []
    for dotted in re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+)", page.read_text()):
        first, *names = dotted.split(".")
        value = known.get(first)
        for name in names if first in known else ():
            lost += [] if has(value, name) else [dotted]
            value = getattr(value, name, None)
    assert lost == []
