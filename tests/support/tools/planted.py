"""Plants small defects in copies of the package, and says which of them its tests find.

pip install pytest-cov
python -m pytest -n auto --cov=pyg_recmetrics --cov-context=test -k "not full_disk"
python -m tests.support.tools.planted 200            # the table of rooms, of 200 defects
python -m tests.support.tools.planted 200 after.tsv  # the same, and goes on after those in the file

The second line writes down in `.coverage` which test executes which line. A defect is looked for by
all tests that execute its line, at first by those that execute the fewest others. What runs when
the package is imported, is looked for by those that execute anything of its file.
"""

import ast
import os
import random
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import pandas as pd  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import torch_geometric.metrics  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "pyg_recmetrics"
SEED = 0

#: After so many seconds of a processor, tests have not found a defect.
LIMIT = 150

#: What a copy has besides the package.
BESIDES = (
    *("tests", "docs", "examples", "notebooks", "benchmarks"),
    *("pyproject.toml", "README.md", "CHANGELOG.md"),
)

#: So many tests are asked first, as reading the files of all takes some seconds.
AT_FIRST = 25

SWAPPED = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)),
    (ast.And, ast.Or),
]
OPERATORS = dict(SWAPPED) | {other: one for one, other in SWAPPED}
NAMES = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "any": "all", "all": "any"}


def swap_operator(node):
    """Takes another operator of arithmetic or logic, or another comparison."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        node.ops[0] = OPERATORS[type(node.ops[0])]()
        return True
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
        return True
    return False


def add_one(node):
    """Takes a number for the next one."""
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return False
    node.value += 1
    return True


def negate_condition(node):
    """Does what is done if the condition does not hold."""
    if not isinstance(node, ast.If | ast.IfExp | ast.While):
        return False
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return True


def swap_name(node):
    """Takes the smallest for the largest, any for all, and the other way round."""
    field = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node))
    if field is None or getattr(node, field) not in NAMES:
        return False
    setattr(node, field, NAMES[getattr(node, field)])
    return True


def drop_keyword(node):
    """Leaves the last keyword out."""
    if not isinstance(node, ast.Call) or not node.keywords:
        return False
    node.keywords.pop()
    return True


#: Each changes a node of a syntax tree and returns True, if it can.
KINDS = {
    kind.__name__: kind
    for kind in (swap_operator, add_one, negate_condition, swap_name, drop_keyword)
}


def code_of(node):
    """All nodes but annotations, which do nothing."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield child
                yield from code_of(child)


def defects_of(file):
    """All defects that a file of the package can have."""
    nodes = [*code_of(ast.parse((ROOT / file).read_text()))]
    return [
        (file, place, name)
        for place, node in enumerate(nodes)
        for name in KINDS
        if KINDS[name](node)
    ]


def draw_defects(number):
    """The same defects every time, of each room as many."""
    rooms = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(ROOT)
        rooms[file.parts[:-1][:2]] += defects_of(file.as_posix())
    draw = random.Random(SEED)
    drawn = [draw.sample(rooms[room], min(number, len(rooms[room]))) for room in sorted(rooms)]
    in_turn = chain.from_iterable(zip_longest(*drawn))
    return [defect for defect in in_turn if defect is not None][:number]


@cache
def tests_by_line():
    """The tests that execute each line of each file, and how many lines a test executes."""
    from coverage import CoverageData  # which nothing else needs

    data = CoverageData(str(ROOT / ".coverage"))
    data.read()
    lines, sizes = {}, Counter()
    for path in data.measured_files():
        of_file = data.contexts_by_lineno(path)
        lines[Path(path).relative_to(ROOT).as_posix()] = {
            # With all parameters, as pytest does not find ids in which it has replaced signs.
            line: {context.partition("|")[0].partition("[")[0] for context in contexts if context}
            for line, contexts in of_file.items()
        }
    for tests in chain.from_iterable(of_file.values() for of_file in lines.values()):
        sizes.update(tests)
    return lines, sizes


def tests_for(file, node):
    """The tests that execute a part of a file, those that execute the fewest lines first."""
    lines, sizes = tests_by_line()
    of_file = lines.get(file, {})
    executed = range(node.lineno, node.end_lineno + 1) if hasattr(node, "lineno") else ()
    tests = set().union(*(of_file.get(line, ()) for line in executed))
    tests = tests or set().union(*of_file.values())
    return sorted(tests, key=lambda test: (sizes[test], test))


def run_tests(folder, paths, output):
    """Runs tests in the copy, with what takes long to import at hand, and never returns."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    os.chdir(folder)
    os.environ["CI"] = "1"
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), sys.stdout.fileno())
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path.remove(str(ROOT))
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    status = pytest.main([*options, *paths])
    sys.stdout.flush()
    os._exit(status)


def finder_among(tests, folder):
    """The first test that fails, which is empty if none does within the limit."""
    output = Path(folder) / "output.txt"
    output.write_text("")
    process = os.fork()
    if process == 0:
        run_tests(folder, tests, output)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == pytest.ExitCode.USAGE_ERROR:  # what it looks for can no longer be imported
        return "import"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read_text(), re.MULTILINE)
    has_failed = status in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    return failed[1] if has_failed and failed else ""


def look_for(defect):
    """The line of a defect, and the test that finds it."""
    file, place, kind = defect
    tree = ast.parse((ROOT / file).read_text())
    node = [*code_of(tree)][place]
    tests = tests_for(file, node)
    KINDS[kind](node)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pyg_recmetrics", *BESIDES):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder) / name)
        (Path(folder) / file).write_text(ast.unparse(tree))
        found = tests and finder_among(tests[:AT_FIRST], folder)
        found = found or (tests[AT_FIRST:] and finder_among(tests[AT_FIRST:], folder))
    return file, str(getattr(node, "lineno", 0)), kind, found or ""


def read(results):
    return [line.split("\t") for line in Path(results).read_text().splitlines()]


def main(number, results="planted.tsv"):
    Path(results).touch()
    rows = read(results)
    tests_by_line()  # which all processes share
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(look_for, draw_defects(int(number))[len(rows) :]):
            rows.append(row)
            with open(results, "a") as out:
                print(*row, sep="\t", file=out)
    planted, found = Counter(), Counter()
    for file, _, _, finder in rows:
        room = "/".join(Path(file).parts[:-1][:2])
        planted[room] += 1
        found[room] += finder != ""
    for room in sorted(planted):
        print(room, planted[room], found[room])
    print("all", planted.total(), found.total())


if __name__ == "__main__":
    main(*sys.argv[1:])
