"""Two models of one pair of languages on a server, one of which writes all at once: each is asked by name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import barriers

from regard.config import merge
from regard.models import build
from regard.models.folder import load_folder, save

LINES = ["a b c", "d e f g", "h i"]
TEXT = "a b c\nd e f g\n\nh i"
NAMES = {"steps": "word by word", "ctc": "all at once"}


@pytest.fixture(scope="module")
def decoders(model: Path, start: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of the small model, and of one that writes at once with its weights."""
    held, base = load_folder(model), tmp_path_factory.mktemp("decoders")
    for name, kind in (("steps", "transformer"), ("ctc", "ctc")):
        known = {"text.source": "en", "text.target": "de", "model.kind": kind, "decode.beam": 1}
        config = merge(held.config, known)
        made = build(config)
        made.load_state_dict(held.model.state_dict()) if kind == "transformer" else made.adopt(held.model)
        save(base / name, config=config, model=made.eval(), tokenizer=held.tokenizer, card="# One\n")
    with start("-m", base / "steps", "-m", base / "ctc") as server:
        yield server
    assert "Traceback" not in "".join(server.said)


def events(body: bytes) -> list[tuple[str, Any]]:
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines.get("event", ""), json.loads(lines["data"])))
    return found


def test_each_is_listed_with_how_it_writes_and_asked_by_its_name(decoders: Any) -> None:
    listed = decoders.get("/v1/models").tree["data"]
    assert {each["id"]: each["writes"] for each in listed} == NAMES
    assert {(each["source"], each["target"]) for each in listed} == {("en", "de")}
    first, *both = (decoders.translate(TEXT, **asked) for asked in ({}, {"model": "steps"}, {"model": "ctc"}))
    assert first == both[0] != both[1]
    (card,) = decoders.get("/model?source=en&target=de&model=ctc").tree
    assert card["config"]["model"]["kind"] == "ctc"
    seen = [
        decoders.post("/attention", {"q": "a b c", "source": "en", "target": "de", "model": name}).tree
        for name in NAMES
    ]
    assert [each["answer"] for each in seen] == [
        decoders.translate("a b c", model=name)["translatedText"] for name in NAMES
    ]
    assert ["passes" in each for each in seen] == [False, True]


def test_another_name_is_refused_with_those_there_are(decoders: Any) -> None:
    said = decoders.post("/translate", {"q": "a", "source": "en", "target": "de", "model": "nobody"})
    assert said.status == 400
    assert said.tree["error"] == "no model 'nobody' translates from en to de; there are steps, ctc"


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_sends_what_is_final(decoders: Any, name: str) -> None:
    """Whole sentences, in order, none of which is taken back."""
    asked = {"q": TEXT, "source": "en", "target": "de", "model": name}
    *pieces, (last, whole) = events(decoders.post("/translate/stream", asked).body)
    alone = [decoders.translate(part, model=name)["translatedText"] for part in LINES]
    assert last == "done"
    assert [piece["text"] for _, piece in pieces if piece["text"].strip()] == alone
    assert "".join(piece["text"] for _, piece in pieces) == whole["translatedText"]
    assert whole == decoders.translate(TEXT, model=name)


def test_the_page_switches_between_them(decoders: Any, visit: Any) -> None:
    shown = visit("a b c", server=decoders)
    page = shown.page
    first = shown.said()
    assert first == decoders.translate("a b c", model="steps", alternatives=3)["translatedText"]
    switch = page.get_by_role("group", name="How it is written")
    assert switch.get_by_role("button").all_text_contents() == ["Word by word", "All at once"]
    assert page.locator(".inside .passes-list").count() == 0
    switch.get_by_role("button", name="All at once").click()
    other = shown.said(unlike=first)
    assert other == decoders.translate("a b c", model="ctc", alternatives=3)["translatedText"]
    assert "model=ctc" in page.url
    shown.inside()
    page.locator(".inside .passes-list li").first.wait_for()
    page.wait_for_function("() => document.querySelector('bdi.model').textContent === 'ctc'")
    assert barriers(page, "serious", "critical") == []
    page.reload()  # the address holds the choice
    assert shown.said() == other
    shown.calm()
