"""A device that is not the CPU, on machines that have none.

Its tensors hold tensors of the CPU. Unlike these, they only mix with tensors of their own device,
and note whenever the host has to wait for what the device computes.
"""

from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

try:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
except ImportError:  # before version 2.10 of torch
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True

NAME = "emulated"

#: What lets the host wait: the size of the result is known only when it is computed.
_WAITS = {
    "aten::_local_scalar_dense",
    "aten::_unique2",
    "aten::bincount",
    "aten::equal",
    "aten::is_nonzero",
    "aten::masked_select",
    "aten::nonzero",
    "aten::repeat_interleave.Tensor",
    "aten::unique_consecutive",
    "aten::unique_dim",
}

#: What waits for the size of the result if it is given a mask.
_INDEXES = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}

#: What takes tensors of two devices.
_MIXES = {"aten::_to_copy", "aten::copy_", "aten::_pin_memory"}


class EmulatedTensor(torch.Tensor):
    """A tensor on the emulated device."""

    @staticmethod
    def __new__(cls, inner):
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
            requires_grad=inner.requires_grad,
        )
        tensor.inner = inner
        return tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError(f"{function} needs to be called while there is an emulated device")

    def tolist(self):
        return self.cpu().tolist()

    def numpy(self, *, force=False):
        if force:
            return self.cpu().numpy()
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy")

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def __deepcopy__(self, memo):
        return self.clone()

    def __repr__(self, *, tensor_contents=None):
        return f"{self.cpu()!r} on {NAME}"


class EmulatedDevice(TorchDispatchMode):
    """Computes on the CPU what is asked of the emulated device.

    Attributes:
        waits: The names of all functions so far that let the host wait for the device.
    """

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = function._schema.name
        tensors = _tensors((args, *kwargs.values()))
        on_device = [x for x in tensors if isinstance(x, EmulatedTensor)]
        is_mixed = any(x.dim() and not isinstance(x, EmulatedTensor) for x in tensors)
        if on_device and is_mixed and name not in _MIXES:
            raise RuntimeError(f"Expected all tensors of {function} to be on the same device")
        device = kwargs.get("device")
        is_on_device = bool(on_device)
        if device is not None:
            is_on_device = torch.device(device).type == NAME
            kwargs["device"] = torch.device("cpu")
        elif name == "aten::copy_":
            is_on_device = isinstance(args[0], EmulatedTensor)
        is_masked = name in _INDEXES and any(map(_is_mask, _tensors(args[1])))
        comes_back = bool(on_device) and not is_on_device
        is_copied = is_on_device and is_mixed
        if comes_back or is_copied or is_masked or (on_device and name in _WAITS):
            self.waits.append(name)
        result = function(
            *_mapped(_inner, args), **{name: _mapped(_inner, x) for name, x in kwargs.items()}
        )
        of_inner = {id(x.inner): x for x in on_device}

        def wrapped(x):
            if not isinstance(x, torch.Tensor) or not is_on_device:
                return of_inner.get(id(x), x)
            return of_inner[id(x)] if id(x) in of_inner else EmulatedTensor(x)

        return _mapped(wrapped, result)


class _Backend:
    """What torch asks of a device. It is not available, so that nothing takes it by itself."""

    def is_initialized(self):
        return True

    def is_available(self):
        return False

    def current_device(self):
        return 0

    def device_count(self):
        return 0

    def _is_in_bad_fork(self):
        return False

    def manual_seed_all(self, seed):
        pass


# Torch's own trees take four times as long as what is computed here.
def _tensors(value):
    """The tensors that a value holds, however deep."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def _mapped(function, value):
    """A value of which each part is replaced by what a function returns, however deep."""
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(function, part) for part in value])
    return function(value)


def _is_mask(tensor):
    return tensor.dtype == torch.bool


def _inner(x):
    return x.inner if isinstance(x, EmulatedTensor) else x


@contextmanager
def emulated_device():
    """Lets there be an emulated device, and yields it."""
    if not hasattr(torch, NAME):
        _setup_privateuseone_for_python_backend(NAME, _Backend())
    only_cpu = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        with EmulatedDevice() as device:
            yield device
    finally:
        torch._C._set_only_lift_cpu_tensors(only_cpu)


def num_waits(function):
    """Returns the number of host-device synchronisations during a call."""
    waits = _get_current_dispatch_mode().waits
    before = len(waits)
    function()
    return len(waits) - before
