"""LibreTranslate's API on a real server: its clients, its shapes, and ours beside them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from command import POSITIONS
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException
from libretranslatepy import LibreTranslateAPI

HOSTILE = [
    "<script>alert(1)</script>",
    "'; DROP TABLE x; --",
    "\x00\x01\x1b[31m",
    "%s%n{0}${x}{{7*7}}",
    "\u202eabc\u2066",
    "../../etc/passwd",
    "a" * 5000,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\ufeff\ufffe\uffff",
    "&lt;img src=x onerror=alert(1)&gt;",
    "]]><!--",
    "\r\nSet-Cookie: x=y\r\n\r\n",
    "data: x\n\nevent: done\n\n",
    "Z\u0351\u036b\u0343\u036a\u0302a" * 30,
    "</script><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\u2581\u2581 <s> </s> <pad> <0x0A>",
    "{" * 1000,
    '\\"\\u0000\\',
    "\u0000",
]


# The clients ---------------------------------------------------------------------------------------


def test_libretranslatepy(server):
    client = LibreTranslateAPI(server.url)
    assert client.translate("a b", "en", "de") == server.translate("a b")["translatedText"]
    assert {each["code"] for each in client.languages()} == {"en", "de"}
    assert client.detect("hello")[0]["language"] in ("en", "de")


def test_deep_translator(server):
    client = LibreTranslator(source="en", target="de", api_key="none", custom_url=f"{server.url}/")
    assert client.translate("a b & c") == server.translate("a b & c")["translatedText"]
    assert client.translate_batch(["a", "b"]) == [server.translate(q)["translatedText"] for q in "ab"]


@pytest.fixture(scope="session")
def npm_clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages `translate` and `libretranslate`."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm and node are not here, so that the JavaScript clients cannot be tried")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    words = ["npm", "install", "--no-audit", "--no-fund", "--silent", "translate@3", "libretranslate@1"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"npm could not install the JavaScript clients: {done.stderr.strip()[-200:]}")
    return folder


def javascript(folder: Path, code: str) -> str:
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def test_npm_translate(server, npm_clients):
    code = f"""
        import {{ Translate }} from "translate";
        const translate = Translate({{ engine: "libre", url: "{server.url}/translate", from: "en" }});
        console.log(await translate("a b c", "de"));
    """
    assert javascript(npm_clients, code) == server.translate("a b c")["translatedText"]


def test_npm_libretranslate(server, npm_clients):
    code = f"""
        import {{ translate }} from "libretranslate";
        console.log(await translate({{ query: "a b c", target: "de", apiurl: "{server.url}" }}));
    """
    assert javascript(npm_clients, code) == server.translate("a b c")["translatedText"]


# Shapes --------------------------------------------------------------------------------------------


def test_json_form_and_query_say_the_same(server):
    fields = {"q": "a b c", "source": "en", "target": "de"}
    said = server.post("/translate", fields)
    assert said.headers["content-type"] == "application/json"
    assert said.body == server.form("/translate", fields).body
    assert said.body == server.ask("POST", "/translate?q=a+b+c&source=en&target=de").body


def test_a_list_gives_lists(server):
    found = server.translate(["a b", "", "c"], alternatives=2, source="auto")
    assert [len(found[name]) for name in ("translatedText", "alternatives", "detectedLanguage")] == [3, 3, 3]
    assert found["translatedText"][1] == ""
    assert found["translatedText"][0] == server.translate("a b")["translatedText"]
    assert server.form("/translate", {"q": ["a b", "c"], "target": "de"}).tree["translatedText"] == [
        found["translatedText"][0],
        found["translatedText"][2],
    ]


def test_alternatives_are_other_texts_and_the_first_is_the_answer(server):
    found = server.translate("a b c", alternatives=3)
    assert found["translatedText"] == server.translate("a b c")["translatedText"]
    several = [found["translatedText"], *found["alternatives"]]
    assert len(set(several)) == len(several)
    assert 1 <= len(found["alternatives"]) <= 3


def test_paragraphs_are_kept_and_sentences_are_translated_as_alone(server):
    text = "  a b.\r\n\r\n\tc d e!\n\n---\n"
    one, two = (server.translate(each)["translatedText"] for each in ("a b.", "c d e!"))
    assert server.translate(text)["translatedText"] == f"  {one}\r\n\r\n\t{two}\n\n---\n"


def test_texts_longer_than_the_model_takes(server):
    found = server.translate(" ".join("abcdefgh"[n % 8] for n in range(500)))["translatedText"]
    assert len(found.split()) >= 500 / POSITIONS, "every piece has its translation"
    server.translate("a" * 20_000)


def test_html_keeps_its_tags(server):
    found = server.translate("<p>a <b>b c</b> d</p><script>e f</script>", format="html")["translatedText"]
    for tag in ("<p>", "<b>", "</b>", "</p>", "<script>e f</script>"):
        assert found.count(tag) == 1
    assert found.index("<p>") < found.index("<b>") < found.index("</b>") < found.index("</p>")


def test_a_glossary_and_what_is_not_to_be_translated(server):
    found = server.translate("a b c", glossary={"b": "Bär"})["translatedText"]
    assert found.count("Bär") == 1
    text = 'a <span translate="no">b  c</span> d'
    assert '<span translate="no">b  c</span>' in server.translate(text, format="html")["translatedText"]


def test_words_are_told(server):
    found = server.translate("a b. c d", words=True)
    for word in found["words"]:
        assert found["translatedText"][word["start"] : word["end"]] == word["text"]
        assert 0 <= word["confidence"] <= 1
    assert "".join(w["text"] for w in found["words"]) == "".join(found["translatedText"].split())
    refused = server.post("/translate", {"q": "a", "target": "de", "words": True, "format": "html"})
    assert refused.status == 400


def events(body: bytes) -> list[tuple[str, object]]:
    """The server-sent events of a body."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines.get("event", ""), json.loads(lines["data"])))
    return found


@pytest.mark.parametrize("path", ["/translate", "/translate/stream"])
def test_streams_say_in_pieces_what_the_whole_would_be(server, path):
    text = ["a b. C d!\n\ne f", "g h"]
    said = server.post(path, {"q": text, "target": "de", "stream": True})
    assert said.headers["content-type"].startswith("text/event-stream")
    *pieces, (name, whole) = events(said.body)
    assert name == "done"
    assert whole["translatedText"] == server.translate(text)["translatedText"]
    for number, expected in enumerate(whole["translatedText"]):
        assert "".join(p["text"] for _, p in pieces if p["index"] == number) == expected


def test_other_languages_are_refused_with_those_there_are(server):
    for pair in (("en", "fr"), ("de", "en"), ("xx", "de"), ("auto", "fr")):
        said = server.post("/translate", {"q": "a", "source": pair[0], "target": pair[1]})
        assert said.status == 400
        assert "en" in said.tree["error"]


def test_languages_settings_and_spec(server):
    assert server.get("/languages").tree == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    settings = server.get("/frontend/settings").tree
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert settings["keyRequired"] is False
    spec = server.get("/spec").tree
    assert spec["openapi"].startswith("3.")
    assert {"/translate", "/languages", "/detect", "/attention", "/health"} <= spec["paths"].keys()


def test_attention_is_that_of_the_translation_and_heads_can_be_off(server):
    fields = {"q": "a b c", "source": "en", "target": "de"}
    seen = server.post("/attention", fields).tree
    assert seen["translation"] == server.translate("a b c")["translatedText"]
    assert len(seen["maps"]) > 0
    every = {f"decoder.{layer}.cross": [0, 1] for layer in range(3)}
    off = server.post("/attention", fields | {"heads_off": every}).tree
    assert off["translation"] != seen["translation"], "without a source nothing can be translated"
    assert server.post("/attention", fields | {"q": ""}).status == 400
    assert server.post("/attention", fields | {"q": "a " * 5000}).status == 400


def test_the_model_tells_its_card_and_its_curve(server):
    (found,) = server.get("/model?source=en&target=de").tree
    assert found["card"].startswith("# A translator")
    assert found["metrics"][-1]["step"] == 150
    assert found["config"]["model"]["d_model"] == 32
    assert server.get("/model?source=en&target=xx").status == 400


def test_metrics_count(server):
    server.translate("a. B. C.")
    text = server.get("/metrics").body.decode()
    assert 'regard_requests_total{path="/translate",status="200"}' in text
    assert 'regard_sentences_total{pair="en-de"}' in text
    assert "process_resident_memory_bytes" in text


def test_faults_are_json_too(server):
    assert server.get("/nothing").tree == {"error": "Not Found"}
    said = server.get("/translate")
    assert (said.status, said.headers["allow"]) == (405, "POST")
    assert "error" in server.post("/translate", ["a"]).tree
    assert server.ask("POST", "/translate", b"\xff").status == 400


# Safety --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_comes_back_as_data(server, text):
    said = server.post("/translate", {"q": [text], "source": "auto", "target": "de", "alternatives": 1})
    assert said.status == 200, said.body
    assert said.headers["content-type"] == "application/json"
    assert said.headers["x-content-type-options"] == "nosniff"
    assert said.headers["content-security-policy"].startswith("default-src 'none'")
    assert "set-cookie" not in said.headers
    refused = server.post("/translate", {"q": "a", "source": text, "target": text, "api_key": text})
    assert refused.status == 400
    assert refused.headers["content-type"] == "application/json"
    html = server.post("/translate", {"q": text, "target": "de", "format": "html"})
    assert html.status == 200
    server.post("/translate", {"q": "a b", "target": "de", "glossary": {text[:99] or "x": text[:99]}})


def test_the_page_may_only_use_itself(server):
    said = server.get("/")
    assert said.status == 200
    assert said.headers["content-type"].startswith("text/html")
    policy = said.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert said.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in said.headers


def test_files_outside_the_page_are_not_served(server):
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd"):
        assert server.get(path).status == 404


def test_keys_and_other_sites(model, start):
    with start(
        "-m", f"en-de={model}", "--allow-origin", "https://a.example", REGARD_API_KEY="s3cret"
    ) as server:
        fields = {"q": "a", "source": "en", "target": "de"}
        for path in ("/translate", "/translate/stream", "/attention", "/detect"):
            assert server.post(path, fields).status == 403
            assert server.post(path, fields | {"api_key": "s3cre"}).status == 403
            assert server.post(path, fields | {"api_key": "s3cret"}).status == 200
            assert server.post(path, fields, authorization="Bearer s3cret").status == 200
        for path in ("/metrics", "/model"):
            assert server.get(path).status == 403
            assert server.get(f"{path}?api_key=s3cret").status == 200
        assert server.get("/languages").status == server.get("/health").status == 200
        assert LibreTranslateAPI(server.url, "s3cret").translate("a", "en", "de")
        client = LibreTranslator(source="en", target="de", api_key="wrong", custom_url=f"{server.url}/")
        with pytest.raises(AuthorizationException):
            client.translate("a b")
        asked = server.get("/languages", origin="https://a.example")
        assert asked.headers["access-control-allow-origin"] == "https://a.example"
        assert (
            "access-control-allow-origin" not in server.get("/languages", origin="https://b.example").headers
        )
