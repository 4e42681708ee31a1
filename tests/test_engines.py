"""The examples of engines run, and say that their numbers are those of one process."""

import importlib.util
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.machines.other_process import run_python

ENGINES = Path(__file__).resolve().parents[1] / "examples" / "engines"

#: What each example needs beside the package, and how its line starts.
EXAMPLES = {
    "torchrun.py": ("torchrun", ["pandas"]),
    "ray_map.py": ("ray", ["pandas", "ray"]),
    "ray_train.py": ("TorchTrainer", ["pandas", "pyarrow", "pydantic", "ray"]),
    "spark_map.py": ("mapInArrow", ["pandas", "pyarrow", "pyspark"]),
    "spark_torch.py": ("TorchDistributor", ["pandas", "pyspark"]),
    "dask_map.py": ("dask", ["distributed", "pandas"]),
}

#: Engines stay on this machine, and tell nobody that they run.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # which makes Ray listen on the loopback address
    "RAY_USAGE_STATS_ENABLED": "0",
    "SPARK_LOCAL_IP": "127.0.0.1",
}


def skip_without(packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which the extra 'engines' installs")
    if "pyspark" in packages and shutil.which("java") is None:
        pytest.skip("needs Java, such as the package openjdk-17-jre-headless of Debian")


@pytest.mark.parametrize(
    "name", [pytest.param("torchrun.py", marks=pytest.mark.slow), *list(EXAMPLES)[1:]]
)
def test_an_engine_gives_the_numbers_of_one_process(name):
    engine, packages = EXAMPLES[name]
    skip_without(packages)
    launcher = []
    if name == "torchrun.py":
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    # Ray puts sockets there, whose paths have to be short.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        done = run_python(*launcher, ENGINES / name, **ENVIRONMENT, RAY_TMPDIR=folder)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1].startswith(f"{engine}: ndcg@20 0."), done.stdout
    assert done.stdout.endswith(", equal to one process\n")


def test_every_example_of_an_engine_is_run_and_is_short():
    scripts = {path.name: path.read_text() for path in ENGINES.glob("*.py")}
    assert {name for name, code in scripts.items() if "def main(" in code} == set(EXAMPLES)
