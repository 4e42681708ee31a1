"""Scores in exact rational arithmetic, and embeddings whose scores are hard to round."""

import torch

from tests.support.references import oracle


def score_matrix(user, item):
    """The scores of scaled embeddings: `[num_users, num_items]`."""
    scores = oracle.inner_products(user.tolist(), item.tolist())
    return torch.tensor(scores, dtype=torch.double).float()


def _opposite(shape, g):
    """Every number once with either sign."""
    half = torch.randn(shape[0], -(-shape[1] // 2), generator=g, dtype=torch.double)
    return torch.cat([half, -half], dim=1)[:, : shape[1]]


def _nearly_opposite(shape, g):
    """Terms of up to 1e8 that cancel but for about 1e-7."""
    size = 10 ** (8 * torch.rand((shape[0], shape[1]), generator=g, dtype=torch.double))
    numbers = (_opposite(shape, g) * size).float().double()
    numbers[:, -1] = 1e-7 * torch.rand(shape[0], generator=g, dtype=torch.double)
    numbers[:, shape[1] // 2 : -1] = -numbers[:, : (shape[1] - 1) // 2]
    return numbers


def _ones(shape, g):
    return torch.ones(shape, dtype=torch.double)


def _near_midpoint(shape, g):
    """The midpoint between two numbers of single precision, or just beside it."""
    numbers = torch.zeros(shape, dtype=torch.double)
    numbers[:, 0] = 1 + 2.0**-23 * torch.randint(0, 3, (shape[0],), generator=g)
    numbers[:, 1:2] = 2.0**-24
    numbers[:, 2:3] = 2.0**-80 * torch.randint(-1, 2, (shape[0], 1), generator=g)
    numbers[:, 3:4] = torch.randint(-1, 2, (shape[0], 1), generator=g)
    return numbers[:, torch.randperm(shape[1], generator=g)]


def _of_size(low, high):
    def numbers(shape, g):
        exponent = torch.randint(low, high, shape, generator=g).double()
        return torch.randn(shape, generator=g, dtype=torch.double) * exponent.exp2()

    return numbers


def _whole(shape, g):
    return torch.randint(-3, 4, shape, generator=g).double()


def _long_whole(shape, g):
    return torch.randint(2**29, shape, generator=g).double()


def _opposite_but_for_a_little(shape, g):
    numbers = _long_whole(shape, g)
    numbers[:, 1::2] = torch.randint(-3, 4, numbers[:, 1::2].shape, generator=g)
    numbers[:, 1::2] -= numbers[:, ::2][:, : shape[1] // 2]
    return numbers


def _long_whole_twice(shape, g):
    numbers = _long_whole(shape, g)
    numbers[:, 1::2] = numbers[:, ::2][:, : shape[1] // 2]
    return numbers


def _sparse(shape, g):
    keep = torch.rand(shape, generator=g) < 0.2
    return torch.rand(shape, generator=g, dtype=torch.double) * keep


def _turned(shape, g):
    """All inner products with ones in pairs of opposite sign are zero, or nearly so."""
    numbers = torch.randn(shape, generator=g, dtype=torch.double)
    numbers[:, 1::2] = numbers[:, : shape[1] - 1 : 2]
    return numbers


def _signs(shape, g):
    numbers = torch.ones(shape, dtype=torch.double)
    numbers[:, 1::2] = -1
    return numbers


#: Pairs of users and items from a generator, by what is special about their scores.
KINDS = {
    "ordinary": (_of_size(0, 1), _of_size(0, 1)),
    "terms of 1e8 that leave 1e-7": (_ones, _nearly_opposite),
    "opposite terms": (_opposite, _opposite),
    "opposite terms of any size": (_ones, _opposite),
    "zero, but for the order of adding up": (_signs, _turned),
    "huge and tiny": (_of_size(-30, 30), _of_size(-60, 60)),
    "midpoints": (_ones, _near_midpoint),
    "whole numbers": (_whole, _whole),
    "long whole numbers": (_long_whole_twice, _opposite_but_for_a_little),
    "sparse": (_sparse, _sparse),
    "tiny": (_of_size(-149, -120), _of_size(-149, -100)),
}


def draw(kind, num_users, num_items, dim, dtype, seed):
    """Embeddings of a kind, rounded to a precision."""
    generator = torch.Generator().manual_seed(seed)
    user, item = KINDS[kind]
    return (
        user((num_users, dim), generator).to(dtype),
        item((num_items, dim), generator).to(dtype),
    )
