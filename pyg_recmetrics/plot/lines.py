"""Pictures with one point for every cut-off, evaluation or number of users."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.curves import Curve
from pyg_recmetrics.plot.picture import (
    Picture,
    Recommenders,
    axes_for,
    cut_offs_of,
    finish,
    label,
    noun_of,
    users,
)
from pyg_recmetrics.plot.style import NOTE_COLOR, line_style, point_style
from pyg_recmetrics.results import EvaluationResult, History, compare
from pyg_recmetrics.results.race import Race
from pyg_recmetrics.results.result import Measured, mean_of
from pyg_recmetrics.results.runs import (
    Runnable,
    as_measured,
    one_or_by_name,
    one_or_recommenders_by_name,
)
from pyg_recmetrics.results.verdicts import RacedPair, swapped
from pyg_recmetrics.tables import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: About how many markers a line with many points has.
_NUM_MARKERS = 6

#: The opacity of a band.
_BAND_OPACITY = 0.2

#: The cut-offs that a curve of precision and recall marks if the last of all is at least
#: `_FAR` times as deep.
_MARKED = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
_FAR = 1.5


def metric_at_k(
    results: Recommenders,
    metric: str = "ndcg",
    *,
    max_k: int | None = None,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric against its cut-off, with a confidence band.

    The band of several runs is one for other users and other runs.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name.
        metric (str, optional): The metric, which needs to have a cut-off, spelled without it, such
            as `"ndcg(gain=exponential)"`. (default: `"ndcg"`)
        max_k (int, optional): The largest cut-off. (default: `None`, the depth of the rankings; for
            a ranking of all candidates, the largest cut-off of the result's metrics)
        level (float, optional): The level of the confidence intervals of the mean over users.
            (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no metric of that name, if it has no cut-off, if `max_k` is larger
            than the depth of a ranking, or if `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@3")
        >>> figure, axes = plot.metric_at_k({"Constant": result}, "recall")
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('k', 'recall@k')
    """
    by_name = one_or_recommenders_by_name(results)
    y_label, cut_offs = _at_every_k(by_name.values(), metric, max_k)
    axes = axes_for(ax)
    markevery = max(1, len(cut_offs) // _NUM_MARKERS)
    alpha = min(_BAND_OPACITY, 1 / len(by_name))  # many bands lie on each other
    num_users: list[int] = []
    for index, (name, result) in enumerate(by_name.items()):
        means = [mean_of(result, f"{metric}@{k}", level) for k in cut_offs]
        values, low, high, counts = zip(*means, strict=True)
        num_users += counts
        style = line_style(index) | point_style(index)
        axes.plot(cut_offs, values, label=label(name), markevery=markevery, **style)
        axes.fill_between(cut_offs, low, high, color=style["color"], alpha=alpha, linewidth=0)
    axes.set_ylim(bottom=0)
    _count(axes)
    noun = noun_of(by_name.values())
    note = f"mean over {users(num_users, noun)}, {format_level(level)} confidence band"
    return finish(axes, "k", y_label, note)


def difference_at_k(
    a: Runnable,
    b: Runnable,
    metric: str = "ndcg",
    *,
    max_k: int | None = None,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots the paired difference of two recommenders against the cut-off, with a confidence band.

    Bands of two means may overlap although one is better for nearly every user, as users differ by
    more than recommenders do. The band of the difference says where it is above zero.

    Args:
        a (EvaluationResult, Runs or sequence): One recommender with one run or several.
        b (EvaluationResult, Runs or sequence): Another one.
        metric (str, optional): The metric, spelled without a cut-off. (default: `"ndcg"`)
        max_k (int, optional): The largest cut-off, see :func:`metric_at_k`. (default: `None`)
        level (float, optional): The level of the confidence intervals, each of which is one of a
            single difference. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib or scipy is not installed.
        ValueError: If the two are of different tasks, if there is no metric of that name, if it has
            no cut-off, if `max_k` is larger than the depth of a ranking, or if `level` is not
            between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> a = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@3")
        >>> b = evaluate(torch.tensor([0.3, 0.1, 0.2]), task, "recall@3")
        >>> figure, axes = plot.difference_at_k(a, b, "recall")
        >>> axes.get_ylabel()
        'difference in recall@k'
    """
    results = {"a": as_measured(a), "b": as_measured(b)}
    y_label, cut_offs = _at_every_k(results.values(), metric, max_k)
    rows = compare(results, metrics=[f"{metric}@{k}" for k in cut_offs], level=level)
    axes, style = axes_for(ax), line_style(0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.plot(cut_offs, [row.difference for row in rows], **style)
    low, high = [row.low for row in rows], [row.high for row in rows]
    axes.fill_between(cut_offs, low, high, color=style["color"], alpha=_BAND_OPACITY, linewidth=0)
    _count(axes)
    counts = [round((row.wins or 0) + (row.ties or 0) + (row.losses or 0)) for row in rows]
    noun = noun_of(results.values())
    note = f"a - b, mean over {users(counts, noun)}, {format_level(level)} confidence band"
    return finish(axes, "k", f"difference in {y_label}", note)


def precision_recall_curve(
    results: Runnable | Curve | Mapping[str, Runnable | Curve],
    *,
    max_k: int | None = None,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots the mean precision at k against the mean recall at k, for every k up to `max_k`.

    The line is marked at a few cut-offs. The marks of the curve that reaches furthest say which.

    A result is drawn as it counts: with precision and recall of its convention, and with users
    without ground truth as its `empty_target_action` says. Several runs are drawn by their mean. In
    contrast, :func:`pyg_recmetrics.metrics.precision_recall_curve` has the defaults of
    torchmetrics, and counts such users as zero. The numbers that it returns can be drawn, too, and
    are drawn as they are.

    Args:
        results (EvaluationResult, Runs, sequence, tuple or dict): One recommender with one run or
            several; or the precisions, the recalls and the cut-offs of a curve, each of shape
            `[num_cut_offs]`; or several of these by name.
        max_k (int, optional): The largest cut-off. (default: `None`, all of a curve; for results
            see :func:`metric_at_k`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `results` is or holds anything else.
        ValueError: If `max_k` is larger than the depth of a ranking, or if a tuple does not hold
            three of one shape `[num_cut_offs]`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, metrics, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@3")
        >>> figure, axes = plot.precision_recall_curve(result)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('recall@k', 'precision@k')
        >>> plot.precision_recall_curve(metrics.precision_recall_curve(result.ranked, max_k=2))
        Picture(precision@k against recall@k)
    """
    what = "'EvaluationResult', 'Runs' or (precisions, recalls, top_k)"
    by_name = one_or_by_name(results, EvaluationResult | Sequence, what)
    evaluated = {k: as_measured(v) for k, v in by_name.items() if not _is_curve(v)}
    cut_offs = cut_offs_of(evaluated.values(), max_k)
    curves = {
        name: _measure(evaluated[name], cut_offs) if name in evaluated else _read(given, max_k)
        for name, given in by_name.items()
    }
    axes = axes_for(ax)
    for index, (name, curve) in enumerate(curves.items()):
        style = line_style(index) | point_style(index)
        x, y = curve.recalls, curve.precisions
        axes.plot(x, y, label=label(name), markevery=curve.marked, **style)
    axes.margins(0.1)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    furthest = max(curves.values(), key=lambda curve: curve.recalls[-1])
    for place in furthest.marked:
        text = str(furthest.top_k[place]) if place else f"k = {furthest.top_k[place]}"
        point = furthest.recalls[place], furthest.precisions[place]
        axes.annotate(text, point, (3, 3), textcoords="offset points", fontsize="small")
    num_users = [count for curve in curves.values() for count in curve.num_users]
    noun = noun_of(evaluated.values())
    notes = [f"means over {users(num_users, noun)}, no bands"] if evaluated else []
    notes += ["values as given"] if len(evaluated) < len(curves) else []
    return finish(axes, "recall@k", "precision@k", "; or ".join(notes))


def _count(axes: "Axes") -> None:
    """Makes the ticks of the x-axis whole numbers."""
    axes.margins(x=0.03)
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", integer=True)


def _at_every_k(
    results: Iterable[Measured], metric: str, max_k: int | None
) -> tuple[str, list[int]]:
    """Returns what a metric at every cut-off is called, and the cut-offs."""
    if "@" in str(metric):
        raise ValueError(
            f"'metric' needs to be a metric without a cut-off, such as 'recall' (got '{metric}')"
        )
    cut_offs = cut_offs_of(results, max_k)
    return f"{parse(f'{metric}@{cut_offs[-1]}').label}@k", cut_offs


class _Points(NamedTuple):
    """What is drawn of a curve. The number of users is empty if it is not known."""

    precisions: Sequence[float]
    recalls: Sequence[float]
    top_k: Sequence[int]
    num_users: Sequence[int] = ()

    @property
    def marked(self) -> list[int]:
        """The places of the points with a mark and the cut-off beside it."""
        last = self.top_k[-1]
        return [
            place
            for place, k in enumerate(self.top_k)
            if k == last or (k in _MARKED and _FAR * k <= last)
        ]


def _is_curve(given: object) -> bool:
    """Returns whether something is the numbers of a curve, and no runs in a tuple."""
    return isinstance(given, tuple) and not any(isinstance(x, EvaluationResult) for x in given)


def _measure(result: Measured, cut_offs: Sequence[int]) -> _Points:
    precisions, recalls = (
        [mean_of(result, f"{metric}@{k}") for k in cut_offs] for metric in ("precision", "recall")
    )
    return _Points(
        [mean.value for mean in precisions],
        [mean.value for mean in recalls],
        cut_offs,
        [mean.num_users for mean in precisions + recalls],
    )


def _read(curve: Curve, max_k: int | None) -> _Points:
    """Returns the points of a curve up to `max_k`."""
    tensors = [as_tensor(values, "results") for values in curve]
    shapes = [list(values.shape) for values in tensors]
    if len(shapes) != 3 or shapes != [[tensors[0].numel()]] * 3 or not tensors[0].numel():
        raise ValueError(
            f"'results' needs to hold (precisions, recalls, top_k) of one shape [num_cut_offs] "
            f"(got {shapes})"
        )
    top_k = tensors[2]
    is_shown = top_k <= (int(top_k.max()) if max_k is None else max_k)
    return _Points(*(values[is_shown].tolist() for values in tensors))


def history(
    histories: History | Mapping[str, History],
    metric: str | Metric | None = None,
    *,
    every: int | None = None,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric against the evaluations of a training, and marks the best of them.

    A notebook draws it again after every evaluation if it shows a picture by
    `shown = display(picture, display_id=True)`, and then calls `shown.update(picture)`.

    Args:
        histories (History or dict): The :attr:`Evaluator.history` of one training, or several by
            name.
        metric (str or Metric, optional): The metric, which needs to be one that was evaluated.
            (default: `None`, the one that decides which evaluation is the best)
        every (int, optional): The number of epochs from one evaluation to the next, so that the
            picture counts epochs from one. (default: `None`, it counts calls from zero, as the
            table of a history does)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `histories` is or holds anything else.
        ValueError: If a history does not have the metric, or if `every` is not positive.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Evaluator, RankingTask, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> evaluator = Evaluator(task, ["recall@1", "mrr@3"])
        >>> for shift in range(3):
        ...     result = evaluator(torch.tensor([1.0, 3.0, 2.0]).roll(shift))
        >>> figure, axes = plot.history(evaluator.history, "mrr@3", every=5)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('epoch', 'mrr@3')
    """
    by_name = one_or_by_name(histories, History, "'History'", "histories")
    first = next(iter(by_name.values()))
    metric = first.monitor if metric is None else parse(metric)
    if any(str(metric) not in means for each in by_name.values() for means in each):
        raise ValueError(f"'metric' needs to be one that was evaluated (got '{metric}')")
    every = None if every is None else check_positive_integer(every, "every")
    axes = axes_for(ax)
    for index, (name, each) in enumerate(by_name.items()):
        x = [call if every is None else every * (call + 1) for call in range(len(each))]
        y = [means[str(metric)] for means in each]
        style = line_style(index) | point_style(index)
        best = [] if each.best_index is None else [each.best_index]
        axes.plot(x, y, label=label(name), markevery=best, **style)
    _count(axes)
    note = f"marked: the best by {' or '.join(sorted({str(x.monitor) for x in by_name.values()}))}"
    return finish(axes, "call" if every is None else "epoch", str(metric), note)


def race(race: Race, *, ax: "Axes | None" = None) -> Picture:
    r"""Plots how the bounds on differences narrow while users are ranked.

    There is a line for each recommender that was compared with the first of the best, and a band
    between the bounds on the difference. A line ends where the difference is decided. The grey band
    holds differences that are too small to matter.

    Args:
        race (Race): What :func:`~pyg_recmetrics.race` returned.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `race` is anything else.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, plot, race
        >>> truth = torch.stack([torch.arange(9000), torch.arange(9000) % 7])
        >>> task = RankingTask(truth, num_users=9000, num_items=7)
        >>> popular = {"up": torch.arange(7.0), "down": -torch.arange(7.0)}
        >>> figure, axes = plot.race(race(popular, task, "recall@3", equivalence=0.05))
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('users ranked', 'recall@3, difference from up')
    """
    if not isinstance(race, Race):
        raise TypeError(f"'race' needs to be a 'Race' (got {type(race).__name__})")
    best = race.best[0]
    axes = axes_for(ax)
    axes.axhspan(-race.equivalence, race.equivalence, color=NOTE_COLOR, alpha=0.15, linewidth=0)
    axes.axhline(0, color=NOTE_COLOR, linewidth=0.8)
    others = [each.name for each in race.entrants if each.name != best]
    for index, name in enumerate(others):
        pairs = [found for look in race.looks for found in _of(look, name, best)]
        if not pairs:
            continue
        x = [pair.num_users for pair in pairs]
        style = line_style(index) | point_style(index)
        differences = [pair.difference for pair in pairs]
        axes.plot(x, differences, label=label(name), markevery=[-1], **style)
        low, high = [pair.low for pair in pairs], [pair.high for pair in pairs]
        axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.vlines(x[-1], low[-1], high[-1], color=style["color"], linewidth=0.8)
    from matplotlib.ticker import LogFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(LogFormatter())
    axes.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    whose = f"of {race.num_users:,} {race.nouns.users}"
    note = f"{whose}; bounds that hold together, {format_level(race.level)}"
    y_label = f"{race.metric}, difference from {best}"
    return finish(axes, f"{race.nouns.users} ranked", y_label, note)


def _of(look: tuple[RacedPair, ...], name: str, best: str) -> list[RacedPair]:
    """Returns what one look says of a recommender beside the best, if it says anything."""
    found = [pair if pair.a == name else swapped(pair) for pair in look if name in pair[:2]]
    return [pair for pair in found if pair.b == best]
