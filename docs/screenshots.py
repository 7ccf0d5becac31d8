"""The screenshots of README: the page of `regard look` in a real browser, one head, and the walk through it.

python docs/screenshots.py runs/multi30k "Two dogs run through the snow." docs/images

It needs Debian's Chromium and Playwright (`pip install 'regard[dev]'`).
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import regard

SIZE = {"width": 1120, "height": 820}


def shoot(page: Any, images: Path) -> None:
    """Three pictures: links of one word, one head opened, the walk."""
    page.locator(".links .queries button").nth(4).hover()
    page.wait_for_timeout(250)  # colours fade in
    page.screenshot(path=images / "look.png", clip={"x": 0, "y": 0, **SIZE})
    page.mouse.move(1, 1)
    page.locator('.grid [data-head="1"]').nth(1).click()
    page.locator(".links .queries button").nth(4).click()
    page.mouse.move(1, 1)
    page.wait_for_timeout(250)
    page.locator(".pair").screenshot(path=images / "head.png")
    page.locator(".card.path").screenshot(path=images / "walk.png")


def main() -> None:
    """Write the pictures of one sentence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text")
    parser.add_argument("images", type=Path)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "look.html"
        regard.look(given.model, given.text).save(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        scheme = "dark" if given.dark else "light"
        page = browser.new_page(viewport=SIZE, color_scheme=scheme, device_scale_factor=1.5)
        page.goto(path.as_uri())
        shoot(page, given.images)
        browser.close()


if __name__ == "__main__":
    main()
