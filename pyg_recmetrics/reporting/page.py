"""report(): everything about some results on one page."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pyg_recmetrics.benchmark import Benchmark
from pyg_recmetrics.files import replacing
from pyg_recmetrics.plot.picture import COLORS, GREY, NOTE_COLOR, Recommenders
from pyg_recmetrics.reporting.contents import Split, read_contents
from pyg_recmetrics.reporting.parts import DARK_COLORS
from pyg_recmetrics.reporting.sections import page_on, summary
from pyg_recmetrics.results import Comparison
from pyg_recmetrics.version import __version__


def report(
    results: Recommenders | Mapping[str, Recommenders] | Benchmark,
    path: str | Path,
    *,
    split: Split | None = None,
    comparison: Comparison | None = None,
    title: str = "Evaluation of recommenders",
) -> Path:
    r"""Writes a page on some results that says first which recommender is best, and by how much.

    The title has the data set, the number of users, and what is relevant to them. A sentence says
    how the best is beside the next, with the interval of the lift. Warnings of what makes this
    doubtful follow, each with the recommender that is meant. Then come a table of means, with the
    runs, the trials and the seconds that they took, a picture of the differences between the best
    and each of the others, and the recall of rare, of other and of popular items. All else is
    folded below: warnings that touch at most a hundredth of users or edges, means with intervals,
    all comparisons, curves, groups of users, the long tail, the recipe, and checks of the split.

    It is one HTML file that needs neither network nor scripts. Pictures are vector graphics. They
    follow the colours of the page, which is dark where the reader prefers it. The same results give
    the same file.

    For several data sets, the page says which recommender is best where, and has a table of all
    means and the same sections for each data set.

    A section is left out if something is missing for it, such as the lists of recommended items, an
    extra, or the split. The end of the page says what is left out, and how to get it.

    Args:
        results (EvaluationResult, Runs, sequence, dict or Benchmark): One recommender with one run
            or several, such as one for each seed, or several recommenders by name. All of them are
            of one task. Or those of one or several data sets, each by name, or a benchmark of them.
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
