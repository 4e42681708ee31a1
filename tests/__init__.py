"""The tests, which mirror the package, and what supports them."""
