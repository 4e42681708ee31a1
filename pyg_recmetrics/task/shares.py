"""Tasks of which each process holds a share: whether they are of one task, and of no user two.

Users are told apart by 16 bytes each, which are dealt out to all processes. Each of them looks for
repeated ones among about as many as it has users, so none holds those of all.
"""

import hashlib
import struct
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_recmetrics import processes
from pyg_recmetrics.task.task import RankingTask

#: An odd number that mixes the digits of ids, so that all processes are dealt about as many.
_MIXER = -7046029254386353131

#: How many bits of a mixed id say to which process it is dealt.
_MIXED_BITS = 31


def check_one_task(task: RankingTask) -> None:
    """Raises in every process if the tasks or shares of all are not one task. All call it.

    Raises:
        ValueError: If tasks differ, or shares in what is not about users, a user is in two shares,
            or nobody has ground truth.
    """
    processes.check_same(task.device, data="a share" if task.is_share else task)
    if not task.is_share:
        return
    processes.check_same(task.device, **_in_common(task))
    _check_weights(task)
    _check_disjoint(task)
    if task.totals.number(task.truth.size(1)) == 0:
        raise ValueError(
            "'truth' needs to hold an edge that can be retrieved (got none in any process)"
        )


def _in_common(task: RankingTask) -> dict[str, object]:
    """Returns all of a share that is not about its users."""
    candidates, names = task.candidates, ("num_items", "exclude_seen", "threshold", "missing")
    return {
        **{name: getattr(task, name) for name in (*names, "item_ids", "num_relations")},
        "candidates": "of users" if candidates is not None and candidates.dim() > 1 else candidates,
        "seen": task.catalogue.seen is None,
        "user_ids": task.user_ids is None,
        "query": None if task.query is None else task.query.size(1),
    }


def _check_weights(task: RankingTask) -> None:
    is_weighted = task.weight is not None
    if task.totals.largest(is_weighted) and not -task.totals.largest(-is_weighted):
        raise ValueError(
            "'weight' needs to be given in every process, or in none (got it in some; a matrix "
            "has weights unless all of its values are one)"
        )


def _check_disjoint(task: RankingTask) -> None:
    """Raises if a user is in the shares of two processes."""
    size = processes.num_processes()
    if size == 1:
        return
    ids = ids_of(task)
    keys = _keys(ids, are_integers=not task.totals.largest(not _are_integers(ids)))
    keys = keys.to(task.device)
    mixed = (keys[:, 0] ^ keys[:, 1]) * _MIXER
    receiver = (mixed >> (63 - _MIXED_BITS)).remainder(size)
    received, sender = processes.deal(keys, receiver)
    repeated = _find_repeated(received, sender)
    found = torch.cat(processes.collect(repeated))
    if not found.size(0):
        return
    first, second, *key = found[0].tolist()
    is_named = (keys == keys.new_tensor(key)).all(dim=1).nonzero().squeeze(1).tolist()
    names = processes.collect_objects(ids[is_named[0]] if is_named else None, task.device)
    raise ValueError(
        f"{'user_ids' if task.query is None else 'query'!r} of a share needs to hold users that no "
        f"other process has (got {names[first]!r} in processes {first} and {second})"
    )


def ids_of(task: RankingTask) -> Sequence[Hashable]:
    """Returns who the users of a share are, in their order."""
    if task.user_ids is not None:
        return task.user_ids
    rows = [] if task.query is None else task.query.tolist()
    return [tuple(row) for row in rows]


def _are_integers(ids: Sequence[Hashable]) -> bool:
    return all(type(id_) is int and -(2**63) <= id_ < 2**63 for id_ in ids)


def _keys(ids: Sequence[Hashable], *, are_integers: bool) -> Tensor:
    """Returns two integers that tell an id from all others, of shape `[num_users, 2]`."""
    if are_integers:
        own = torch.tensor(ids, dtype=torch.long, device="cpu")
        return torch.stack([own, torch.zeros_like(own)], dim=1)
    keys = [struct.unpack("<2q", _digest(id_)) for id_ in ids]
    return torch.tensor(keys, dtype=torch.long, device="cpu").view(-1, 2)


def _digest(id_: Hashable) -> bytes:
    text = f"{type(id_).__qualname__} {id_!r}".encode(errors="backslashreplace")
    return hashlib.blake2b(text, digest_size=16).digest()


def _find_repeated(keys: Tensor, sender: Tensor) -> Tensor:
    """Returns the first key that came twice, as `[1, 4]` with both senders; `[0, 4]` for none."""
    order = lexsort([sender, keys[:, 1], keys[:, 0]])
    keys, sender = keys[order], sender[order]
    is_repeated = (keys[1:] == keys[:-1]).all(dim=1).nonzero().squeeze(1)[:1]
    senders = torch.stack([sender[is_repeated], sender[is_repeated + 1]], dim=1)
    return torch.cat([senders, keys[is_repeated]], dim=1)
