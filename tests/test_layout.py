"""Each module is tested by files of its name, at the same place below `tests`.

The name may go on: `test_main_options.py` tests the options of `main.py`. No two classes of the
package share a name.
"""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Modules without a file of tests, and where they are tested instead.
TESTED_ELSEWHERE = {
    "__main__": "command/test_main.py",
    "modules/precision_recall": "modules/test_modules.py",
    "modules/ranking_metric": "modules/test_modules.py",
    "results/verdicts": "results/test_comparison.py",
    "task/preparation": "task/test_task.py, test_every_door.py",
    "version": "test_documentation.py",
}

#: Files of tests that belong to no single module, and what they test.
OF_SEVERAL_MODULES = {
    "task/ambiguities": "what has two meanings, at every door",
    "benchmark/simulations": "how often stars are wrong",
    "boundary": "what odd arguments are told, everywhere",
    "contributing": "the files for contributors",
    "command/page": "docs/command.md",
    "conventions/peers": "metrics of other libraries",
    "conventions/peers_of_queries": "metrics of other libraries whose queries are no users",
    "conventions/published": "numbers that other libraries publish",
    "default_device": "a default device of torch",
    "documentation": "the pages of docs/",
    "every_door": "evaluations through every door, against a world in plain Python",
    "editors": "what editors and type checkers see",
    "engines": "examples/engines/",
    "examples": "examples/",
    "fuzz": "random cases of everything",
    "kernels/contract": "what every kernel fulfils",
    "layout": "this list",
    "mistakes": "what newcomers write by mistake",
    "lines": "the table of lines of code",
    "notebooks": "notebooks/",
    "options": "what `evaluate` and `Evaluator` take",
    "plot/layout": "what any picture looks like",
    "ranking/doors": "what holds for every form of a recommender",
    "operations": "what calls ask of torch",
    "ranking/fitted/faiss": "indexes of faiss",
    "ranking/fitted/implicit": "models of implicit",
    "ranking/fitted/lenskit": "pipelines of LensKit",
    "ranking/fitted/recbole": "models of RecBole",
    "ranking/gowalla": "numbers that were published",
    "readme": "README.md",
    "reporting/browser": "the page of a report in a browser",
    "results/simulations": "how often intervals hold, whoever computes them",
    "sequential/simulations": "how often bounds hold that are looked at all the time",
    "trackers": "the files of trackers",
    "transforms/peers_splits": "splits of another library",
}


def names_below(folder, pattern, prefix=""):
    paths = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob(pattern))
    return {path.with_name(path.stem.removeprefix(prefix)).as_posix() for path in paths}


def test_files_of_tests_mirror_modules_but_for_those_listed():
    files = names_below("pyg_recmetrics", "*.py")
    packages = {file.removesuffix("/__init__") for file in files if file.endswith("/__init__")}
    modules = {file for file in files if not file.endswith("__init__")}
    tests = names_below("tests", "test_*.py", prefix="test_")
    of_modules = {
        test for test in tests for module in modules if f"{test}_".startswith(f"{module}_")
    }
    tested = {module for module in modules if any(f"{x}_".startswith(f"{module}_") for x in tests)}
    assert modules - tested == set(TESTED_ELSEWHERE)
    # A package is tested as a whole by a file of its own name.
    of_packages = {f"{package}/{package.rpartition('/')[2]}" for package in packages}
    assert tests - of_modules - of_packages == set(OF_SEVERAL_MODULES)


def test_no_two_classes_share_a_name():
    trees = [ast.parse(path.read_text()) for path in (ROOT / "pyg_recmetrics").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    times = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, number in times.items() if number > 1] == []
