"""The page of a report: what is on it, and that it is a page that stands alone."""

import re
import warnings

import pytest
import torch

from pyg_recmetrics import (
    Benchmark,
    EvaluationResult,
    RankedEdges,
    Runs,
)
from pyg_recmetrics.plot import COLORS
from pyg_recmetrics.reporting.page import DARK_COLORS
from tests.support.machines.missing_packages import hide_package

FOLDED = ["Means", "Comparison", "Curves", "Users", "Long tail", "Recipe"]
NASTY = "<script>alert('x')</script> & \"$a_b$\""


def luminance(color):
    """The formula of the Web Content Accessibility Guidelines 2.2."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted(luminance(color) + 0.05 for color in (one, other))
    return high / low


@pytest.fixture
def lists():
    """A result of two lists, which makes a short page."""
    ranked = RankedEdges.from_topk(torch.tensor([[2, 0], [1, 3]]), torch.tensor([[0, 1], [2, 0]]))
    return EvaluationResult(ranked, "recall@2")


def left_out(page):
    return page.text.partition("Left out\n")[2]


def test_all_sections_are_there(full, popular, runs):
    assert full.headings == ["All of it", *FOLDED, "Split"]
    assert full.tags["svg"] == 9  # of which two are drawn for two widths
    text = " ".join(full.text.split())
    for part in (
        "120 users; relevant are 222 ground-truth edges",
        f"{Runs(runs).mean('ndcg@10').value:.4f}",
        " ".join(popular.recipe().split()),
        "Popular minus each of the others in ndcg@10",
        "difference: from the reference, over users",
        "±: 95% confidence interval of the mean for other users and other runs",
    ):
        assert part in text


def test_a_single_result_has_no_comparison(made, popular):
    page = made(popular)
    shown = [name for name in FOLDED if name not in ("Means", "Comparison")]
    assert page.headings == ["Evaluation of recommenders", *shown, "Left out"]
    assert "Comparison: two recommenders or more are needed" in left_out(page)
    assert "Split: pass 'split=(train, val, test)'" in left_out(page)


def test_without_matplotlib_tables_remain(made, popular, monkeypatch):
    hide_package(monkeypatch, "matplotlib")
    page = made(popular)
    assert page.tags["svg"] == 0
    assert page.tags["table"] == 2  # of means, and by the popularity of items
    assert "Result, Curves, Users, Long tail: 'report' needs matplotlib" in left_out(page)


def test_names_and_titles_are_escaped(made, lists):
    page = made({NASTY: lists, "</title>": lists}, title=NASTY)
    assert page.tags["script"] == 0
    assert page.headings[0] == NASTY
    assert page.tags["svg"] > 2
    assert page.tags["title"] == 1
    assert page.text.count(NASTY) > 5


def test_names_in_any_language_need_no_warning(made, popular, runs):
    with warnings.catch_warnings(action="error"):
        page = made({"推荐系统": popular, "おすすめ": runs[0]})
    assert page.text.count("推荐系统") > 5


def test_nothing_comes_from_elsewhere(full):
    assert {"link", "img", "iframe", "object", "base", "script"}.isdisjoint(full.tags)
    references = full.values("href") + full.values("src") + full.values("clip-path")
    assert references
    for reference in references:
        name = re.fullmatch(r"#([\w-]+)|url\(#([\w-]+)\)", reference)
        assert (name[1] or name[2]) in full.ids
    assert "@import" not in full.source
    assert all(part.startswith("(#picture-") for part in full.source.split("url")[1:])
    assert "http" not in full.source


def test_it_can_be_read_by_a_screen_reader(full):
    assert ("html", {"lang": "en"}) in full.attributes
    assert len(set(full.ids)) == len(full.ids)
    for name in full.values("aria-labelledby"):
        assert name in full.ids
    assert full.tags["figure"] == full.tags["figcaption"] == full.tags["svg"] + full.tags["table"]
    assert all(
        x.get("scope") in ("col", "row", "rowgroup") for tag, x in full.attributes if tag == "th"
    )
    pictures = [x for tag, x in full.attributes if tag == "svg"]
    assert all(x["role"] == "img" and x["aria-label"] for x in pictures)
    assert full.tags["h1"] == 1


def test_pictures_have_the_colours_of_the_page(full):
    for style in full.values("style"):
        assert "font-family" not in style
        assert "DejaVu" not in style
        assert set(re.findall(r"#\w+", style)) <= {"#b0b0b0"}  # the grid
    assert any("var(--curve-1)" in style for style in full.values("style"))


def test_the_same_results_give_the_same_file(full, made, popular, runs, split):
    import matplotlib

    with matplotlib.style.context("dark_background"):
        again = made({"Random": runs, "Popular": popular}, split=split, title="All of it")
        assert matplotlib.rcParams["text.color"] == "white"
    assert again.source == full.source


@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_a_contrast_of_three(dark, full):
    light_rules, dark_rules = full.source.partition("* {")[0].split("@media")
    rules = dict(re.findall(r"--([\w-]+): (#\w+);", light_rules))
    if dark:
        rules |= re.findall(r"--([\w-]+): (#\w+);", dark_rules)
    used = [rules[f"curve-{n}"] for n in range(len(COLORS))]
    assert used == list(DARK_COLORS if dark else COLORS)
    for name in ("text", "muted", "link", "warning", "good"):
        assert contrast(rules[name], rules["page"]) >= 4.5
    for color in [*used, rules["seen"]]:
        assert contrast(color, rules["page"]) >= 3


def test_the_page_on_several_data_sets_is_complete(made, benchmark):
    given = Benchmark(benchmark, deterministic=["None"], proposed="Good")
    page = made(given, title="On <three> data sets")
    of_each = [f"{x}: {heading}" for x in benchmark for heading in FOLDED]
    assert page.headings == ["On <three> data sets", *of_each]
    text = " ".join(page.text.split())
    for data_set, number in {"Small": 114, "Wide": 141, "Long": 286}.items():
        assert f"{data_set}: {number} users; relevant are" in text
    for data_set in ("Wide", "Long"):
        assert f"On {data_set}, " in text
    for row in given.table().rows:
        assert all(cell in text for cell in row)
    assert len(page.ids) == len(set(page.ids))
