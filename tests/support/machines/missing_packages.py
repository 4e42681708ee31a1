"""Pretends that a package is not installed."""

import builtins


def hide_package(monkeypatch, package):
    """Lets every import of a package and of its modules fail."""
    import_module = builtins.__import__

    def import_all_but_package(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return import_module(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_all_but_package)
