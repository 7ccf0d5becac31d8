"""The same sentence by several models, side by side; CTC's alignment as a picture."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import UsageError
from regard.look.beside import Beside, look_beside
from regard.look.look import look
from regard.look.words import SILENT

TEXT = "the small dog runs"


@pytest.fixture(scope="module")
def both(make: Any) -> Beside:
    return look_beside(
        [make(1, least=0.5), make(3, model__kind="ctc"), make(3, model__kind="parallel")], TEXT
    )


def test_it_holds_the_look_of_each(both: Beside, make: Any) -> None:
    tree = json.loads(both.to_json())
    assert (tree["format"], tree["text"]) == ("regard-beside", TEXT)
    assert tree["looks"][1] == json.loads(look(make(3, model__kind="ctc"), TEXT).to_json())
    assert ["passes" in each for each in tree["looks"]] == [False, True, True]


def test_the_figures_stand_next_to_each_other(both: Beside, tmp_path: Path) -> None:
    alone = [each.figure() for each in both.looks]
    drawn = both.figure()
    assert len(drawn.cells) == sum(len(each.cells) for each in alone)
    assert drawn.width >= sum(each.width for each in alone)
    assert max(each.x + each.width for each in drawn.cells) <= drawn.width
    assert both.looks[1].answer in drawn.to_svg()
    both.save(tmp_path / "both.png")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_one_model_and_other_endings_are_refused(both: Beside, make: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 model given"):
        look_beside([make(1)], TEXT)
    with pytest.raises(UsageError, match=r"both.pharaoh ends in .pharaoh; give one of .html"):
        both.save(tmp_path / "both.pharaoh")


def test_ctcs_alignment_says_which_place_says_which_token(make: Any) -> None:
    seen = look(make(3, model__kind="ctc"), TEXT)
    drawn = seen.figure(kind="alignment")
    places, tokens = len(seen.passes[-1].tokens), len(seen.target.tokens)
    assert places == 2 * len(seen.source.tokens)
    speaking = sum(token != SILENT for token in seen.passes[-1].tokens)
    quiet = "#f6f8fb"  # the colour of nothing
    cells = drawn.cells[: places * tokens]
    assert 0 < sum(cell.colour != quiet for cell in cells) <= speaking
    columns = [cells[place::places] for place in range(places)]
    assert all(sum(cell.colour != quiet for cell in column) <= 1 for column in columns)
    with pytest.raises(UsageError, match=r"has no alignment of places; model.kind=ctc has one"):
        look(make(1), TEXT).figure(kind="alignment")


def test_the_page_in_a_browser(both: Beside, opened: Any, tmp_path: Path) -> None:
    both.save(path := tmp_path / "both.html")
    shown = opened(path, viewport={"width": 1600, "height": 900})
    page = shown.page
    sections = page.locator(".beside > section")
    assert sections.count() == 3
    assert "word by word" in sections.nth(0).locator("h2").first.text_content()
    assert "all at once, 1 pass" in sections.nth(1).locator("h2").first.text_content()
    refined = sections.nth(2).locator(".passes-list li")
    assert refined.count() == len(both.looks[2].passes)
    refined.nth(0).get_by_role("button").click()
    assert refined.nth(0).get_by_role("button").get_attribute("aria-pressed") == "true"
    assert refined.nth(0).locator(".fresh").count() == len(both.looks[2].passes[0].tokens)
    sections.nth(1).locator(".tools [data-value=encoder]").click()  # each is chosen in by itself
    assert sections.nth(1).locator(".opened").text_content().startswith("encoder")
    assert sections.nth(0).locator(".opened").text_content().startswith("decoder.1.cross")
    assert page.get_by_text("Which places say which token").count() == 1
    shown.quiet(path)
