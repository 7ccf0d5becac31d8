"""Encoders on a real server: OpenAI's own client for vectors, and fields of every wrong kind."""

import base64

import numpy as np
import openai
import pytest
from encoders import write_encoder, write_labeller

from regard import load
from regard.cli.main import run as command
from regard.tasks.encoder import open_embedder

LINES = ["the cats sat on a mat.", "", "a dog", "cat " * 40, "the \U0001f600 dog", "a \u0301b"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("encoders")
    write = {
        "embed": write_encoder,
        "masked": write_encoder,
        "classify": write_labeller,
        "tag": write_labeller,
    }
    return {task: make(base / task, task) for task, make in write.items()}


@pytest.fixture(scope="module")
def reading(folders, start):
    with start("-m", folders["embed"], "-m", folders["masked"], "-m", folders["classify"]) as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


@pytest.fixture(scope="module")
def client(reading):
    with openai.OpenAI(base_url=f"{reading.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("task", ["embed", "masked", "classify"])
def test_vectors_are_those_of_the_verb(client, folders, task, tmp_path):
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    out = tmp_path / "out.npy"
    assert command(["embed", "-m", str(folders[task]), "-i", str(tmp_path / "in.txt"), "-o", str(out)]) == 0
    found = client.embeddings.create(model=task, input=LINES)  # base64, unless one says float
    assert [each.index for each in found.data] == list(range(len(LINES)))
    assert (found.object, found.model, found.data[0].object) == ("list", task, "embedding")
    assert np.allclose([each.embedding for each in found.data], np.load(out), atol=1e-6)
    plain = client.embeddings.create(model=task, input=LINES, encoding_format="float", dimensions=22)
    assert np.allclose([each.embedding for each in plain.data], np.load(out), atol=1e-6)
    rows = [open_embedder(folders[task]).row(line) for line in LINES]
    assert found.usage.prompt_tokens == found.usage.total_tokens == sum(map(len, rows))
    assert found.model_extra["cut"] == 1


def test_token_ids_are_their_text(client, folders):
    tokenizer = load(folders["embed"]).reader.tokenizer
    texts = ["the cats sat", "a dog"]
    ids = [tokenizer.encode(text) for text in texts]
    wanted = [each.embedding for each in client.embeddings.create(model="embed", input=texts).data]
    many = [each.embedding for each in client.embeddings.create(model="embed", input=ids).data]
    one = client.embeddings.create(model="embed", input=ids[0]).data
    assert np.allclose(many, wanted, atol=1e-6)
    assert np.allclose([each.embedding for each in one], wanted[:1], atol=1e-6)


def test_base64_is_little_endian_float32(reading):
    asked = {"model": "embed", "input": "a dog"}
    plain = reading.post("/v1/embeddings", asked).tree["data"][0]["embedding"]
    packed = reading.post("/v1/embeddings", asked | {"encoding_format": "base64"}).tree["data"][0]
    assert np.frombuffer(base64.b64decode(packed["embedding"]), "<f4").tolist() == plain


def test_as_many_texts_as_can_be(client, folders):
    texts = [f"the {'cat ' * (number % 17)}" for number in range(1000)]
    found = client.embeddings.create(model="embed", input=texts).data
    wanted = load(folders["embed"]).embed(texts)
    assert np.allclose([each.embedding for each in found], wanted, atol=1e-5)


WRONG = {
    "nothing": ({}, 400, "input"),
    "a number": ({"input": 5}, 400, "input"),
    "an object": ({"input": {"a": 1}}, 400, "input"),
    "no texts": ({"input": []}, 400, "input"),
    "no tokens": ({"input": [[]]}, 400, "input"),
    "texts and tokens": ({"input": ["a", [1]]}, 400, "input"),
    "tokens in tokens": ({"input": [[[1]]]}, 400, "input"),
    "halves": ({"input": [1.5]}, 400, "input"),
    "truths": ({"input": [True, False]}, 400, "input"),
    "a token that is none": ({"input": [5, 14]}, 400, "input"),
    "less than no token": ({"input": [[-1]]}, 400, "input"),
    "a huge token": ({"input": [10**30]}, 400, "input"),
    "too many texts": ({"input": ["a"] * 1001}, 400, "input"),
    "too many tokens": ({"input": [5] * 30_000}, 400, None),
    "too long": ({"input": "a " * 50_001}, 400, None),
    "another width": ({"input": "a", "dimensions": 21}, 400, "dimensions"),
    "no width": ({"input": "a", "dimensions": 0}, 400, "dimensions"),
    "another format": ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format"),
    "another model": ({"input": "a", "model": "gpt"}, 404, "model"),
    "any model": ({"input": "a", "model": ""}, 404, "model"),
    "models": ({"input": "a", "model": ["embed"]}, 400, "model"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_fields_are_refused_in_openais_words(reading, name):
    fields, status, param = WRONG[name]
    found = reading.post("/v1/embeddings", {"model": "embed"} | fields)
    assert (found.status, found.tree["error"]["param"]) == (status, param), found.body
    assert found.tree["error"]["type"] == "invalid_request_error"
    assert len(found.tree["error"]["message"]) < 400


def test_what_is_no_number_is_no_json(reading):
    for word in ("NaN", "Infinity", "-Infinity"):
        assert reading.ask("POST", "/v1/embeddings", '{"input": [%s]}' % word).status == 400  # noqa: UP031


def test_half_a_character_is_read_as_unknown(reading):
    found = reading.post("/v1/embeddings", {"model": "embed", "input": ["a \ud800", "a \ufffd"]}).tree
    assert found["data"][0]["embedding"] == pytest.approx(found["data"][1]["embedding"], abs=1e-6)


def test_a_server_without_encoders_says_so(server):
    found = server.post("/v1/embeddings", {"input": "a"})
    assert found.status == 404
    assert "serves translators" in found.tree["error"]["message"]


def test_models_are_told_with_their_width(reading):
    told = {each["id"]: each for each in reading.get("/v1/models").tree["data"]}
    assert [told[name]["width"] for name in ("embed", "masked", "classify")] == [22, 22, 22]
    assert (told["embed"]["task"], told["embed"]["context"]) == ("embed", 13)
    assert len(reading.get("/model?model=embed").tree) == 1
    assert reading.get("/").status == 200


def test_looks_are_refused_whatever_the_model(reading, server):
    assert server.post("/attention", {"model": ["x"], "q": "a", "target": "de"}).status in (200, 400)
    for model in ("embed", ["embed"], {"a": 1}, 5):
        assert reading.post("/attention", {"model": model, "q": "a"}).status in (400, 404)
