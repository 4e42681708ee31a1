r"""Pictures of results and of trainings.

Each function takes one result, or a dictionary of results by name, and returns a :class:`Picture`.
Four take something else: :func:`differences` takes what :func:`~pyg_recmetrics.compare` returned,
:func:`race` what :func:`~pyg_recmetrics.race` did, :func:`history` what an
:class:`~pyg_recmetrics.Evaluator` remembers of a training, and :func:`benchmark` a
:class:`~pyg_recmetrics.Benchmark` of several data sets. A notebook shows a picture if it is the
last expression of a cell. It is also a pair: `figure, axes = plot.metric_at_k(results)`, and
`figure.savefig("figure.pdf")` saves it.

The functions draw on `ax` if you pass axes, such as those of `plt.subplots(layout="constrained")`.
Otherwise they draw on a new figure that belongs to no window. They change no global settings.

A note above the axes says what stands behind the numbers: how many users, and the level of the
intervals. The legend stands beside or below the axes, where the layout `"constrained"` makes room.

Up to 42 recommenders differ in colours, dashes and markers. Colours have a contrast of at least
3 : 1 on white, and colour-blind readers can tell them apart.

The functions need only matplotlib, which the extra `plot` installs.
"""

from pyg_recmetrics.plot.forest import benchmark, differences, means
from pyg_recmetrics.plot.groups import distribution, long_tail, metric_by_degree, pareto
from pyg_recmetrics.plot.lines import (
    difference_at_k,
    history,
    metric_at_k,
    precision_recall_curve,
    race,
)
from pyg_recmetrics.plot.picture import Panels, Picture

__all__ = [
    "Panels",
    "Picture",
    "benchmark",
    "difference_at_k",
    "differences",
    "distribution",
    "history",
    "long_tail",
    "means",
    "metric_at_k",
    "metric_by_degree",
    "pareto",
    "precision_recall_curve",
    "race",
]
__dir__ = __all__.copy  # what completion shows
