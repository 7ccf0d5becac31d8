"""The screenshots of README and docs in a real browser: the page of a server, and the file of `regard look`.

python docs/screenshots.py runs/multi30k "Two dogs run through the snow." docs/images
python docs/screenshots.py runs/stories "Once upon a time" docs/images
python docs/screenshots.py runs/demo-masked "Tuesday, [MASK] 3, 2026: in 5 [MASK]" docs/images
python docs/screenshots.py runs/voice seven.wav docs/images

It starts `regard serve` with the model and types the text: a sentence, or the beginning of one for a language
model. It needs Debian's Chromium and Playwright
(`pip install 'regard[dev]'`).
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import regard
from regard.tasks.encoder import Encoding
from regard.tasks.task import task_of

SIZE = {"width": 1120, "height": 840}
PHONE = {"width": 390, "height": 844}
FADED = 500  # ms until every colour stands


@contextmanager
def served(model: str) -> Iterator[str]:
    """The address of a server with this model, ready."""
    words = [sys.executable, "-m", "regard", "serve", "--port", "0", "-m", model]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = (re.search(r"http://\S+:\d+", line) for line in process.stderr)
            yield next(match[0] for match in found if match)
        finally:
            process.terminate()


def opened(browser: Any, address: str, text: str, **options: Any) -> Any:
    """The page with the text translated and looked into; it waits for a server that is still loading."""
    page = browser.new_page(**({"viewport": SIZE, "device_scale_factor": 1.5} | options))
    page.goto(address)
    page.locator("textarea").fill(text)
    page.locator(".links .queries button").first.wait_for(timeout=120_000)
    return page


def point(page: Any, at: int) -> None:
    """Point at a word of the translation."""
    page.locator(".said").nth(at).hover()
    page.wait_for_timeout(FADED)


def shoot_file(browser: Any, model: str, text: str, images: Path) -> None:
    """The links of one word in the file of `regard look`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "look.html"
        regard.look(model.rpartition("=")[2], text).save(path)
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
        page.goto(path.as_uri())
        page.locator(".links .queries button").nth(4).hover()
        page.wait_for_timeout(FADED)
        page.screenshot(path=images / "look.png")


def shoot(browser: Any, address: str, text: str, images: Path) -> None:
    """The page in light and dark, a head, the walk, what is beside it, the curve, the page on a phone."""
    for name, scheme in (("page", "light"), ("page-dark", "dark")):
        page = opened(browser, address, text, color_scheme=scheme)
        point(page, 4)
        page.screenshot(path=images / f"{name}.png")
    page = opened(browser, address, text)
    page.locator('.grid [data-head="1"]').nth(1).click()
    page.locator(".links .queries button").nth(4).click()
    page.locator(".steps button").last.click()
    page.mouse.move(1, 1)
    page.wait_for_timeout(FADED)
    page.locator(".pair").screenshot(path=images / "head.png")
    page.locator(".card.path").screenshot(path=images / "walk.png")
    page.locator(".card.entering").screenshot(path=images / "enters.png")
    page.locator(".fed .segmented button").nth(-2).click()
    page.wait_for_timeout(FADED)
    page.locator(".card.feeding").screenshot(path=images / "between.png")
    page.locator(".card.searched").screenshot(path=images / "beam.png")
    page.locator("[data-value=model]").click()
    page.wait_for_timeout(FADED)
    page.locator(".model-panel section").nth(1).screenshot(path=images / "learned.png")
    page = opened(browser, address, text, viewport=PHONE, is_mobile=True, has_touch=True)
    point(page, 4)
    page.screenshot(path=images / "phone.png")


def shoot_writing(browser: Any, address: str, text: str, images: Path) -> None:
    """The page of a language model, with one token pointed at."""
    page = browser.new_page(viewport=SIZE | {"height": 1000}, device_scale_factor=1.5)
    page.set_default_timeout(120_000)
    page.goto(f"{address}/#{urlencode({'q': text})}")
    page.get_by_label("Temperature").fill("0.6")
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Write on").click()
    page.locator(".links .queries button").nth(40).wait_for()
    page.locator(".said").nth(5).click()
    page.mouse.move(2, 2)
    page.wait_for_timeout(FADED)
    page.screenshot(path=images / "write.png")


def shoot_reading(browser: Any, address: str, text: str, path: Path) -> None:
    """The page of an encoder, with what it makes of the text and one word that looks."""
    page = browser.new_page(viewport=SIZE | {"height": 1000}, device_scale_factor=1.5)
    page.set_default_timeout(120_000)
    page.goto(f"{address}/#{urlencode({'q': text})}")
    page.locator("[data-value=inside]").click()
    page.locator(".links .queries button").nth(4).click()
    page.mouse.move(2, 2)
    page.wait_for_timeout(FADED)
    page.screenshot(path=path)


def shoot_hearing(browser: Any, address: str, recording: str, images: Path) -> None:
    """The page of a recogniser, with words under the sound and one token pointed at."""
    page = browser.new_page(viewport=SIZE | {"height": 1000}, device_scale_factor=1.5)
    page.set_default_timeout(300_000)
    page.goto(address)
    page.locator("input[type=file]").set_input_files(recording)
    page.locator(".sound-tokens button").nth(4).hover()
    page.wait_for_timeout(FADED)
    page.screenshot(path=images / "speech.png", full_page=True)


def main() -> None:
    """Write the pictures of one sentence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model folder, or en-de=FOLDER")
    parser.add_argument("text")
    parser.add_argument("images", type=Path)
    given = parser.parse_args()
    with served(given.model) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        task = task_of(Path(given.model.rpartition("=")[2]))
        if task.name == "language":
            shoot_writing(browser, address, given.text, given.images)
        elif task.name == "speech":
            shoot_hearing(browser, address, given.text, given.images)
        elif isinstance(task, Encoding):
            shoot_reading(browser, address, given.text, given.images / f"{task.verb}.png")
        else:
            shoot_file(browser, given.model, given.text, given.images)
            shoot(browser, address, given.text, given.images)
        browser.close()


if __name__ == "__main__":
    main()
