import os
import warnings
from pathlib import Path
from unittest.mock import patch

# Processes of pytest-xdist share the cores between them.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from pyg_recmetrics import datasets
from pyg_recmetrics.metrics import registry
from tests.support.cases.small_benchmark import small_benchmark
from tests.support.machines import emulated_device

# The same cases every time where the outcome decides about a change, new ones elsewhere.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=40,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

DATA = Path(
    os.environ.get("PYG_RECMETRICS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def needs(folder):
    if not (DATA / folder).is_dir():
        pytest.skip(f"needs {folder}, looked for in PYG_RECMETRICS_DATA and in {DATA}")
    return DATA / folder


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Seeds the draws of a test and of its fixtures, so that a failure can be seen again."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def lastfm_folder():
    return needs("lastfm")


@pytest.fixture(scope="session")
def lastfm(lastfm_folder):
    return datasets.read_lightgcn(lastfm_folder)


@pytest.fixture(scope="session")
def gowalla_folder():
    return needs("gowalla")


@pytest.fixture(scope="session")
def gowalla(gowalla_folder):
    """Train and test edges, and the embeddings of a LightGCN: `(train, test, user, item)`."""
    graph, model = (np.load(gowalla_folder / name) for name in ("graph.npz", "lightgcn.npz"))
    edges = (torch.from_numpy(graph[name]).long() for name in ("train", "test"))
    embeddings = (torch.from_numpy(model[name]).float() for name in ("user", "item"))
    return *edges, *embeddings


@pytest.fixture(scope="session")
def benchmark():
    return small_benchmark()


@pytest.fixture
def movielens_folder(tmp_path):
    """Files in the format of MovieLens100K for PyG's reader, so that nothing is downloaded."""
    raw = tmp_path / "data" / "MovieLens100K" / "raw"
    raw.mkdir(parents=True)
    (raw / "u.item").write_text(
        "".join(f"{i}|Film {i}|01-Jan-1995||url|{'|'.join('0' * 19)}\n" for i in range(1, 31))
    )
    (raw / "u.user").write_text("".join(f"{u}|30|M|other|00000\n" for u in range(1, 6)))
    ratings = [(u, (u * 3 + n) % 30 + 1, n % 5 + 1) for u in range(1, 6) for n in range(15)]
    for name, rows in (("u1.base", ratings[::2]), ("u1.test", ratings[1::2])):
        (raw / name).write_text("".join(f"{u}\t{i}\t{r}\t88\n" for u, i, r in rows))
    return raw.parent


@pytest.fixture
def expect_lost_truth():
    """Ignores the warnings that edges are no truth, as happens in many random cases."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*taken out of the truth")
        warnings.filterwarnings("ignore", message=".*rating of zero or less")
        yield


@pytest.fixture
def expect_ties():
    """Ignores the warning that the order of ties matters, as in most cases of a few users."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*depending on the order of ties")
        yield


@pytest.fixture
def definitions(monkeypatch):
    """The registry of metrics as a copy, so that what a test registers is forgotten."""
    copied = dict(registry._DEFINITIONS)
    monkeypatch.setattr(registry, "_DEFINITIONS", copied)
    yield copied
    registry._parse.cache_clear()


def pytest_addoption(parser):
    parser.addoption("--device", help="the only device of tests that run on any")


@pytest.fixture(params=["cpu", emulated_device.NAME, "cuda"])
def device(request):
    only = request.config.getoption("device")
    if only not in (None, request.param):
        pytest.skip(f"runs on {only} alone")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    if request.param != emulated_device.NAME:
        yield torch.device(request.param)
        return
    if not emulated_device.IS_AVAILABLE:
        pytest.skip("torch cannot have a device that is written in Python")
    # The emulated device only knows the functions of torch itself.
    without_scatter = patch("torch_geometric.typing.WITH_TORCH_SCATTER", False)
    with without_scatter, emulated_device.emulated_device():
        yield torch.device(request.param)


@pytest.fixture
def waits(device):
    """Returns the number of host-device synchronisations during a call."""

    def count(function):
        if device.type == emulated_device.NAME:
            return emulated_device.num_waits(function)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                function()
            finally:
                torch.cuda.set_sync_debug_mode("default")
        return sum("synchronizing" in str(warning.message) for warning in caught)

    return count
