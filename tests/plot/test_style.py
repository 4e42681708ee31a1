"""Recommenders stay apart: on white, for colour-blind readers, and when there are many."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pyg_recmetrics.plot.style import COLORS, GREY, NOTE_COLOR, style_of

NUM_STYLES = 40

#: What a colour-blind reader sees of linear RGB. Machado, Oliveira and Fernandes, "A
#: physiologically-based model for simulation of color vision deficiency" (2009), severity 1.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}

#: Linear sRGB to CIE XYZ, as in IEC 61966-2-1.
XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def linear(color):
    return [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in to_rgb(color)
    ]


def contrast_on_white(color):
    """The formula of the Web Content Accessibility Guidelines 2.2."""
    return (1 + 0.05) / (np.dot([0.2126, 0.7152, 0.0722], linear(color)) + 0.05)


def lab(color, vision):
    """Lightness and the two axes of colour in CIELAB, as someone sees it."""
    seen = np.clip(np.array(VISIONS[vision]) @ linear(color), 0, 1)
    ratios = np.array(XYZ) @ seen / (np.array(XYZ) @ np.ones(3))
    x, y, z = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios * 841 / 108 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(a, b, vision):
    return np.linalg.norm(lab(a, vision) - lab(b, vision))


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_stay_apart_for_all_readers(vision):
    # Of the colours of Okabe and Ito, some are less than 17 apart by this measure.
    for a, b in itertools.combinations(COLORS, 2):
        assert distance(a, b, vision) > 25, (a, b)
    assert all(contrast_on_white(color) >= 3 for color in (*COLORS, GREY, NOTE_COLOR))
    # The grey line is three times as wide as all others.
    assert min(distance(GREY, color, vision) for color in COLORS) > 15


def styles():
    return [style_of(index) for index in range(NUM_STYLES)]


def test_no_two_styles_are_equal():
    for one, other in itertools.combinations(styles(), 2):
        for second in ("linestyle", "marker"):  # some pictures have lines only, others points
            assert (one["color"], one[second]) != (other["color"], other[second])


def test_neighbours_differ_in_everything():
    for one, other in itertools.pairwise(styles()):
        assert all(one[part] != other[part] for part in ("color", "linestyle", "marker"))
