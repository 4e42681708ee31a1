"""The headless Chromium of the system."""

import shutil
from contextlib import contextmanager

import pytest

#: The commands that may start one.
COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    """The path of Chromium. Skips what needs it where it or Playwright is not installed."""
    pytest.importorskip("playwright", reason="needs Playwright, of the extra 'browser'")
    for command in COMMANDS:
        if path := shutil.which(command):
            return path
    pytest.skip(f"needs Chromium: none of {', '.join(COMMANDS)} is on the PATH")


@contextmanager
def open_browser(path):
    # It has an event loop of its own, which has to be closed before other tests run one.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()
