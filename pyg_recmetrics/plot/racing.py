"""The picture of a race, with bounds that narrow as more users are ranked."""

from typing import TYPE_CHECKING

from pyg_recmetrics.plot.arguments import label
from pyg_recmetrics.plot.picture import Picture, axes_for, describe, finish
from pyg_recmetrics.plot.style import NOTE_COLOR, line_style, point_style
from pyg_recmetrics.results.race import Race, RacedPair, swapped
from pyg_recmetrics.tables import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def race(race: Race, against: str | None = None, *, ax: "Axes | None" = None) -> Picture:
    r"""Plots how the bounds on differences narrow while users are ranked.

    There is a line for each recommender that was compared with one of the best, and a band between
    the bounds on the difference. A line ends where the difference is decided. The grey band holds
    differences that are too small to matter.

    Args:
        race (Race): What :func:`~pyg_recmetrics.race` returned.
        against (str, optional): The name of the recommender that all others are compared with.
            (default: `None`, the first of the best)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `race` is anything else.
        ValueError: If there is no such recommender.

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
    names = [each.name for each in race.entrants]
    best = race.best[0] if against is None else str(against)
    if best not in names:
        raise ValueError(f"'against' needs to be one of {names} (got {against!r})")
    axes = axes_for(ax)
    axes.axhspan(-race.equivalence, race.equivalence, color=NOTE_COLOR, alpha=0.15, linewidth=0)
    axes.axhline(0, color=NOTE_COLOR, linewidth=0.8)
    others = [name for name in names if name != best]
    for index, name in enumerate(others):
        pairs = [found for look in race.looks for found in _of(look, name, best)]
        if not pairs:
            continue
        x = [pair.num_users for pair in pairs]
        style = line_style(index) | point_style(index)
        (line,) = axes.plot(
            x, [pair.difference for pair in pairs], label=label(name), markevery=[-1], **style
        )
        ends = [pair.low for pair in pairs], [pair.high for pair in pairs]
        axes.fill_between(x, *ends, color=line.get_color(), alpha=0.15, linewidth=0)
        last = pairs[-1]
        axes.vlines(last.num_users, last.low, last.high, color=line.get_color(), linewidth=0.8)
        describe(
            line,
            f"{name} - {best}: {last.difference:+.4f} ({last.low:.4f} to {last.high:.4f}) after "
            f"{last.num_users:,} {race.nouns.users}, {last.verdict}",
            [name],
            [str(race.metric)],
        )
    _count_users(axes)
    whose = f"of {race.num_users:,} {race.nouns.users}"
    note = f"{whose}; bounds that hold together, {format_level(race.level)}"
    y_label = f"{race.metric}, difference from {best}"
    return finish(axes, f"{race.nouns.users} ranked", y_label, note, is_new=ax is None)


def _count_users(axes: "Axes") -> None:
    """Makes the axis of users logarithmic, with whole numbers of them."""
    from matplotlib.ticker import LogFormatter

    from pyg_recmetrics.plot.ticks import SpacedFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(SpacedFormatter(LogFormatter()))
    axes.xaxis.set_minor_formatter(SpacedFormatter(LogFormatter(minor_thresholds=(1.5, 0.5))))


def _of(look: tuple[RacedPair, ...], name: str, best: str) -> list[RacedPair]:
    """Returns what one look says of a recommender beside the best, if it says anything."""
    found = [pair if pair.a == name else swapped(pair) for pair in look if name in pair[:2]]
    return [pair for pair in found if pair.b == best]
