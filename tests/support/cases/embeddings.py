"""Embeddings that are hard to rank."""

import math

import torch

from pyg_recmetrics.kernels.exact.scores import EXPONENT, scaled

#: Random embeddings of a shape, from a generator, by what is special about them.
KINDS = {
    "random": lambda shape, g: torch.randn(shape, generator=g),
    "positive": lambda shape, g: torch.rand(shape, generator=g),
    "negative": lambda shape, g: -torch.rand(shape, generator=g),
    "whole numbers, so that many scores are equal": lambda shape, g: torch.randint(
        -2, 3, shape, generator=g
    ).float(),
    "near-ties below the precision of bfloat16": lambda shape, g: (
        torch.ones(shape) + 2.0**-9 * torch.randn(shape, generator=g)
    ),
    "near-ties below single precision": lambda shape, g: (
        torch.ones(shape, dtype=torch.double)
        + 2.0**-26 * torch.randn(shape, generator=g, dtype=torch.double)
    ),
    "rows of very different norms": lambda shape, g: (
        torch.randn(shape, generator=g)
        * torch.randint(-40, 40, (shape[0], 1), generator=g).float().exp2()
    ),
    "numbers of very different size": lambda shape, g: (
        torch.randn(shape, generator=g) * torch.randint(-60, 20, shape, generator=g).float().exp2()
    ),
    "huge": lambda shape, g: 1e38 * torch.rand(shape, generator=g),
    "tiny": lambda shape, g: 1e-38 * torch.rand(shape, generator=g),
    "denormal": lambda shape, g: 1e-43 * torch.rand(shape, generator=g),
    "zero": lambda shape, g: torch.zeros(shape),
    "repeated": lambda shape, g: torch.randn((1, shape[1]), generator=g).repeat(shape[0], 1),
    "halfway between two numbers of bfloat16": lambda shape, g: (
        1 + 2.0**-8 * torch.randint(0, 2, shape, generator=g)
    ),
}


def scaled_by_all(embedding):
    """Scales all rows by one power of two, as items are."""
    largest = float(embedding.abs().max())
    return scaled(embedding, EXPONENT - math.frexp(largest)[1])


def assert_same_ranks(one, other):
    """Two rankings have the same ranks and ties."""
    for name in ("edge_label_index", "rank", "num_above", "num_tied"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
