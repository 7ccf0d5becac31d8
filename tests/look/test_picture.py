"""A picture and what its places looked at: of a generator, as data, page and figure."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from drawing import generator, stripes  # noqa: F401  (fixtures)
from PIL import Image

import regard
from regard.cli.main import run as command
from regard.errors import UsageError
from regard.look.drawn import look_at_drawing
from regard.look.picture import PictureLook, PictureMap


@pytest.fixture(scope="module")
def seen(generator: Path) -> PictureLook:  # noqa: F811
    return look_at_drawing(generator, "lying", seed=3)


def test_it_is_the_picture_that_is_drawn_and_rows_sum_to_one(seen: PictureLook, generator: Path) -> None:  # noqa: F811
    drawn = regard.load(generator).draw(1, "lying", seed=3).pictures[0]
    assert np.abs(seen.pixels.astype(int) - drawn).max() <= 1
    assert [each.name for each in seen.maps] == ["generator.0.self", "discriminator.0.self"]
    for each in seen.maps:
        assert (each.queries, each.keys) == ((4, 4), (2, 2))
        assert each.weights.shape == (2, 16, 4)
        torch.testing.assert_close(each.weights.sum(-1), torch.ones(2, 16))
    assert seen.text == "lying, seed 3"


def test_data_hold_the_pixels_and_the_weights(seen: PictureLook) -> None:
    tree = json.loads(seen.to_json())
    held = tree["picture"]
    pixels = np.frombuffer(base64.b64decode(held["bytes"]), np.uint8)
    assert np.array_equal(
        pixels.reshape(held["height"], held["width"], held["channels"])[..., 0], seen.pixels[0]
    )
    assert tree["maps"][0]["queries"] == [4, 4]
    found = np.array(tree["maps"][1]["heads"])
    assert np.abs(found - seen.maps[1].weights.numpy()).max() < 1e-3


def test_heads_off_change_the_drawing_once_the_gate_is_open(generator: Path) -> None:  # noqa: F811
    drawer = regard.load(generator)
    drawer.model.generator.attention.gate.data.fill_(3.0)
    one = look_at_drawing(drawer, "lying")
    other = look_at_drawing(drawer, "lying", off={"generator.0.self": [0, 1]})
    assert not np.array_equal(one.pixels, other.pixels)
    assert other.to_dict()["off"] == {"generator.0.self": [0, 1]}


def test_every_form_is_written(generator: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    call = ["look", "-m", str(generator), "standing", "--seed", "5", "-o"]
    for ending in ("html", "json", "png", "svg"):
        assert command([*call, str(tmp_path / f"look.{ending}")]) == 0
    assert "the discriminator gives it" in capfd.readouterr().out
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "showPicture" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert Image.open(io.BytesIO((tmp_path / "look.png").read_bytes())).width > 300
    assert command([*call, str(tmp_path / "look.pharaoh")]) == 2
    assert command(["look", "-m", str(generator), "sitting", "-o", str(tmp_path / "a.html")]) == 2
    assert "there is no class sitting; there are lying, standing" in capfd.readouterr().err


def test_a_figure_of_one_head(seen: PictureLook) -> None:
    with pytest.raises(UsageError, match=r"generator\.0\.self has heads 0 to 1, there is no head 2"):
        seen.figure(head=2)
    with pytest.raises(UsageError, match="there is no map encoder"):
        seen.figure(kind="encoder")
    places = seen.figure(kind="discriminator", head=1).places()
    assert 1 <= len(places) <= 9


def test_the_places_of_a_figure_are_the_sharpest_and_apart() -> None:
    weights = torch.full((1, 16, 4), 0.25)
    weights[0, 5] = torch.tensor([1.0, 0, 0, 0])
    one = PictureMap("a.0.self", weights, (4, 4), (2, 2))
    look = PictureLook(np.zeros((1, 8, 8), np.uint8), (one,), "x", "y", "gan")
    assert 5 in look.figure().places()
