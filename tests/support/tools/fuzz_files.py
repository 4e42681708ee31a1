"""Saved results and runs: whole, they say the same; damaged, they are named."""

import re
import tempfile
import warnings
from pathlib import Path

import torch

from pyg_recmetrics import EvaluationResult, RankedEdges
from pyg_recmetrics.ranked_edges import fields_of
from pyg_recmetrics.results.frames import frame_of_lists
from tests.support.tools.damage import damage_archive, damage_bytes, damage_lines
from tests.support.tools.trec_files import write_trec

#: How many damaged copies of a file are read.
NUM_DAMAGED = 4

#: The rank of an item that was not retrieved, or below the lists, in :func:`ranks_in_lists`.
NOT_RETRIEVED = 0


def check_files(result, draw):
    """Writes a result to files, and reads them whole and damaged."""
    with tempfile.TemporaryDirectory() as folder:
        check_archive(result, Path(folder) / "result.npz", draw)
        if can_be_exported(result.ranked):
            check_run(result.ranked, Path(folder), draw)


def check_archive(result, path, draw):
    result.save(path)
    said = everything(result)
    assert everything(EvaluationResult.load(path)) == said, "a loaded result says something else"
    content = path.read_bytes()
    for _ in range(NUM_DAMAGED):
        damage = draw.choice([damage_bytes, damage_archive])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Duplicate name")
            path.write_bytes(damage(content, draw))
        try:
            loaded = EvaluationResult.load(path)
        except ValueError as error:
            check_names(error, path)
        else:
            assert everything(loaded) == said, "a damaged result says something else"


def everything(result):
    """All that a result says, in words and numbers."""
    return (
        repr(result.to_dict()),
        {name: values.tolist().__repr__() for name, values in result.per_user.items()},
        result.recipe(),
        plain(fields_of(result.ranked)),
        plain(result.task and result.task.to_dict()),
    )


def plain(value):
    """The same without tensors, but with their dtypes."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value


def can_be_exported(ranked):
    """Whether lists were kept, without places that hold no item, and weights are whole numbers."""
    if ranked.lists is None or ranked.ties != "index" or not ranked.edge_label_index.numel():
        return False
    lists = frame_of_lists(ranked, ranked.lists.width, None)
    if lists.empty or (lists["rank"] > lists.groupby("user").cumcount() + 1).any():
        return False
    weight = ranked.weight
    return weight is None or bool(((weight == weight.round()) & (weight < 2**31)).all())


def check_run(ranked, folder, draw):
    run, qrels = write_trec(ranked, folder)
    width = ranked.lists.to_matrix().size(1)
    read = RankedEdges.from_trec(run, qrels)
    assert ranks_in_lists(read, width) == ranks_in_lists(ranked, width), "a run ranks differently"
    content = {path: path.read_bytes() for path in (run, qrels)}
    for _ in range(NUM_DAMAGED):
        path = draw.choice([path for path in content if content[path]])
        path.write_bytes(damage_lines(content[path], draw))
        try:
            RankedEdges.from_trec(run, qrels)
        except ValueError as error:
            check_names(error, run, qrels)
        path.write_bytes(content[path])


def ranks_in_lists(ranked, width):
    """The rank of every edge, by the names of its user and item."""
    return {
        (name(user, ranked.user_ids), name(item, ranked.item_ids)): rank
        if rank <= width
        else NOT_RETRIEVED
        for (user, item), rank in zip(
            zip(*ranked.edge_label_index.tolist(), strict=True), ranked.rank.tolist(), strict=True
        )
    }


def name(number, names):
    return str(number) if names is None else names[number]


def check_names(error, *paths):
    assert any(re.search(re.escape(str(path)), str(error)) for path in paths), f"{error} is no path"
