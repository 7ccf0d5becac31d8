"""A generator on a real server: OpenAI's own client, the page in a browser, fields of every wrong kind."""

import base64
import io

import numpy as np
import openai
import pytest
from browser import Opened, barriers
from drawing import generator, stripes  # noqa: F401  (fixtures)
from PIL import Image

import regard


@pytest.fixture(scope="module")
def drawing(generator, start):  # noqa: F811
    with start("-m", f"stripes={generator}") as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


def pixels(encoded: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded)))).astype(int)


def test_openais_client_gets_what_the_verb_draws(drawing, generator):  # noqa: F811
    with openai.OpenAI(base_url=f"{drawing.url}/v1", api_key="none", max_retries=0) as client:
        found = client.images.generate(model="stripes", prompt="lying", n=3, extra_body={"seed": 9})
    wanted = regard.load(generator).draw(3, "lying", seed=9).pictures
    for each, picture in zip(found.data, wanted, strict=True):
        assert np.abs(pixels(each.b64_json) - picture[0]).max() <= 1


def test_every_class_in_turn_and_a_seed_that_is_told(drawing, generator):  # noqa: F811
    found = drawing.post("/v1/images/generations", {"n": 12}).tree
    again = drawing.post("/v1/images/generations", {"n": 12, "seed": found["seed"]}).tree
    assert [each["b64_json"] for each in found["data"]] == [each["b64_json"] for each in again["data"]]
    wanted = regard.load(generator).draw(12, seed=found["seed"]).pictures
    assert np.abs(pixels(found["data"][11]["b64_json"]) - wanted[11, 0]).max() <= 1


def test_the_model_says_what_can_be_asked_for(drawing):
    (model,) = drawing.get("/v1/models").tree["data"]
    assert (model["task"], model["classes"], model["side"]) == ("gan", ["lying", "standing"], 8)


def test_a_look_is_the_drawing_and_heads_can_be_off(drawing):
    ask = {"drawing": "lying", "seed": 4}
    found = drawing.post("/attention", ask).tree
    assert [each["name"] for each in found["maps"]] == ["generator.0.self", "discriminator.0.self"]
    off = drawing.post("/attention", ask | {"heads_off": {"discriminator.0.self": [0]}}).tree
    assert off["off"] == {"discriminator.0.self": [0]}


WRONG = {
    "class": (
        "images/generations",
        {"prompt": "sitting"},
        "there is no class sitting; there are lying, standing",
    ),
    "none": ("images/generations", {"n": 0}, "n: Input should be greater than or equal to 1"),
    "many": ("images/generations", {"n": 65}, "n: Input should be less than or equal to 64"),
    "seed": ("images/generations", {"seed": -1}, "seed: Input should be greater than or equal to 0"),
    "spread": ("images/generations", {"spread": 11}, "spread: Input should be less than or equal to 10"),
    "url": ("images/generations", {"response_format": "url"}, "response_format: Input should be 'b64_json'"),
    "look": ("../attention", {"drawing": "sitting"}, "there is no class sitting"),
    "heads": ("../attention", {"drawing": "lying", "heads_off": {"generator.0.self": [2]}}, "heads_off"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_fields_are_one_line(drawing, case):
    path, fields, said = WRONG[case]
    found = drawing.post(f"/v1/{path}".replace("/v1/..", ""), fields)
    assert found.status == 400
    error = found.tree["error"]
    assert said in (error["message"] if isinstance(error, dict) else error)


def test_another_model_is_not_there(drawing, server):
    assert drawing.post("/v1/images/generations", {"model": "other"}).status == 404
    assert server.post("/v1/images/generations", {}).status == 404


def test_the_page_draws_and_looks(browser, drawing):
    opened = Opened(browser.new_page())
    page = opened.page
    page.set_default_timeout(60_000)
    page.goto(f"{drawing.url}/#task=gan&class=lying&seed=5")
    page.wait_for_selector(".drawings img:nth-child(24)")
    page.wait_for_selector("canvas.picture")
    assert page.locator(".picture-head").count() == 3
    before = page.locator(".drawings img").first.get_attribute("src")
    page.get_by_role("button", name="Draw others").click()
    page.wait_for_function("before => document.querySelector('.drawings img').src !== before", arg=before)
    assert not page.url.endswith("seed=5")
    assert opened.errors == []
    assert barriers(page, "serious", "critical") == []
    page.close()
