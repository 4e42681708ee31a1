"""report(): everything about some results on one page."""

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.files import replacing
from pyg_recmetrics.plot import style
from pyg_recmetrics.plot.picture import Recommenders
from pyg_recmetrics.reporting.contents import Contents, Split, of_data_sets
from pyg_recmetrics.reporting.parts import DARK_COLORS
from pyg_recmetrics.reporting.sections import on_all, page_on, summary
from pyg_recmetrics.results import Comparison
from pyg_recmetrics.version import __version__


def report(
    results: Recommenders | Benchmark,
    path: str | Path,
    *,
    split: Split | None = None,
    comparison: Comparison | BenchmarkComparison | None = None,
    title: str = "Evaluation of recommenders",
) -> Path:
    r"""Writes a page with everything about some results: what was measured, and what came out.

    The page says first which recommender is better, in one sentence for each pair, with warnings of
    what makes it doubtful and with a picture of all means and differences. Below, it has the means,
    paired differences, curves, groups of users and of items, the long tail, trade-offs, ties, the
    recipe, and checks of the split.

    It is one HTML file that needs neither network nor scripts. Pictures are vector graphics. They
    follow the colours of the page, which is dark where the reader prefers it. The same results give
    the same file.

    Of a :class:`Benchmark`, the page says on which data sets a recommender is better, and has the
    tables and the pictures of every data set, most of them folded.

    A section is left out if something is missing for it, such as the lists of recommended items, an
    extra, or the split. The end of the page says what is left out, and how to get it.

    Args:
        results (EvaluationResult, Runs, sequence, dict or Benchmark): One recommender with one run
            or several, such as one for each seed, or several recommenders by name. All of them are
            of one task. Or a benchmark of several data sets.
        path (str or Path): The file to write.
        split (tuple or SplitReport, optional): The training, validation and test data, or what
            :func:`~pyg_recmetrics.transforms.check_split` says of them, which is taken as it is.
            (default: `None`)
        comparison (Comparison, optional): What :func:`~pyg_recmetrics.compare` says of the results,
            or :meth:`Benchmark.compare` of a benchmark, with the options of your choice, such as
            `equivalence` and `deterministic`. Its metric is that of the page of a benchmark.
            (default: `None`, what it says by default)
        title (str, optional): The title. (default: `"Evaluation of recommenders"`)

    Returns:
        The path of the file.

    Raises:
        ImportError: If a recommender has several runs, and scipy is not installed.
        OSError: If the file cannot be written.
        TypeError: If `results` is or holds something else, `split` holds something else than data,
            or `comparison` is no comparison.
        ValueError: If there is no result, they are of different tasks, `split` does not hold three
            parts of one graph, neither its test nor its validation part holds the ground truth of
            the results, `comparison` is one of other results, or `split` is given for a benchmark.

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
    if isinstance(results, Benchmark):
        if split is not None:
            raise ValueError("'split' needs to be left out for a benchmark: check each by itself")
        data_sets, shown = of_data_sets(results, comparison)
        page = page_on(data_sets, shown, on_all(results, shown, data_sets))
    else:
        contents = Contents.of(results, split, comparison)
        data_sets = {"": contents}
        page = page_on(data_sets, contents.main_comparison)
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        title=title,
        summary=summary(data_sets),
        page=page,
        style=style,
        dark_colors=DARK_COLORS,
        version=__version__,
    )
    with replacing(path) as file:
        file.write(text.encode())
    return path
