"""Encoders on a real server: OpenAI's own client for vectors, and fields of every wrong kind."""

import base64
import json

import numpy as np
import openai
import pytest
from encoders import write_encoder, write_labeller
from writers import write_writer

import regard
from regard import load
from regard.attention.switch import heads_off
from regard.cli.main import run as command
from regard.kinds import TASKS
from regard.serving.encoders import Errand
from regard.serving.family import Loading, Place
from regard.serving.service import Service
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
    with start(*(word for folder in folders.values() for word in ("-m", folder))) as server:
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


def test_one_token_too_many_is_told(client):
    for words, cut in ((11, None), (12, 1)):
        found = client.embeddings.create(model="embed", input=["cat " * words, "a"])
        assert (found.model_extra or {}).get("cut") == cut
        assert found.usage.prompt_tokens == 13 + 3


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
    assert "serves a translator" in found.tree["error"]["message"]


def test_models_are_told_with_their_width(reading):
    told = {each["id"]: each for each in reading.get("/v1/models").tree["data"]}
    assert [told[name]["width"] for name in ("embed", "masked", "classify")] == [22, 22, 22]
    assert (told["embed"]["task"], told["embed"]["context"]) == ("embed", 13)
    assert len(reading.get("/model?model=embed").tree) == 1
    assert reading.get("/").status == 200


@pytest.mark.parametrize("task", ["embed", "masked", "classify", "tag"])
def test_looks_are_those_of_the_verb(reading, folders, task):
    text, off = "the cats [MASK] on a mat.", {"encoder.1.self": [0]}
    found = reading.post("/attention", {"model": task, "text": text, "heads_off": off}).tree
    wanted = regard.look(folders[task], text, off=off).to_dict()
    assert (found["task"], found["off"], found["answer"]) == (task, off, wanted["answer"])
    for one, other in zip(found["maps"], wanted["maps"], strict=True):
        assert one["name"] == other["name"]
        for head, same in zip(one["heads"], other["heads"], strict=True):
            assert np.allclose(head["weights"], same["weights"], atol=2e-4)
    assert "q" in found["maps"][0]["heads"][0], "the walk is told too"


NO_LOOKS = {
    "no text": ({}, "text"),
    "texts": ({"text": ["a"]}, "text"),
    "too many tokens": ({"text": "a", "heads_off": {"encoder.9.self": [0]}}, "encoder.9.self"),
    "no such head": ({"text": "a", "heads_off": {"encoder.0.self": [2]}}, "has 2 heads"),
    "heads as text": ({"text": "a", "heads_off": "all"}, "heads_off"),
}


@pytest.mark.parametrize("name", NO_LOOKS)
def test_what_cannot_be_looked_into_is_one_line(reading, name):
    fields, said = NO_LOOKS[name]
    found = reading.post("/attention", {"model": "tag"} | fields)
    assert found.status == 400
    assert said in found.tree["error"]
    for model in (["embed"], {"a": 1}, 5):
        assert reading.post("/attention", {"model": model, "q": "a"}).status in (400, 404)


def test_with_the_engine_there_are_several_batches_at_a_time(folders):
    for engine, batches in (("auto", 2), ("readable", 1)):
        places = [Place(folder) for folder in folders.values()]
        service = Service(places, loading=Loading(engine=engine))
        for place in places:
            service.families[place.name].load(place)
        assert min(service._workers(), 2) == batches
        found = service._work((service.families["embed"], Errand("embed")), [[2, 5, 3], [2, 3]], True)
        assert np.allclose(
            json.loads(found[1]), load(folders["embed"], engine=engine).embed([""])[0], atol=1e-6
        )


def test_heads_are_off_while_it_answers(reading, folders):
    off = {"encoder.0.self": [0], "encoder.1.self": [1]}
    text = "the cats sat on a mat."
    plain, without = (
        reading.post("/v1/embeddings", {"model": "embed", "input": text, "heads_off": each}).tree["data"][0]
        for each in ({}, off)
    )
    with heads_off(off):
        wanted = load(folders["embed"]).embed([text])[0]
    assert np.allclose(without["embedding"], wanted, atol=1e-5)
    assert not np.allclose(plain["embedding"], wanted, atol=1e-3)
    for path, said in (("/fill", "a [MASK]"), ("/classify", text), ("/tag", text)):
        one, other = (reading.post(path, {"text": said, "heads_off": each}).tree for each in ({}, off))
        assert one != other
        assert reading.post(path, {"text": said, "heads_off": {"encoder.0.self": [7]}}).status == 400


# Gaps, labels, tags ----------------------------------------------------------------------------------


GIVEN = {
    "fill": ["the [MASK] sat", "[MASK][MASK] a [MASK] \U0001f600"],
    "classify": ["the cat sat", "", "cat " * 40, "née"],
    "tag": ["the dog's cat, isn't it?", "", "cat " * 40],
}
FOLDERS = {"fill": "masked", "classify": "classify", "tag": "tag"}


@pytest.mark.parametrize("verb", GIVEN)
def test_each_says_what_its_verb_says(reading, folders, verb, tmp_path, capfd):
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in GIVEN[verb]), encoding="utf-8")
    folder = folders[FOLDERS[verb]]
    assert command([verb, "-m", str(folder), "-i", str(tmp_path / "in.txt"), "--json"]) == 0
    wanted = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found = reading.post(f"/{verb}", {"text": GIVEN[verb]}).tree
    close(found, wanted)
    close(reading.post(f"/{verb}", {"q": GIVEN[verb][0], "model": FOLDERS[verb]}).tree, wanted[0])
    close(reading.form(f"/{verb}", {"q": GIVEN[verb][0]}).tree, wanted[0])
    assert reading.post(f"/{verb}", {"text": []}).tree == []


def close(found, wanted):
    """Equal, numbers nearly so."""
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        close(list(found.values()), list(wanted.values()))
    else:
        assert found == (pytest.approx(wanted, abs=1e-5) if isinstance(wanted, float) else wanted)


def test_guesses_and_words_as_asked(reading):
    assert len(reading.post("/fill", {"text": "a [MASK]", "top": 9}).tree["gaps"][0]) == 9
    assert reading.post("/tag", {"text": "the cat.", "words": True}).tree["words"] == ["the", "cat."]
    assert reading.post("/classify", {"text": "a \ud800"}).status == 200


BAD = {
    "no text": ({}, 400, "missing text"),
    "a number": ({"text": 5}, 400, "text"),
    "lists": ({"text": [["a [MASK]"]]}, 400, "text"),
    "too many texts": ({"text": ["a [MASK]"] * 1001}, 400, "text"),
    "too long": ({"text": "[MASK] a " * 20_000}, 400, "limit is 100000"),
    "another model": ({"text": "a [MASK]", "model": "embed"}, 404, "is an encoder of sentences"),
}
BAD_GAPS = {
    "no gap": ({"text": "a"}, 400, "0 [MASK]"),
    "nothing": ({"text": ""}, 400, "0 [MASK]"),
    "too many gaps": ({"text": "[MASK]" * 65}, 400, "65 [MASK]"),
    "too many tokens": ({"text": "[MASK] " * 12}, 400, "14 tokens and the model reads 13"),
    "too many guesses": ({"text": "[MASK]", "top": 10}, 400, "9 tokens"),
    "no guesses": ({"text": "[MASK]", "top": 0}, 400, "top"),
    "guesses without number": ({"text": "[MASK]", "top": "many"}, 400, "top"),
}


@pytest.mark.parametrize(
    ("path", "case"),
    [(path, case) for path in ("/fill", "/classify", "/tag") for case in BAD.values()]
    + [("/fill", case) for case in BAD_GAPS.values()]
    + [("/tag", ({"text": "a " * 10_001}, 400, "10001 words"))],
)
def test_what_cannot_be_read_is_one_line(reading, path, case):
    fields, status, said = case
    found = reading.post(path, fields)
    assert found.status == status, found.body
    assert said in found.tree["error"]
    assert len(found.tree["error"]) < 400


def test_routes_without_a_model_say_so(server):
    for path in ("/fill", "/classify", "/tag"):
        found = server.post(path, {"text": "a"})
        assert (found.status, "serves a translator" in found.tree["error"]) == (404, True)


def test_one_stack_of_both_masks_writes_fills_and_gives_vectors(start, tmp_path):
    """A folder that several verbs take is behind the routes of all of them, and is listed once."""
    folder = write_writer(tmp_path / "both", task="both", positions__kind="rotary")
    with start("-m", folder) as server:
        assert [each["id"] for each in server.get("/v1/models").tree["data"]] == ["both"]
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            written = client.completions.create(model="both", prompt="the cat", max_tokens=3)
            assert written.usage.completion_tokens == 3
            found = client.embeddings.create(model="both", input=["the cat", "a dog"])
        vectors = [each.embedding for each in found.data]
        assert np.allclose(vectors, open_embedder(folder).embed(["the cat", "a dog"]), atol=1e-5)
        wanted = TASKS["masked"].load(folder).fill(["the [MASK] sat"])[0].to_dict()
        close(server.post("/fill", {"text": "the [MASK] sat"}).tree, wanted)
        assert server.post("/classify", {"text": "a"}).status == 404
    assert "Traceback" not in "".join(server.said)


def test_a_folder_of_several_tasks_is_read_once_for_gaps_and_vectors(tmp_path):
    place = Place(write_writer(tmp_path / "both", task="both", positions__kind="rotary"))
    service = Service([place])
    for each in service.loads():
        each()
    assert list(service.loads()) == []
    written, filled = (service.families[name].models["both"] for name in ("language", "masked"))
    assert written.writer.model is filled.own.model
    assert list(service.families["masked"].models) == ["both"]
    assert not service.families["embed"].models
    assert list(service.families["embed"].known()) == ["both"]
    assert not service.families["masked"].places, "it is listed by the task that it is of"
