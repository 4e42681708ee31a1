"""What the columns of tables are called, where nobody says which is which."""

import re
from collections.abc import Iterable, Sequence

#: Names of columns in lower case without punctuation, by what the columns hold, most usual first.
_NAMES = {
    "user": (
        *("userid", "user", "uid", "users", "useridx", "u"),
        *("customerid", "visitorid", "memberid", "accountid", "reviewerid", "sessionid", "session"),
        *("queryid", "qid", "query"),
    ),
    "item": (
        *("itemid", "item", "iid", "items", "itemidx", "i"),
        *("movieid", "productid", "articleid", "bookid", "artistid", "trackid", "songid", "gameid"),
        *("businessid", "newsid", "videoid", "asin", "parentasin", "isbn", "sku", "docid", "docno"),
    ),
    "rating": ("rating", "ratings", "stars", "relevance", "label", "overall", "weight"),
    "score": ("score", "scores", "prediction", "pred", "predicted", "estimate", "est"),
    "rank": ("rank", "ranking", "position"),
    "time": (
        *("timestamp", "time", "unixtime", "unixreviewtime", "datetime", "date", "ts"),
        *("eventtime", "createdat", "t"),
    ),
    "vector": ("features", "embedding", "embeddings", "vector", "vectors", "factors", "emb"),
    "id": ("id", "ids", "index"),
}


def find_column(what: Sequence[str], columns: Iterable[str]) -> str | None:
    """Returns the column with one of the usual names of what it holds; `None` if there is none.

    Case and punctuation do not count, nor does a type behind a colon, as RecBole writes it.

    Args:
        what (sequence of str): What the column may hold, such as `"user"`.
        columns (iterable of str): The columns of a table.
    """
    by_name: dict[str, str] = {}
    for column in columns:
        by_name.setdefault(re.sub(r"[\W_]", "", column.partition(":")[0].lower()), column)
    names = (name for kind in what for name in _NAMES[kind])
    return next((by_name[name] for name in names if name in by_name), None)


def choose_column(
    path: object, what: str, columns: Sequence[str], given: str | None, option: str
) -> str:
    """Returns the column that an option names, or one with a usual name.

    Args:
        path (object): The file, for the error.
        what (str): What the column holds.
        columns (sequence of str): The columns of the file.
        given (str, optional): The name that the option has.
        option (str): The option.

    Raises:
        ValueError: If there is no such column, or more than one.
    """
    found = find_column([what], columns) if given is None else given
    if list(columns).count(str(found)) > 1:
        raise ValueError(f"{path}: columns need to have different names (got {found!r} twice)")
    if found in columns:
        return str(found)
    held = ", ".join(map(repr, columns[:20]))
    if given is not None:
        raise ValueError(f"{path}: there is no column {given!r}, which {option} names (got {held})")
    hint = "; if the file has no header, --columns names its columns" if _is_data(columns) else ""
    raise ValueError(
        f"{path}: no column has a usual name for a{'n' if what == 'item' else ''} {what}, so "
        f"{option} needs to name it (got {held}){hint}"
    )


def _is_data(columns: Sequence[str]) -> bool:
    """Returns whether what stands in the first line looks like numbers, and not like names."""
    return any(re.fullmatch(r"-?\d+(\.\d+)?", column) for column in columns)
