"""Whole numbers in as few bytes as they fit into, to send them."""

import torch
from torch import Tensor

#: The types to send numbers as, with the lowest number and the number of numbers of each.
_TYPES = (
    (torch.uint8, 0, 2**8),
    (torch.int16, -(2**15), 2**16),
    (torch.int32, -(2**31), 2**32),
    (torch.int64, 0, 2**63),
)


def bytes_of(limit: int) -> int:
    """Returns how many bytes a number from zero to below a limit takes."""
    return _type_for(limit)[0].itemsize


def pack(values: Tensor, limit: int) -> Tensor:
    """Returns numbers as bytes, which every process group can send.

    Args:
        values (torch.Tensor): Whole numbers from zero to below the limit: `[num_rows, ...]`.
        limit (int): The limit.

    Returns:
        The bytes, of shape `[num_rows, ..., bytes_of(limit)]`.
    """
    dtype, lowest, _ = _type_for(limit)
    content = (values + lowest).to(dtype).unsqueeze(-1)
    return content.contiguous().view(torch.uint8)


def unpack(content: Tensor, limit: int) -> Tensor:
    """Returns the numbers that :func:`pack` has made bytes of."""
    dtype, lowest, _ = _type_for(limit)
    return content.contiguous().view(dtype).squeeze(-1).long() - lowest


def _type_for(limit: int) -> tuple[torch.dtype, int, int]:
    return next(each for each in _TYPES if limit <= each[2])
