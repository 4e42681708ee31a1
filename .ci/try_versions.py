"""Tries the package on other versions of Python, PyTorch and PyG, and prints a table.

    python .ci/try_versions.py                    # all that CONTRIBUTING.md lists
    python .ci/try_versions.py 3.12:2.6.0:2.6.1   # Python, torch, torch_geometric

Each environment needs some gigabytes and minutes, as a registry may have PyTorch with CUDA only.
It is removed afterwards. A version of Python that is not on the path is told as "not here".
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: The oldest that the package allows, the newest, and some between them.
VERSIONS = [
    "3.10:2.4.1:2.6.1",
    "3.10:2.13.0:2.8.0",
    "3.11:2.4.1:2.6.1",
    "3.11:2.8.0:2.7.0",
    "3.12:2.6.0:2.6.1",
    "3.12:2.13.0:2.8.0",
    "3.13:2.6.0:2.8.0",
    "3.13:2.13.0:2.8.0",
    "3.14:2.13.0:2.8.0",
]

#: What touches every layer.
TESTS = [
    *("tests/metrics", "tests/test_ranked_edges.py", "tests/task"),
    *("tests/kernels/test_contract.py", "tests/ranking/test_ranking.py"),
    "tests/results/test_archive.py",
    *("tests/test_distributed.py", "tests/test_evaluation.py"),
]

#: What these tests import.
REQUIREMENTS = [
    *("hypothesis", "polars", "pyarrow", "pytest", "pytest-xdist"),
]


def run(*command: str | Path) -> str:
    """Runs a command in the repository, and returns what it prints last, if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-1]


def attempt(python: str, torch: str, geometric: str) -> str:
    """Returns in words what becomes of the tests with these versions."""
    interpreter = shutil.which(f"python{python}")
    if interpreter is None:
        return "not here"
    with tempfile.TemporaryDirectory() as folder:
        if error := run(interpreter, "-m", "venv", folder):
            return f"no environment: {error}"
        own = Path(folder) / "bin" / "python"
        packages = [f"torch=={torch}", f"torch_geometric=={geometric}", *REQUIREMENTS]
        if error := run(own, "-m", "pip", "install", "-q", *packages, "-e", "."):
            return f"cannot be installed: {error}"
        # Warnings of other versions, of which tests know nothing, are no errors here.
        command = [own, "-m", "pytest", "-q", "-n", "2", "-o", "filterwarnings=default"]
        done = subprocess.run([*command, *TESTS], cwd=ROOT, capture_output=True, text=True)
        print(done.stdout[-20_000:], done.stderr[-4000:], file=sys.stderr)
        return re.sub(r"[=]| in .*", "", done.stdout.strip().splitlines()[-1]).strip()


def main() -> None:
    """Prints a line of a table for each set of versions."""
    print("| Python | torch | torch_geometric | tests |\n|---|---|---|---|")
    for versions in sys.argv[1:] or VERSIONS:
        python, torch, geometric = versions.split(":")
        print(
            f"| {python} | {torch} | {geometric} | {attempt(python, torch, geometric)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
