"""Ids of users and items as they are written, and their order."""

import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]

#: How an integer is written, in up to 18 digits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class Ids(dict[str, int]):
    """The number of each id, in the order in which ids come first.

    Files of different formats write the same id as a number or as a text, so all of them are texts.
    """

    def __missing__(self, id_: str) -> int:
        number = self[id_] = len(self)
        return number

    def numbers(self, written: Iterable[str]) -> Numbers:
        """Returns the number of each id, and adds the ids that are new."""
        return np.frombuffer(array("q", map(self.__getitem__, written)), dtype=np.int64)


def values_of(written: Sequence[str]) -> list[str] | list[int]:
    """Returns ids as integers if all of them are written as such, and else as they are."""
    if all(map(_INTEGER.fullmatch, written)):
        return list(map(int, written))
    return list(written)


def id_of(written: str) -> str | int:
    """Returns one id as :func:`values_of` does."""
    return int(written) if _INTEGER.fullmatch(written) else written


def order_of(values: Sequence[Any]) -> Numbers:
    """Returns the places of ids from the lowest to the highest."""
    return np.array(sorted(range(len(values)), key=values.__getitem__), dtype=np.int64)
