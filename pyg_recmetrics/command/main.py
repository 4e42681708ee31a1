"""main(): runs a subcommand, and turns errors and warnings into lines of text."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module

from pyg_recmetrics.command import notes
from pyg_recmetrics.command.parser import make_parser
from pyg_recmetrics.extras import requires_package
from pyg_recmetrics.messages import for_a_shell


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit status.

    Args:
        arguments (sequence of str, optional): What stands behind the name of the command.
            (default: `None`, what the process was started with)
    """
    try:
        options = make_parser().parse_args(arguments)
    except SystemExit as stop:  # after help, the version, completion or a mistake
        return int(stop.code or 0)
    notes.start(quiet=options.quiet)
    with warnings.catch_warnings(), for_a_shell():
        warnings.simplefilter("ignore")  # of other libraries, about their own future
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = notes.show_warning
        try:
            with requires_package("pyarrow", options.command):
                name = "evaluating" if options.command == "evaluate" else "comparing"
                module = import_module(f"pyg_recmetrics.command.{name}")
            run: Callable[..., int] = getattr(module, options.command)
            status = run(options)
            sys.stdout.flush()
            return status
        except BrokenPipeError:  # whoever reads the result has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return notes.DONE
        except OSError as error:
            return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            return _fail(str(error))
        except MemoryError:
            return _fail("there is not enough memory")
        except KeyboardInterrupt:
            return notes.INTERRUPTED


def _fail(message: str) -> int:
    print(f"pyg-recmetrics: error: {notes.by_files(message)}", file=sys.stderr)
    return notes.WRONG
