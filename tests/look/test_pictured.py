"""Looking at pictures: maps of patches, of the whole and of objects; rollout; heads off; its forms."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import write_classifier, write_detector
from PIL import Image

import regard
from regard.cli.main import run as command
from regard.errors import UsageError
from regard.look.picture import PictureLook
from regard.look.pictured import look_at_picture


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "one.png"
    Image.fromarray(np.random.default_rng(4).integers(0, 256, (16, 24), dtype=np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_detector(tmp_path_factory.mktemp("detector"))


def test_every_head_is_there_and_its_weights_sum_to_one(classifier: Path, picture: Path) -> None:
    seen = regard.look(classifier, str(picture))
    assert isinstance(seen, PictureLook)
    names = [one.name for one in seen.maps]
    assert names == ["encoder.0.self", "encoder.1.self", "pool.0.cross", "rollout of patches", "rollout"]
    assert seen.map("encoder.0.self").weights.shape == (2, 6, 6)
    assert seen.map("pool.0.cross").weights.shape == (2, 1, 6)
    for one in seen.maps:
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]), atol=1e-4, rtol=0)
    assert seen.grid == (2, 3)


def test_rollout_is_the_product_of_layers(classifier: Path, picture: Path) -> None:
    seen = regard.look(classifier, str(picture))
    one, two = (seen.map(f"encoder.{layer}.self").weights.mean(0) for layer in (0, 1))
    patches = (two + torch.eye(6)) / 2 @ ((one + torch.eye(6)) / 2)
    torch.testing.assert_close(seen.map("rollout of patches").weights[0], patches)
    whole = seen.map("pool.0.cross").weights.mean(0) @ patches
    torch.testing.assert_close(seen.map("rollout").weights[0], whole)


def test_objects_look_at_patches_and_at_each_other(detector: Path, picture: Path) -> None:
    seen = look_at_picture(detector, str(picture), threshold=0.0)
    assert len(seen.objects) == 5
    assert seen.map("decoder.0.cross").weights.shape == (2, 5, 6)
    assert seen.map("decoder.0.self").weights.shape == (2, 5, 5)
    assert seen.map("decoder.0.self").keys == "objects"
    scores = [each["score"] for each in seen.objects]
    assert scores == sorted(scores, reverse=True)
    assert len(look_at_picture(detector, str(picture), threshold=1.0).objects) == 1


def test_heads_that_are_off_change_what_comes_after_them(classifier: Path, picture: Path) -> None:
    plain = regard.look(classifier, str(picture))
    silent = regard.look(classifier, str(picture), off={"encoder.0.self": [0, 1]})
    assert torch.equal(plain.map("encoder.0.self").weights, silent.map("encoder.0.self").weights)
    assert not torch.allclose(plain.map("encoder.1.self").weights, silent.map("encoder.1.self").weights)
    assert silent.to_dict()["off"] == {"encoder.0.self": [0, 1]}


@pytest.mark.parametrize("model", ["classifier", "detector"])
def test_it_is_written_as_page_figure_and_data(
    model: str,
    picture: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = request.getfixturevalue(model)
    for ending in (".html", ".png", ".svg", ".json"):
        assert command(["look", "-m", str(folder), str(picture), "-o", str(tmp_path / f"look{ending}")]) == 0
    html = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "showPicture(" in html
    assert "://" not in html.split("<script", 1)[0]
    tree = json.loads((tmp_path / "look.json").read_text(encoding="utf-8"))
    assert tree["maps"][0]["queries"] == tree["maps"][0]["keys"] == [2, 3]
    assert (tree["format"], tree["version"]) == ("regard-picture-look", 2)
    assert Image.open(io.BytesIO((tmp_path / "look.png").read_bytes())).format == "PNG"
    assert command(["look", "-m", str(folder), str(picture), "-o", str(tmp_path / "look.pharaoh")]) == 2
    assert ".html" in capfd.readouterr().err


def test_a_picture_that_lies_nowhere_is_looked_at_as_one_that_does(classifier: Path, picture: Path) -> None:
    there = regard.look(classifier, str(picture))
    held = look_at_picture(classifier, "the picture", picture=picture.read_bytes())
    assert held.text == "the picture"
    assert np.array_equal(held.pixels, there.pixels)
    assert torch.equal(held.map("rollout").weights, there.map("rollout").weights)


def test_a_figure_has_a_panel_for_each_that_looks(detector: Path, classifier: Path, picture: Path) -> None:
    found = look_at_picture(detector, str(picture), threshold=0.0)
    assert found.figure().one.name == "rollout"
    assert found.figure().places() == [0, 1, 2, 3, 4]
    assert found.figure(kind="cross", layer=0).one.name == "decoder.0.cross"
    with pytest.raises(UsageError, match=r"decoder\.0\.self does not look at the picture"):
        found.figure(kind="decoder.0.self")
    assert len(regard.look(classifier, str(picture)).figure(kind="encoder", head=1).places()) > 1


def test_what_is_not_there_is_said(
    classifier: Path, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = regard.look(classifier, str(picture))
    with pytest.raises(UsageError, match=r"there is no map decoder.0.self; there are encoder.0.self"):
        seen.map("decoder.0.self")
    with pytest.raises(UsageError, match="has heads 0 to 1, there is no head 7"):
        seen.figure(kind="encoder", head=7)
    assert command(["look", "-m", str(classifier), "gone.png"]) == 2
    assert "gone.png does not exist" in capfd.readouterr().err
