"""Files of a run and its judgements, written from data frames as docs/export.md shows."""

from pyg_recmetrics.ranked_edges import lists_of
from pyg_recmetrics.results.frames import frame_of_lists, named_ids


def write_trec(ranked, folder):
    """Writes the lists and the truth to the files `run` and `qrels`, and returns their paths."""
    import pandas as pd

    run = frame_of_lists(ranked, lists_of(ranked).width, None).assign(Q0="Q0", tag="t")
    run["score"] = -run["rank"]
    user, item = ranked.edge_label_index
    qrels = pd.DataFrame(
        {
            "user": named_ids(user, ranked.user_ids),
            "0": 0,
            "item": named_ids(item, ranked.item_ids),
            "relevance": 1 if ranked.weight is None else ranked.weight.long().cpu().numpy(),
        }
    )
    paths = folder / "run", folder / "qrels"
    for frame, path in zip((run, qrels), paths, strict=True):
        columns = ["user", "Q0", "item", "rank", "score", "tag"] if path == paths[0] else [*qrels]
        frame[columns].to_csv(path, sep=" ", header=False, index=False)
    return paths
