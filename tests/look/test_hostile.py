"""Two hundred hostile strings as text, pieces, model name and card: shown as text, run by nobody."""

import dataclasses
import json

import pytest
from hostile import HOSTILE

from regard.attention.site import Site
from regard.look.look import Guess, Look, Origin
from regard.look.words import Side, Word


def hostile(seen: Look, texts: list[str]) -> Look:
    """The look with strings as its text, its pieces, its words, its model's name and card."""

    def side(one: Side, count: int) -> Side:
        tokens = tuple((texts * 9)[:count])
        words = tuple(Word(text, i, i + 1) for i, text in enumerate(tokens))
        return Side(tokens, (False,) * count, words, words)

    count = len(texts)
    maps = tuple(
        dataclasses.replace(m, weights=m.weights.new_full((1, count, count), 1 / count), vectors=None)
        for m in seen.maps
        if m.name in ("encoder.0.self", "decoder.0.cross")
    )
    return dataclasses.replace(
        seen,
        text=texts[0],
        answer=texts[1],
        sides={name: side(one, count) for name, one in seen.sides.items()},
        guesses=tuple(Guess(0.5, ((text, 0.25),)) for text in texts),
        maps=(*maps, dataclasses.replace(maps[0], site=Site(texts[2], 1))),
        origin=Origin(texts[3], "\n".join(texts)),
    )


def test_there_are_two_hundred():
    assert len(set(HOSTILE)) == 200


@pytest.mark.parametrize("part", range(4))
def test_none_runs_in_the_file(opened, seen, tmp_path, part):
    path = tmp_path / "hostile.html"
    texts = HOSTILE[part * 50 : part * 50 + 50]
    hostile(seen, texts).save(path)
    shown = opened(path)
    exercise(shown.page)
    assert shown.page.locator("script").count() == 2
    assert shown.page.locator("iframe, img, a, style + style").count() == 0
    told = shown.page.locator(".links .queries button").all_text_contents()
    assert told == texts
    assert shown.page.title() != "ran"
    shown.quiet(path)


def exercise(page) -> None:
    """Everything that draws, drawn; everything that can be pointed at, pointed at."""
    for kind in ("encoder", "cross"):
        page.locator(f".tools [data-value={kind}]").click()
        page.locator(".links .queries button").first.hover()
        page.locator(".links .queries button").first.click()
        page.locator(".grid .small").last.click()
    page.locator(".tools [data-value=pieces]").click()
    page.locator("canvas.large").focus()
    page.keyboard.press("ArrowDown")
    page.locator("summary").click()
    page.wait_for_timeout(50)


@pytest.mark.parametrize("part", range(2))
def test_none_runs_in_a_notebook(opened, seen, tmp_path, part):
    """A notebook puts `_repr_html_` into its own page, where the frame must hold it."""
    looks = [hostile(seen, HOSTILE[i : i + 10]) for i in range(part * 100, part * 100 + 100, 10)]
    path = tmp_path / "notebook.html"
    frames = "\n".join(each._repr_html_() for each in looks)
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>notebook</title>{frames}", encoding="utf-8")
    shown = opened(path)
    for frame in shown.page.frames[1:]:
        frame.wait_for_selector(".links .word")
        assert frame.evaluate("try { parent.document; 'reached' } catch { 'held' }") == "held"
    assert len(shown.page.frames) == 11
    assert shown.page.title() == "notebook"
    assert shown.alarms == []
    assert shown.page.locator("script").count() == 0
    assert [url for url in shown.requests if not url.startswith(("file:", "about:"))] == []


def test_none_breaks_the_json(seen):
    for start in range(0, 200, 10):
        told = hostile(seen, HOSTILE[start : start + 10])
        assert json.loads(told.to_json())["text"] == told.text


def test_the_svg_holds_them_as_text(seen):
    import xml.etree.ElementTree as ElementTree

    for start in range(0, 200, 50):
        svg = hostile(seen, HOSTILE[start : start + 50]).figure(kind="encoder", layer=0).to_svg()
        root = ElementTree.fromstring(svg)
        assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "title", "rect", "text"}
