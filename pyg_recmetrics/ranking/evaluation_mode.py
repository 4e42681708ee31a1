"""Puts modules in eval mode while they are ranked, and leaves them as they were found."""

import functools
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy


@dataclass
class _Mode:
    """The mode in which a module was found, and how many rankings it is part of."""

    was_training: bool
    num_rankings: int = 0


#: The modules that are being ranked. Threads may rank one module, or modules that share others.
_modes: dict[torch.nn.Module, _Mode] = {}
_lock = threading.Lock()


@contextmanager
def evaluation_mode(recommender: object) -> Iterator[None]:
    """Puts a model in eval mode without gradients, and leaves it as it was found.

    Where several threads rank a module at once, the last of them restores its mode.

    Args:
        recommender (object): What is ranked: a module, a method of a module, or an object that
            has modules as its attributes. Modules behind anything else are not known.
    """
    roots = list(_modules_behind(recommender))
    modules = list(dict.fromkeys(module for root in roots for module in root.modules()))
    _find(modules)
    try:
        for root in roots:
            root.eval()
        with torch.no_grad():
            yield
    finally:
        _restore(modules)


def bound_object(function: object) -> object:
    """Returns the object whose method a function is, or else the function (or object) itself."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        function = inspect.unwrap(function)
    return getattr(function, "__self__", function)


def state_of(recommender: object) -> dict[str, Tensor] | None:
    """Returns the state of all modules that are known of a recommender; `None` if they have none.

    Args:
        recommender (object): See :func:`evaluation_mode`.
    """
    state = {
        f"{number}.{name}": value
        for number, module in enumerate(_modules_behind(recommender))
        for name, value in module.state_dict().items()
        if isinstance(value, Tensor) and not is_lazy(value)
    }
    return state or None


def _modules_behind(recommender: object) -> Iterator[torch.nn.Module]:
    if isinstance(recommender, Tensor | tuple):
        return
    source = bound_object(recommender)
    # An object may have been given the method of another one, and a scorer of pairs its function.
    given = (getattr(source, name, None) for name in ("recommend", "function"))
    for candidate in (source, *map(bound_object, given)):
        if isinstance(candidate, torch.nn.Module):
            yield candidate
        else:
            attributes = getattr(candidate, "__dict__", {}).values()
            yield from (value for value in attributes if isinstance(value, torch.nn.Module))


def _find(modules: list[torch.nn.Module]) -> None:
    with _lock:
        for module in modules:
            _modes.setdefault(module, _Mode(module.training)).num_rankings += 1


def _restore(modules: list[torch.nn.Module]) -> None:
    with _lock:
        for module in modules:
            mode = _modes[module]
            mode.num_rankings -= 1
            if mode.num_rankings == 0:
                module.training = mode.was_training
                del _modes[module]
