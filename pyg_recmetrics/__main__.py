"""The command `pyg-recmetrics`: runs what its options name, and tells errors in a line each."""

import os
import sys
import warnings
from collections.abc import Sequence

from pyg_recmetrics.command.options import DONE, INTERRUPTED, fail, make_parser, show_warning, start
from pyg_recmetrics.utils import for_a_shell


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
    start(options)
    with warnings.catch_warnings(), for_a_shell():
        warnings.simplefilter("ignore")  # of other libraries, about their own future
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show_warning
        try:
            from pyg_recmetrics.command import subcommands

            status: int = getattr(subcommands, options.command)(options)
            sys.stdout.flush()
            return status
        except BrokenPipeError:  # stdout was closed by its reader
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except OSError as error:
            return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            return fail(str(error))
        except MemoryError:
            return fail("there is not enough memory")
        except KeyboardInterrupt:
            return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
