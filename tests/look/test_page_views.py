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


def test_what_goes_in_and_the_feed_forward_parts(opened, file, seen):
    shown = opened(file)
    page = shown.page
    for name in ("source", "read"):
        page.locator(f".entered [data-value={name}]").click()
        assert page.locator(".entered tbody tr").count() == len(seen.side(name).tokens)
        alike = [piece for each in seen.entered[name].alike for piece, _ in each]
        assert page.locator(".entered .unit").count() == len(alike)
    assert page.locator(".entered .strip").first.evaluate("c => c.width") == len(
        seen.entered["read"].dimensions
    )
    for at, part in enumerate(seen.fed):
        page.locator(f".fed [data-value='{at}']").click()
        assert page.locator(f".fed [data-value='{at}']").evaluate("n => n === document.activeElement")
        shares = page.locator(".fed tbody tr td:nth-child(2)").all_text_contents()
        assert [float(each.rstrip("%")) for each in shares] == pytest.approx(
            [100 * float(each) for each in part.active], abs=0.6
        )
        strongest = page.locator(".fed tbody tr").nth(1).locator(".unit .hint").all_text_contents()
        assert [int(each) for each in strongest] == [unit.number for unit in part.strongest[1]]
    shown.quiet(file)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_keep_nobody_out_and_fit_a_phone(opened, file, scheme):
    page = opened(file, color_scheme=scheme, viewport={"width": 390, "height": 844}, is_mobile=True).page
    page.locator(".tokens .word").nth(2).click()
    page.get_by_label("Also what was dropped at once").check()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for part in (".entered .scroll", ".fed .scroll", ".fed .segmented", ".scroll:has(> canvas.large)"):
        assert page.locator(part).evaluate("node => node.scrollWidth <= node.clientWidth"), part
    assert page.locator(".fed td:last-child").first.evaluate("node => node.offsetWidth") > 250
    assert barriers(page, "serious", "critical") == []
