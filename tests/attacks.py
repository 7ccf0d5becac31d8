"""Requests that once froze the server, filled its memory or ended in a 500, and others like them.

Each is small enough for any client to send. Used by `tests/serving/test_silence.py` and
`benchmarks/soak.py`: whatever is asked, everybody else is answered meanwhile.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any

from forms import KIND, form


@dataclass(frozen=True)
class Attack:
    """One request: where to, and its fields or its raw body."""

    name: str
    path: str
    fields: dict[str, Any]
    raw: bytes | None = None
    kind: str = "application/json"

    @property
    def body(self) -> bytes:
        return (
            json.dumps({"source": "en", "target": "de"} | self.fields).encode()
            if self.raw is None
            else self.raw
        )


def _html(name: str, q: str, **fields: Any) -> Attack:
    return Attack(name, "/translate", {"q": q, "format": "html"} | fields)


def _text(name: str, q: Any, **fields: Any) -> Attack:
    return Attack(name, "/translate", {"q": q} | fields)


def _write(name: str, prompt: Any, **fields: Any) -> Attack:
    return Attack(name, "/v1/completions", {"prompt": prompt} | fields)


def _embed(name: str, given: Any, **fields: Any) -> Attack:
    return Attack(name, "/v1/embeddings", {"model": "embed", "input": given} | fields)


def _hear(name: str, data: bytes, **fields: str) -> Attack:
    return Attack(name, "/v1/audio/transcriptions", {}, form("a.wav", data, **fields), KIND)


def _wave(data: bytes, rate: int, channels: int, told: int | None = None) -> bytes:
    """A WAV of 16 bits; its header says what it is told of its size."""
    size = len(data) if told is None else told
    parts = 1, channels, rate, min(2**32 - 1, 2 * rate * channels), min(65_535, 2 * channels), 16
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", min(2**32 - 1, size + 36), b"WAVE", b"fmt ", 16, *parts)
    return head + struct.pack("<4sI", b"data", size) + data


FORM = "application/x-www-form-urlencoded"
LETTERS = "a b c d e f g h i j "
TERMS = {f"({'(' * n}": "x" for n in range(190)}
MARKS = "a" + "\u0301\u0316" * 10_000  # classes 230 and 220 in turn: the worst order for NFC

ATTACKS = [
    _text("words of 240 characters", LETTERS * 12, words=True),
    _text("words of 100,000 characters", LETTERS * 5000, words=True),
    _text("a term and ten alternatives", LETTERS * 4, glossary={"a": "A"}, alternatives=10),
    _text("words and ten alternatives", LETTERS * 200, words=True, alternatives=10),
    _text("full stops", "." * 50_000),
    _text("full stops and quotes", '."' * 50_000),
    _text("short sentences in a line", "A. " * 33_000),
    _text("short lines", "a\n" * 50_000),
    _text("blanks", ". " + " " * 99_000 + "x"),
    _text("one word", "x" * 100_000),
    _text("accents", "a" + "\u0301" * 20_000),
    _text("accents in the worst order", MARKS),
    _text("joined letters", "x\u200d" * 40_000),
    _text("a thousand texts", ["a. b"] * 1000),
    _text("a thousand texts with words", ["a b c"] * 1000, words=True),
    _text("glossary hits", "cat " * 10_000, glossary={"cat": "Kater"}),
    _text("glossary hits and words", "cat " * 10_000, glossary={"cat": "Kater"}, words=True),
    _text("terms that nearly match", "(" * 99_000, glossary=TERMS | {"(" * 199 + "x": "y"}),
    _text("two hundred long terms", "ab " * 3000, glossary={f"{'ab ' * 60}{n}": "x" for n in range(200)}),
    _text("surrogates in a glossary", "a b", glossary={"a": "\ud800", "\udfff": "b"}),
    _html("nested tags", "<b>" * 560 + "a" + "</b>" * 560),
    _html("deeply nested tags", "a <b>" * 4500 + "a" + "</b>" * 4500),
    _html("tags that never end", "<b\t" * 33_333),
    _html("values that never end", '<a b="' * 16_666),
    _html("values in single quotes", "<a b='" * 16_666),
    _html("comments that never end", "<!--" * 25_000),
    _html("declarations that never end", "<![CDATA[" * 11_000),
    _html("instructions that never end", "<?" * 50_000),
    _html("closing tags that never end", "</a " * 25_000),
    _html("scripts that never end", "<script>" * 12_500),
    _html("fixed elements that never end", "<code>" * 9_000),
    _html("ampersands", "&" * 100_000),
    _html("entities", "&amp" * 25_000),
    _html("a long number", "&#" + "9" * 4400 + ";"),
    _html("a long hexadecimal number", "&#x" + "f" * 4400 + ";"),
    _html("short elements", "<b>a</b> " * 10_000),
    _html("empty elements", "<b></b>" * 10_000 + "a b"),
    _html("pictures", "a " + "<img>" * 10_000 + "b"),
    _html("opened only", "<b>a " * 10_000),
    _html("closed only", "a</b> " * 10_000),
    _html("opened, and others closed", "<i>" * 5000 + "</b>" * 5000 + "a"),
    _html("paragraphs with a glossary", "<p>a</p>" * 9000, glossary=TERMS),
    _html("elements and terms", "<b>cat</b> x " * 4000, glossary={"cat": "Kater"}),
    _html("elements and ten alternatives", "<b>a</b> c " * 200, alternatives=10),
    _html("attributes", "<b " + "class=a " * 12_000 + ">x</b>"),
    _html("classes", "<b " + "class='notranslat " * 5_500 + "'>x</b>"),
    Attack("heads of no name", "/attention", {"q": "a b", "heads_off": {"decoder.0.cros": [0]}}),
    Attack("a surrogate for a head", "/attention", {"q": "a b", "heads_off": {"\ud800": [0]}}),
    Attack("many heads", "/attention", {"q": "a b", "heads_off": {f"x{n}": [0] * 200 for n in range(1500)}}),
    Attack("a long look", "/attention", {"q": LETTERS * 11}),
    Attack("a look at a lot", "/attention", {"q": "x" * 99_000}),
    Attack("detect accents", "/detect", {"q": MARKS}),
    Attack("detect stops", "/detect", {"q": "." * 100_000}),
    Attack("deep JSON", "/translate", {}, b"[" * 200_000),
    Attack("wide JSON", "/translate", {}, b'{"q":[' + b"{}," * 400_000 + b"1]}"),
    Attack("wide and deep JSON", "/translate", {}, b'{"q":[' + b"[[[[]]]]," * 130_000 + b"1]}"),
    Attack("many keys", "/translate", {str(n): 0 for n in range(90_000)}),
    Attack("a long number", "/translate", {}, b'{"q":"a","target":"de","alternatives":' + b"9" * 9999 + b"}"),
    Attack("a form of escapes", "/translate", {}, b"q=" + b"%41" * 400_000, FORM),
    Attack("a form of fields", "/translate", {}, b"q=a&" * 300_000, FORM),
    Attack(
        "a form that nearly ends", "/translate", {},
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"\r\n-" * 400_000 + b"\r\n--x--\r\n",
        "multipart/form-data; boundary=x",
    ),
    Attack("a glossary as text", "/translate", {"q": "a", "glossary": "[" * 100_000}),
    _write("as long as can be", "a", max_tokens=4000),
    _write("a prompt as long as can be", "a " * 49_000),
    _write("a prompt without an end", "x" * 100_000),
    _write("accents to write on from", MARKS),
    _write("as many texts as can be", ["a"] * 64, max_tokens=50, logprobs=5, echo=True),
    _write("more texts than can be", ["a"] * 1000, n=64),
    _write("draws and runners-up", "the cat", n=64, max_tokens=100, logprobs=5),
    _write("every token told again", [7] * 3000, echo=True, logprobs=5, max_tokens=0),
    _write("stops that nearly match", "a", max_tokens=1000, stop=["a" * 199 + str(n) for n in range(9)]),
    _write("more stops than can be", "a", stop=["a"] * 17),
    _write("a stop of nothing", "a", stop=""),
    _write("biases", "a", logit_bias={str(n): 100 for n in range(290)}, max_tokens=500),
    _write("more biases than can be", "a", logit_bias={str(n): 1 for n in range(3000)}),
    _write("a bias for what is no token", "a", logit_bias={"999999999999": 1}),
    _write("tokens that are none", [10**30, -1], max_tokens=1),
    _write("no tokens", [[]]),
    _write("no prompts", []),
    _write("prompts of all kinds", ["a", [1]]),
    _write("prompts in prompts", [[[1]]]),
    _write("a hundred thousand tokens", [7] * 15_000),
    _write("a surrogate to write on from", "\ud800", echo=True, max_tokens=5),
    _write("a surrogate to stop at", "a", stop=["\udfff"], max_tokens=50),
    _write("a model of a long name", "a", model="x" * 900),
    _write("a model that is a surrogate", "a", model="\ud800"),
    _write("no temperature at all", "a", temperature=1e-300, top_p=1e-300, n=3),
    _write("penalties", "a", presence_penalty=-2, frequency_penalty=-2, max_tokens=1000),
    _write("heads off", "a b", heads_off={"decoder.0.self": [0, 1, 2], "decoder.1.self": [0, 1, 2]}),
    _write("heads of no name to write with", "a", heads_off={"\ud800": [0]}),
    _write("a stream", "a", stream=True, max_tokens=1000, logprobs=5, echo=True),
    _write("a stream of many", ["a b"] * 8, n=8, stream=True, max_tokens=100),
    _write("a stream of options", "a", stream=True, stream_options={str(n): [] for n in range(19_000)}),
    _write("a seed too large", "a", seed=2**63),
    Attack("a model that is a list", "/attention", {"q": "a", "model": ["en-de"]}),
    _embed("a thousand texts to embed", ["the cat sat on a mat"] * 1000),
    _embed("a thousand texts in base64", ["the cat sat on a mat"] * 1000, encoding_format="base64"),
    _embed("a word without an end", "x" * 100_000),
    _embed("many words in one text", "cat " * 25_000),
    _embed("signs alone", "." * 100_000),
    _embed("accents to embed", MARKS),
    _embed("many tokens", [5] * 19_000),
    _embed("tokens of many texts", [[5] * 18] * 1000),
    _embed("empty texts", [""] * 1000),
    _embed("lists in lists", [[[5]]] * 5000),
    _embed("texts and tokens in turn", ["a", [5]] * 4000),
    _embed("surrogates to embed", ["\ud800"] * 1000),
    Attack("gaps alone", "/fill", {"text": "[MASK]" * 16_000}),
    Attack("gaps and guesses", "/fill", {"text": ["[MASK] " * 64] * 200, "top": 100}),
    Attack("guesses for a thousand", "/fill", {"text": ["a [MASK]"] * 1000, "top": 9}),
    Attack("a gap without an end", "/fill", {"text": "[MASK]" + "x" * 99_000}),
    Attack("gaps that never close", "/fill", {"text": "[MASK" * 19_000}),
    Attack("a thousand texts to classify", "/classify", {"q": ["the cat sat on a mat"] * 1000}),
    Attack("signs to classify", "/classify", {"q": "." * 100_000}),
    Attack("half characters to classify", "/classify", {"q": ["\ud800"] * 1000}),
    Attack("lists to classify", "/classify", {"q": [[["a"]]] * 4000}),
    Attack("a word to tag", "/tag", {"q": "x" * 100_000}),
    Attack("as many words as can be", "/tag", {"q": "a " * 10_000}),
    Attack("more words than can be", "/tag", {"q": "a " * 49_000}),
    Attack("more words than can be held", "/tag", {"q": ["a " * 100] * 490}),
    Attack("signs to tag", "/tag", {"q": "'" * 100_000}),
    Attack("short forms that nearly are", "/tag", {"q": "an" * 49_000 + "'"}),
    Attack("joined words", "/tag", {"q": "a-" * 49_000}),
    _embed("another width", "a", dimensions=10**30),
    _hear("as many bytes as can be", bytes(24_000_000)),
    _hear("more bytes than can be", bytes(27_000_000)),
    _hear("a form that nearly ends in a recording", b"\r\n-" * 4_000_000),
    _hear("two seconds of many channels", _wave(bytes(24_000_000), 384_000, 16)),
    _hear("an odd rate", _wave(bytes(800_000), 767_999, 1)),
    _hear("a thousand channels", _wave(bytes(204_800), 8000, 1024)),
    _hear("a size that lies", _wave(bytes(8000), 8000, 1, 2**32 - 1)),
    _hear("a recording that is too long", _wave(bytes(4_000_000), 1000, 1)),
    _hear("a recording of nothing", b""),
    _hear("words of a recording", _wave(bytes(range(256)) * 90, 8000, 1), response_format="verbose_json"),
    _hear("a recording as it is heard", _wave(bytes(range(256)) * 90, 8000, 1), stream="true"),
    _hear("heads of a recording", _wave(bytes(90), 8000, 1), heads_off="[" * 100_000),
    _hear("a language without an end", _wave(bytes(90), 8000, 1), language="x" * 900_000),
    Attack("a look at a recording", "/attention", {},
           form("a.wav", _wave(bytes(range(256)) * 90, 8000, 1), model="ears"), KIND),
    Attack("a look at a long recording", "/attention", {},
           form("a.wav", _wave(bytes(24_000_000), 8000, 1), model="ears"), KIND),
]  # fmt: skip
