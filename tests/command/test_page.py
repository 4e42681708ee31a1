"""The page on the command: its shell runs and prints what it shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyg_recmetrics.command.options import make_parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
def test_the_walk_prints_what_the_page_shows(tmp_path):
    """In a folder of its own, where the command is that of this tree."""
    command = tmp_path / "bin" / "pyg-recmetrics"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyg_recmetrics "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    script = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [done.stdout] == re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_workflow_is_one(tmp_path):
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    lines = [step["run"] for step in steps if "run" in step]
    commands = [line.partition("||")[0].split() for line in lines if line.startswith("pyg-recm")]
    assert [words[1] for words in commands] == ["evaluate", "gate"]
    for words in commands:
        make_parser().parse_args(words[1:])
