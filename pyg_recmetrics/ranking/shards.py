"""Embeddings that several processes hold together, each of them a part: who holds what.

A `DTensor` is taken for a description alone: of the tensor that a process holds, and of the axes of
the mesh. To compute with one would gather all of it, and what it says of uneven parts may be wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics import processes
from pyg_recmetrics.checks import (
    check_device,
    check_finite,
    check_natural_number,
    check_range,
    check_scores,
    check_shape,
)
from pyg_recmetrics.kernels.exact.factors import largest_number
from pyg_recmetrics.messages import list_some
from pyg_recmetrics.processes import Axis
from pyg_recmetrics.task import RankingTask

#: The types of numbers that embeddings have.
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Shards:
    """What this process holds of embeddings.

    Attributes:
        user (torch.Tensor): The embeddings of all users, or of a block of them.
        item (torch.Tensor): The embeddings of a block of items.
        bias (torch.Tensor or None): The biases of these items.
        first_item (int or None): The first of these items; `None` if the blocks follow each other
            along the axis.
        items (Axis): The processes among which items are divided.
        users (Axis): The processes among which users are.
        has_all_users (bool): Whether this process has the embeddings of all users.
    """

    user: Tensor
    item: Tensor
    bias: Tensor | None
    first_item: int | None
    items: Axis
    users: Axis
    has_all_users: bool

    def check(self, task: RankingTask) -> None:
        """Raises if what this process holds cannot be ranked."""
        parts = [part for part in (self.user, self.item, self.bias) if part is not None]
        for part in parts:
            if part.device.type != "cpu":  # a table on the host can pass through any device
                check_device(part, "recommender", task.device, "task")
            check_finite(part, "recommender")
        dim = self.item.size(-1) if self.item.dim() else 0
        num_users = task.num_users if self.has_all_users else self.user.size(0)
        check_shape(self.user, "recommender", (num_users, dim), "user embeddings")
        check_shape(self.item, "recommender", (self.item.size(0), dim), "item embeddings")
        if dim == 0:
            raise ValueError(
                "'recommender' needs to hold embeddings of one dimension or more (got 0)"
            )
        if self.bias is not None:
            check_shape(self.bias, "recommender", (self.item.size(0),), "item biases")


class Layout(NamedTuple):
    """What all processes have found out about their parts together.

    Attributes:
        first_item: The first item of this process.
        first_user: The first user whose embedding it has.
        first_users: The first user whose embedding each process has, along the axis of users.
        largest: The largest number of all item embeddings and biases, whatever its sign.
        parts: Where the parts of all processes start, and their digests.
    """

    first_item: int
    first_user: int
    first_users: tuple[int, ...]
    largest: float
    parts: tuple[tuple[int, ...], ...]


class _Part(NamedTuple):
    """What one process tells the others about its part, in integers."""

    shard: int
    num_shards: int
    share: int
    num_shares: int
    has_all_users: int
    first_item: int
    num_items: int
    num_users: int
    dim: int
    dtype: int
    dtype_of_bias: int
    digest_of_users: int
    digest_of_items: int

    @classmethod
    def of(cls, shards: Shards) -> "_Part":
        """Returns what is told about the part of this process."""
        bias, items = shards.bias, (shards.item, shards.bias)
        return cls(
            *(shards.items.index, shards.items.size, shards.users.index, shards.users.size),
            has_all_users=int(shards.has_all_users),
            first_item=-1 if shards.first_item is None else shards.first_item,
            num_items=shards.item.size(0),
            num_users=shards.user.size(0),
            dim=shards.item.size(1),
            dtype=_DTYPES.index(shards.item.dtype),
            dtype_of_bias=-1 if bias is None else _DTYPES.index(bias.dtype),
            digest_of_users=int(processes.digest(shards.user)[0]),
            digest_of_items=int(processes.digest(items)[0]),
        )


def find_shards(value: object, item_offset: int | None, task: RankingTask) -> Shards | None:
    """Returns what this process holds of embeddings; `None` if they are no shards.

    Args:
        value: What to rank.
        item_offset (int or None): The first item of the item embeddings.
        task (RankingTask): The task.

    Raises:
        ValueError: If `value` is no pair of embeddings, or they are divided in a way that cannot
            be ranked.
    """
    parts = _embeddings(value)
    if item_offset is not None and (parts is None or any(map(is_dtensor, parts))):
        found = type(value).__name__ if parts is None else "a DTensor, which says by itself"
        raise ValueError(
            f"'item_offset' needs tensors (user, item) or (user, item, item_bias), of which the "
            f"rows of items start at this item (got {found})"
        )
    if parts is None or (item_offset is None and not any(map(is_dtensor, parts))):
        return None
    if item_offset is None:
        shards = _from_dtensors(parts, task.device)
    else:
        user, item, *bias = (check_scores(part, "recommender") for part in parts)
        first = check_natural_number(item_offset, "item_offset")
        own_bias = bias[0] if bias else None
        shards = Shards(user, item, own_bias, first, Axis.of_all(), Axis(), has_all_users=True)
    shards.check(task)
    return shards


def is_dtensor(value: object) -> bool:
    """Returns whether a tensor is a `DTensor`, without a look at their module."""
    return isinstance(value, Tensor) and hasattr(value, "placements")


def agree_on(shards: Shards, task: RankingTask) -> Layout:
    """Compares the parts of all processes, which call this together.

    Raises:
        ValueError: In all processes, if the parts do not belong together.
    """
    everyone, device = Axis.of_all(), task.device
    like = torch.empty((0, len(_Part._fields)), dtype=torch.long, device=device)
    rows = everyone.gathered(lambda: torch.tensor([_Part.of(shards)], device=device), like)
    parts = [_Part(*row) for row in rows.tolist()]
    _check_kinds(parts)
    first_items = _first_items(parts, task.num_items)
    first_users = _first_users(parts, task.num_users)
    _check_copies(parts)
    numbers = torch.zeros(3, dtype=torch.double, device=device)
    user, item, bias = everyone.largest(lambda: _largest(shards, device), numbers).tolist()
    if shards.bias is not None:
        check_range(user, item, bias, shards.item.size(1))
    starts = zip(first_items, first_users, parts, strict=True)
    told = {(*start, part.digest_of_items, part.digest_of_users) for *start, part in starts}
    of_shares = dict(zip((part.share for part in parts), first_users, strict=True))
    return Layout(
        first_items[everyone.index],
        first_users[everyone.index],
        tuple(of_shares[index] for index in range(shards.users.size)),
        max(item, bias),
        tuple(sorted(told)),
    )


def _embeddings(value: object) -> list[Any] | None:
    """Returns the tensors of embeddings, if `value` is a pair or a triple of something."""
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        return None
    return [part.weight if isinstance(part, torch.nn.Embedding) else part for part in value]


def _from_dtensors(parts: Sequence[Any], device: torch.device) -> Shards:
    user, item, *biases = parts
    mesh = next(part.device_mesh for part in parts if is_dtensor(part))
    _check_mesh(mesh, parts, device)
    of_user = _sharded_axis(user, "user embeddings")
    of_item = _sharded_axis(item, "item embeddings")
    for bias in biases:
        if _sharded_axis(bias, "item biases") != of_item:
            raise ValueError(
                f"'recommender' needs to hold item biases that are sharded as the item embeddings "
                f"are, {_words(item)} (got {_words(bias)})"
            )
    if of_item is None and mesh.ndim == 2:
        raise ValueError(
            f"'recommender' needs to hold item embeddings that are sharded along one axis of the "
            f"mesh, which has two (got {_words(item)})"
        )
    if of_user is not None and of_user == of_item:
        raise ValueError(
            "'recommender' needs to hold user embeddings that each process with a part of the "
            "items has, or that are sharded along another axis of the mesh (got both sharded along "
            "one)"
        )
    of_users = 0 if of_item is None else 1 - of_item
    local = [_local(part) for part in parts]
    return Shards(
        user=local[0],
        item=local[1],
        bias=local[2] if biases else None,
        first_item=None,
        items=Axis() if of_item is None else _axis(mesh, of_item),
        users=_axis(mesh, of_users) if of_users < mesh.ndim else Axis(),
        has_all_users=of_user is None,
    )


def _check_mesh(mesh: Any, parts: Sequence[Any], device: torch.device) -> None:
    num_processes = processes.num_processes()
    if sorted(mesh.mesh.flatten().tolist()) != list(range(num_processes)) or mesh.ndim > 2:
        raise ValueError(
            f"'recommender' needs to be on a mesh of one or two axes with all processes that rank "
            f"together, which are {num_processes} (got {list(mesh.mesh.shape)})"
        )
    if any(is_dtensor(part) and part.device_mesh != mesh for part in parts):
        raise ValueError("'recommender' needs to hold embeddings on one mesh (got several)")
    if mesh.device_type != device.type:
        raise ValueError(
            f"'recommender' needs to be on a mesh of devices like that of the task, {device.type} "
            f"(got {mesh.device_type})"
        )


def _sharded_axis(part: Any, what: str) -> int | None:
    """Returns the axis of the mesh along which the rows are divided; `None` if none is."""
    if not is_dtensor(part):
        return None
    axes = [axis for axis, kind in enumerate(part.placements) if not kind.is_replicate()]
    # A subclass of `Shard` deals out rows in another order.
    is_by_rows = [type(part.placements[axis]).__name__ == "Shard" for axis in axes]
    if len(axes) > 1 or not all(is_by_rows) or any(part.placements[axis].dim for axis in axes):
        raise ValueError(
            f"'recommender' needs to hold {what} that are whole, or sharded by rows along one axis "
            f"of the mesh, Shard(0) (got {_words(part)})"
        )
    return axes[0] if axes else None


def _words(part: Any) -> str:
    """Says how a tensor is divided."""
    if not is_dtensor(part):
        return "a plain tensor"
    return f"[{', '.join(map(str, part.placements))}]"


def _axis(mesh: Any, axis: int) -> Axis:
    return Axis(mesh.size(axis), mesh.get_local_rank(axis), mesh.get_group(axis))


def _local(part: Any) -> Tensor:
    return check_scores(part.detach().to_local() if is_dtensor(part) else part, "recommender")


def _largest(shards: Shards, device: torch.device) -> Tensor:
    """Returns the largest numbers of users, items and biases, whatever their sign."""
    parts = shards.user, shards.item, shards.bias
    numbers = [0.0 if part is None else largest_number(part) for part in parts]
    return torch.tensor(numbers, dtype=torch.double, device=device)


def _check_kinds(parts: list[_Part]) -> None:
    """Raises if parts differ in more than in what they hold."""
    forms = {
        (part.num_shards, part.num_shares, part.has_all_users, part.first_item < 0)
        for part in parts
    }
    if len(forms) > 1:
        raise ValueError("'recommender' needs to be divided alike in all processes (got others)")
    types = [(part.dim, part.dtype, part.dtype_of_bias) for part in parts]
    if len(set(types)) > 1:
        got = [f"{dim} of {_DTYPES[dtype]}" for dim, dtype, _ in types]
        raise ValueError(
            f"'recommender' needs to hold embeddings of one dimension and type in all processes, "
            f"and biases in all or none (got {list_some(got)})"
        )


def _first_items(parts: list[_Part], num_items: int) -> list[int]:
    """Returns the first item of each process."""
    if parts[0].first_item >= 0:
        _check_blocks(parts, num_items)
        return [part.first_item for part in parts]
    sizes = _sizes([(part.shard, part.share, part.num_items) for part in parts], "item")
    if sum(sizes) != num_items:
        raise ValueError(
            f"'recommender' needs to hold embeddings of {num_items} items in all processes "
            f"together (got {' + '.join(map(str, sizes))} = {sum(sizes)} rows)"
        )
    return [sum(sizes[: part.shard]) for part in parts]


def _first_users(parts: list[_Part], num_users: int) -> list[int]:
    """Returns the first user whose embedding each process has."""
    if parts[0].has_all_users:
        return [0] * len(parts)
    sizes = _sizes([(part.share, part.shard, part.num_users) for part in parts], "user")
    if sum(sizes) != num_users:
        raise ValueError(
            f"'recommender' needs to hold embeddings of {num_users} users in all processes "
            f"together (got {' + '.join(map(str, sizes))} = {sum(sizes)} rows)"
        )
    return [sum(sizes[: part.share]) for part in parts]


def _sizes(parts: list[tuple[int, int, int]], what: str) -> list[int]:
    """Returns the sizes along an axis, which need to be the same along the other one."""
    sizes: dict[int, list[int]] = {}
    for index, _, size in sorted(parts):
        sizes.setdefault(index, []).append(size)
    if any(len(set(of_one)) > 1 for of_one in sizes.values()):
        raise ValueError(
            f"'recommender' needs to hold the same {what} embeddings in all processes of an axis "
            f"(got {list(sizes.values())} rows)"
        )
    return [of_one[0] for of_one in sizes.values()]


def _check_blocks(parts: list[_Part], num_items: int) -> None:
    """Raises if blocks of items overlap, leave a gap, or are too many or too few."""
    blocks = [(part.first_item, part.first_item + part.num_items) for part in parts]
    end = 0
    for first, last in sorted(blocks):
        if first != end and first != last:
            break
        end = max(end, last)
    else:
        if end == num_items and all(last <= num_items for _, last in blocks):
            return
    got = ", ".join(f"[{first}, {last})" for first, last in blocks)
    raise ValueError(
        f"'item_offset' needs to put the item embeddings of all processes side by side, so that "
        f"each of {num_items} items is in one of them (got {got})"
    )


def _check_copies(parts: list[_Part]) -> None:
    """Raises if processes that should have the same embeddings have others."""
    users: dict[int, set[int]] = {}
    items: dict[int, set[int]] = {}
    for part in parts:
        users.setdefault(0 if part.has_all_users else part.share, set()).add(part.digest_of_users)
        items.setdefault(part.shard, set()).add(part.digest_of_items)
    for what, digests in (("user", users), ("item", items)):
        if any(len(found) > 1 for found in digests.values()):
            raise ValueError(
                f"'recommender' needs to hold the same {what} embeddings in all processes that are "
                f"not to share them (got others)"
            )
