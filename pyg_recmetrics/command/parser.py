"""The options of the command, and what its help says. Nothing is imported for them but Python."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pyg_recmetrics.command import exits
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


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes have an exit status of their own, as `gate` needs the usual one."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(exits.WRONG, f"{self.prog}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all subcommands."""
    parser = _Parser(
        prog="pyg-recmetrics",
        description="Evaluates recommenders from files: what they recommend, or their embeddings.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    _add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (
        *(_add_evaluate, _add_compare, _add_report, _add_gate),
        *(_add_split, _add_metrics, _add_conventions),
    ):
        add(commands)
    return parser


def find_mistake(options: argparse.Namespace) -> str | None:
    """Returns what is wrong with options that do not go together; `None` if nothing is."""
    if options.command != "evaluate":
        return None
    forms = {"--lists": options.lists, "--run": options.run, "--scores": options.scores}
    forms["--users and --items"] = options.users or options.items
    given = [name for name, value in forms.items() if value is not None]
    if len(given) != 1:
        return f"one of {', '.join(forms)} is needed (got {' and '.join(given) or 'none'})"
    if given == ["--users and --items"] and None in (options.users, options.items):
        return "--users and --items need each other"
    return None


def _add_evaluate(commands: Any) -> None:
    parser = _add(commands, "evaluate", "measure recommendations on held-out interactions", _FILES)
    data = parser.add_argument_group("interactions")
    _file(data, "--test", required=True, type=Path, help="held-out interactions, the ground truth")
    _file(
        data,
        *("--train",),
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        help="what users have seen, which is left out of their rankings",
    )
    _add_columns(data)
    data.add_argument("--rating-column", metavar="NAME", help="how relevant each row of --test is")
    data.add_argument(
        "--threshold", metavar="X", type=float, help="the smallest rating that is relevant"
    )
    data.add_argument("--include-seen", action="store_true", help="rank what users have seen, too")
    _add_recommender(parser)
    measures = parser.add_argument_group("metrics")
    measures.add_argument(
        "--metrics",
        metavar="NAME@K",
        nargs="+",
        help="such as ndcg@20 recall@20; the subcommand 'metrics' lists all",
    )
    measures.add_argument(
        "--convention", metavar="NAME", help="the library whose definitions count"
    )
    measures.add_argument("--ties", metavar="HOW", help="index, best, worst, mean or random")
    measures.add_argument(
        "--seed", metavar="N", type=int, help="the seed of random ties, and of a margin"
    )
    measures.add_argument(
        "--empty-target-action",
        metavar="HOW",
        help="what users without ground truth count as: skip, neg, pos or error",
    )
    measures.add_argument(
        "--batch-size", metavar="N", type=int, help="how many users to rank at once"
    )
    measures.add_argument(
        "--margin",
        metavar="X",
        type=float,
        help="rank random users until each mean is known to it, as in 0.005",
    )
    # An option that `evaluate` takes by the same name is added here and to `_PASSED_ON` there.
    _add_output(parser)
    _file(parser, "-o", "--output", help="save the result for compare, report and gate (.npz)")
    parser.add_argument(
        "--keep-items", action="store_true", help="save the recommended items with it"
    )


def _add_recommender(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what recommends, in one of four forms")
    _file(
        group, "--lists", help="rows of a user, an item, and its rank or score; or lists of items"
    )
    _file(group, "--run", type=Path, help="a run of TREC")
    _file(group, "--users", help="embeddings of users, by id or by row; needs --items")
    _file(group, "--items", help="embeddings of items")
    _file(group, "--scores", help="an array of scores [num_users, num_items] or [num_items]")
    _file(group, "--item-bias", help="an array of item biases, added to products of embeddings")
    _file(group, "--user-ids", help="the id of the user of each row of an array, one per line")
    _file(group, "--item-ids", help="the same of items; with lists, all items that could be listed")
    for name, what in (
        ("rank", "ranks in --lists, from 1 on"),
        ("score", "scores in --lists, higher for better items"),
        ("id", "ids in --users and --items"),
        ("vector", "vectors in --users and --items; by default, all but the ids"),
    ):
        group.add_argument(f"--{name}-column", metavar="NAME", help=f"the column of {what}")
    group.add_argument(
        "--list-columns", metavar="NAME", nargs="+", help="all columns of --lists without a header"
    )


def _add_compare(commands: Any) -> None:
    parser = _add(commands, "compare", "test which of some saved results is better")
    _add_results(parser, at_least="two")
    parser.add_argument("--metrics", metavar="NAME@K", nargs="+", help="the metrics to compare")
    _add_comparison(parser)
    parser.add_argument(
        "--simultaneous", action="store_true", help="intervals that hold all together"
    )
    _add_output(parser)


def _add_report(commands: Any) -> None:
    parser = _add(commands, "report", "write a page about saved results")
    _add_results(parser, at_least="one")
    _file(parser, "-o", "--output", type=Path, default=Path("report.html"), help="report.html")
    parser.add_argument("--title", metavar="TEXT", help="the title of the page")
    _add_comparison(parser)


def _add_gate(commands: Any) -> None:
    parser = _add(
        commands,
        "gate",
        "say whether a new model may replace the old one, by its exit status",
        _EXIT_STATUS,
    )
    _add_results(parser, at_least="one", what="the new model")
    _file(parser, "--baseline", nargs="+", required=True, help="the same of the old model")
    parser.add_argument("--metric", metavar="NAME@K", required=True, help="the one that decides")
    parser.add_argument(
        "--equivalence",
        metavar="X",
        type=_equivalence,
        required=True,
        help="the smallest difference that matters: a number, or a share such as 2%%",
    )
    parser.add_argument(
        "--level", metavar="X", type=float, default=0.95, help="of confidence: 0.95"
    )
    parser.add_argument(
        "--deterministic", metavar="NAME", nargs="+", default=[], help=_DETERMINISTIC
    )
    parser.add_argument("--json", action="store_true", help="print all numbers, as JSON")
    parser.set_defaults(markdown=False, latex=False)


def _add_split(commands: Any) -> None:
    parser = _add(
        commands, "split", "divide interactions into training, validation and test", _FILES
    )
    _positional(parser, "interactions", type=Path, metavar="FILE", help="a table of interactions")
    parser.add_argument(
        "--how",
        choices=("per-user", "leave-last-out", "temporal"),
        required=True,
        help="at random within each user, by the time within each user, or at the same moments",
    )
    for name in ("val", "test"):
        parser.add_argument(
            f"--{name}", metavar="X", type=_amount, help="a fraction such as 0.1, or a number"
        )
    parser.add_argument("--seed", metavar="N", type=int, help="of random splits: 0")
    parser.add_argument(
        "--k-core", metavar="K", type=int, help="first leave out who has fewer interactions"
    )
    _file(
        parser,
        *("-o", "--output"),
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where to write train, val and test: here",
    )
    _add_columns(parser)
    parser.add_argument("--time-column", metavar="NAME", help="the column of times")
    parser.set_defaults(rating_column=None)
    _add_output(parser)


def _add_metrics(commands: Any) -> None:
    parser = _add(commands, "metrics", "list all metrics, or explain one")
    parser.add_argument("name", metavar="NAME", nargs="?", help="a metric, such as ndcg")
    _add_output(parser)


def _add_conventions(commands: Any) -> None:
    parser = _add(commands, "conventions", "show what libraries compute, or explain one")
    parser.add_argument("name", metavar="NAME", nargs="?", help="a convention, such as recbole")
    _add_output(parser)


def _add(commands: Any, name: str, about: str, epilog: str | None = None) -> _Parser:
    parser: _Parser = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say how files are read")
    return parser


def _add_results(
    parser: argparse.ArgumentParser, at_least: str, what: str = "each recommender"
) -> None:
    _positional(
        parser,
        "results",
        metavar="[NAME=]FILE",
        nargs="+",
        help=f"saved results of {what}, at least {at_least}; files of one NAME are its runs",
    )


_DETERMINISTIC = "names of recommenders that no seed changes"


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", metavar="NAME", help="compare all others with this one")
    parser.add_argument(
        "--equivalence",
        metavar="X",
        type=_equivalence,
        help="the smallest difference that matters: a number, or a share such as 2%%",
    )
    parser.add_argument("--primary", metavar="NAME@K", help="the only metric that is tested")
    parser.add_argument("--deterministic", metavar="NAME", nargs="+", help=_DETERMINISTIC)
    parser.add_argument("--test", metavar="TEST", help="t-test or randomization")
    parser.add_argument("--level", metavar="X", type=float, help="of confidence: 0.95")
    parser.add_argument("--seed", metavar="N", type=int, help="of random numbers: 0")


def _add_columns(parser: Any) -> None:
    parser.add_argument("--user-column", metavar="NAME", help="the column of users")
    parser.add_argument("--item-column", metavar="NAME", help="the column of items")
    parser.add_argument(
        "--columns", metavar="NAME", nargs="+", help="all columns of files without a header"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    form = parser.add_argument_group("output").add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    form.add_argument("--latex", action="store_true", help="print a table in LaTeX")


def _file(parser: Any, *names: str, metavar: str = "FILE", **options: Any) -> None:
    """Adds an option that takes files, which shells complete."""
    parser.add_argument(*names, metavar=metavar, **options).complete = _COMPLETED


def _positional(parser: Any, name: str, **options: Any) -> None:
    parser.add_argument(name, **options).complete = _COMPLETED


#: How shells complete files, in the words of shtab.
_COMPLETED = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


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


class _Completion(argparse.Action):
    """Prints what a shell needs to complete the command."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        try:
            import shtab
        except ImportError:
            parser.error("--print-completion needs shtab: pip install 'pyg-recmetrics[all]'")
        print(shtab.complete(parser, str(values)))
        parser.exit(exits.DONE)


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=("bash", "zsh", "tcsh"),
        help="print what lets this shell complete the command",
    )
