"""The page in a real browser: pointing, opening, joining, walking; dark, narrow, by keyboard."""

import itertools
import json
import re
from pathlib import Path

import pytest
import torch
from writers import drawn

from regard.look.context import compare_word
from regard.look.html import page as page_of
from regard.look.look import Look, look
from regard.tasks.language.writer import Writer


@pytest.fixture(scope="module")
def file(seen: Look, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "look.html"
    seen.save(path)
    return path


def test_links_follow_the_pointer_and_nothing_leaves_the_file(opened, file, seen):
    shown = opened(file)
    page = shown.page
    page.locator(".tools [data-value=words]").click()
    words = page.locator(".links .queries button")
    assert words.all_text_contents()[:-1] == [word.text for word in seen.target.words][:-1]
    everything = page.locator(".links path.on").count()
    words.nth(0).hover()
    assert 0 < page.locator(".links path.on").count() < everything
    told = page.locator(".links .readout").text_content()
    assert "looks at" in told
    assert "confidence" in told
    best = max(re.findall(r"“([^”]+)” (\d+)%", told.partition("looks at")[2]), key=lambda pair: int(pair[1]))
    layer = seen.alignment().layer
    row = seen.joined(seen.map("cross", layer)).mean(0)[0]
    assert abs(int(best[1]) - 100 * float(row.max())) <= 1
    page.mouse.move(5, 5)
    assert page.locator(".links path.on").count() == everything
    page.locator(".links .keys button").nth(1).hover()
    assert "is looked at by" in page.locator(".links .readout").text_content()
    shown.quiet(file)


def test_a_click_keeps_a_word(opened, file):
    page = opened(file).page
    page.locator(".links .queries button").nth(1).click()
    page.mouse.move(5, 5)
    assert page.locator(".links .queries [aria-pressed=true]").count() == 1
    assert page.locator(".links .word.focused").count() == 1


def test_a_head_is_opened_and_says_what_it_does(opened, file, seen):
    shown = opened(file)
    page = shown.page
    page.locator(".tools [data-value=encoder]").click()
    assert page.locator(".grid .small").count() == 2 * (3 + 1)
    page.locator('.grid [data-layer="0"][data-head="2"]').click()
    assert page.locator(".opened").text_content() == "encoder.0.self, head 2"
    facts = json.loads(seen.to_json())["maps"][0]["heads"][2]
    assert f"Entropy {facts['entropy']:.2f} bits" in page.locator(".facts").text_content()
    assert page.locator(".facts .bar").count() == len(facts["shares"]) >= 6
    page.locator("canvas.large").scroll_into_view_if_needed()
    box = page.locator("canvas.large").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    assert re.fullmatch(r"“.+” looks at “.+”: [\d.]+%", page.locator(".large .readout").text_content())
    shown.quiet(file)


def test_the_threshold_hides_links(opened, file):
    page = opened(file).page
    before = page.locator(".links path").count()
    page.locator(".threshold input").fill("0.5")
    assert page.locator(".threshold output").text_content() == "50%"
    assert page.locator(".links path").count() < before


def test_pieces_join_to_words_and_back_as_python_joins_them(opened, file, seen):
    page = opened(file).page
    for unit, count in (("pieces", len(seen.target.tokens)), ("words", len(seen.target.words))):
        page.locator(f".tools [data-value={unit}]").click()
        assert page.locator(".links .queries button").count() == count
    layer = seen.alignment().layer
    weights = seen.joined(seen.map("cross", layer)).mean(0)
    page.locator(".threshold input").fill("0")
    for i in range(len(seen.target.words)):
        page.locator(".links .queries button").nth(i).focus()
        told = page.locator(".links .keys button").evaluate_all(
            "buttons => buttons.map((button) => parseFloat(button.style.getPropertyValue('--weight')))"
        )
        torch.testing.assert_close(torch.tensor(told) / 100, weights[i].float(), atol=0.006, rtol=0)


def test_the_walk_shows_the_numbers_of_the_head(opened, file, seen):
    shown = opened(file)
    page = shown.page
    page.locator('.grid [data-layer="1"][data-head="1"]').click()
    page.locator(".walk .queries button").nth(2).click()
    assert page.locator(".walk .queries [aria-pressed=true]").count() == 1
    one = seen.map("cross", 1)
    assert one.vectors is not None
    rows = page.locator(".walk tbody tr:not(.gathered)")
    assert rows.count() == len(seen.source.tokens)
    for j in range(rows.count()):
        cells = [text.replace("−", "-") for text in rows.nth(j).locator("td.figure").all_text_contents()]
        raw = float(one.vectors.q[1, 2] @ one.vectors.k[1, j])
        assert float(cells[0]) == pytest.approx(raw, abs=0.06)
        assert float(cells[1]) == pytest.approx(raw / 2, abs=0.06)
        weight = rows.nth(j).locator("td.softmax .figure").text_content()
        assert float(weight.rstrip("%")) == pytest.approx(100 * float(one.weights[1, 2, j]), abs=0.11)
    assert page.locator(".gathered td .figure").first.text_content() == "100%"
    assert page.locator(".block").count() == 3
    assert page.locator(".block.own").count() == 1
    shown.quiet(file)


def test_steps_of_the_walk_appear_one_by_one(opened, file):
    page = opened(file).page
    page.locator(".steps button").nth(0).click()
    assert not page.locator(".walk table").is_visible()
    assert page.locator(".walk-query").is_visible()
    page.locator(".steps button").nth(4).click()
    assert page.locator("td.softmax").first.is_visible()
    assert not page.locator(".gathered").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".gathered").is_visible()
    assert not page.locator(".concatenation").is_visible()
    page.locator(".steps button").nth(6).click()
    assert page.locator(".concatenation").is_visible()


def test_the_walk_begins_at_its_first_step_and_goes_on_by_itself(opened, file):
    shown = opened(file)
    page, now = shown.page, shown.page.locator("[aria-current=step]")
    assert now.text_content() == "1Query"
    assert page.get_by_role("button", name="Back").is_disabled()
    page.get_by_role("button", name="Next").focus()
    for name in ("2Keys", "3Scores"):
        page.keyboard.press("Enter")
        assert now.text_content() == name
    assert page.evaluate("document.activeElement.dataset.does") == "next"
    page.get_by_role("button", name="Back").click()
    assert now.text_content() == "2Keys"
    page.clock.install(time=0)
    page.clock.pause_at(100_000)  # it flows on otherwise, and a busy machine would walk twice
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(2700)
    assert now.text_content() == "3Scores"
    assert page.evaluate("document.activeElement.dataset.does") == "play"
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(9000)
    assert now.text_content() == "3Scores"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(30000)
    assert now.text_content() == "7Concatenate"
    page.get_by_role("button", name="Again").click()
    assert now.text_content() == "1Query"
    shown.quiet(file)


NAMES = """(() => { window.drawn = []; const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
        const m = this.getTransform();
        window.drawn.push({ text, size: parseFloat(this.font.match(/([\\d.]+)px/)[1]), x: m.e, slant: m.b });
        return fill.call(this, text, ...where); }; })()"""


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_names_of_columns_do_not_touch(browser, make, tmp_path, width):
    """Neighbours in a slanted row stand apart by their distance along the edge times sin 45°."""
    look(make(1, extra=3), " ".join(["the small dog runs to a house,"] * 3)).save(tmp_path / "long.html")
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.add_init_script(NAMES)
    page.goto((tmp_path / "long.html").as_uri())
    names = [each for each in page.evaluate("window.drawn") if each["slant"]]
    assert len(names) > 20
    gaps = [later["x"] - name["x"] for name, later in itertools.pairwise(names)]
    for name, gap in zip(names, gaps, strict=False):
        assert gap <= 0 or gap * 2**-0.5 >= name["size"] - 0.01  # a row that is drawn again begins anew
    page.context.close()


def test_the_keyboard_reaches_everything(opened, file):
    page = opened(file).page
    page.locator(".links .queries button").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".links .queries button").nth(1).evaluate("node => node === document.activeElement")
    page.locator(".grid .small").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".opened").text_content() == "decoder.1.cross, head 0"
    assert page.locator('[data-layer="1"][data-head="0"]').evaluate("node => node === document.activeElement")
    page.locator("canvas.large").focus()
    page.keyboard.press("ArrowDown")
    assert "looks at" in page.locator(".large .readout").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened, file, scheme):
    page = opened(file, color_scheme=scheme).page

    def brightness() -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 765

    assert (brightness() > 0.5) == (scheme == "light")
    page.locator(".top .icon").click()
    assert (brightness() > 0.5) == (scheme == "dark")
    pixels = page.evaluate(
        "[...document.querySelector('.small canvas').getContext('2d').getImageData(0, 0, 5, 5).data]"
    )
    dim = sorted(sum(pixels[i : i + 3]) for i in range(0, 100, 4))[12]  # most cells hold next to nothing
    assert (dim > 382) == (scheme == "dark")


def test_a_phone_needs_no_sideways_scrolling(opened, file):
    page = opened(file, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".links-board.columns").count() == 1
    page.locator(".links .queries button").first.tap()
    assert page.locator(".links .word.focused").count() == 1


def test_on_a_phone_no_head_and_no_column_of_the_walk_is_cut_off(opened, make, tmp_path):
    look(make(1, model__n_heads=4), "the small dog runs to a house.").save(tmp_path / "phone.html")
    page = opened(tmp_path / "phone.html", viewport={"width": 390, "height": 844}, is_mobile=True).page
    page.locator(".steps button").nth(6).click()
    assert page.locator(".small").count() == 2 * 5
    for part in (".small", "td.softmax", "td.softmax .figure", ".gathered td"):
        inside = page.locator(part).evaluate_all(
            """(all) => all.every((node) => { const box = node.getBoundingClientRect();
                const card = node.closest(".card").getBoundingClientRect();
                return box.width > 0 && box.left >= card.left && box.right <= card.right; })"""
        )
        assert inside, part
    for part in (".walk .scroll", ".grid[role=group]"):
        assert page.locator(part).evaluate("node => node.scrollWidth <= node.clientWidth"), part


@pytest.mark.parametrize("width", [1280, 900])
def test_many_heads_stand_below_each_other_with_legible_names(opened, make, tmp_path, width):
    look(make(1, model__n_heads=8, model__d_model=16), "the small dog runs to a house.").save(
        tmp_path / "many.html"
    )
    page = opened(tmp_path / "many.html", viewport={"width": width, "height": 900}).page
    assert page.locator(".small").count() == 2 * 9
    assert page.locator(".tag").evaluate_all(
        "all => all.every((node) => node.scrollWidth <= node.clientWidth)"
    )
    assert page.locator(".grid[role=group]").evaluate("node => node.scrollWidth <= node.clientWidth")


def test_a_row_of_heads_is_a_layer_where_there_is_room(opened, make, tmp_path):
    look(make(1, model__n_heads=4), "the small dog runs to a house.").save(tmp_path / "few.html")
    page = opened(tmp_path / "few.html", viewport={"width": 1280, "height": 900}).page
    tops = page.locator(".small").evaluate_all("all => all.map((node) => node.getBoundingClientRect().top)")
    assert len(set(tops)) == 2


def test_another_text_opens_its_own_sharpest_layer_unless_one_was_chosen(opened, make, tmp_path):
    """The layer of a first fragment must not stay when the whole sentence has another one that is clearer."""
    fragment, whole = (
        look(make(1), text, only=["decoder.0.cross", "decoder.1.cross"]).to_dict()
        for text in ("the", "the man, a dog runs to 狗.")
    )
    fragment["alignment"]["layer"], whole["alignment"]["layer"] = 0, 1
    path = tmp_path / "typed.html"
    path.write_text(_with_switch(page_of(fragment), json.dumps(whole)), encoding="utf-8")
    page = opened(path).page
    assert page.locator(".opened").text_content() == "decoder.0.cross, mean of 3 heads"
    page.locator(".power").first.click()
    assert page.locator(".opened").text_content() == "decoder.1.cross, mean of 3 heads"
    page = opened(path).page
    page.locator('[data-layer="0"][data-head="2"]').click()
    page.locator(".power").first.click()
    assert page.locator(".opened").text_content() == "decoder.0.cross, head 2"


def test_a_head_that_looks_by_content_is_named_by_an_example(opened, file, seen):
    shown = opened(file)
    heads = [(one, head) for one in seen.to_dict()["maps"] if one["kind"] == "cross" for head in one["heads"]]
    tags = shown.page.locator(".switchable .habit, .small .habit").all_text_contents()
    named = [f"{head['examples'][0][0]} → {head['examples'][0][1]}" for _, head in heads]
    content = [i for i, (_, head) in enumerate(heads) if head["behaviour"] == "content"]
    assert content
    for i in content:
        assert tags[i + 1 + i // 3] == named[i]  # the mean of its layer stands before every three heads


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, file, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is missing")
    page = opened(file, color_scheme=scheme).page
    page.locator(f".tools [data-value={'cross' if scheme == 'light' else 'decoder'}]").click()
    page.locator('.grid [data-head="0"]').first.click()
    found = axe.Axe().run(page).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in grave] == []


def test_heads_are_switched_by_whoever_can(opened, file, make, tmp_path):
    """The same modules with a server behind them: here the answers are made before."""
    translator = make(1)
    whole = look(translator, "the man, a dog runs to 狗.")
    without = look(translator, "the man, a dog runs to 狗.", off={"decoder.0.cross": [1]})
    path = tmp_path / "switch.html"
    path.write_text(_with_switch(whole.to_html(), without.to_json()), encoding="utf-8")
    shown = opened(path)
    power = shown.page.locator(".power").nth(1)
    assert power.get_attribute("aria-pressed") == "true"
    power.click()
    assert shown.page.locator(".power").nth(1).get_attribute("aria-pressed") == "false"
    assert shown.page.evaluate("window.asked") == {"decoder.0.cross": [1]}
    assert shown.page.locator(".target-text").text_content() == without.translation
    if without.translation != whole.translation:
        assert shown.page.locator(".before bdi").text_content() == whole.translation


def _with_switch(page: str, answer: str) -> str:
    """A page whose call of `showLook` is one with a callback; the policy is not what is tested here."""
    call = 'showLook(document.getElementById("regard"));'
    assert call in page
    data = 'JSON.parse(document.getElementById("regard-data").textContent)'
    wired = (
        f"const answer = {answer.replace('<', chr(92) + 'u003c')};"
        f'mountLook(document.getElementById("regard"), {data}, '
        "{switchHeads: async (off) => { window.asked = off; return answer; }});"
    )
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace(call, wired)


def test_words_in_context(opened, make, tmp_path):
    path = tmp_path / "word.html"
    compare_word(make(1), "bank", ["the river bank", "a bank and a man"]).save(path)
    shown = opened(path)
    assert shown.page.locator("mark").all_text_contents() == ["bank", "bank"]
    assert shown.page.locator(".cosines td").count() == 4
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is missing")
    found = axe.Axe().run(shown.page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    shown.quiet(path)


def test_pieces_of_a_language_model_have_runners_up(opened, tmp_path):
    _, model, tokenizer = drawn("characters")
    seen = look(Writer(model, tokenizer), "the cat", tokens=5)
    seen.save(tmp_path / "written.html")
    shown = opened(tmp_path / "written.html")
    page = shown.page
    assert page.locator(".tokens .word").count() == len("the cat") + 5 - 1
    assert page.locator(".tokens .word.given").count() == len("the cat") - 1
    page.locator(".tokens .word").nth(6).click()
    told = page.locator(".tokens .bar.own").text_content()
    assert f"{100 * seen.guesses[6].confidence:.1f}%" in told
    own = seen.target.tokens[6] in seen.outlook[6].pieces[:8]
    assert page.locator(".tokens .bar").count() == 8 + (not own) + 1
    assert page.locator(".links .queries [aria-pressed=true]").count() == 1
    shown.quiet(tmp_path / "written.html")
