"""The page of a report: what is on it, and that it is a page that stands alone."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    datasets,
    evaluate,
    report,
    transforms,
)
from pyg_recmetrics.plot.style import COLORS
from pyg_recmetrics.reporting.inline_svg import DARK_COLORS
from tests.support.machines.missing_packages import hide_package

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

ALL = ["Task", "Recipe", "Means", "Comparison", "Curves", "Users", "Items", "Long tail", "Ties"]
VOID = {"meta"}
METRICS = ["ndcg@10", "recall@10", "r_precision", "coverage@10"]
NASTY = "<script>alert('x')</script> & \"$a_b$\""


class Page(HTMLParser):
    """What stands on a page, and whether every element is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.headings = [], [], [], []
        self.tags, self.attributes, self.text, self.source = Counter(), [], "", text
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in dict(attrs):
            self.ids.append(dict(attrs)["id"])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)

    def values(self, name):
        return [attributes[name] for _, attributes in self.attributes if name in attributes]


def luminance(color):
    """The formula of the Web Content Accessibility Guidelines 2.2."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted(luminance(color) + 0.05 for color in (one, other))
    return high / low


@pytest.fixture(scope="module")
def split():
    data = datasets.synthetic_interactions(num_users=120, num_items=60, mean_degree=10)
    return transforms.PerUserSplit(num_val=0.1, num_test=0.2)(data)


@pytest.fixture(scope="module")
def task(split):
    return RankingTask.from_data(split[2])


@pytest.fixture(scope="module")
def popular(task):
    scores = torch.bincount(task.seen[1], minlength=task.num_items) + torch.rand(task.num_items) / 9
    return evaluate(scores, task, METRICS, keep_items=True)


@pytest.fixture(scope="module")
def runs(task):
    generator = torch.Generator().manual_seed(0)
    scores = [torch.rand(task.num_users, task.num_items, generator=generator) for _ in range(3)]
    return [evaluate(x, task, METRICS, keep_items=True) for x in scores]


@pytest.fixture
def made(tmp_path):
    def make(results, **options):
        path = report(results, tmp_path / "report.html", **options)
        return Page(path.read_text(encoding="utf-8"))

    return make


@pytest.fixture(scope="module")
def full(tmp_path_factory, popular, runs, split):
    results = {"Random": runs, "Popular": popular}
    path = tmp_path_factory.mktemp("full") / "report.html"
    report(results, path, split=split, title="All of it")
    return Page(path.read_text(encoding="utf-8"))


def left_out(page):
    return page.text.partition("Left out\n")[2]


def test_all_sections_are_there(full, popular, runs):
    assert full.headings == ["All of it", *ALL, "Split"]
    assert full.tags["svg"] == 6
    text = " ".join(full.text.split())
    for part in (
        "Random (3 runs), Popular: 120 users evaluated",
        f"{popular['ndcg@10']:.4f}",
        f"{Runs(runs).mean('ndcg@10').value:.4f}",
        " ".join(popular.recipe().split()),
        "Holm's method",
        "sd of runs",
        "No leaks.",
        "Of several runs of Random, the first is shown.",
        "The mean ndcg@k over 120 users at every cut-off k",
    ):
        assert part in text


def test_a_single_result_has_no_comparison(made, popular):
    page = made(popular)
    assert page.headings == [
        "Evaluation of recommenders",
        *(name for name in ALL if name != "Comparison"),
        "Left out",
    ]
    assert "Comparison: it needs two recommenders or more" in left_out(page)
    assert "Checks of the split: pass 'split=(train, val, test)'" in left_out(page)
    assert "Of several runs" not in page.text


def test_runs_alone_may_be_a_list_or_runs(made, runs):
    assert made(runs).text == made(Runs(runs)).text
    assert "How much 3 runs vary" in made(runs).text


def test_without_lists_there_is_no_long_tail(made, task):
    page = made(evaluate(torch.rand(task.num_items), task, METRICS[:2]))
    assert "Long tail" not in page.headings
    assert "Users" in page.headings
    assert "keep_items=True" in left_out(page)


def test_without_seen_edges_there_are_no_groups(made):
    task = RankingTask(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_users=3, num_items=4)
    page = made(evaluate(torch.rand(3, 4), task, "recall@2", keep_items=True))
    assert {"Items", "Long tail"}.isdisjoint(page.headings)
    assert left_out(page).count("give 'seen' edges to the 'RankingTask'") == 4


def test_lists_that_were_given_have_no_task_and_no_ties(made):
    ranked = RankedEdges.from_topk(torch.tensor([[2, 0], [1, 3]]), torch.tensor([[0, 1], [2, 0]]))
    page = made(EvaluationResult(ranked, "recall@2"))
    assert {"Task", "Ties"}.isdisjoint(page.headings)
    assert "Means" in page.headings


def test_metrics_of_the_whole_ranking_have_no_curves(made, task):
    page = made(evaluate(torch.rand(120, 60), task, "roc_auc"))
    assert "Curves" not in page.headings
    assert "a metric with a cut-off" in left_out(page)


def test_metrics_of_lists_alone(made, task):
    page = made(evaluate(torch.rand(120, 60), task, "coverage@5", keep_items=True))
    assert {"Curves", "Users"}.isdisjoint(page.headings)
    assert {"Means", "Ties", "Long tail"} <= set(page.headings)


def test_without_matplotlib_tables_remain(made, popular, monkeypatch):
    hide_package(monkeypatch, "matplotlib")
    page = made(popular)
    assert page.tags["svg"] == 0
    assert {"Means", "Users", "Items"} <= set(page.headings)
    assert left_out(page).count("pip install 'pyg-recmetrics[plot]'") == 6


def test_without_scipy_there_is_no_comparison(made, popular, runs, monkeypatch):
    hide_package(monkeypatch, "scipy")
    page = made({"a": popular, "b": runs[0]})
    assert "Comparison" not in page.headings
    assert "pip install 'pyg-recmetrics[statistics]'" in left_out(page)


@pytest.mark.usefixtures("expect_ties")
def test_ties_are_counted(made, task):
    page = made({"zeros": evaluate(torch.zeros(60), task, "recall@10")})
    low, high = re.search(r"zeros [\d,]+ (\S+) to (\S+)", " ".join(page.text.split())).groups()
    assert float(low) < float(high)


def test_no_ties_are_a_sentence(made, runs):
    assert "No relevant item has the same score as another candidate." in made(runs[0]).text


def test_items_have_their_original_ids(made):
    seen = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 1]])
    truth = torch.tensor([[0, 1, 2], [2, 1, 2]])
    names = ["Abba", "<i>Björk</i>", "Can"]
    task = RankingTask(truth, num_users=3, num_items=3, seen=seen, item_ids=names)
    page = made(evaluate(torch.tensor([0.9, 0.5, 0.1]), task, "recall@2", keep_items=True))
    assert all(name in page.text for name in names)
    assert page.tags["i"] == 0


def test_names_and_titles_are_escaped(made, popular, runs):
    page = made({NASTY: popular, "</title>": runs}, title=NASTY)
    assert page.tags["script"] == 0
    assert page.headings[0] == NASTY
    assert page.tags["title"] == 1 + page.tags["svg"]
    assert page.text.count(NASTY) > 5


def test_nothing_comes_from_elsewhere(full):
    assert {"script", "link", "img", "iframe", "object", "base"}.isdisjoint(full.tags)
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
    assert all(x.get("scope") in ("col", "row") for tag, x in full.attributes if tag == "th")
    assert all(x.get("role") == "img" for tag, x in full.attributes if tag == "svg")
    assert full.tags["h1"] == 1


def test_pictures_have_the_colours_of_the_page(full):
    for style in full.values("style"):
        assert "font-family" not in style
        assert set(re.findall(r"#\w+", style)) <= {"#b0b0b0"}  # the grid
    assert any("var(--curve-1)" in style for style in full.values("style"))


def test_the_same_results_give_the_same_file(tmp_path, popular, runs, split):
    import matplotlib

    first = report({"a": runs, "b": popular}, tmp_path / "first.html", split=split)
    with matplotlib.style.context("dark_background"):
        second = report({"a": runs, "b": popular}, str(tmp_path / "second.html"), split=split)
        assert matplotlib.rcParams["text.color"] == "white"
    assert first.read_bytes() == second.read_bytes()


def test_checks_of_a_split_may_be_given(made, popular, split):
    checked = transforms.check_split(*split)
    assert made(popular, split=checked).text == made(popular, split=split).text


def test_another_split_is_refused(tmp_path, popular, split):
    data = datasets.synthetic_interactions(num_users=300, num_items=40, mean_degree=9)
    others = transforms.PerUserSplit(seed=7)(data), (split[0], split[2], split[0])
    with pytest.raises(ValueError, match="'split' needs to be the one that the results are of"):
        report(popular, tmp_path / "other.html", split=others[0])
    assert report(popular, tmp_path / "validation.html", split=others[1]).exists()


def test_homogeneous_data_need_not_say_who_is_a_user(made, split):
    parts = [part.to_homogeneous() for part in split]
    result = evaluate(torch.rand(60), parts[2], "recall@5", num_users=120)
    assert "No leaks." in made(result, split=parts).text


@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_a_contrast_of_three(dark, full):
    light_rules, dark_rules = full.source.partition("* {")[0].split("@media")
    rules = dict(re.findall(r"--([\w-]+): (#\w+);", light_rules))
    if dark:
        rules |= re.findall(r"--([\w-]+): (#\w+);", dark_rules)
    used = [rules[f"curve-{n}"] for n in range(len(COLORS))]
    assert used == list(DARK_COLORS if dark else COLORS)
    for name in ("text", "muted", "link"):
        assert contrast(rules[name], rules["page"]) >= 4.5
        assert contrast(rules[name], rules["shade"]) >= 4.5
    for color in [*used, rules["seen"]]:
        assert contrast(color, rules["page"]) >= 3


@pytest.mark.parametrize(
    ("results", "options", "error", "message"),
    [
        ({}, {}, ValueError, "'results' needs to hold at least one result (got none)"),
        ([], {}, ValueError, "'results' needs to hold at least one run"),
        ({"a": 1}, {}, TypeError, "'results' needs to hold 'EvaluationResult'"),
        ("x", {}, TypeError, "'results' needs to hold 'EvaluationResult'"),
        (None, {"split": 3}, TypeError, "'split' needs to be training, validation and test data"),
        (None, {"split": (1, 2)}, ValueError, "'split' needs to hold training, validation and"),
        (None, {"split": (1, 2, 3)}, TypeError, "'data' needs to be a 'Data' or 'HeteroData'"),
    ],
)
def test_odd_arguments_are_named(results, options, error, message, popular, tmp_path):
    with pytest.raises(error, match=re.escape(message)):
        report(popular if results is None else results, tmp_path / "report.html", **options)
    assert not list(tmp_path.iterdir())


def test_each_result_needs_a_name_and_the_same_task(popular, runs, split, tmp_path):
    with pytest.raises(ValueError, match="a name of its own"):
        report({1: popular, "1": runs}, tmp_path / "report.html")
    other = evaluate(torch.rand(60), split[1], "recall@5")
    with pytest.raises(ValueError, match="needs to be of the same task"):
        report({"a": popular, "b": other}, tmp_path / "report.html")


def test_a_file_that_cannot_be_written(popular, tmp_path):
    with pytest.raises(FileNotFoundError):
        report(popular, tmp_path / "nowhere" / "report.html")
    with pytest.raises(IsADirectoryError):
        report(popular, tmp_path)
