"""Two hundred hostile strings as text, translation, token, term, model name and card: the page runs none."""

import json
import shutil
from typing import Any

import pytest
from hostile import HOSTILE


def unharmed(shown: Any) -> None:
    """Only what we put there is there."""
    assert shown.page.locator("script").count() == 1
    assert shown.page.locator("iframe, img, object, embed, form, a:not(footer a), style").count() == 0
    assert shown.page.title() == "Regard"
    shown.calm()


def answers(texts: list[str]) -> tuple[str, dict[str, Any]]:
    """What `/translate` might say: a word for each string, other readings, and events of a stream."""
    whole, words = "", []
    for text in texts:
        source = {"start": 0, "end": 1, "text": text}
        end = len(whole) + len(text)
        words.append({"text": text, "start": len(whole), "end": end, "confidence": 0.5, "from": [source]})
        whole += text + "\n"
    tree = {"translatedText": whole, "alternatives": texts, "words": words}
    return (
        f"data: {json.dumps({'index': 0, 'text': whole})}\n\nevent: done\ndata: {json.dumps(tree)}\n\n",
        tree,
    )


def document(texts: list[str]) -> dict[str, Any]:
    """What `/attention` might say: every string a token."""
    count = len(texts)
    words = [{"text": text, "first": i, "end": i + 1} for i, text in enumerate(texts)]
    side = {"title": texts[2], "tokens": texts, "special": [], "words": words}
    guesses = {"confidence": [0.5] * count, "runners": [[[text, 0.25]] for text in texts]}
    head = {"weights": [[1 / count] * count] * count, "entropy": 1.0, "behaviour": "spread", "shares": {}}
    kinds = {"encoder": ("source", "source"), "cross": ("target", "source")}
    maps = [
        {
            "name": texts[i],
            "kind": kind,
            "layer": 0,
            "queries": sides[0],
            "keys": sides[1],
            "causal": False,
            "heads": [head],
        }
        for i, (kind, sides) in enumerate(kinds.items())
    ]
    return {
        "format": "regard-look",
        "version": 1,
        "model": {"name": texts[0], "card": texts[1]},
        "task": "translation",
        "text": texts[0],
        "answer": texts[1],
        "translation": texts[1],
        "given": 0,
        "score": -1.0,
        "truncated": False,
        "beam": 1,
        "off": {texts[1]: [0]},
        "sides": {"source": side, "target": side | guesses, "read": side},
        "alignment": None,
        "maps": maps,
    }


@pytest.mark.parametrize("part", range(4))
def test_none_runs_that_the_server_says(visit, part):
    texts = HOSTILE[part * 50 : part * 50 + 50]
    stream, tree = answers(texts)

    def before(page: Any) -> None:
        page.route("**/translate", lambda route: route.fulfill(body=stream, content_type="text/event-stream"))
        page.route("**/attention", lambda route: route.fulfill(json=document(texts)))

    shown = visit("a", before=before)
    page = shown.page
    assert page.locator(".answer").text_content() == tree["translatedText"]
    assert page.locator(".said").all_text_contents() == texts
    page.locator(".said").first.hover()
    page.locator(".reading").first.click()
    inside = shown.inside()
    assert inside.locator(".links .queries button").all_text_contents() == texts
    inside.locator(".links .queries button").nth(7).click()
    inside.locator(".grid .small").last.click()
    inside.locator("[data-value=encoder]").click()
    unharmed(shown)


def test_none_runs_that_is_typed_or_a_term(visit):
    """With the real server: the text goes there and back, and so do the terms of a glossary."""
    rows = [{"term": f"x{i}", "wanted": text, "keep": False} for i, text in enumerate(HOSTILE[::4])]

    def before(page: Any) -> None:
        page.add_init_script(f"localStorage.setItem('regard-glossary-en-de', {json.dumps(json.dumps(rows))})")

    shown = visit("x0 x1 x2", before=before)
    shown.page.locator("[data-value=glossary]").click()
    assert shown.page.locator(".wanted").nth(2).input_value() == rows[2]["wanted"]
    old = shown.said()
    for part in range(5):
        text = "\n".join(HOSTILE[part * 40 : part * 40 + 40]).replace("\r", "").replace("\x00", "")
        shown.page.locator("textarea").fill(text + "\nx7")
        assert rows[7]["wanted"] in (old := shown.said(unlike=old))
        assert shown.page.locator(".mirror").text_content() == text + "\nx7\u200b"
    unharmed(shown)


def test_no_name_and_no_card_runs(visit, start, model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "<img src=x onerror=alarm(1)>\"'&lt;")
    card = "\n\n".join([*HOSTILE, *(f"# {text}\n- {text}\n" for text in HOSTILE), "| a |\n|---|", *HOSTILE])
    (folder / "README.md").write_text(card, encoding="utf-8")
    with start("-m", f"en-de={folder}") as server:
        shown = visit(server=server)
        shown.page.locator("[data-value=model]").click()
        assert shown.page.locator(".top .model").text_content() == folder.name
        assert shown.page.locator(".card-text li").count() >= len(HOSTILE)
        shown.page.evaluate(
            """async (texts) => { const { drawModel } = await import("./model.js");
                for (const text of texts) drawModel(document.querySelector(".model-panel"),
                    {name: text, card: "`" + text + "` **" + text + "**\\n| " + text + " |",
                     config: {model: {kind: text, n_heads: text}, positions: {kind: text}},
                     metrics: [{seconds: text, loss: text}, {seconds: 1, loss: 2}]}); }""",
            HOSTILE,
        )
        assert shown.page.locator(".parts dd").first.text_content() == HOSTILE[-1]
        unharmed(shown)
