"""report(): everything about some results on one page, and its sections."""

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics import plot
from pyg_recmetrics.benchmark import Benchmark, by_data_set, with_best
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot import COLORS, GREY, NOTE_COLOR, Picture, Recommenders, span, users
from pyg_recmetrics.results import Comparison, EvaluationResult, compare
from pyg_recmetrics.results.comparison import best_first
from pyg_recmetrics.results.notes import as_sentence, claims_on_best, lines, notes_of_all
from pyg_recmetrics.results.result import Measured, common_popularity
from pyg_recmetrics.results.runs import (
    common_metrics,
    every_run,
    notes_on_budgets,
    recommenders_by_name,
    remarks_of_runs,
)
from pyg_recmetrics.tables import Table
from pyg_recmetrics.task.edges import coalesce_edges, contains
from pyg_recmetrics.task.graph import read_data
from pyg_recmetrics.transforms.split_report import SplitReport, check_split
from pyg_recmetrics.utils import counted, hashed, replacing, requires_package
from pyg_recmetrics.version import __version__

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
        data_set (str): The name of the data set; empty if there is no other.
    """

    recommenders: Mapping[str, Measured]
    split: SplitReport | None = None
    comparison: Comparison | None = None
    metric: Metric | None = None
    data_set: str = ""

    @property
    def first(self) -> EvaluationResult:
        """The first run of the first recommender."""
        return self.every[0]

    @cached_property
    def every(self) -> list[EvaluationResult]:
        """All runs of all recommenders."""
        return list(every_run(self.recommenders).values())

    @property
    def names(self) -> list[str]:
        """The names of the data set, of recommenders and of metrics."""
        names = [self.data_set, *self.recommenders, *map(str, self.metrics)]
        return [name for name in names if name]

    @property
    def on(self) -> str:
        """How a caption begins that is about one of several data sets."""
        return f"On {self.data_set}: " if self.data_set else ""

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that all results have for every user."""
        return tuple(x for x in common_metrics(self.every) if str(x) in self.first.per_user)

    @cached_property
    def best(self) -> Comparison | None:
        """The differences of the best recommender from each other one in the main metric."""
        if self.comparison is not None:
            with suppress(ValueError):  # if there is no metric, or it was not compared
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
    given = results if isinstance(results, Benchmark) else None
    data_sets: Mapping[str, Any] = by_data_set(results) if given is None else given
    options: dict[str, Any] = {}
    if given is not None:
        options = {"deterministic": given.deterministic, "level": given.level}
    if len(data_sets) == 1:
        ((name, of_one),) = data_sets.items()
        recommenders = recommenders_by_name(of_one, or_one=True)
        checked = None if split is None else _check_split(split, Contents(recommenders).first)
        if comparison is None:
            # There may be a single one, or nothing in common.
            with suppress(ValueError):
                comparison = compare(recommenders, **options)
        elif isinstance(comparison, Comparison):
            comparison.check_results(recommenders)
        else:
            raise TypeError(
                f"'comparison' needs to be a 'Comparison' (got {type(comparison).__name__})"
            )
        if given is None and comparison is not None:
            how = comparison.protocol
            given = Benchmark(recommenders, deterministic=how.deterministic, level=how.level)
        return {name: Contents(recommenders, checked, comparison)}, given
    for argument, value in (("split", split), ("comparison", comparison)):
        if value is not None:
            raise ValueError(f"'{argument}' needs to be of one data set (got several data sets)")
    benchmark = Benchmark(data_sets) if given is None else given
    runs = [run for of_one in benchmark.values() for run in every_run(of_one).values()]
    known = (x for x in benchmark.metrics if all(str(x) in run.per_user for run in runs))
    metric, every_pair = next(known, None), benchmark
    if benchmark.proposed is not None:
        every_pair = Benchmark(benchmark, benchmark.metrics, **options)
    # Their p-values are then those of the table, too.
    found = every_pair.comparisons
    contents = {
        data_set: Contents(of_one, None, found.get(data_set), metric, data_set)
        for data_set, of_one in benchmark.items()
    }
    return contents, benchmark


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
    """

    texts: Sequence[str]
    kind: str = "plain"


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


PagePart: TypeAlias = Remarks | Grid | Drawing


class Page:
    """Sections of a report, and a note of what it leaves out.

    Attributes:
        sections: The heading of each section, and its parts. All but the first are folded.
        missing: The headings of what is left out, by what it needs.
    """

    def __init__(self) -> None:
        self.sections: list[tuple[str, list[PagePart]]] = []
        self.missing: dict[str, list[str]] = {}

    def add(self, heading: str, makers: Iterable[Iterable[PagePart]]) -> None:
        """Adds a section. What raises an error is left out, and the error says what it needs."""
        parts: list[PagePart] = []
        for maker in makers:
            try:
                parts.extend(maker)
            except (ImportError, ValueError) as error:
                self.missing.setdefault(str(error), []).append(heading)
        parts = [part for part in parts if not isinstance(part, Remarks) or part.texts]
        if parts:
            self.sections.append((heading, parts))


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
    prefix = f"picture-{hashed(text):x}-"
    _, box, content = re.split(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', text)
    content = _TAG.sub(lambda tag: _on_page(tag[0], prefix), content)
    return Drawing(caption, Markup(box), Markup(content), size)


def _on_page(tag: str, prefix: str) -> str:
    """Lets a tag have the colours and the fonts of the page, and ids that no other picture has."""
    tag = _FONT.sub(r"font-size: \1", _UNUSED_IN_TAG.sub("", tag).replace("xlink:", ""))
    for color, variable in _VARIABLES.items():
        tag = tag.replace(color, variable)
    return _ID.sub(prefix, tag)


def page_on(data_sets: Mapping[str, Contents], benchmark: Benchmark | None = None) -> Page:
    """Returns the page: the answer, the means, a picture, and all else in folds."""
    page = Page()
    every = data_sets.values()
    claims = [list(_claims(contents)) for contents in every]
    first = [claim for of_one in claims for claim in of_one[:1]]
    others = [claim for of_one in claims for claim in of_one[1:]]
    names = [name for contents in every for name in contents.names]
    known = notes_of_all({name: _warnings(contents) for name, contents in data_sets.items()})
    warned = Remarks([as_sentence(warning, names) for warning in known], "warnings")
    top = [[Remarks(first, "claims")], [warned], _table(data_sets, benchmark), *map(_forest, every)]
    below = [Remarks(others)]
    if any(x.split is not None and not x.split.findings() for x in every):
        below.append(Remarks(["The split has none of the leaks that were looked for."], "good"))
    page.add("Result", [*top, below, *map(_by_popularity, every)])
    for contents in every:
        of = f"{contents.data_set}: " if contents.data_set else ""
        for heading, make in SECTIONS.items():
            if not of or heading != "Split":
                page.add(f"{of}{heading}", [make(contents)])
    return page


def summary(data_sets: Mapping[str, Contents]) -> str:
    """Returns the data, the users and what is relevant to them, in a sentence on each data set."""
    sentences = []
    for name, contents in data_sets.items():
        counts = (run.user_counts.num_evaluated for run in contents.every)
        first = contents.first
        who = users(counts, first.nouns.rows)
        edges = counted(first.ranked.rank.numel(), "ground-truth edges")
        threshold = None if first.task is None else first.task.threshold
        weight = "" if threshold is None else f" of weight {threshold:g} or more"
        sentences.append(f"{f'{name}: ' if name else ''}{who}; relevant are {edges}{weight}.")
    return " ".join(sentences)


def _claims(contents: Contents) -> Iterator[str]:
    """Yields which recommender is best, beside the next and beside all others."""
    found = contents.best
    if found is None:
        return
    where = f"on {contents.data_set}, " if contents.data_set else ""
    for claim, rows in claims_on_best(found):
        yield found._limited(claim, rows, where)


def _table(data_sets: Mapping[str, Contents], benchmark: Benchmark | None) -> Iterator[PagePart]:
    """The means of all recommenders, and what they cost."""
    if benchmark is None:
        for contents in data_sets.values():
            yield from _tables(contents, is_folded=False)
        return
    yield Grid("The mean of every metric. The best is bold.", benchmark.table())


def _tables(contents: Contents, *, is_folded: bool) -> Iterator[PagePart]:
    for name, result in contents.recommenders.items():
        caption = f"The mean of every metric{f' of {name}' if name else ''}."
        yield Grid(caption, result.table(), name if is_folded else "")


def _forest(contents: Contents) -> Iterator[PagePart]:
    found = contents.best
    if found is not None and any(row.low <= row.high for row in found):
        caption = (
            f"{contents.on}{found[0].a} minus each of the others in {found[0].metric}, user by "
            f"user, so that what users have in common cancels out."
        )
        yield from drawings(caption, partial(plot.differences, found))
    elif not contents.data_set:
        yield from _drawing_of_means(contents)


def _drawing_of_means(contents: Contents) -> Iterator[PagePart]:
    caption = "The mean of every metric, with its confidence interval."
    yield from drawings(caption, partial(plot.means, contents.recommenders))


def _warnings(contents: Contents) -> Iterator[str]:
    """Yields what a reader must know before anything else, in order of importance."""
    if contents.split is not None:
        yield from contents.split.findings()
    of_each = {}
    for name, each in contents.recommenders.items():
        of_each[name] = remarks_of_runs(each, map(str, each.metrics), has_intervals=True)
    yield from notes_of_all(of_each)
    comparison = contents.comparison
    if comparison is not None and comparison.protocol.caution:
        yield f"of differences, {comparison.protocol.caution}"
    if num_cold := max(map(_count_cold, contents.every)):
        num_edges = contents.first.ranked.rank.numel()
        yield f"{num_cold:,} of {num_edges:,} test edges have items that no edge before them has"
    if comparison is not None:
        yield from lines("one_run", comparison.protocol)
    yield from notes_on_budgets(contents.recommenders)


def _count_cold(result: EvaluationResult) -> int:
    """Returns how many ground-truth edges lead to items that no user has seen, as far as known."""
    items = result.ranked.catalogue
    if items is None or items.seen is None:
        return 0
    is_cold = items.popularity == 0
    return int(is_cold[result.ranked.edge_label_index[1].to(is_cold.device)].sum())


def _means(contents: Contents) -> Iterator[PagePart]:
    """The mean of every metric for every recommender, and how much runs vary."""
    if len(contents.recommenders) > 1:
        yield from _drawing_of_means(contents)
        yield from _tables(contents, is_folded=True)


def _by_popularity(contents: Contents) -> Iterator[PagePart]:
    """How many of the test edges of unpopular, other and popular items are found."""
    common_popularity(contents.every, "report")
    metric = f"recall@{contents.k}"
    results = contents.recommenders
    frames = [
        run.per_item(metric).assign(name=name)
        for name, each in results.items()
        for run in each.runs
    ]
    items = pd.concat(frames)
    edges = items.groupby("popularity")["degree"].sum()
    # Items that as many users have seen are in one third, whatever their order.
    third = (3 * (edges.cumsum() - edges / 2) / edges.sum()).astype(int)
    sums = items.groupby([items["popularity"].map(third), "name"])[["hits", "degree"]].sum()
    head, columns = ["recommender"], [[name or "result" for name in results]]
    for number, found in sums.groupby(level=0):
        head.append(f"seen by {span(third.index[third == number])}")
        shares = (found["hits"] / found["degree"]).droplevel(0)
        cells = {str(name): (share, f"{share:.4f}") for name, share in shares.items()}
        columns.append(with_best(cells, results, metric))
    caption = (
        f"{contents.on}The share of test edges within the top {contents.k}, by how many "
        f"{contents.first.nouns.users} have seen their item. Each column has about a third of "
        f"these edges. Differences in it are not tested."
    )
    yield Grid(caption, Table(head, list(zip(*columns, strict=True))))


def _differences(contents: Contents) -> Iterator[PagePart]:
    """All differences."""
    if len(contents.recommenders) < 2:
        raise ValueError("two recommenders or more are needed")
    comparison = contents.comparison or compare(contents.recommenders)  # which says what it needs
    caption = "The difference of two recommenders in every metric, user by user."
    yield Grid(caption, comparison.table())


def _curves(contents: Contents) -> Iterator[PagePart]:
    """Metrics at every cut-off."""
    labels = dict.fromkeys(metric.label for metric in contents.metrics if metric.k)
    if not labels:
        raise ValueError("a metric with a cut-off is needed, such as 'ndcg@20'")
    results = contents.recommenders
    for label in labels:
        caption = f"The mean {label}@k at every cut-off k."
        yield drawing(caption, partial(plot.metric_at_k, results, label))
    caption = "The mean precision against the mean recall at every cut-off."
    yield drawing(caption, partial(plot.precision_recall_curve, results))


def _by_degree(contents: Contents) -> Iterator[PagePart]:
    """How a metric depends on the number of training edges."""
    common_popularity(contents.every, "by_degree")
    metric = contents.main_metric
    caption = f"The mean {metric} by training edges, among users with as many relevant items."
    draw = partial(plot.metric_by_degree, contents.recommenders, metric, same_degree=True)
    yield drawing(caption, draw)


def _long_tail(contents: Contents) -> Iterator[PagePart]:
    """How often popular and other items are recommended."""
    caption = f"In how many top {contents.k} lists an item is, as the mean over groups of items."
    yield drawing(caption, partial(plot.long_tail, contents.recommenders, k=contents.k))


def _recipe(contents: Contents) -> Iterator[PagePart]:
    """How exactly it was measured, which may differ where recommenders treat ties differently."""
    recipes = {name: [x.recipe()] for name, x in contents.recommenders.items()}
    yield Remarks([" ".join(text.split()) for text in notes_of_all(recipes)])


def _split(contents: Contents) -> Iterator[PagePart]:
    """The checks of the split."""
    if contents.split is None:
        raise ValueError("pass 'split=(train, val, test)'")
    caption = "Leaks, sizes and degrees of the three parts, and users and items without edges."
    yield Grid(caption, contents.split.table())


#: The sections on each data set, and what they consist of. Errors say what a section needs.
SECTIONS: dict[str, Callable[[Contents], Iterator[PagePart]]] = {
    "Means": _means,
    "Comparison": _differences,
    "Curves": _curves,
    "Users": _by_degree,
    "Long tail": _long_tail,
    "Recipe": _recipe,
    "Split": _split,
}


def report(
    results: Recommenders | Mapping[str, Recommenders] | Benchmark,
    path: str | Path,
    *,
    split: Split | None = None,
    comparison: Comparison | None = None,
    title: str = "Evaluation of recommenders",
) -> Path:
    r"""Writes a page on some results that says first which recommender is best, and by how much.

    Below the title stand the numbers of users and ground-truth edges. A sentence says by how many
    per cent the best recommender is better than the next, with an interval. Warnings that make this
    doubtful follow, each with the recommender that it concerns. Then come a table of means, with
    the trials and seconds of :meth:`EvaluationResult.with_trials`, a picture of the differences
    between the best and each of the others, and the recall of rare, of other and of popular items.
    All else is folded below: means with intervals, all comparisons, curves, groups of users, the
    long tail, the recipe, and checks of the split.

    It is one HTML file that needs neither network nor scripts. Pictures are vector graphics. They
    follow the colours of the page, which is dark where the reader prefers it. The same results give
    the same file.

    For several data sets, the page says which recommender is best where, and has a table of all
    means and the same sections for each data set.

    A section is left out if something is missing for it, such as the lists of recommended items, an
    extra, or the split. The end of the page says what is left out, and how to get it.

    Args:
        results (EvaluationResult, Runs, sequence, dict or Benchmark): One recommender with one run
            or several, such as one for each seed; several recommenders by name, all on one task; a
            dict of such dicts by data set; or a benchmark.
        path (str or Path): The file to write.
        split (tuple or SplitReport, optional): The training, validation and test data, or what
            :func:`~pyg_recmetrics.transforms.check_split` says of them, which is taken as it is.
            (default: `None`)
        comparison (Comparison, optional): What :func:`~pyg_recmetrics.compare` says of the results
            of one data set, with the options of your choice, such as `equivalence` and
            `deterministic`. (default: `None`, what it says by default)
        title (str, optional): The title. (default: `"Evaluation of recommenders"`)

    Returns:
        The path of the file.

    Raises:
        OSError: If the file cannot be written.
        TypeError: If `results` is or holds something else, `split` holds something else than data,
            or `comparison` is no comparison.
        ValueError: If there is no result, they are of different tasks, `split` does not hold three
            parts of one graph, neither its test nor its validation part holds the ground truth of
            the results, `comparison` is one of other results, or `split` or `comparison` is given
            for several data sets.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, report
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@2")
        >>> page = report(result, Path(tempfile.mkdtemp()) / "report.html")
        >>> page.read_text()[:15]
        '<!doctype html>'
    """
    path = Path(path)
    data_sets, benchmark = read_contents(results, split, comparison)
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        title=title,
        summary=summary(data_sets),
        page=page_on(data_sets, benchmark),
        COLORS=COLORS,
        GREY=GREY,
        NOTE_COLOR=NOTE_COLOR,
        dark_colors=DARK_COLORS,
        version=__version__,
    )
    with replacing(path) as file:
        file.write(text.encode())
    return path
