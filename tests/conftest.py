"""Markers `gpu` and `browser`, and the browser itself."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import CHROMIUM_OPTIONS, chromium_path

# Processes that tests start find the bytecode that the first of them leaves: kernels start sooner.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What one of them compiles serves the others, and nothing that was compiled before serves any.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="compiled-")
    os.environ["HELPERS_COMPILED"] = _compiled.name

# Which tests come first, where workers share them: what takes long, or one worker would end with
# it while the others have nothing left. Paths begin so; what is not named comes last.
LONG = (
    "tests/slides/test_slides_browser", "tests/slides/", "tests/tools/", "tests/chapters/",
    "tests/figures/test_player", "tests/figures/", "tests/bench/", "tests/exercises/",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: a quarter of the time they wait for browsers and kernels."""
    mine = getattr(os, "sched_getaffinity", None)
    return 1 + (len(mine(0)) if mine else os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nobody looks for garbage among hundreds of thousands of objects that all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A module goes to one worker, which then makes once what its tests share.

    So do all that need JupyterLab. A chapter's deck needs nothing that another one made: decks go
    to whichever worker is free.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    counts = Counter(item.path for item in items)
    for item in items:
        if not alone(item) and not item.get_closest_marker("xdist_group"):
            group = "lab" if "lab" in item.fixturenames else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: (rank(item), not alone(item), -counts[item.path]))


def alone(item: pytest.Item) -> bool:
    """Whether a test can go to another worker than the rest of its module."""
    return bool(item.get_closest_marker("browser") and item.get_closest_marker("slow"))


def rank(item: pytest.Item) -> int:
    """Which of `LONG` a test is of; what uses JupyterLab takes longest."""
    if "lab" in item.fixturenames:
        return -1
    begins = (n for n, path in enumerate(LONG) if item.nodeid.startswith(path))
    return next(begins, len(LONG))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None:
        from helpers import device

        if not device.is_gpu:
            pytest.skip(f"needs a GPU: {device.notice or 'this machine has none'}")
    if item.get_closest_marker("browser") is not None and chromium_path() is None:
        if os.environ.get("CI"):
            pytest.fail("Browser tests must run where CI is set, and there is no Chromium.")
        pytest.skip("needs Chromium: on Debian and Ubuntu, apt install chromium")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Playwright keeps an event loop running in this thread as long as its browser is open.

    What is tested without a browser must find the thread as a script would: with no loop.
    """
    running = asyncio._get_running_loop()
    if running is None or item.get_closest_marker("browser") is not None:
        return (yield)
    asyncio._set_running_loop(None)
    try:
        return (yield)
    finally:
        asyncio._set_running_loop(running)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium under Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=chromium_path(), args=CHROMIUM_OPTIONS
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def firefox(tmp_path_factory):
    """A headless Firefox, or None where there is none or nothing to speak to it with."""
    from importlib.util import find_spec

    import firefox

    if firefox.path() is None or find_spec("websocket") is None:
        yield None
        return
    with firefox.running(tmp_path_factory.mktemp("firefox")) as running:
        yield running


@pytest.fixture
def page(browser):
    """A new page in a profile of its own."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def running_lab(browser, tmp_path_factory):
    """A JupyterLab with a page in the browser."""
    from jupyter_lab import Lab

    with Lab(tmp_path_factory.mktemp("lab")) as running:
        running.start_page(browser)
        yield running
        running.page.context.close()


@pytest.fixture
def lab(running_lab):
    """A JupyterLab with nothing open and no kernel; no script on its page may fail in the test."""
    running_lab.clear()
    failures: list[str] = []
    note = lambda error: failures.append(str(error))  # noqa: E731
    running_lab.page.on("pageerror", note)
    yield running_lab
    running_lab.page.remove_listener("pageerror", note)
    assert not failures, failures


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Where pictures go for people to look at: the folder that SCREENSHOTS names, if it does."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) if folder else None


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    """Runs a chapter on the simulator as an export does, once for all workers and tests that ask.

    `executed(path)` gives an `Executed`, a copy for each caller.
    """
    from helpers.slides.execute import execute, read

    folder = of_all_workers(tmp_path_factory)

    def run(path: Path):
        kept = folder / f"executed-{path.stem}.pickle"
        with alone_at(kept):
            if not kept.exists():
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("HELPERS_DEVICE", "simulator")
                    done = execute(read(path), str(path), path.parent)
                kept.write_bytes(pickle.dumps(done))
        return pickle.loads(kept.read_bytes())

    return run


@pytest.fixture(scope="session")
def deck_of(tmp_path_factory, executed):
    """Makes a chapter's deck as `make slides` does, once for all; `deck_of(path)` is its file."""
    from helpers.slides.build import build

    folder = of_all_workers(tmp_path_factory)

    def made(path: Path) -> Path:
        deck = folder / f"deck-{path.stem}" / f"{path.stem}.html"
        with alone_at(deck.parent):
            if not deck.exists():
                build([path], deck.parent, pdf=False, say=lambda text: None, run=executed)
        return deck

    return made


def of_all_workers(tmp_path_factory) -> Path:
    """A temporary folder that all workers have in common."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder


@contextlib.contextmanager
def alone_at(place: Path) -> Iterator[None]:
    """Keep other workers away from a file or folder as long as this context lasts."""
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
