"""Pages of results, and what stands on them."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

import torch

from pyg_recmetrics import RankingTask, datasets, evaluate, report, transforms
from pyg_recmetrics.reporting.page import SECTIONS, Page as Parts, read_contents
from tests.support.machines.browser import find_chromium, open_browser

METRICS = ["ndcg@10", "recall@10", "r_precision", "coverage@10"]


class Page:
    """What stands on a page, whose elements are all closed where they should be."""

    def __init__(self, source):
        self.source = source
        # But for its first line and for what has no content, a page is XML.
        closed = re.sub("(<meta[^>]*)>", r"\1/>", source.removeprefix("<!doctype html>"))
        root = ElementTree.fromstring(closed)
        for style in root.iter("style"):
            style.text = ""
        self.tags = Counter(each.tag for each in root.iter())
        self.attributes = [(each.tag, each.attrib) for each in root.iter()]
        self.headings = ["".join(x.itertext()) for x in root.iter() if x.tag in ("h1", "h2")]
        self.text, self.ids = "".join(root.itertext()), self.values("id")

    def values(self, name):
        return [attributes[name] for _, attributes in self.attributes if name in attributes]


@pytest.fixture(scope="session")
def split():
    data = datasets.synthetic_interactions(num_users=120, num_items=60, mean_degree=10)
    return transforms.PerUserSplit(num_val=0.1, num_test=0.2)(data)


@pytest.fixture(scope="session")
def task(split):
    return RankingTask.from_data(split[2])


@pytest.fixture(scope="session")
def popular(task):
    scores = torch.bincount(task.seen[1], minlength=task.num_items) + torch.rand(task.num_items) / 9
    return evaluate(scores, task, METRICS, keep_items=True)


@pytest.fixture(scope="session")
def runs(task):
    generator = torch.Generator().manual_seed(0)
    scores = [torch.rand(task.num_users, task.num_items, generator=generator) for _ in range(3)]
    return [evaluate(x, task, METRICS, keep_items=True) for x in scores]


@pytest.fixture
def made(tmp_path):
    """A page, as it stands in a file."""

    def make(results, **options):
        path = report(results, str(tmp_path / "report.html"), **options)
        return Page(path.read_text(encoding="utf-8"))

    return make


def contents_of(results, split=None, comparison=None):
    """What a page on one data set is about."""
    return read_contents(results, split, comparison)[0][""]


@pytest.fixture
def needs():
    """What a section needs."""

    def missing(section, results):
        contents, page = contents_of(results), Parts()
        page.add(section, [SECTIONS[section](contents)])
        return [*page.missing]

    return missing


@pytest.fixture(scope="session")
def full(tmp_path_factory, popular, runs, split):
    results = {"Random": runs, "Popular": popular}
    path = tmp_path_factory.mktemp("full") / "report.html"
    report(results, path, split=split, title="All of it")
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def chromium():
    return find_chromium()


@pytest.fixture(scope="module")  # as other files have an event loop of their own
def browser(chromium):
    with open_browser(chromium) as browser:
        yield browser


@pytest.fixture(
    scope="session",
    params=[{"LightGCN": 3, "Popular": 1, "BPR": 1}, {f"Recommender {n}": 1 for n in range(7)}],
    ids=["three", "seven"],
)
def report_file(request, chromium, tmp_path_factory, task, split):
    """A page of few recommenders, with runs and a split, and a page of many."""
    metrics = ["ndcg@10", "recall@10", "r_precision", "map@10", "hit_rate@10", "coverage@10"]
    generator = torch.Generator().manual_seed(0)

    def run():
        scores = torch.rand(task.num_users, task.num_items, generator=generator)
        return evaluate(scores, task, metrics, keep_items=True)

    results = {name: [run() for _ in range(number)] for name, number in request.param.items()}
    path = tmp_path_factory.mktemp("report") / "report.html"
    return report(results, path, split=split if len(results) < 7 else None)


@pytest.fixture
def heard():
    """What the pages of `shown` say in the console."""
    return []


@pytest.fixture
def asked():
    """The addresses that the pages of `shown` load."""
    return []


@pytest.fixture
def shown(browser, heard, asked):
    """Opens a file in a window of its own."""

    def show(path, width=1280, scheme="light", *, height=800, **options):
        window = {"width": width, "height": height}
        page = browser.new_page(viewport=window, color_scheme=scheme, **options)
        opened.append(page)
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    opened = []
    yield show
    for page in opened:
        page.close()
