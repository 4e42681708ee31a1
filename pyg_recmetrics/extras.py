"""Packages that only some features need, and what to install where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def requires_package(package: str, needed_by: str) -> Iterator[None]:
    """Turns a failed import inside into an error that says what to install.

    Args:
        package (str): The package that is imported, or several with `" and "` between them.
        needed_by (str): The function that needs it.

    Raises:
        ImportError: If the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        wanted = f"pip install {package.replace(' and ', ' ')}"
        raise ImportError(f"'{needed_by}' needs {package}: {wanted}") from error
