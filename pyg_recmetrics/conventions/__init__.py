"""Conventions: how other libraries define the same names, to reproduce their numbers.

A convention spells every metric that a library offers in the arguments of ours. It also says what
users without ground truth count as, and who is evaluated at all. It does not reproduce plain bugs.
"""

from pyg_recmetrics.conventions.convention import Convention, Population
from pyg_recmetrics.conventions.libraries import CONVENTIONS, get

__all__ = ["CONVENTIONS", "Convention", "Population", "get"]
__dir__ = __all__.copy  # what completion shows
