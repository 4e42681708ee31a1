r"""Pictures of results and of trainings.

Each function takes one result, or a dictionary of results by name, and returns a :class:`Picture`.
Some take something else: :func:`differences` takes what :func:`~pyg_recmetrics.compare` returned,
:func:`history` what an :class:`~pyg_recmetrics.Evaluator` remembers of a training, and
:func:`means` also a :class:`~pyg_recmetrics.Benchmark`. A notebook shows a picture if it is the
last expression of a cell. It is also a pair: `figure, axes = plot.metric_at_k(results)`, and
`figure.savefig("figure.pdf")` saves it.

The functions draw on `ax` if you pass axes, such as those of `plt.subplots(layout="constrained")`.
:func:`means` and :func:`differences` have axes for each metric, and draw on a `figure` or on a
subfigure. Otherwise a picture has a new figure, which belongs to no window. No global settings
change.

The title says what stands behind the numbers: how many users, and the level of the intervals. A
title of your own takes its place. The legend stands beside the axes, where the layout
`"constrained"` makes room.

Up to 42 recommenders differ in colours, dashes and markers. Colours have a contrast of at least
3 : 1 on white, and colour-blind readers can tell them apart.

The functions need only matplotlib, which the extra `plot` installs.
"""

from pyg_recmetrics.plot.forest import differences, means
from pyg_recmetrics.plot.lines import (
    history,
    long_tail,
    metric_at_k,
    metric_by_degree,
    precision_recall_curve,
)
from pyg_recmetrics.plot.picture import Picture

__all__ = [
    "Picture",
    "differences",
    "history",
    "long_tail",
    "means",
    "metric_at_k",
    "metric_by_degree",
    "precision_recall_curve",
]
__dir__ = __all__.copy  # what completion shows
