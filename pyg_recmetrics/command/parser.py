"""The options of the command, and what its help says. Nothing is imported for them but Python."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from pyg_recmetrics.command import notes
from pyg_recmetrics.version import __version__

_EXIT_STATUS = """exit status:
  0  done; of 'gate': the new model is better or equivalent
  1  of 'gate': it is worse
  2  of 'gate': undecided
  3  an option or a file is wrong, or something is not installed
"""

_FILES = """files:
  Tables are CSV, TSV, JSON lines (.jsonl), Parquet, or runs and qrels of TREC; text may be
  compressed by gzip. The suffix says which, or else the first line. Columns are found by their
  usual names, and standard error says which ones were taken. Arrays are .npy, .npz or
  .safetensors; FILE:NAME names one of several in a file.
"""

_EQUIVALENCE = "the smallest difference that matters: a number, or a share such as 2%%"
_DETERMINISTIC = "names of recommenders that no seed changes"


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes have an exit status of their own, as `gate` needs the usual one."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(notes.WRONG, f"{self.prog}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all subcommands."""
    parser = _Parser(
        prog="pyg-recmetrics",
        description="Evaluates recommenders from files: what they recommend, or their embeddings.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add = partial(_add_subcommand, commands)
    _add_evaluate(add("evaluate", "measure recommendations on held-out interactions", _FILES))
    _add_compare(add("compare", "test which of some saved results is better"))
    _add_report(add("report", "write a page about saved results"))
    about = "say whether a new model may replace the old one, by its exit status"
    _add_gate(add("gate", about, _EXIT_STATUS))
    _add_split(add("split", "divide interactions into training, validation and test", _FILES))
    return parser


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    # What the public function takes by the same name is passed on.
    add = _adder(parser, "interactions")
    add("--test FILE", "held-out interactions, the ground truth", required=True, type=Path)
    seen = "what users have seen, which is left out of their rankings"
    add("--train FILE ..", seen, type=Path, action="extend", default=[])
    _add_columns(add)
    add("--rating-column NAME", "how relevant each row of --test is")
    add("--threshold X", "the smallest rating that is relevant", type=float)
    add("--include-seen", "rank what users have seen, too")
    group = parser.add_argument_group("what recommends, in one of four forms")
    add = partial(_add_option, group.add_mutually_exclusive_group(required=True))
    add("--lists FILE", "rows of a user, an item, and its rank or score")
    add("--run FILE", "a run of TREC", type=Path)
    add("--scores FILE", "an array of scores [num_users, num_items] or [num_items]")
    add("--users FILE", "embeddings of users, by id or by row; needs --items")
    add = partial(_add_option, group)
    add("--items FILE", "embeddings of items")
    add("--user-ids FILE", "the id of the user of each row of an array, one per line")
    add("--item-ids FILE", "the same of items; with lists, all items that could be listed")
    add("--list-columns NAME ..", "all columns of --lists without a header")
    add = _adder(parser, "metrics")
    add("--metrics NAME@K ..", "such as ndcg@20 recall@20")
    add("--convention NAME", "the library whose definitions count")
    add("--ties HOW", "index, best, worst, mean or random")
    add("--seed N", "the seed of random ties", type=int)
    empty = "what users without ground truth count as: skip, neg, pos or error"
    add("--empty-target-action HOW", empty)
    add("--batch-size N", "how many users to rank at once", type=int)
    margin = "rank random users until each mean is known to it, as in 0.005"
    add("--margin X", margin, type=float)
    _add_output(parser)
    add = partial(_add_option, parser)
    add("-o --output FILE", "save the result for compare, report and gate (.npz)")
    add("--keep-items", "save the recommended items with it")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    _add_results(parser, "each recommender, at least two")
    _add_option(parser, "--metrics NAME@K ..", "the metrics to compare")
    _add_comparison(parser)
    _add_option(parser, "--simultaneous", "intervals that hold all together")
    _add_output(parser)


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_results(parser, "each recommender, at least one")
    _add_option(parser, "-o --output FILE", "report.html", type=Path, default=Path("report.html"))
    _add_option(parser, "--title TEXT", "the title of the page")
    _add_comparison(parser)


def _add_gate(parser: argparse.ArgumentParser) -> None:
    _add_results(parser, "the new model, at least one")
    add = partial(_add_option, parser)
    add("--baseline FILE ..", "the same of the old model", required=True)
    add("--metric NAME@K", "the one that decides", required=True)
    add("--equivalence X", _EQUIVALENCE, type=_equivalence, required=True)
    add("--level X", "of confidence: 0.95", type=float, default=0.95)
    add("--deterministic NAME ..", _DETERMINISTIC, default=[])
    add("--json", "print all numbers, as JSON")
    parser.set_defaults(markdown=False, latex=False)


def _add_split(parser: argparse.ArgumentParser) -> None:
    _add_option(parser, "interactions FILE", "a table of interactions", type=Path)
    how = "at random within each user, by the time within each user, or at the same moments"
    choices = ("per-user", "leave-last-out", "temporal")
    parser.add_argument("--how", choices=choices, required=True, help=how)
    add = partial(_add_option, parser)
    for part in ("val", "test"):
        about = "a fraction such as 0.1, or a number"
        add(f"--{part} X", about, type=_amount, dest=f"num_{part}")
    add("--seed N", "of random splits: 0", type=int)
    add("--k-core K", "first leave out who has fewer interactions", type=int)
    where = "where to write train, val and test: here"
    add("-o --output FOLDER", where, type=Path, default=Path())
    _add_columns(add)
    add("--time-column NAME", "the column of times")
    _add_output(parser)


def _add_subcommand(commands: Any, name: str, about: str, epilog: str | None = None) -> _Parser:
    parser: _Parser = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_option(parser, "-q --quiet", "do not say how files are read")
    return parser


def _add_results(parser: argparse.ArgumentParser, what: str) -> None:
    about = f"saved results of {what}; files of one NAME are its runs"
    _add_option(parser, "results [NAME=]FILE ..", about)


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    add = partial(_add_option, parser)
    add("--baseline NAME", "compare all others with this one")
    add("--equivalence X", _EQUIVALENCE, type=_equivalence)
    add("--primary NAME@K", "the only metric that is tested")
    add("--deterministic NAME ..", _DETERMINISTIC)
    add("--test TEST", "t-test or randomization")
    add("--level X", "of confidence: 0.95", type=float)
    add("--seed N", "of random numbers: 0", type=int)


def _add_columns(add: Any) -> None:
    add("--user-column NAME", "the column of users")
    add("--item-column NAME", "the column of items")
    add("--columns NAME ..", "all columns of files without a header")


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = partial(_add_option, parser.add_argument_group("output").add_mutually_exclusive_group())
    add("--json", "print JSON")
    add("--markdown", "print a table in Markdown")
    add("--latex", "print a table in LaTeX")


def _adder(parser: argparse.ArgumentParser, group: str) -> Any:
    return partial(_add_option, parser.add_argument_group(group))


def _add_option(parser: Any, spelled: str, about: str, **more: Any) -> None:
    """Adds an option.

    Args:
        parser (ArgumentParser): The parser, or a group of its options.
        spelled (str): The option, what it takes, if anything, and dots if it takes several:
            `"--train FILE .."`.
        about (str): What it is for.
        **more (optional): Further arguments of `add_argument`.
    """
    words = spelled.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    taken = [word for word in words if word not in (*names, "..")]
    if not taken:
        parser.add_argument(*names, action="store_true", help=about)
        return
    nargs = {"nargs": "+"} if ".." in words else {}
    parser.add_argument(*names, metavar=taken[0], help=about, **nargs, **more)


def _equivalence(text: str) -> float | str:
    number = _number(text.removesuffix("%"), "a number or a percentage such as 2%")
    return text if text.endswith("%") else number


def _amount(text: str) -> int | float:
    return int(text) if text.isdecimal() else _number(text, "a fraction such as 0.1, or a number")


def _number(text: str, wanted: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{wanted} is needed (got {text!r})") from None
