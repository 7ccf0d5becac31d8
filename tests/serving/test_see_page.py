"""The page for models of pictures in a real browser: a picture is chosen, and what the API says is shown."""

import base64
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


DROP = """async ([held, name]) => {
  const bytes = Uint8Array.from(atob(held), (each) => each.charCodeAt(0));
  const file = new File([bytes], name, { type: "image/png" });
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(file);
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


def test_a_picture_may_be_dropped_anywhere_and_what_is_transparent_is_white(
    browser: Any, seeing: Any, tmp_path: Path
) -> None:
    Image.new("RGBA", (24, 16), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{seeing.url}/#task=image")
    page.locator(".seeing").wait_for()
    with page.expect_request(lambda request: "classifications" in request.url) as asked:
        held = base64.b64encode((tmp_path / "clear.png").read_bytes()).decode()
        page.evaluate(DROP, [held, "clear.png"])
    sent = asked.value.post_data_json["image"].split(",")[1]
    image = Image.open(io.BytesIO(base64.b64decode(sent)))
    assert image.format == "PNG"  # small: sent to the last pixel
    image = image.convert("L")
    assert (image.size, image.getextrema()) == ((24, 16), (255, 255))
    page.close()
