"""The Chromium that browser tests use."""

from __future__ import annotations

import shutil

# The first one has no windows: a page of it opens in a fifth of the processor time.
CHROMIUM = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
# No sandbox: containers run as root. The rest keeps a new browser from calling home.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--font-render-hinting=none",  # or the one without windows sets text wider than the others
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    """The Chromium of this machine, if there is one."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)
