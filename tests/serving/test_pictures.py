"""Pictures on a real server: labels and boxes as the verbs give them, and what is no picture."""

import base64
import io
import json

import numpy as np
import pytest
from pictures import write_classifier, write_detector
from PIL import Image

from regard import load
from regard.look.pictured import look_at_picture


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("pictures")
    return {"kinds": write_classifier(base / "kinds"), "things": write_detector(base / "things")}


@pytest.fixture(scope="module")
def seeing(folders, start):
    with start(*(word for folder in folders.values() for word in ("-m", folder))) as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


@pytest.fixture(scope="module")
def picture() -> bytes:
    held = io.BytesIO()
    Image.fromarray(np.random.default_rng(4).integers(0, 256, (16, 24), dtype=np.uint8)).save(held, "PNG")
    return held.getvalue()


def asked(server, path, **fields):
    found = server.post(path, fields)
    return found.status, found.tree


def test_labels_are_those_of_the_verb(seeing, folders, picture):
    held = base64.b64encode(picture).decode()
    status, found = asked(seeing, "/v1/images/classifications", image=held, top=2)
    classifier = load(folders["kinds"])
    wanted = classifier.said(next(classifier.classify([picture])), 2)
    assert status == 200
    assert found["label"] == wanted["label"]
    assert found["labels"] == pytest.approx(wanted["labels"], abs=1e-4)
    status, several = asked(seeing, "/v1/images/classifications", image=[f"data:image/png;base64,{held}"] * 2)
    assert [each["label"] for each in several] == [wanted["label"]] * 2


def test_boxes_are_those_of_the_verb(seeing, folders, picture):
    held = base64.b64encode(picture).decode()
    status, found = asked(seeing, "/v1/images/detections", image=held, threshold=0)
    seen = next(load(folders["things"]).detect([picture], 0.0))
    assert status == 200
    assert (found["height"], found["width"]) == (16, 24)
    assert [each["label"] for each in found["objects"]] == [one.name for one in seen.objects]
    left, top, right, bottom = seen.objects[0].box
    assert found["objects"][0]["box"] == pytest.approx([left, top, right - left, bottom - top], abs=0.05)
    assert asked(seeing, "/v1/images/detections", image=held, threshold=1)[1]["objects"] == []


@pytest.mark.parametrize("name", ["kinds", "things"])
def test_a_look_is_that_of_the_verb_and_heads_can_be_off(seeing, folders, picture, name):
    held = base64.b64encode(picture).decode()
    status, found = asked(seeing, "/attention", image=held, model=name)
    assert status == 200
    wanted = look_at_picture(folders[name], "the picture", picture=picture).to_dict()
    assert [each["name"] for each in found["maps"]] == [each["name"] for each in wanted["maps"]]
    assert np.allclose(found["maps"][0]["heads"], wanted["maps"][0]["heads"], atol=1e-3)
    off = {"encoder.0.self": [0, 1]}
    status, silent = asked(seeing, "/attention", image=held, model=name, heads_off=off)
    assert (status, silent["off"]) == (200, off)
    assert not np.allclose(silent["maps"][1]["heads"], found["maps"][1]["heads"], atol=1e-4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"image": "!!"}, "it is no base64"),
        ({"image": base64.b64encode(b"text").decode()}, "no picture that can be read"),
        ({"image": "eA==", "heads_off": {"encoder.0.self": [9]}}, "there is no 9"),
        ({"image": ["eA=="]}, "image"),
    ],
)
def test_what_cannot_be_looked_at_is_one_line(seeing, fields, words):
    status, found = asked(seeing, "/attention", model="kinds", **fields)
    assert status == 400
    assert words in json.dumps(found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "image"),
        ({"image": "!!"}, "it is no base64"),
        ({"image": base64.b64encode(b"text").decode()}, "no picture that can be read"),
        ({"image": "", "top": 0}, "top"),
        ({"image": "eA==", "model": "things"}, "is a detector"),
        ({"image": "eA==", "model": "gone"}, "is not there"),
    ],
)
def test_what_is_wrong_is_one_line(seeing, fields, words):
    status, found = asked(seeing, "/v1/images/classifications", **fields)
    assert status in (400, 404)
    assert words in json.dumps(found)
