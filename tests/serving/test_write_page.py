"""The page for language models in a real browser: write on, point, take another token, heads off, stop.

The model is drawn, not trained; what must be shown is what the API says.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import Shown

TEXT = "the cat"


@pytest.fixture(scope="module")
def both(model: Any, language_model: Any, start: Any) -> Iterator[Any]:
    """A server of a translator and a language model."""
    with start("-m", f"en-de={model}", "-m", language_model) as server:
        yield server


class Writing(Shown):
    """The page, opened."""

    def dial(self, **values: float) -> None:
        """Set some dials by their names."""
        for name, value in values.items():
            self.page.get_by_label(name.replace("_", "-"), exact=False).first.fill(str(value))

    def write(self, button: str = "Write on") -> str:
        """What stands there when it is written."""
        self.page.get_by_role("button", name=button).click()
        return self.done()

    def done(self) -> str:
        self.page.wait_for_function(
            """() => document.querySelector(".primary").textContent === "Write on"
                && document.querySelector(".said")"""
        )
        return "".join(self.page.locator(".said").all_text_contents())


@pytest.fixture
def write_page(browser: Any, writing: Any) -> Iterator[Callable[..., Writing]]:
    """`write_page(text)`: the page with this text; greedy, seven tokens; `before(page)` prepares it."""
    contexts = []

    def go(text: str = TEXT, *, before: Any = None, server: Any = writing, **options: Any) -> Writing:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        context.set_default_timeout(20_000)
        contexts.append(context)
        shown = Writing(context.new_page(), server)
        if before:
            before(shown.page)
        shown.page.goto(f"{server.url}/#{urlencode({'task': 'language', 'q': text})}")
        shown.page.locator(".paper").wait_for()
        shown.dial(Temperature=0, Tokens=7)
        return shown

    yield go
    for context in contexts:
        context.close()


def said(server: Any, **fields: Any) -> Any:
    """What the API says."""
    asked = {"max_tokens": 7, "temperature": 0, "logprobs": 5, "return_token_ids": True}
    return server.post("/v1/completions", asked | fields).tree["choices"][0]


def test_a_text_is_written_on_and_on(write_page, writing):
    shown = write_page()
    first = said(writing, prompt=TEXT)
    assert shown.write() == first["text"]
    ids = first["prompt_token_ids"] + first["token_ids"]
    assert shown.write() == first["text"] + said(writing, prompt=ids)["text"]
    assert shown.page.locator("textarea").input_value() == TEXT
    shown.page.locator("textarea").press_sequentially(" s")
    assert shown.page.locator(".said").count() == 0, "what was written does not fit another text"
    shown.page.keyboard.press("Control+Enter")
    assert shown.done() == said(writing, prompt=f"{TEXT} s")["text"]
    shown.calm()


def test_a_token_tells_how_probable_it_was_and_another_takes_its_place(write_page, writing):
    shown = write_page()
    page = shown.page
    shown.write()
    choice = said(writing, prompt=TEXT)
    sure = [math.exp(each) for each in choice["logprobs"]["token_logprobs"]]
    doubt = page.locator(".said").evaluate_all(
        "all => all.map((node) => parseFloat(node.style.getPropertyValue('--doubt')))"
    )
    assert doubt == pytest.approx([100 * max(0, (0.8 - each) / 0.8) for each in sure], abs=0.51)
    page.locator(".said").nth(3).click()
    assert f"{100 * sure[3]:.1f}%" in page.locator(".told").text_content()
    runners = [each for each in choice["logprobs"]["runners"][3] if each[0] != choice["token_ids"][3]]
    assert page.locator(".runner").count() == len(runners)
    page.locator(".runner").nth(1).click()
    found = shown.done()
    ids = [*choice["prompt_token_ids"], *choice["token_ids"][:3], runners[1][0]]
    start = "".join(choice["logprobs"]["tokens"][:3]) + runners[1][1]
    assert found == start + said(writing, prompt=ids)["text"]
    page.locator(".answer").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".said.aimed").get_attribute("data-at") == "1"
    assert page.locator(".runner").count() > 0
    shown.calm()


def test_what_the_server_refuses_is_said(write_page):
    shown = write_page("a" * 300)
    shown.page.get_by_role("button", name="Write on").click()
    shown.page.locator(".paper + .notice").wait_for()
    assert "the model has 211 places" in shown.page.locator(".paper + .notice").text_content()


def test_a_server_that_is_not_ready_is_asked_again(write_page, writing):
    refused = []

    def answer(route: Any) -> None:
        if len(refused) > 1:
            route.continue_()
            return
        refused.append(route)
        route.fulfill(status=503, headers={"Retry-After": "1"}, body="{}")

    shown = write_page(before=lambda page: page.route("**/v1/completions", answer))
    shown.page.get_by_role("button", name="Write on").click()
    shown.page.locator(".paper + .notice").wait_for()
    assert "not ready" in shown.page.locator(".paper + .notice").text_content()
    assert shown.done() == said(writing, prompt=TEXT)["text"]
    shown.page.locator(".paper + .notice").wait_for(state="hidden")


def test_one_chooses_between_tasks(write_page, both):
    shown = write_page(server=both)
    page = shown.page
    shown.write()
    page.locator(".top [data-value=translation]").click()
    page.locator(".desk").wait_for()
    page.locator("textarea").fill("a b")
    assert shown.said() == both.translate("a b")["translatedText"]
    page.locator(".top [data-value=language]").click()
    page.locator(".paper").wait_for()
    page.locator("[data-value=model]").last.click()
    assert page.locator(".card-text h3").text_content() == "A language model"
    shown.calm()
