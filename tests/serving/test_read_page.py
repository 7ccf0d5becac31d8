"""The page for encoders in a real browser: gaps, labels, tags, neighbours, heads off, hostile words.

The models are drawn, not trained; what must be shown is what the API says.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from browser import PHONE, Shown, barriers
from encoders import write_encoder, write_labeller
from hostile import HOSTILE

TEXTS = {
    "masked": "the [MASK] sat on a [MASK].",
    "classify": "the cat sat",
    "tag": "the cats sat",
    "embed": "a dog",
}


@pytest.fixture(scope="module")
def encoding(tmp_path_factory: pytest.TempPathFactory, start: Any) -> Iterator[Any]:
    """A server of one model of each task of encoders."""
    base = tmp_path_factory.mktemp("encoders")
    make = {
        "masked": write_encoder,
        "classify": write_labeller,
        "tag": write_labeller,
        "embed": write_encoder,
    }
    folders = [write(base / task, task) for task, write in make.items()]
    with start(*(word for folder in folders for word in ("-m", folder))) as server:
        yield server


@pytest.fixture
def read_page(browser: Any, encoding: Any) -> Iterator[Callable[..., Shown]]:
    """`read_page(task)`: the page of that task with its text; `before(page)` prepares it."""
    contexts = []

    def go(task: str, text: str | None = None, *, before: Any = None, **options: Any) -> Shown:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        context.set_default_timeout(60_000)  # another test may run beside it
        contexts.append(context)
        shown = Shown(context.new_page(), encoding)
        if before:
            before(shown.page)
        asked = {"task": task, "q": TEXTS[task] if text is None else text}
        shown.page.goto(f"{encoding.url}/#{urlencode(asked)}")
        shown.page.locator(".reads").wait_for()
        return shown

    yield go
    for context in contexts:
        context.close()


def test_gaps_are_filled_and_a_guess_can_be_taken(read_page, encoding):
    shown = read_page("masked")
    page = shown.page
    page.locator(".gap").first.wait_for()
    found = encoding.post("/fill", {"text": TEXTS["masked"], "top": 8}).tree
    assert page.locator(".filled").text_content() == found["text"]
    page.locator(".gap").nth(1).click()
    guesses = [each["text"] for each in found["gaps"][1]]
    assert page.locator(".runner bdi").all_text_contents() == guesses
    assert f"{100 * found['gaps'][1][2]['probability']:.1f}%" in page.locator(".runner").nth(2).text_content()
    page.locator(".runner").nth(2).click()
    assert page.locator("textarea").first.input_value() == f"the [MASK] sat on a {guesses[2]}."
    page.wait_for_function("() => document.querySelectorAll('.gap').length === 1")
    page.locator("textarea").first.fill("the cat sat")
    assert page.locator(".gap").count() == 0, "there is no gap in it"
    page.locator("textarea").first.evaluate("area => area.setSelectionRange(5, 5)")
    page.get_by_role("button", name="Put a gap here").click()
    assert page.locator("textarea").first.input_value() == "the [MASK] sat"
    page.locator(".gap").wait_for()
    shown.calm()


def test_labels_and_tags_are_told_with_their_probabilities(read_page, encoding):
    shown = read_page("classify")
    shown.page.locator(".labels li").first.wait_for()
    found = encoding.post("/classify", {"text": TEXTS["classify"]}).tree
    order = sorted(found["labels"], key=lambda name: -found["labels"][name])
    assert shown.page.locator(".labels bdi").all_text_contents() == order
    assert shown.page.locator(".labels .first bdi").text_content() == found["label"]
    shown.calm()
    shown = read_page("tag")
    shown.page.locator(".tagged-word").first.wait_for()
    found = encoding.post("/tag", {"text": TEXTS["tag"]}).tree
    assert shown.page.locator(".tagged-word bdi").all_text_contents() == found["words"]
    assert shown.page.locator(".tagged-word .tag").all_text_contents() == found["tags"]
    shown.calm()


def test_the_nearest_line_comes_first(read_page, encoding):
    lines = ["the cats sat", "a dog.", "on a mat", "a dog"]
    shown = read_page("embed")
    page = shown.page
    page.get_by_label("Lines to compare with").fill("\n".join(lines))
    page.locator(".nearest li").first.wait_for()
    data = encoding.post("/v1/embeddings", {"model": "embed", "input": ["a dog", *lines]}).tree["data"]
    own, *others = (np.array(each["embedding"]) for each in data)
    near = [float(own @ each) for each in others]
    wanted = [lines[i] for i in np.argsort(near)[::-1]]
    assert page.locator(".nearest bdi").all_text_contents() == wanted
    assert wanted[0] == "a dog"
    assert page.locator(".nearest .figure").first.text_content() == "1.000"
    shown.calm()


@pytest.mark.parametrize("task", ["masked", "classify", "tag"])
def test_a_head_that_is_off_is_off_while_it_reads(read_page, encoding, task):
    path = {"masked": "fill"}.get(task, task)
    shown = read_page(task)
    page, sent = shown.page, []
    page.on("request", lambda each: sent.append(each) if each.url.endswith(f"/{path}") else None)
    shown.inside().locator(".power").first.click()
    page.locator(".silenced").wait_for()
    assert "switched off" in page.locator(".silenced").text_content()
    while not sent:
        page.wait_for_timeout(20)
    asked = json.loads(sent[-1].post_data)
    assert sum(map(len, asked["heads_off"].values())) == 1
    whole, without = (
        encoding.post(f"/{path}", asked | {"heads_off": off}).tree for off in ({}, asked["heads_off"])
    )
    assert whole != without
    page.get_by_role("button", name="Switch all on").click()
    page.locator(".silenced").wait_for(state="detached")
    shown.calm()


def test_what_the_server_refuses_is_said(read_page):
    shown = read_page("masked", "[MASK] " * 12)
    shown.page.locator(".paper + .notice").wait_for()
    assert "14 tokens and the model reads 13" in shown.page.locator(".paper + .notice").text_content()


def test_one_chooses_between_tasks(read_page):
    shown = read_page("tag")
    page = shown.page
    names = page.locator(".top [data-value]").evaluate_all("all => all.map((node) => node.dataset.value)")
    assert [name for name in names if name in TEXTS] == ["masked", "classify", "tag", "embed"]
    page.locator(".top [data-value=classify]").click()
    page.get_by_label("Text to read").fill("a cat")
    page.locator(".labels li").first.wait_for()
    page.locator("[data-value=model]").last.click()
    page.locator(".card-text h3").wait_for()
    shown.calm()


def test_hostile_words_are_text(read_page):
    words = HOSTILE[:: max(1, len(HOSTILE) // 11)]
    told = {"words": words, "tags": words, "probabilities": [0.5] * len(words)}

    def before(page: Any) -> None:
        page.route("**/tag", lambda route: route.fulfill(status=200, json=told))

    shown = read_page("tag", HOSTILE[0], before=before)
    shown.page.locator(".tagged-word").first.wait_for()
    assert shown.page.locator(".tagged-word bdi").all_text_contents() == words
    assert shown.page.locator(".tagged-word .tag").all_text_contents() == words
    shown.calm()


def test_a_phone_is_wide_enough(read_page):
    for task in ("masked", "classify", "tag"):
        shown = read_page(task, **PHONE)
        shown.inside()
        for panel in ("inside", "neighbours", "model"):
            shown.page.locator(f"[data-value={panel}]").tap()
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(read_page, scheme):
    for task, seen in (("masked", ".runner"), ("classify", ".labels li"), ("tag", ".tagged-word")):
        shown = read_page(task, color_scheme=scheme, reduced_motion="reduce")
        page = shown.page
        page.locator(seen).first.wait_for()
        shown.inside()
        for panel in ("neighbours", "model", "inside"):
            page.locator(f"[data-value={panel}]").click()
            assert barriers(page) == []
