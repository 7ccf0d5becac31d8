"""The page for models of pictures in a real browser: a picture is chosen, and what the API says is shown."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Opened, barriers
from pictures import write_classifier, write_detector
from PIL import Image


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory, start: Any) -> Any:
    base = tmp_path_factory.mktemp("seeing")
    folders = [write_classifier(base / "kinds"), write_detector(base / "things")]
    with start(*(word for folder in folders for word in ("-m", folder))) as server:
        yield server


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "one.png"
    Image.fromarray(np.random.default_rng(4).integers(0, 256, (16, 24), dtype=np.uint8)).save(path)
    return path


@pytest.mark.parametrize(("task", "path"), [("image", "classifications"), ("detection", "detections")])
def test_a_picture_that_is_chosen_is_named(
    browser: Any, seeing: Any, picture: Path, task: str, path: str, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    context.set_default_timeout(60_000)
    shown = Opened(context.new_page())
    page = shown.page
    page.goto(f"{seeing.url}/#task={task}")
    page.locator(".seeing").wait_for()
    assert barriers(page, "critical", "serious") == []
    with page.expect_response(lambda response: path in response.url) as answered:
        page.locator("input[type=file]").set_input_files(str(picture))
    tree = answered.value.json()
    if task == "image":
        page.locator(".labels li.first").wait_for()
        assert page.locator(".labels li.first bdi").inner_text() == tree["label"]
        assert page.locator(".labels li").count() == 3
    else:
        page.locator(".seeing .read > *").wait_for()
        assert page.locator(".labels li").count() == len(tree["objects"])
    page.locator("canvas.picture").wait_for()
    page.get_by_label("Which attention").select_option("0")
    with page.expect_response(lambda response: "attention" in response.url) as answered:
        page.get_by_role("button", name="Head 1: on").click()
    assert answered.value.json()["off"] == {"encoder.0.self": [1]}
    page.get_by_text("1 head is switched off").wait_for()
    page.get_by_role("button", name="Switch all on").click()
    page.locator(".silenced").wait_for(state="detached")
    assert barriers(page, "critical", "serious") == []
    drawn = page.locator("canvas.scene").screenshot()
    assert len({*Image.open(io.BytesIO(drawn)).convert("L").tobytes()}) > 9
    broken = tmp_path / "broken.png"
    broken.write_text("no picture")
    page.locator("input[type=file]").set_input_files(str(broken))
    page.locator(".notice", has_text="broken.png is no picture").wait_for()
    assert shown.errors == []
    context.close()
