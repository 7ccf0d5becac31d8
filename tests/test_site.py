"""The site that `make site` built of docs/: it is whole, has a search, and asks nothing of the network."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from command import ROOT

SITE = ROOT / "site"
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}  # what a browser loads by itself


class Loads(HTMLParser):
    """The addresses that a page loads, other than by a reader's click."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(given.get("href") or "")
        elif address := given.get(FETCHED.get(tag, "")):
            self.found.append(address)


@pytest.fixture(scope="module")
def site() -> Path:
    """The site; `make check` builds it before it runs the tests, and CI is that."""
    if not (SITE / "index.html").exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no site: make site")
    return SITE


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in pages}
    for path in pages:
        loads = Loads()
        loads.feed(path.read_text(encoding="utf-8"))
        assert [each for each in loads.found if re.match(r"(https?:)?//", each)] == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_the_search_finds_words_of_the_pages(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    found = {entry["location"].partition("#")[0] for entry in entries if "linformer" in entry["text"].lower()}
    assert {"docs/long.html", "docs/notebooks/swap_an_attention.ipynb.html"} <= found
    assert not any(entry["location"].startswith("regard/attention/") for entry in entries)  # sources are not


def test_a_notebook_is_a_page_with_its_pictures(site: Path) -> None:
    page = (site / "docs" / "notebooks" / "train_and_look.ipynb.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") >= 2
    assert 'href="../../docs/notebooks/swap_an_attention.ipynb.html"' in page or (
        'href="swap_an_attention.ipynb.html"' in page
    )
