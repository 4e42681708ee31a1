"""What all classes share: a state that mini-batches add to, between `update` and `compute`."""

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor
from torch_geometric.metrics import link_pred

from pyg_recmetrics.checks import holds_double_precision


class Part(NamedTuple):
    """A tensor of a state: how those of several processes become one, and what it starts as.

    `"sum"` adds them up, and `"cat"` puts one after the other.
    """

    merging: Literal["sum", "cat"]
    initial: Tensor


class TorchmetricsArguments(TypedDict, total=False):
    """The arguments of all metrics of torchmetrics, which say how processes share their states."""

    compute_on_cpu: bool
    dist_sync_on_step: bool
    process_group: Any
    dist_sync_fn: Callable[..., Any] | None
    distributed_available_fn: Callable[[], bool] | None
    sync_on_compute: bool
    compute_with_cache: bool


def double_precision_device(device: torch.device) -> torch.device:
    """Returns the device itself if it holds double precision, and otherwise the CPU."""
    return device if holds_double_precision(device) else torch.device("cpu")


def to_double_precision_device(value: Any) -> Any:
    """Returns a value, which moves to a device that holds double precision if it is a tensor."""
    return value.to(double_precision_device(value.device)) if isinstance(value, Tensor) else value


def check_torchmetrics(name: str) -> None:
    """Raises if something is asked for that only torchmetrics has."""
    if not link_pred.WITH_TORCHMETRICS:
        raise ImportError(f"'{name}' needs torchmetrics: pip install torchmetrics")


class StreamingMetric(link_pred.BaseMetric):  # type: ignore[misc]
    r"""A metric over mini-batches: `update`, `compute` and `reset`.

    Between updates, a metric keeps a state of few tensors. Each tensor says how those of several
    processes become one: `"sum"` adds them up, `"cat"` concatenates them. The state
    moves between devices, and stays in double precision when a model that holds the metric is
    converted to another precision. If a device holds no double precision, as Apple's do not, the
    state stays on the CPU. Results are in the default dtype, and on the device that the metric was
    moved to.

    Raises:
        ImportError: If an argument is one of torchmetrics, which is not installed.
        TypeError: If an argument is unknown.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import modules
        >>> lists = torch.tensor([[3, 1, 4], [1, 5, -1]])
        >>> truth = torch.tensor([[0, 0, 1], [1, 9, 5]])
        >>> metric = modules.Recall(k=2)
        >>> metric.update(lists, truth)
        >>> metric.compute()
        tensor(0.7500)
        >>> metric.reset()
        >>> metric.update(lists[:1], truth[:, :2])
        >>> metric.compute()
        tensor(0.5000)
    """

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = None
    #: Where torchmetrics is installed, each metric says so by itself.
    compute_on_cpu = False

    def __init__(self, **kwargs: Any) -> None:
        if unknown := kwargs.keys() - TorchmetricsArguments.__annotations__.keys():
            raise TypeError(f"got an unexpected keyword argument '{min(unknown)}'")
        if kwargs:
            check_torchmetrics(min(kwargs))
        # Not that of PyG's own metrics, which requires a cut-off.
        link_pred.BaseMetric.__init__(self, **kwargs)
        self._result_device = torch.device("cpu")

    @property
    @abstractmethod
    def identity(self) -> str:
        """Which metric a state is of, since a state makes no sense to others."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Returns the arguments to print, by name."""

    @abstractmethod
    def parts(self) -> dict[str, Part]:
        """Returns the tensors of the state as they are before the first update, by name."""

    @abstractmethod
    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset, in the default dtype."""

    @property
    def state_device(self) -> torch.device:
        """Where the state is."""
        if self.compute_on_cpu:
            return torch.device("cpu")
        return double_precision_device(self._result_device)

    def as_result(self, value: Tensor) -> Tensor:
        """Returns a value as others see it: in the default dtype, unless it is an integer.

        It is on the device that the metric was moved to.
        """
        if value.is_floating_point():
            # Before it is moved, because that device may not hold double precision.
            value = value.to(torch.get_default_dtype())
        return value.to(self._result_device)

    def reset(self) -> None:
        """Forgets all users."""
        if link_pred.WITH_TORCHMETRICS:
            super().reset()
        self._set_initial_state()

    def get(self, name: str) -> Tensor:
        """Returns the current value of a tensor of the state."""
        value: Tensor | list[Tensor] = getattr(self, self._attributes[name])
        return value if isinstance(value, Tensor) else torch.cat(value)

    def set(self, name: str, value: Tensor) -> None:
        """Replaces a tensor of the state. The previous tensor itself is not written to."""
        is_list = self._parts[name].merging == "cat"
        value = value.to(self.state_device)
        setattr(self, self._attributes[name], [value] if is_list else value)

    def merge(self, name: str, value: Tensor) -> None:
        """Merges what other users have as a tensor of the state into it."""
        value, merged = value.to(self.state_device), getattr(self, self._attributes[name])
        merged = merged + ([value] if isinstance(merged, list) else value)
        setattr(self, self._attributes[name], merged)

    def _tensors(self) -> dict[str, Tensor]:
        return {name: self.get(name) for name in self._attributes}

    def _declare_states(self) -> None:
        # A collection of torchmetrics lets metrics share their state if the names and, after the
        # first update, the values are the same. So each name says what exactly is counted.
        suffix = re.sub(r"\W+", "_", self.identity)
        self._parts = self.parts()
        self._attributes = {name: f"{name}_of_{suffix}" for name in self._parts}
        if link_pred.WITH_TORCHMETRICS:
            for name, (merging, initial) in self._parts.items():
                default: Tensor | list[Tensor] = [] if merging == "cat" else initial
                self.add_state(self._attributes[name], default, dist_reduce_fx=merging)
        self._set_initial_state()

    def _set_initial_state(self) -> None:
        for name, part in self._parts.items():
            self.set(name, part.initial)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Any:
        # `fn` may both move and convert tensors. The state must move, but keep its precision.
        probe = fn(torch.empty(0, dtype=torch.bool, device=self._result_device))
        self._result_device = probe.device
        state = self._tensors()
        module = super()._apply(lambda value: value.to(self.state_device), *args, **kwargs)
        for name, value in state.items():
            self.set(name, value)
        self._computed = None  # which torchmetrics would return again
        return module

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plots one value or several, as all metrics of torchmetrics do.

        Args:
            val: A value that :meth:`compute` returned, or a list of such values.
                (default: `None`, the current value)
            ax: The axes to plot on. (default: `None`, new axes)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import modules
            >>> metric = modules.Recall(k=2)
            >>> metric.update(torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]]))
            >>> figure, axes = metric.plot()  # needs torchmetrics and matplotlib
        """
        check_torchmetrics("plot")
        return self._plot(val, ax)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({shown})"
