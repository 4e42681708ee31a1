"""What helps contributors agrees: CONTRIBUTING.md, the checks, the CI, templates and containers."""

import json
import re
import shlex
from pathlib import Path

import house
import yaml

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
COMMANDS = [
    line.partition("  #")[0]
    for block in re.findall(r"```bash\n(.*?)```", CONTRIBUTING, flags=re.DOTALL)
    for line in block.splitlines()
]


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_the_ci_runs_the_quick_checks_on_every_pull_request_and_all_of_them_every_night():
    workflow = read_yaml(".github/workflows/ci.yml")
    assert {"pull_request", "schedule"} < workflow[True].keys()  # which is how YAML reads `on`
    for job, event, command in (("quick", "!=", "quick"), ("all", "==", "run")):
        found = workflow["jobs"][job]
        assert found["if"] == f"github.event_name {event} 'schedule'"
        assert [x["run"] for x in found["steps"] if "run" in x] == [f"bash .ci/{command}"]
    assert "source .ci/quick" in (ROOT / ".ci" / "run").read_text()


def test_pre_commit_runs_the_checks_with_the_installed_tools():
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    assert not any(hook["pass_filenames"] for hook in repository["hooks"])
    checks = (ROOT / ".ci" / "check").read_text().partition("\n\n")[2].splitlines()
    assert [hook["entry"] for hook in repository["hooks"]] == checks
    pinned = (ROOT / "constraints.txt").read_text()
    for package in ("ruff", "mypy", "import-linter", "pyright", "jedi"):
        assert re.search(rf"^{package}==\d", pinned, flags=re.MULTILINE)


def test_a_container_is_set_up_as_contributing_says_and_as_the_readme_says():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == COMMANDS[2]
    (in_one_line,) = re.findall(
        r"<!-- test -->\n```bash\n(.*)\n```", (ROOT / "README.md").read_text()
    )
    *set_up, test = in_one_line.split(" && ")
    assert set_up == COMMANDS[:3]
    assert test in COMMANDS


def test_commands_of_contributing_name_what_is_there():
    assert len(COMMANDS) > 8
    names = [word for command in COMMANDS for word in shlex.split(command)]
    made = (".venv", "_build")
    files = [name.partition("::") for name in names if "/" in name]
    files = [file for file in files if not any(part in file[0] for part in made)]
    assert files
    for file, _, test in files:
        assert (ROOT / file).exists(), file
        assert f"def {test}" in (ROOT / file).read_text() if test else True


def test_the_layers_of_contributing_are_those_of_the_contract():
    contract = re.search(
        r"layers = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL
    )
    layers = [set(re.findall(r"\w+", line)) for line in re.findall(r'"(.*?)"', contract[1])]
    table = CONTRIBUTING.partition("| layer, from top to bottom |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    shown = [
        {name.rstrip("/").removesuffix(".py") for name in re.findall(r"`(.*?)`", row)}
        for row in rows
    ]
    assert shown == [{"__init__"}, *layers]


def test_the_picture_of_the_house_has_all_rooms_and_lines():
    drawn = (ROOT / "docs" / "_static" / "house.svg").read_text()
    # Rooms grow. Their names, and what leads where, are to be drawn anew.
    assert re.sub(r"[\d.]+", "", drawn) == re.sub(r"[\d.]+", "", house.picture())
