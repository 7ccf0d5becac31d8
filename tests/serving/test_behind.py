"""A server behind a proxy: a prefix, keys with limits, clients told apart, a pivot, a page of addresses."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving.conftest import Running, Start

KEYS = """
[small]
key = "small"
requests = 2
characters = 20

[large]
key = "large"
"""


@pytest.fixture(scope="module")
def behind(model: Path, start: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    keys = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.write_text(KEYS, encoding="utf-8")
    models = ("-m", f"en-de={model}", "-m", f"de-fr={model}", "--pivot", "de")
    proxy = ("--url-prefix", "/mt", "--behind-proxy", "--req-limit", 4, "--api-keys", keys)
    with start(*models, *proxy, "--remember", 1, "--shortlist", ready=False) as server:
        for _ in range(1200):
            with contextlib.suppress(OSError):  # as whoever waits for a server that starts
                if server.get("/mt/health").status == 200:
                    break
            time.sleep(0.1)
        yield server


def ask(server: Running, key: str, client: str = "192.0.2.1", **fields: str) -> tuple[int, str]:
    given = {"q": "a b", "source": "en", "target": "de", "api_key": key} | fields
    found = server.post("/mt/translate", given, x_forwarded_for=f"203.0.113.9, {client}")
    tree = found.tree
    return found.status, tree.get("translatedText", tree.get("error"))


def test_addresses_begin_with_the_prefix(behind: Running) -> None:
    assert behind.get("/mt/languages", authorization="Bearer large").status == 200
    assert behind.get("/mt").headers["location"] == "/mt/"
    for path in ("/mt/", "/mt/look/theme.css", "/mt/docs/", "/mt/docs/docs.js", "/mt/spec"):
        assert behind.get(path).status == 200, path
    assert behind.get("/mt/spec").tree["servers"] == [{"url": "/mt"}]
    for path in ("/", "/languages", "/mtx", "/translate"):
        found = behind.get(path)
        assert found.status == 404, path
        assert found.tree == {"error": "Not Found; addresses here begin with /mt/"}
    assert behind.get("/mt/nothing").status == 404


def test_keys_have_limits_and_clients_have_theirs(behind: Running) -> None:
    assert ask(behind, "none") == (403, "Invalid API key")
    status, said = ask(behind, "small", q="a " * 20)
    assert (status, said) == (400, "Invalid request: text has 40 characters, your key allows 20")
    assert [ask(behind, "small", client)[0] for client in ("a", "b", "c")] == [200, 200, 429]
    assert [ask(behind, "large", "192.0.2.2")[0] for _ in range(5)] == [200] * 4 + [429]
    assert ask(behind, "large", "192.0.2.3")[0] == 200


def test_pairs_without_a_model_go_by_way_of_the_pivot(behind: Running) -> None:
    first = ask(behind, "large", "192.0.2.4")[1]
    second = ask(behind, "large", "192.0.2.5", q=first, source="de", target="fr")[1]
    assert ask(behind, "large", "192.0.2.6", target="fr") == (200, second)
    assert ask(behind, "large", "192.0.2.7", target="fr") == (200, second)  # from memory
    status, said = ask(behind, "large", "192.0.2.8", target="fr", words="true")
    assert status == 400
    assert "third language" in said
    languages = behind.get("/mt/languages", authorization="Bearer large").tree
    assert next(each["targets"] for each in languages if each["code"] == "en") == ["de", "fr"]
