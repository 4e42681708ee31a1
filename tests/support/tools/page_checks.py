"""What a browser finds wrong with the page that it shows."""

from pathlib import Path

_CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")

_SCROLLING = """
() => [...document.querySelectorAll("body *")]
  .filter((element) => {
    const { overflowX, overflowY } = getComputedStyle(element);
    const scrolls = (overflow) => ["auto", "scroll"].includes(overflow);
    return (
      (scrolls(overflowX) && element.scrollWidth > element.clientWidth) ||
      (scrolls(overflowY) && element.scrollHeight > element.clientHeight)
    );
  })
  .map((element) => [element.tabIndex, element.outerHTML.slice(0, 100)])
"""

_OVERFLOWING = """
() => [...document.querySelectorAll("body *")]
  .filter((element) => !(element instanceof SVGElement) || element.tagName === "svg")
  .filter((element) => {
    const { left, right, width } = element.getBoundingClientRect();
    const { overflowX, overflowY } = getComputedStyle(element);
    const isCut =
      (overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1) ||
      (overflowY !== "visible" && element.scrollHeight > element.clientHeight + 1);
    return width > 1 && (left < -1 || right > innerWidth + 1 || isCut);
  })
  .map((element) => element.outerHTML.slice(0, 100))
"""


def excess_width(page):
    """By how many pixels a page is wider than the window, so that it scrolls sideways."""
    return page.evaluate("document.scrollingElement.scrollWidth - innerWidth")


def check_contrast(page, least=4.5):
    """The texts that are too pale, and those that cannot be seen, and the number of all."""
    return page.evaluate(_CONTRAST, least)


def regions_that_scroll(page):
    """The `tabIndex` and the start of every region that is larger inside than outside."""
    return page.evaluate(_SCROLLING)


def overflowing(page):
    """The start of every element that is not all on the page, or does not show all it holds."""
    return page.evaluate(_OVERFLOWING)


def unfold(page):
    """Opens all that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
