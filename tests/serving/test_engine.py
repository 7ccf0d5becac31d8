"""A batch as the server runs it is a batch as `regard translate` runs it."""

import json

import pytest

from regard.serving.engine import Glance, Order, run
from regard.serving.family import Place
from regard.serving.served import load_served

NAME = "en-de"


@pytest.fixture(scope="module")
def models(model):
    return {NAME: load_served(Place(model, "en-de"))}


def test_texts_keep_their_places_and_come_once(models):
    texts = ["a b", "c", "a b", "d e f"]
    found = run(models, Order(NAME), texts)
    alone = models[NAME].translator.translate(texts)
    assert [each[0].text for each in found] == alone
    assert found[0] is found[2]
    assert found[0][0].trace is None


def test_more_readings_than_the_beam_is_wide(models):
    (found,) = run(models, Order(NAME, n_best=7), ["a b c"])
    assert len(found) == 7
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_traced_readings(models):
    for several in run(models, Order(NAME, n_best=3, traced=True), ["a b c", "d"]):
        for reading in several:
            assert (reading.trace is None) == (reading.text == "")
            if reading.trace:
                assert reading.trace.text == reading.text


def test_a_glance_is_the_json_of_a_look(models):
    (text,) = run(models, Glance(NAME, (("decoder.0.cross", (1,)),)), ["a b"])
    assert json.loads(text)["off"] == {"decoder.0.cross": [1]}
