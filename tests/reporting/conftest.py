"""Pages of results, and what stands on them."""

from collections import Counter
from html.parser import HTMLParser

import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

import torch

from pyg_recmetrics import RankingTask, datasets, evaluate, report, transforms
from pyg_recmetrics.reporting.contents import Contents
from pyg_recmetrics.reporting.sections import SECTIONS

VOID = {"meta"}
METRICS = ["ndcg@10", "recall@10", "r_precision", "coverage@10"]


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


@pytest.fixture
def parts():
    """The parts of a section."""

    def make(section, results, split=None):
        return list(SECTIONS[section](Contents.of(results, split)))

    return make


@pytest.fixture(scope="session")
def full(tmp_path_factory, popular, runs, split):
    results = {"Random": runs, "Popular": popular}
    path = tmp_path_factory.mktemp("full") / "report.html"
    report(results, path, split=split, title="All of it")
    return Page(path.read_text(encoding="utf-8"))
