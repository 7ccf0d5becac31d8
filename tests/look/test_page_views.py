"""The views beside attention, in a real browser: what could have come next, the beam as a tree."""

import pytest
from browser import barriers

from regard.look.outlook import TEMPERATURES


@pytest.fixture(scope="module")
def file(seen, tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "look.html"
    seen.save(path)
    return path


def test_the_temperature_weighs_anew_as_softmax_does(opened, file, seen):
    shown = opened(file)
    page = shown.page
    page.locator(".tokens .word").nth(2).click()
    slider = page.get_by_label("Sharper or flatter")
    for at, heat in enumerate(TEMPERATURES):
        slider.fill(str(at))
        assert page.locator(".heat output").text_content() == f"{heat:.1f}"
        told = page.locator(".tokens .bar .figure").all_text_contents()
        shares = [float(each.rstrip("%")) for each in told]
        wanted = [100 * each for each in seen.outlook[2].at(heat)][:8]
        assert shares[:8] == pytest.approx(wanted, abs=0.11)
        assert sum(shares) == pytest.approx(100, abs=0.6)
    names = page.locator(".tokens .bar bdi").all_text_contents()
    assert names[:8] == list(seen.outlook[2].pieces[:8])
    page.locator(".tokens .word").nth(1).click()
    assert page.locator(".heat output").text_content() == f"{TEMPERATURES[-1]:.1f}"  # it stays
    shown.quiet(file)


def test_the_beam_stands_as_a_tree(opened, file, seen):
    shown = opened(file)
    page = shown.page
    alive = [each for each in seen.tree if each.fate != "dropped"]
    assert page.locator(".beam-tree .word").count() == len(alive)
    won = page.locator(".run.won .fate")
    assert won.count() == 1
    assert won.text_content().endswith(": the answer")
    assert (
        f"{max(each.score for each in seen.tree if each.score is not None):.3f}".lstrip("-")
        in won.text_content()
    )
    page.get_by_label("Also what was dropped at once").check()
    assert page.locator(".beam-tree .word").count() == len(seen.tree)
    assert page.get_by_label("Also what was dropped at once").evaluate("n => n === document.activeElement")
    shown.quiet(file)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_keep_nobody_out_and_fit_a_phone(opened, file, scheme):
    page = opened(file, color_scheme=scheme, viewport={"width": 390, "height": 844}, is_mobile=True).page
    page.locator(".tokens .word").nth(2).click()
    page.get_by_label("Also what was dropped at once").check()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert barriers(page, "serious", "critical") == []
