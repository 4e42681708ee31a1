"""How large the tensors are that something makes."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor that any operation makes."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        given = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        for tensor in _tensors(made):
            if tensor.untyped_storage().data_ptr() not in given:
                self.numel = max(self.numel, tensor.numel())
        return made


def _tensors(values):
    tensors = [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
    # What a sparse matrix stores is its values. The others are about as many numbers.
    return [tensor.values() if tensor.is_sparse_csr else tensor for tensor in tensors]
