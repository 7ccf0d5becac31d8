"""OpenAI's API on a real server with a small language model: its own client, its shapes, hostile fields."""

import concurrent.futures
import contextlib
import http.client
import json
import math
import time

import openai
import pytest
import torch

from regard import load
from regard.tasks.language.writer import Wish

PROMPT = "the cat sat"


@pytest.fixture(scope="module")
def client(writing):
    return openai.OpenAI(base_url=f"{writing.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def writer(language_model):
    return load(language_model)


def greedy(writer, prompt: str, tokens: int, **wish) -> str:
    (text,) = writer.generate([prompt], Wish(tokens=tokens, slide=False, **wish))
    return text.text


# The client ----------------------------------------------------------------------------------------


def test_a_completion_is_what_the_writer_writes(client, writer):
    found = client.completions.create(model="tiny", prompt=PROMPT, max_tokens=7, temperature=0)
    assert found.choices[0].text == greedy(writer, PROMPT, 7)
    assert (found.object, found.model, len(found.choices)) == ("text_completion", "tiny", 1)
    assert found.choices[0].finish_reason in ("stop", "length")
    assert found.usage.prompt_tokens == len(writer.tokenizer.encode(PROMPT))
    assert found.usage.completion_tokens == 7
    assert found.usage.total_tokens == found.usage.prompt_tokens + 7


def test_a_stream_says_in_pieces_what_the_whole_would_be(client):
    asked = {"model": "tiny", "prompt": ["the", "a cat"], "max_tokens": 11, "temperature": 2, "seed": 5}
    whole = client.completions.create(**asked, n=3)
    pieces = list(
        client.completions.create(**asked, n=3, stream=True, stream_options={"include_usage": True})
    )
    for choice in whole.choices:
        parts = [each for piece in pieces for each in piece.choices if each.index == choice.index]
        assert "".join(part.text for part in parts) == choice.text
        assert [part.finish_reason for part in parts if part.finish_reason] == [choice.finish_reason]
    assert len({choice.text for choice in whole.choices}) > 2
    assert len(pieces) > 12
    assert pieces[-1].usage == whole.usage


def test_a_seed_draws_the_same_and_none_draws_anew(client):
    asked = {"model": "tiny", "prompt": PROMPT, "max_tokens": 23, "temperature": 1.5}
    texts = [client.completions.create(**asked, seed=3).choices[0].text for _ in range(2)]
    assert texts[0] == texts[1]
    assert (
        client.completions.create(**asked).choices[0].text
        != client.completions.create(**asked).choices[0].text
    )


def test_stop_strings_end_a_text(client):
    whole = (
        client.completions.create(model="tiny", prompt=PROMPT, max_tokens=19, temperature=0).choices[0].text
    )
    stop = whole[5:7]
    for asked in (stop, [stop, "never"]):
        found = client.completions.create(
            model="tiny", prompt=PROMPT, max_tokens=19, temperature=0, stop=asked, logprobs=0
        ).choices[0]
        assert (found.text, found.finish_reason) == (whole[: whole.index(stop)], "stop")
        assert "".join(found.logprobs.tokens) == found.text, "what stands behind a stop string is not told"


def test_logprobs_are_those_of_the_model(client, writer):
    found = client.completions.create(
        model="tiny", prompt=PROMPT, max_tokens=5, temperature=0, logprobs=5, echo=True
    ).choices[0]
    told, ids = found.logprobs, writer.tokenizer.encode(found.text)
    assert found.text.startswith(PROMPT)
    assert "".join(told.tokens) == found.text
    assert [found.text[at] for at in told.text_offset] == list(told.tokens)  # a token is a character here
    from regard.data.inputs import Tokens

    with torch.inference_mode():
        model = writer.model
        logp = model.project(model(Tokens(torch.tensor([ids]))))[0].log_softmax(-1)
    wanted = logp[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    assert told.token_logprobs[0] is None
    torch.testing.assert_close(torch.tensor(told.token_logprobs[1:]), wanted, atol=1e-4, rtol=1e-4)
    for at, top in enumerate(told.top_logprobs[1:]):
        assert len(top) == 5
        assert max(top.values()) == pytest.approx(float(logp[at].max()), abs=1e-4)
    only = client.completions.create(
        model="tiny", prompt=PROMPT, max_tokens=0, logprobs=1, echo=True
    ).choices[0]
    assert only.text == PROMPT
    assert only.logprobs.token_logprobs == told.token_logprobs[: len(only.logprobs.tokens)]


def test_ids_penalties_and_biases(client, writer):
    ids = writer.tokenizer.encode(PROMPT)
    asked = {"model": "tiny", "max_tokens": 13, "temperature": 0}
    plain = client.completions.create(prompt=PROMPT, **asked).choices[0].text
    assert client.completions.create(prompt=ids, **asked).choices[0].text == plain
    assert client.completions.create(prompt=[ids, ids[:3]], **asked).choices[0].text == plain
    (letter,) = writer.tokenizer.encode("q")
    forced = client.completions.create(prompt=PROMPT, **asked, logit_bias={str(letter): 100})
    assert forced.choices[0].text == "q" * 13
    once = client.completions.create(
        prompt=PROMPT, **asked, logit_bias={str(letter): 100}, frequency_penalty=2, presence_penalty=2
    )
    assert once.choices[0].text == "q" * 13, "a bias of 100 outweighs what 13 times cost"
    varied = client.completions.create(prompt=PROMPT, **asked, frequency_penalty=2).choices[0].text
    assert len(set(varied)) >= len(set(plain))


def test_the_models_are_listed(client):
    (found,) = client.models.list().data
    assert (found.id, found.object, found.task) == ("tiny", "model", "language")
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("nothing")
    assert refused.value.body["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 10**6}, "max_tokens"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"prompt": "a" * 300}, "max_tokens"),
        ({"n": 10**9}, "n"),
        ({"n": 0}, "n"),
        ({"prompt": ["a"] * 60, "n": 2}, "n"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [10**9]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"logprobs": 6}, "logprobs"),
        ({"logit_bias": {"99999": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 1e300}}, "logit_bias"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a"] * 99}, "stop"),
        ({"best_of": 3}, "best_of"),
        ({"suffix": "b"}, "suffix"),
        ({"heads_off": {"decoder.9.self": [0]}}, "heads_off"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_what_is_wrong_is_said_in_openais_shape(writing, fields, param):
    found = writing.post("/v1/completions", {"model": "tiny", "prompt": "a"} | fields)
    assert found.status == 400, found.body
    error = found.tree["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert error["message"]


def test_odd_fields_that_are_fine(writing):
    for fields in (
        {"prompt": ""},
        {"prompt": "\ud800 a \udfff"},
        {"prompt": "\x00\x1b[31m"},
        {"unknown": [1], "user": "me", "top_p": 0, "prompt": "a"},
        {"stop": None, "logprobs": None, "seed": None, "prompt": "a"},
        {"seed": -(2**63), "prompt": "a", "temperature": 1e-300},
    ):
        found = writing.post("/v1/completions", {"model": "tiny", "max_tokens": 3} | fields)
        assert found.status == 200, found.body
    assert writing.ask("POST", "/v1/completions", '{"prompt": "a", "temperature": NaN}').status == 400
    assert writing.ask("POST", "/v1/completions", b"\xff").status == 400
    assert writing.ask("POST", "/v1/completions", "[1]").tree["error"]["type"] == "invalid_request_error"
    assert writing.post("/v1/completions", {"model": "other", "prompt": "a"}).status == 404


# Together with others ------------------------------------------------------------------------------


def test_a_short_text_does_not_wait_for_a_long_one(writing):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = {"model": "tiny", "prompt": "a", "temperature": 1, "max_tokens": 190, "n": 20}
        long = [pool.submit(writing.post, "/v1/completions", asked) for _ in range(3)]
        while b"regard_tokens_total" not in (text := writing.get("/metrics").body) or b'"read"' not in text:
            time.sleep(0.01)
        short = writing.post("/v1/completions", {"model": "tiny", "prompt": "a", "max_tokens": 2})
        early = [each.done() for each in long]
        assert short.status == 200
        assert not all(early), "it came before the others were done"
        assert {each.result().status for each in long} == {200}


def test_a_client_that_goes_away_frees_its_place(writing):
    body = json.dumps({"model": "tiny", "prompt": "a", "max_tokens": 190, "n": 30, "stream": True})
    for _ in range(40):  # more than there are places
        connection = http.client.HTTPConnection(writing.host, writing.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/completions", body)
            found = connection.getresponse()
            if found.status == 200:
                found.read(10)
    for _ in range(300):
        found = writing.post("/v1/completions", {"model": "tiny", "prompt": "a", "max_tokens": 1})
        if found.status == 200:
            break
        time.sleep(0.1)
    assert found.status == 200
    assert math.isclose(writing.gauge("regard_queue_requests"), 0)


def test_keys_and_the_other_tasks_routes(language_model, model, start):
    with start("-m", f"tiny={language_model}", "--api-key", "s3cret", "--cache", "1") as server:
        wrong = openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError) as refused:
            wrong.models.list()
        assert refused.value.body["code"] == "invalid_api_key"
        right = openai.OpenAI(base_url=f"{server.url}/v1", api_key="s3cret", max_retries=0)
        assert right.completions.create(model="tiny", prompt="a", max_tokens=1).choices[0].text
        for path in ("/translate", "/translate/stream", "/detect"):
            found = server.post(path, {"q": "a", "target": "de", "api_key": "s3cret"})
            assert (found.status, "no translator" in found.tree["error"]) == (404, True)
        assert server.get("/languages").status == server.get("/frontend/settings").status == 404
        with pytest.raises(openai.BadRequestError, match="MB while they are written"):
            right.completions.create(model="tiny", prompt="a", max_tokens=190, n=64)


def test_both_kinds_on_one_server(language_model, model, start):
    with start("-m", f"tiny={language_model}", "-m", f"en-de={model}") as server:
        names = [(each["id"], each["task"]) for each in server.get("/v1/models").tree["data"]]
        assert names == [("en-de", "translation"), ("tiny", "language")]
        assert server.translate("a b")["translatedText"]
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        assert client.completions.create(model="tiny", prompt="a", max_tokens=3, temperature=0).choices
        with pytest.raises(openai.NotFoundError, match="it is a translator"):
            client.completions.create(model="en-de", prompt="a")
        assert {each["model"] for each in server.get("/model").tree} == {"en-de", "tiny"}
        assert [each["model"] for each in server.get("/model?model=tiny").tree] == ["tiny"]
        assert server.get("/model?model=xx").status == 400
