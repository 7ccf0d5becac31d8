"""The page for language models in a real browser: write on, point, take another token, heads off, stop.

The model is drawn, not trained; what must be shown is what the API says.
"""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import PHONE, Shown, barriers
from hostile import HOSTILE

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
        context.set_default_timeout(60_000)  # another test may run beside it
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


LIES_BESIDE = """() => {
    const mirror = document.createRange();
    mirror.selectNodeContents(document.querySelector(".mirror"));
    const parts = [mirror, document.querySelector(".said")];
    const [typed, said] = parts.map((each) => each.getBoundingClientRect());
    return [said.left - typed.right, said.top - typed.top];
}"""  # how far what is written begins from where the text that was typed ends


def test_what_is_written_follows_in_place(write_page):
    shown = write_page()
    shown.write()
    gap, drop = shown.page.evaluate(LIES_BESIDE)
    assert abs(gap) < 2
    assert abs(drop) < 8


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


def test_a_head_that_is_off_is_off_while_it_writes(write_page, writing):
    shown = write_page()
    page, sent = shown.page, []
    page.on("request", lambda each: sent.append(each) if each.url.endswith("/completions") else None)
    whole = shown.write()
    shown.inside().locator(".power").first.click()
    page.locator(".silenced").wait_for()
    without = shown.done()
    off = json.loads(sent[-1].post_data)["heads_off"]
    assert sum(map(len, off.values())) == 1
    assert without == said(writing, prompt=TEXT, heads_off=off)["text"]
    page.get_by_role("button", name="Switch all on").click()
    page.wait_for_function("(old) => document.querySelector('.answer').textContent === old", arg=whole)
    assert json.loads(sent[-1].post_data)["heads_off"] == {}
    shown.calm()


def test_a_second_press_stops_it(write_page, writing):
    held, failed = [], []

    def gave_up(request: Any) -> None:
        if request.url.endswith("/completions"):
            failed.append(request.failure)

    def before(page: Any) -> None:
        page.on("requestfailed", gave_up)
        page.route("**/v1/completions", lambda route: held.append(route))

    shown = write_page(before=before)
    page = shown.page
    page.get_by_role("button", name="Write on").click()
    page.wait_for_function("() => document.querySelector('.primary').textContent === 'Stop'")
    while not held:
        page.wait_for_timeout(20)
    page.get_by_role("button", name="Stop").click()
    page.wait_for_function("() => document.querySelector('.primary').textContent === 'Write on'")
    while not failed:
        page.wait_for_timeout(20)
    assert failed == ["net::ERR_ABORTED"]
    assert page.locator(".said").count() == page.locator(".paper + .notice:visible").count() == 0
    page.unroute("**/v1/completions")
    assert shown.write() == said(writing, prompt=TEXT)["text"]


def test_hostile_tokens_are_text(write_page):
    """The prompt, the tokens and their runners-up."""
    tokens = HOSTILE[:: max(1, len(HOSTILE) // 23)]

    def event(text: str) -> str:
        seen = {"tokens": [text], "token_logprobs": [-0.5], "runners": [[[5, text, -0.5], [6, text, -1.0]]]}
        choice = {"text": text, "token_ids": [5], "prompt_token_ids": [7], "logprobs": seen}
        return f"data: {json.dumps({'choices': [choice]})}\n\n"

    def answer(route: Any) -> None:
        body = "".join(map(event, tokens)) + "data: [DONE]\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    shown = write_page(HOSTILE[0], before=lambda page: page.route("**/v1/completions", answer))
    page = shown.page
    assert shown.write() == "".join(tokens)
    shown.inside()
    for at in range(0, len(tokens), 5):
        page.locator(".said").nth(at).click()
        assert page.locator(".runner bdi").text_content() == tokens[at]
    shown.calm()


def test_a_phone_is_wide_enough(write_page):
    shown = write_page("the cat sat on the mat and saw", **PHONE)
    page = shown.page
    shown.write()
    shown.inside()
    page.locator(".said").nth(2).tap()
    page.locator(".runner").first.wait_for()
    for panel in ("inside", "model"):
        page.locator(f"[data-value={panel}]").tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    shown.calm()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(write_page, scheme):
    shown = write_page(color_scheme=scheme, reduced_motion="reduce")
    page = shown.page
    shown.write()
    shown.inside().locator(".power").first.click()
    page.locator(".silenced").wait_for()
    shown.done()
    page.locator(".said").nth(3).click()
    for panel in ("inside", "model"):
        page.locator(f"[data-value={panel}]").click()
        assert barriers(page) == []
