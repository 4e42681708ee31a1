"""Numbers that other libraries publish, without those libraries: see `published.yaml`."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch
import yaml
from torch.nn.utils.rnn import pad_sequence

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, evaluate

#: Every scalar is a string, so that a number has the digits that were published.
CASES = yaml.load(Path(__file__).with_name("published.yaml").read_text(), yaml.BaseLoader)

#: What numbers in double precision may differ by.
ROUNDING_ERROR = 1e-12


def columns(queries):
    """The numbers on the left and on the right of the bar, of every query."""
    rows = [[[*map(float, part.split())] for part in query.split("|")] for query in queries]
    return [[torch.tensor(part).double() for part in column] for column in zip(*rows, strict=True)]


def graded(text):
    """Pairs of a number and a grade, which is one if it is not given."""
    pairs = (word.partition(":") for word in text.split())
    return [(int(number), int(grade or 1)) for number, _, grade in pairs]


def task_of(relevance):
    edges = relevance.nonzero().t()
    num_users, num_items = relevance.shape
    weight = relevance[tuple(edges)]
    return RankingTask(edges, num_users=num_users, num_items=num_items, weight=weight)


def of_lists(queries, folder):
    run, qrels = [], []
    for query, text in enumerate(queries):
        length, hits, missing = (*text.split("|"), "")[:3]
        run += [f"{query} Q0 d{rank} 0 {-rank} tag" for rank in range(1, int(length) + 1)]
        grades = {f"d{rank}": grade for rank, grade in graded(hits)}
        for number, grade in graded(missing):
            grades |= {f"missing{len(grades)}_{index}": grade for index in range(number)}
        # An irrelevant document makes a topic one that was judged.
        grades["irrelevant"] = 0
        qrels += [f"{query} 0 {document} {grade}" for document, grade in grades.items()]
    for name, lines in (("run", run), ("qrels", qrels)):
        (folder / name).write_text("\n".join(lines))
    ranked = RankedEdges.from_trec(folder / "run", folder / "qrels")
    relevance = torch.zeros(ranked.num_users, len(ranked.item_ids), dtype=torch.double)
    relevance[tuple(ranked.edge_label_index)] = 1.0 if ranked.weight is None else ranked.weight
    return ranked, ranked.lists.to_matrix(), task_of(relevance)


def of_pairs(queries, folder):
    scores, relevance = columns(queries)
    query = torch.arange(len(scores)).repeat_interleave(torch.tensor([*map(len, scores)]))
    ranked = RankedEdges.from_pairs(torch.cat(scores), torch.cat(relevance), query)
    padded = pad_sequence(scores, batch_first=True, padding_value=-math.inf)
    return ranked, padded, task_of(pad_sequence(relevance, batch_first=True))


def of_negatives(queries, folder):
    positive, negative = map(torch.stack, columns(queries))
    ranked = RankedEdges.from_negatives(positive.flatten(), negative)
    scores = torch.cat([positive, negative], dim=1)
    return ranked, scores, task_of((torch.arange(scores.size(1)) == 0).double().expand_as(scores))


READERS = {"lists": of_lists, "pairs": of_pairs, "negatives": of_negatives}


def bounds(published):
    """The least and the largest value that would have been published so."""
    shown = published.removesuffix("...")
    value, digits = float(Fraction(shown)), len(shown.partition(".")[2])
    unit = 0.0 if "/" in shown else 10.0**-digits
    if shown != published:
        return value, value + unit
    error = max(0.6 * unit, ROUNDING_ERROR)
    return value - error, value + error


@pytest.mark.filterwarnings("ignore")  # of ties, and of lists that are shorter than k
@pytest.mark.parametrize("case", CASES, ids=[case["source"] for case in CASES])
def test_published_numbers(case, tmp_path):
    form = next(filter(case.get, READERS))
    ranked, recommender, task = READERS[form](case[form], tmp_path)
    options = {name: case[name] for name in ("convention", "empty_target_action") if name in case}
    names = list(case["values"])
    for result in (
        EvaluationResult(ranked, names, **options),
        evaluate(recommender, task, names, **options),
    ):
        for name, published in case["values"].items():
            ours = [*result.per_user[name].tolist(), result[name]]
            for value, text in zip(ours, published.split(), strict=True):
                if text != "_":
                    low, high = bounds(text)
                    assert low <= value <= high, (name, value, text)
