"""The page for recognisers in a real browser: a recording is chosen or spoken, and its words are shown."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser import PLACES, Opened, barriers
from listeners import write_listener
from PIL import Image

from regard.audio.tones import write_calls


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory, start: Any) -> Any:
    with start("-m", write_listener(tmp_path_factory.mktemp("page") / "ears")) as server:
        yield server


@pytest.fixture(scope="module")
def speaking(browser: Any) -> Any:
    """A browser with a microphone in which somebody whistles."""
    fake = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--no-sandbox"]
    found = next(filter(None, map(shutil.which, PLACES)))
    launched = browser.browser_type.launch(executable_path=found, args=fake)
    yield launched
    launched.close()


def visited(browser: Any, server: Any, **options: Any) -> Opened:
    context = browser.new_context(viewport={"width": 1000, "height": 1400}, **options)
    context.set_default_timeout(60_000)
    shown = Opened(context.new_page())
    shown.page.goto(f"{server.url}/")
    shown.page.locator(".seeing").wait_for()
    return shown


def test_words_appear_under_the_sound_and_tell_where_they_were_heard(
    browser: Any, hearing: Any, tmp_path: Path
) -> None:
    shown = visited(browser, hearing)
    page = shown.page
    call = write_calls(tmp_path, 5, 1).parent / "5.wav"
    with page.expect_response(lambda response: "attention" in response.url) as looked:
        page.locator("input[type=file]").set_input_files(str(call))
    tree = looked.value.json()
    page.locator(".sound-tokens button").first.wait_for()
    words = page.locator(".sound-word").all_inner_texts()
    assert words
    assert " ".join(page.locator(".said-text").inner_text().split()) == " ".join(words)
    drawn = page.locator(".sound-strip canvas").screenshot()
    assert len({*Image.open(io.BytesIO(drawn)).convert("L").tobytes()}) > 30
    assert page.locator(".sound-tokens button").count() == len(tree["tokens"])
    last = page.locator(".sound-tokens button").last
    last.hover()
    assert last.get_attribute("aria-pressed") == "true"
    row = [
        sum(head[-1][place] for head in tree["maps"][-1]["heads"])
        for place in range(len(tree["maps"][-1]["heads"][0][0]))
    ]
    moment = row.index(max(row)) * tree["maps"][-1]["moment"]
    assert f"at {moment:.2f} s" in page.locator(".sound-look .hint").inner_text()
    assert page.locator(".sound-pair figure").count() == 2
    assert barriers(page, "critical", "serious") == []
    page.get_by_role("group", name="Head", exact=True).get_by_text("head 1").click()
    with page.expect_response(lambda response: "attention" in response.url) as again:
        page.get_by_text("Switch it off").click()
    assert again.value.json()["off"] == {"decoder.1.cross": [1]}
    assert shown.errors == []
    page.context.close()


def test_what_is_no_sound_is_said(browser: Any, hearing: Any, tmp_path: Path) -> None:
    shown = visited(browser, hearing)
    broken = tmp_path / "broken.wav"
    broken.write_text("no sound")
    shown.page.locator("input[type=file]").set_input_files(str(broken))
    shown.page.locator(".notice", has_text="broken.wav is no sound").wait_for()
    shown.page.context.close()


def test_somebody_speaks(speaking: Any, hearing: Any) -> None:
    shown = visited(speaking, hearing, permissions=["microphone"])
    page = shown.page
    page.get_by_role("button", name="Record", exact=True).click()
    page.get_by_role("button", name="Stop").wait_for()
    page.wait_for_timeout(1500)
    with page.expect_response(lambda response: "transcriptions" in response.url) as answered:
        page.get_by_role("button", name="Stop").click()
    assert answered.value.status == 200
    page.locator(".sound-strip canvas").wait_for()
    page.wait_for_function("() => document.querySelector('.said-text').textContent")
    assert shown.errors == []
    page.context.close()
