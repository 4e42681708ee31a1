"""What `python -m pyg_recmetrics` runs: the command `pyg-recmetrics`."""

import sys

from pyg_recmetrics.command.main import main

if __name__ == "__main__":
    sys.exit(main())
