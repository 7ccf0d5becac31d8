"""A real browser for the tests of pages: Chromium, driven by Playwright. Missing, the tests are skipped."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PLACES = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def _missing(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="module")  # while it is open, asyncio cannot be used by others
def browser() -> Iterator[Any]:
    """A browser; pages are opened in contexts of their own."""
    found = next(filter(None, map(shutil.which, PLACES)), None)
    if found is None:
        _missing("no Chromium here (apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed (pip install playwright)")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


def barriers(page: Any, *impacts: str) -> list[tuple[str, list[str]]]:
    """What axe finds that keeps somebody out: the rule, and some of the nodes that break it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is missing")
    found = axe.Axe().run(page).response["violations"]
    grave = [each for each in found if not impacts or each["impact"] in impacts]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in grave]


class Opened:
    """A page, everything it asked of the network, and everything that went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page, self.requests, self.errors, self.alarms = page, [], [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)
        page.on("dialog", self._alarm)
        page.expose_function("alarm", lambda *given: self.alarms.append(given))

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _alarm(self, dialog: Any) -> None:
        self.alarms.append((dialog.message,))
        dialog.dismiss()

    def visit(self, path: Path) -> "Opened":
        self.page.goto(path.as_uri())
        return self

    def quiet(self, path: Path) -> None:
        """Nothing ran that is not ours, nothing failed, nothing was asked of anybody but the file itself."""
        assert self.alarms == []
        assert self.errors == []
        assert [url for url in self.requests if url != path.as_uri()] == []


class Shown(Opened):
    """The page of a server, opened."""

    def __init__(self, page: Any, server: Any) -> None:
        super().__init__(page)
        self.server = server

    def said(self, *, unlike: str = "") -> str:
        """The translation, when it is there with all its words, and another one than before."""
        self.page.wait_for_function(
            """(old) => { const sheet = document.querySelector(".answer");
                return sheet?.querySelector(".said") && sheet.textContent !== old
                    && !document.querySelector("[data-busy]"); }""",
            arg=unlike,
        )
        return str(self.page.locator(".answer").text_content())

    def inside(self) -> Any:
        """The panel with what the heads looked at."""
        self.page.locator(".inside .links .queries button").first.wait_for()
        return self.page.locator(".inside")

    def calm(self) -> None:
        """Nothing failed, nothing ran that is not ours, nothing was asked of anybody but the server."""
        assert self.alarms == []
        assert self.errors == []
        assert {url.split("/", 3)[2] for url in self.requests} == {f"{self.server.host}:{self.server.port}"}


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """`opened(path, **options of a browser's page)`."""
    contexts = []

    def open_page(path: Path, **options: Any) -> Opened:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        context.set_default_timeout(20_000)
        contexts.append(context)
        return Opened(context.new_page()).visit(path)

    yield open_page
    for context in contexts:
        context.close()
