"""What a report is about, results by name and their split, and what its sections consist of."""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics.benchmark import Benchmark
from pyg_recmetrics.benchmark.benchmark import by_data_set
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot import Picture
from pyg_recmetrics.plot.picture import COLORS, GREY, NOTE_COLOR, all_runs
from pyg_recmetrics.results import Comparison, EvaluationResult, compare
from pyg_recmetrics.results.comparison import best_first, compare_on_each
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import check_same_task, common_metrics, recommenders_by_name
from pyg_recmetrics.tables import Table
from pyg_recmetrics.task.edges import coalesce_edges, contains
from pyg_recmetrics.task.graph import read_data
from pyg_recmetrics.transforms.split_report import SplitReport, check_split
from pyg_recmetrics.utils import requires_package

#: The training, validation and test data, or what `check_split` says of them.
Split: TypeAlias = Sequence[Data | HeteroData] | SplitReport

#: The cut-off of lists if no metric has one.
_DEFAULT_K = 20


@dataclass(frozen=True)
class Contents:
    """Results on one data set, and the split that a report shows with them.

    Attributes:
        recommenders (mapping): The results by name; the name of a single recommender is empty.
        split (SplitReport or None): The checks of the split.
        comparison (Comparison or None): The differences of the recommenders.
        metric (Metric or None): The metric of the pictures that show one; `None` for the first
            that has a cut-off, or the first.
    """

    recommenders: Mapping[str, Measured]
    split: SplitReport | None = None
    comparison: Comparison | None = None
    metric: Metric | None = None

    @property
    def first(self) -> EvaluationResult:
        """The first run of the first recommender."""
        return self.every[0]

    @cached_property
    def every(self) -> list[EvaluationResult]:
        """All runs of all recommenders."""
        return all_runs(self.recommenders.values())

    @property
    def names(self) -> list[str]:
        """The names of recommenders and of metrics."""
        return [*self.recommenders, *map(str, self.metrics)]

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that all results have for every user."""
        return tuple(x for x in common_metrics(self.every) if str(x) in self.first.per_user)

    @cached_property
    def best(self) -> Comparison | None:
        """The differences of the best recommender from each other one in the main metric."""
        if self.comparison is None or not self.metrics:
            return None
        with suppress(ValueError):  # if it was not compared
            name = best_first(self.recommenders, self.main_metric)[0]
            return self.comparison.select(self.main_metric, name)
        return None

    @property
    def main_metric(self) -> Metric:
        """The metric of the pictures that show one.

        Raises:
            ValueError: If the results have no metric in common.
        """
        if self.metric is not None:
            return self.metric
        if not self.metrics:
            raise ValueError("the results have no metric of single users in common")
        compared = {row.metric for row in self.comparison or ()}
        asked = [metric for metric in self.metrics if str(metric) in compared] or self.metrics
        return next((metric for metric in asked if metric.k), asked[0])

    @property
    def k(self) -> int:
        """The cut-off of recommended lists: the largest of the metrics."""
        return self.first.max_k or _DEFAULT_K


def read_contents(
    results: Any, split: Split | None, comparison: Comparison | None
) -> tuple[dict[str, Contents], Benchmark | None]:
    """Returns what a report on each data set is about, and the table of means.

    A single data set may have no name. There is no table where nothing can be compared.

    Raises:
        TypeError: If `results` is or holds something else, `split` holds no data, or `comparison`
            is no comparison.
        ValueError: If there is no result, they are of different tasks, `split` does not hold
            three parts of one graph, neither its test nor its validation part holds the ground
            truth of the results, `comparison` is not of these results, or there are several data
            sets, of which each has a split and a comparison of its own.
    """
    data_sets: Mapping[str, Any] = by_data_set(results)
    options: dict[str, Any] = {}
    if isinstance(results, Benchmark):
        data_sets = results
        options = {"deterministic": results.deterministic, "level": results.level}
    if len(data_sets) == 1:
        ((name, of_one),) = data_sets.items()
        recommenders = recommenders_by_name(of_one, or_one=True)
        check_same_task({name: result.runs[0] for name, result in recommenders.items()})
        checked = None if split is None else _check_split(split, Contents(recommenders).first)
        compared = _compared(recommenders, comparison, options)
        contents = {name: Contents(recommenders, checked, compared)}
        is_table = isinstance(results, Benchmark)
        return contents, results if is_table else _benchmark(recommenders, compared)
    for name, given in (("split", split), ("comparison", comparison)):
        if given is not None:
            raise ValueError(f"'{name}' needs to be of one data set (got several data sets)")
    benchmark = results if isinstance(results, Benchmark) else Benchmark(data_sets)
    common = set.intersection(*(set(Contents(x).metrics) for x in benchmark.values()))
    metric = next((metric for metric in benchmark.metrics if metric in common), None)
    found: Mapping[str, Comparison] = {}
    asked = {
        data_set: [(metric, pair) for pair in combinations(of_one, 2)]
        for data_set, of_one in benchmark.items()
        if len(of_one) > 1 and metric is not None
    }
    if asked:
        with suppress(ImportError):
            found = compare_on_each(benchmark, asked, **options)
    contents = {
        data_set: Contents(of_one, None, found.get(data_set), metric)
        for data_set, of_one in benchmark.items()
    }
    return contents, benchmark


def _benchmark(
    recommenders: Mapping[str, Measured], compared: Comparison | None
) -> Benchmark | None:
    """Returns the table of one data set, where there is something to compare."""
    if compared is None:
        return None
    of = compared.protocol
    return Benchmark(recommenders, deterministic=of.deterministic, level=of.level)


def _compared(
    results: Mapping[str, Measured], comparison: Comparison | None, options: Mapping[str, Any]
) -> Comparison | None:
    """Returns a comparison of results, which may be given; `None` if nothing can be compared."""
    if comparison is None:
        # There may be a single one, or nothing in common.
        with suppress(ValueError):
            return compare(results, **options)
        return None
    if not isinstance(comparison, Comparison):
        raise TypeError(
            f"'comparison' needs to be a 'Comparison' (got {type(comparison).__name__})"
        )
    comparison.check_results(results)
    return comparison


def _check_split(split: Split, result: EvaluationResult) -> SplitReport:
    if isinstance(split, SplitReport):
        return split
    if not isinstance(split, Sequence) or len(split) != 3:
        raise TypeError(
            f"'split' needs to be training, validation and test data (got {type(split).__name__})"
        )
    train, val, test = split
    # Only homogeneous data may leave open which of its nodes are users.
    num_users = result.ranked.num_users if isinstance(train, Data) else None
    checked = check_split(train, val, test, num_users=num_users)
    if not any(_has_truth(part, num_users, result.ranked.edge_label_index) for part in (test, val)):
        raise ValueError(
            "'split' does not match the results: neither its test nor its validation data hold "
            "their ground truth"
        )
    return checked


def _has_truth(part: Data | HeteroData, num_users: int | None, truth: Tensor) -> bool:
    """Returns whether a part of a split has all edges as ground truth."""
    edges = read_data(part, None, num_users)
    if truth.numel() and int(truth[1].max()) >= edges.num_items:
        return False
    held = coalesce_edges(edges.truth, edges.num_items)
    return bool(contains(held, truth.to(held.device), edges.num_items).all())


#: The widths in inches: of what stands beside another picture, or alone on a telephone, and of what
#: is as wide as a page. The page scales pictures, and text with them, so text is about as large.
_WIDTH, _WIDE = 4.6, 11.5

#: What takes the place of `COLORS` on a dark page: about the same hues, with a contrast of at least
#: 3 : 1 on it.
DARK_COLORS = ("#4B92F0", "#F59A35", "#2DD894", "#DE4F93", "#BFC1FF", "#B07A42", "#FFFFFF")

#: The variables of the page that stand for the colours of pictures. Black needs none: all that is
#: black has the colour of the text.
_VARIABLES = {
    **{color.lower(): f"var(--curve-{number})" for number, color in enumerate(COLORS)},
    GREY.lower(): "var(--seen)",
    NOTE_COLOR.lower(): "var(--muted)",
    "#ffffff": "var(--page)",  # the inside of hollow markers
    "#000000": "currentColor",
}
_COLOR = re.compile("|".join(map(re.escape, _VARIABLES)))

#: What a page does not need of a picture: what is said of the file, its style, which would apply to
#: the whole page, and in tags, the ids of groups, names of spaces and fonts other than their size.
_UNUSED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_UNUSED_IN_TAG = re.compile(
    r' id="[\w.]+?_\d+"| xmlns(:\w+)?="[^"]*"| xml:space="[^"]*"'
    r"|font-family: [^;\"]+;? ?"
)
_FONT = re.compile(r"font: ([\d.]+px) [^;\"]+")
_TAG = re.compile("<[^>]+>")

#: Where an id is given or referred to.
_ID = re.compile(r'(?<=id=")|(?<=href="#)|(?<=url\(#)')


class Remarks(NamedTuple):
    """Sentences below each other: plain ones, claims, warnings, or what is good.

    Attributes:
        texts (sequence of str): The sentences.
        kind (str): What they are.
        fold (str): What to press to see them; empty if they are shown at once.
    """

    texts: Sequence[str]
    kind: str = "plain"
    fold: str = ""


class Grid(NamedTuple):
    """A table, with a caption above it.

    Attributes:
        caption (str): What stands above it.
        table (Table): The table.
        fold (str): What to press to see it; empty if it is shown at once.
    """

    caption: str
    table: Table
    fold: str = ""


class Drawing(NamedTuple):
    """A picture, with a caption below it.

    Attributes:
        caption (str): What stands below it, and what it is called for those who do not see it.
        box (Markup): The attribute of its size.
        svg (Markup): What is inside of the element.
        size (str): `"wide"` for wide screens alone, `"narrow"` for all others, or empty.
    """

    caption: str
    box: Markup
    svg: Markup
    size: str = ""
    fold: str = ""


PagePart: TypeAlias = Remarks | Grid | Drawing


class Page:
    """Sections of a report, and a note of what it leaves out.

    Attributes:
        sections: The heading of each section, what it consists of, and whether it is folded.
        missing: The headings of what is left out, by what it needs.
    """

    def __init__(self) -> None:
        self.sections: list[tuple[str, list[PagePart], bool]] = []
        self.missing: dict[str, list[str]] = {}

    def add(
        self, heading: str, makers: Iterable[Iterable[PagePart]], *, is_folded: bool = False
    ) -> None:
        """Adds a section. What raises an error is left out, and the error says what it needs."""
        parts: list[PagePart] = []
        for maker in makers:
            try:
                parts.extend(maker)
            except (ImportError, ValueError) as error:
                self.missing.setdefault(str(error), []).append(heading)
        parts = [part for part in parts if not isinstance(part, Remarks) or part.texts]
        if parts:
            self.sections.append((heading, parts, is_folded))


def drawings(caption: str, draw: Callable[[], Picture]) -> Iterator[Drawing]:
    """Yields a picture as wide as the page, once for wide screens and once for all others."""
    for size in ("wide", "narrow"):
        yield drawing(caption, draw, size)


def drawing(caption: str, draw: Callable[[], Picture], size: str = "") -> Drawing:
    """Returns a picture, with its caption as the name for those who do not see it.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    with requires_package("matplotlib", "report"):
        from matplotlib import style
    file = io.StringIO()
    # The settings of the user are left aside: the page has colours and a font of its own. Text
    # stays text. The salt makes ids depend on nothing but the picture.
    settings = {"svg.fonttype": "none", "svg.hashsalt": caption}
    with style.context(["default", settings]), warnings.catch_warnings():
        # A font of matplotlib only measures texts. The browser has letters of all languages.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = draw().figure
        figure.set_figwidth(_WIDE if size == "wide" else _WIDTH)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = _UNUSED.sub("", file.getvalue())
    prefix = f"picture-{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    _, box, content = re.split(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', text)
    content = _TAG.sub(lambda tag: _on_page(tag[0], prefix), content)
    return Drawing(caption, Markup(box), Markup(content), size)


def _on_page(tag: str, prefix: str) -> str:
    """Lets a tag have the colours and the fonts of the page, and ids that no other picture has."""
    tag = _FONT.sub(r"font-size: \1", _UNUSED_IN_TAG.sub("", tag).replace("xlink:", ""))
    return _ID.sub(prefix, _COLOR.sub(lambda color: _VARIABLES[color[0]], tag))
