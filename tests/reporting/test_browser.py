"""The page of a report, as a browser shows it."""

import pytest

from tests.support.tools.page_checks import (
    check_contrast,
    excess_width,
    overflowing,
    regions_that_scroll,
    unfold,
)

#: What is left of a sheet of A4 between margins of a centimetre, in pixels of CSS.
PAPER = {"width": 718, "height": 1047}

sizes = pytest.mark.parametrize("width", [390, 1280])
schemes = pytest.mark.parametrize("scheme", ["light", "dark"])


@sizes
def test_the_page_never_scrolls_sideways(shown, report_file, width):
    page = shown(report_file, width)
    assert excess_width(page) <= 0
    unfold(page)
    assert excess_width(page) <= 0


@sizes
@schemes
def test_the_console_is_silent_and_nothing_is_loaded(
    shown, heard, asked, report_file, width, scheme
):
    page = shown(report_file, width, scheme)
    unfold(page)
    page.keyboard.press("End")
    page.emulate_media(media="print")
    assert heard == []
    assert asked == [report_file.as_uri()]


@sizes
@schemes
def test_every_text_can_be_read(shown, report_file, width, scheme):
    page = shown(report_file, width, scheme)
    unfold(page)
    found = check_contrast(page)
    assert found["pale"] == []
    assert found["unseen"] == []
    assert found["numTexts"] > 200


@sizes
def test_what_scrolls_can_be_focused(shown, report_file, width):
    page = shown(report_file, width)
    unfold(page)
    regions = regions_that_scroll(page)
    assert regions or width == 1280
    assert [start for tab_index, start in regions if tab_index != 0] == []


@schemes
def test_nothing_is_cut_off_on_paper(shown, report_file, scheme):
    page = shown(report_file, PAPER["width"], scheme, height=PAPER["height"])
    unfold(page)
    page.emulate_media(media="print")
    assert overflowing(page) == []
    assert check_contrast(page)["pale"] == []


#: Its texts are their own contrast, by hand.
BAD = """<!doctype html>
<style>body { margin: 0; background: white; color: black; }</style>
<div class="wide" style="width: 2000px; height: 9px"></div>
<div class="scroll" style="width: 9rem; overflow: auto"><p style="width: 10rem">21.00</p></div>
<p style="color: #777">4.48</p>
<p style="color: #767676">4.54</p>
<p style="opacity: .5">4.00</p>
<p style="background: navy">1.31</p>
<div style="background: black; color: white"><p style="background: #ffffff80">3.95</p></div>
<p class="cut" style="overflow: hidden; width: 9rem; text-indent: 10rem; white-space: nowrap">
out of sight</p>
<svg width="200" height="40">
<rect width="200" height="40" fill="black"/>
<rect width="100" height="40" fill="white" opacity=".9"/>
<text y="20" fill="#777">3.59</text>
<text x="110" y="20" fill="#777">4.69</text>
</svg>
<img src="missing.png" alt="">
<script>console.error("oops")</script>
"""


def test_the_checks_find_what_is_wrong(shown, heard, asked, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text(BAD)
    page = shown(file, 390)
    assert excess_width(page) == 2000 - 390
    found = check_contrast(page)
    pale = ["4.48", "4.00", "1.31", "3.95", "3.59"]
    assert found == {"pale": [f"{x}: {x}" for x in pale], "unseen": ["out of sight"], "numTexts": 9}
    ((tab_index, start),) = regions_that_scroll(page)
    assert tab_index == -1
    assert start.startswith('<div class="scroll"')
    assert [start.split()[1] for start in overflowing(page)] == [
        'class="wide"',
        'class="scroll"',
        'class="cut"',
    ]
    assert "error: oops" in heard
    assert asked == [file.as_uri(), file.with_name("missing.png").as_uri()]
