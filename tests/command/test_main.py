"""The command as a process: exit statuses, streams, and what it imports."""

import sys

import pytest

from pyg_recmetrics import __version__, command
from pyg_recmetrics.command.options import DONE, INTERRUPTED, UNDECIDED, WRONG
from tests.support.machines.missing_packages import hide_package
from tests.support.machines.other_process import run_python


def start(line, *program):
    """Runs the command, or a program, in a process of its own."""
    return run_python(*(program or ("-m", "pyg_recmetrics")), *line.split())


def test_help_and_mistakes_are_answered_without_torch():
    code = (
        "import sys; from pyg_recmetrics.__main__ import main; "
        "lines = '--help', '--version', 'gate -h', 'compare -h', 'report -h', 'evaluate -h', 'x'; "
        "print(*[main(line.split()) for line in lines]); "
        "print({'torch', 'numpy', 'pandas', 'tqdm'} & set(sys.modules))"
    )
    done = start("", "-c", code)
    assert done.stdout.splitlines()[-2:] == [f"0 0 0 0 0 0 {WRONG}", "set()"], done.stderr


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"pyg-recmetrics {__version__}\n", "")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("evaluate", "the following arguments are required: --test"),
        ("evaluate --test a", "needs --lists (and --item-ids), or --users and --items"),
        ("evaluate --test a --users b --lists c", "needs --lists (and --item-ids), or"),
        ("gate a --baseline b --metric ndcg@2", "the following arguments are required: --margin"),
    ],
)
def test_mistakes_in_options_have_a_status_of_their_own(run, line, part):
    status, out, err = run(line)
    assert (status, out) == (WRONG, "")
    assert part in err


def test_a_process_evaluates_and_says_nothing_but_the_result(files):
    line = "evaluate --test test.csv --train train.csv --users u.csv --items i.csv"
    done = start(f"{line} --metrics recall@5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("metric")
    assert all(row.startswith("pyg-recmetrics: ") for row in done.stderr.splitlines())
    assert "%|" not in done.stderr  # a progress bar, which is for terminals


def test_what_fails_has_no_traceback(files, run):
    error = "pyg-recmetrics: error: none.csv: No such file or directory\n"
    assert run("evaluate --test none.csv --users u.csv --items i.csv") == (WRONG, "", error)


def test_a_terminal_shows_a_progress_bar(files, run, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _, out, err = run("evaluate -q --test test.csv --users u.csv --items i.csv --json")
    assert "%|" in err
    assert out.startswith("{")


def test_a_reader_that_has_seen_enough_is_no_error(files):
    code = (
        "import os, sys; from pyg_recmetrics.__main__ import main; "
        "r, w = os.pipe(); os.dup2(w, 1); os.close(w); os.close(r); sys.exit(main())"
    )
    done = start("evaluate -q --test test.csv --users u.csv --items i.csv", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("error", "status", "part"),
    [
        (KeyboardInterrupt(), INTERRUPTED, ""),
        (MemoryError(), WRONG, "there is not enough memory"),
        (PermissionError(13, "Permission denied", "a.csv"), WRONG, "a.csv: Permission denied"),
    ],
)
def test_what_stops_a_run_has_a_status(run, monkeypatch, error, status, part):
    def stop(options):
        raise error

    monkeypatch.setattr("pyg_recmetrics.command.subcommands.compare", stop)
    found, out, err = run("compare a b")
    assert (found, out) == (status, "")
    assert part in err


def test_a_mistake_of_the_program_keeps_its_traceback(run, monkeypatch):
    monkeypatch.setattr("pyg_recmetrics.command.subcommands.compare", lambda options: {}["no"])
    with pytest.raises(KeyError):
        run("compare a b")


def test_only_tables_need_pyarrow(files, run, monkeypatch):
    for name in ("old", "new"):
        run(f"evaluate --test test.csv --users u.csv --items i.csv -o {name}.npz")
    hide_package(monkeypatch, "pyarrow")
    monkeypatch.delitem(sys.modules, "pyg_recmetrics.command.reading")
    monkeypatch.delattr(command, "reading")
    error = "pyg-recmetrics: error: 'evaluate' needs pyarrow: pip install pyarrow\n"
    assert run("evaluate --test test.csv --lists test.csv") == (WRONG, "", error)
    for line, status in {
        "compare old.npz new.npz": DONE,
        "report old.npz new.npz -o report.html": DONE,
        "gate new.npz --baseline old.npz --metric ndcg@10 --margin 2%": UNDECIDED,
    }.items():
        assert run(line)[0] == status, line
