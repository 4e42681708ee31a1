"""What readers do with the page of a report: they fold, choose, sort and point at marks."""

import re

import pytest

from tests.support.tools.page_checks import unfold

#: What the checkboxes hide: of which metrics and recommenders it is, or what it is a part of, and
#: whether it is shown.
_CHOSEN = """
() => [...document.querySelectorAll("[data-metric], [data-recommender]")].map((element) => {
  const of = new Set();
  let isShown = element.checkVisibility(); // which is true of an SVG group that is not displayed
  for (let each = element; each; each = each.parentElement) {
    isShown &&= getComputedStyle(each).display !== "none";
    for (const key of ["metric", "recommender"]) {
      for (const number of (each.dataset[key] ?? "").match(/\\d+/g) ?? []) {
        of.add(`${key} ${number}`);
      }
    }
  }
  return [[...of], isShown];
})
"""

#: What is shown of all elements of a selector, without the arrows of columns that can be sorted.
_TEXTS = """
(selector) => [...document.querySelectorAll(selector)]
  .filter((element) => element.checkVisibility())
  .map((element) => element.textContent.replace(/[\u2190-\u21ff\u25a0-\u25ff]/gu, "").trim())
"""

#: A column of a table, as it is shown.
_COLUMN = """
(table, place) => [...table.tBodies[0].rows].map((row) => row.cells[place].innerText.trim())
"""

#: The names of marks in the forest picture, which are the innermost of what checkboxes hide. Those
#: of its legend have no metric.
_MARKS = """
() => [...document.querySelectorAll(".forest :is([data-metric], [data-recommender])")]
  .filter((mark) => mark.tagName !== "text")
  .filter((mark) => mark.dataset.metric)
  .filter((mark) => !mark.querySelector("[data-metric], [data-recommender]"))
  .map((mark) => mark.querySelector(":scope > title")?.textContent ?? "")
"""

_NUMBER = re.compile(r"([+-]?\d*\.?\d+)%?( ±.*)?")

with_and_without_scripts = pytest.mark.parametrize("scripts", [True, False])


def heads(page):
    return page.evaluate(_TEXTS, "th")


def boxes_by_name(page):
    boxes = page.locator("fieldset.choose input[type=checkbox]").all()
    assert boxes
    return {box.evaluate("box => box.labels[0].innerText.trim()"): box for box in boxes}


def numbers(texts):
    """The numbers of a column, or nothing if it has others than numbers, or only equal ones."""
    matches = [
        _NUMBER.fullmatch(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))
        for text in texts
        if text not in ("", "-")
    ]
    values = [float(match[1]) for match in matches if match]
    return values if all(matches) and len(set(values)) > 1 else []


def sortable_columns(page):
    """Every column of numbers that has a button: its table, its place and its head."""
    for table in page.locator("table.sortable").all():
        for place, head in enumerate(table.locator("thead tr > *").all()):
            if head.locator("button").count() and numbers(table.evaluate(_COLUMN, place)):
                yield table, place, head


def assert_sorted(table, place, head, direction):
    assert head.get_attribute("aria-sort") == direction
    assert table.locator("[aria-sort$=ending]").count() == 1
    values = numbers(table.evaluate(_COLUMN, place))
    assert values == sorted(values, reverse=direction == "descending")


@with_and_without_scripts
def test_details_fold_by_click_and_by_keyboard(shown, report_file, scripts):
    page = shown(report_file, java_script_enabled=scripts)
    unfold(page)
    folds = page.locator("details").all()
    assert folds
    for fold in folds:
        summary = fold.locator("> summary")
        content = fold.locator("> :not(summary)").first
        assert content.is_visible()
        summary.click()
        assert content.is_hidden()
        summary.click()
        assert content.is_visible()
        summary.press("Enter")
        assert content.is_hidden()
        summary.press("Space")
        assert content.is_visible()


@with_and_without_scripts
def test_what_is_unchecked_is_hidden_everywhere(shown, report_file, scripts):
    page = shown(report_file, java_script_enabled=scripts)
    unfold(page)
    everything = page.evaluate(_CHOSEN)
    assert all(is_shown for _, is_shown in everything)
    hidden = set()
    for name, box in boxes_by_name(page).items():
        assert box.is_checked()
        assert name in heads(page)
        box.press("Space")
        assert name not in heads(page)
        left = page.evaluate(_CHOSEN)
        (gone,) = set.intersection(*(set(of) for of, is_shown in left if not is_shown))
        assert left == [[of, gone not in of] for of, _ in everything]
        assert gone not in hidden
        hidden.add(gone)
        box.click()
        assert page.evaluate(_CHOSEN) == everything
    assert hidden == {each for of, _ in everything for each in of}


def test_two_of_seven_remain(shown, report_on_seven):
    page = shown(report_on_seven, 390)
    unfold(page)
    boxes = boxes_by_name(page)
    for number in range(2, 7):
        boxes[f"Recommender {number}"].uncheck()
    left = {head for head in heads(page) if re.fullmatch(r"Recommender \d", head)}
    assert left == {"Recommender 1", "Recommender 7"}


def test_columns_of_numbers_are_sorted_from_the_largest_and_then_back(shown, report_file, heard):
    page = shown(report_file)
    unfold(page)
    columns = list(sortable_columns(page))
    assert columns
    for table, place, head in columns:
        rows = sorted(table.locator("tbody tr").all_inner_texts())
        head.locator("button").click()
        assert_sorted(table, place, head, "descending")
        head.locator("button").press("Enter")
        assert_sorted(table, place, head, "ascending")
        assert sorted(table.locator("tbody tr").all_inner_texts()) == rows
    assert heard == []


def test_without_scripts_the_page_is_complete_and_nothing_can_be_sorted(shown, report_file):
    with_scripts = shown(report_file)
    without = shown(report_file, java_script_enabled=False)
    for page in (with_scripts, without):
        unfold(page)
    selector = "h1, h2, h3, p, li, th, td, figcaption, summary, svg text"
    assert without.evaluate(_TEXTS, selector) == with_scripts.evaluate(_TEXTS, selector)
    buttons = "table.sortable button >> visible=true"
    assert with_scripts.locator(buttons).count() > 0
    assert without.locator(buttons).count() == 0


def test_differences_are_seen_at_once_on_a_telephone(shown, report_file):
    page = shown(report_file, 390)
    unfold(page)
    cells = page.locator(":is(th, td).difference").all()
    assert len(cells) > 3
    for cell in cells:
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_every_mark_of_the_forest_has_a_title(shown, report_file):
    marks = shown(report_file).evaluate(_MARKS)
    assert len(marks) > 3
    assert all(re.search(r"\d", title) for title in marks)
