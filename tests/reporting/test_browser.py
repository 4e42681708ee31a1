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
