"""Text files, settings and requests: honest ones, and all that ever froze, filled or felled what reads them.

Requests that harmed the server are in `tests/attacks.py`. Used by `corpus.py`; beside it: `folders.py`.
"""

import gzip
import json
from typing import Any

from attacks import ATTACKS
from fuzz.folders import DEEP, DIGITS, ESCAPES, MANY_DIGITS

# Text ----------------------------------------------------------------------------------------------


def _row(number: object, form: str, head: object) -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t_\t_\t_\n"


def conllu() -> list[bytes]:
    honest = "# text = a b\n" + _row(1, "a", 2) + _row(2, "b", 0) + "\n"
    zum = _row("1-2", "zum", "_")
    inputs = [
        honest,
        honest * 5,
        zum,
        zum + "\n",
        zum + _row(1, "zu", 0) + _row(2, "dem", 1),
        _row("1-", "x", 0),
    ]
    inputs += [
        _row("1.1", "x", "_"),
        _row(1, "a", DIGITS),
        _row(1, "a", MANY_DIGITS),
        _row(MANY_DIGITS, "a", 0),
    ]
    inputs += [
        _row(f"1-{MANY_DIGITS}", "a", 0),
        _row("1-99999999", "a", 0) + _row(1, "b", 0),
        _row(1, "a", 1),
    ]
    inputs += ["".join(_row(n, "a", n - 1) for n in range(1, 3000)), _row(1, ESCAPES, 5), _row("٣", "a", 0)]
    inputs += [
        _row(1, "", 0),
        _row(1, " ", 0),
        _row(1, "a b", 0) + _row(2, "c", 1),
        _row(2, "a", 0),
        _row(1, "a", -1),
    ]
    return [*(each.encode() for each in inputs), b"\xff", b"\t" * 9, b""]


def _bomb() -> bytes:
    """A megabyte that unzips to one line of a gigabyte."""
    import gzip

    return gzip.compress(b"a" * (1 << 20), mtime=0) * 1024


def pairs() -> list[bytes]:
    honest = "the cat\tdie Katze\na dog\tein Hund\n" * 40
    long = "a" * 300_000
    inputs = [
        honest,
        f"{honest}{long}\t{long}\n",
        f"{honest}{ESCAPES}\t{ESCAPES}\n",
        "a\tb\tc\n",
        "\t\n" * 9,
        "x\n",
    ]
    inputs += [f"{'a ' * 20_000}\tb\n" * 3, "\u0301" * 20_000 + "\ta\n", "a\tb\0\n"]
    return [*(each.encode() for each in inputs), b"\xff\xfea\0\t\0b\0", b"", b"\x1f\x8b", _bomb()]


def running() -> list[bytes]:
    """Running text, and what is none."""
    plain = "The cat sat. " * 300
    return [
        plain.encode(),
        gzip.compress(plain.encode()),
        gzip.compress(b"a" * (1 << 20), mtime=0) * 16,
        ("\ufeff" + plain + "\r\n\n" * 9).encode(),
        b"a" * 5_000_000,
        "\u0301".encode() * 200_000,
        plain.encode()[:-1] + b"\xc3",
        plain.encode() + b"\0" + plain.encode(),
        b"\xff\xfe" + plain.encode("utf-16-le"),
        b" \n\t" * 1000,
        b"",
    ]


def lines() -> list[bytes]:
    inputs = [
        "the cat\n\na b c\n",
        "a" * 300_000,
        "a " * 3000 + "\n",
        "\u0301" * 20_000,
        "\r\n\r\n",
        ESCAPES,
        "狗\n",
    ]
    return [*(each.encode() for each in inputs), b"\xff", b"a\0b", b"\x1f\x8b\x08", _bomb()]


def python() -> list[bytes]:
    honest = (
        '"""A module that says so."""\n\ndef area(w, h):\n    """The area of a thing."""\n    return w * h\n'
    )
    inputs = [
        honest,
        "x = 1" + "+1" * 200_000,
        "(" * 5000,
        "-" * 100_000 + "1",
        "a" + ".b" * 50_000,
        "[" * 150 + "]" * 150,
    ]
    inputs += [
        "if x:\n" + "".join(" " * n + "if x:\n" for n in range(1, 110)),
        f"# coding: {'x' * 99}\n",
        "\ud800",
    ]
    inputs += [
        'def f():\n    """Two things on one line."""; return "\x0c"\n',
        "'''a b c d'''\n" * 9,
        "f'{" * 200,
    ]
    inputs += [
        f"x = {MANY_DIGITS}\n",
        "\0",
        "# -*- coding: utf-7 -*-\n+AGE-",
        "async def f(): 'one two three'",
    ]
    return [each.encode("utf-8", "surrogatepass") for each in inputs]


# Settings ------------------------------------------------------------------------------------------


def toml() -> list[bytes]:
    inputs = ["[model]\nd_model = 64\nn_heads = 4\n", "train.lr = 0.1\n", f"model.d_model = {DIGITS}\n"]
    inputs += [
        f"train.lr = {DIGITS}\n",
        f"train.lr = {MANY_DIGITS}\n",
        f"x = {DEEP}\n",
        "a." * 5000 + "b = 1\n",
    ]
    inputs += [
        "train.minutes = nan\n",
        "train.minutes = inf\n",
        "[[model]]\n",
        "model = 5\n",
        "train.lr = 1e999\n",
    ]
    inputs += [
        'text.source = "\\u001b[2J"\n',
        "x = {" * 3000,
        "train.seed = 1979-05-27\n",
        f'model.kind = "{"x" * 5_000_000}"',
    ]
    return [*(each.encode() for each in inputs), b"\xff"]


def settings() -> list[bytes]:
    inputs = [
        "model.d_model=64",
        f"model.d_model={DIGITS}",
        f"train.lr={DIGITS}",
        f"train.lr={MANY_DIGITS}",
        f"model.kind={DEEP}",
    ]
    inputs += [
        "=",
        "train.minutes=nan",
        "model.kind=\x1b[2J",
        "a" * 100_000 + "=1",
        "train.lr=1\ntrain.lr=2",
        "model={a=1}",
    ]
    inputs += [
        f"model.kind={'x' * 5_000_000}",
        "model.kind=" + "{a=" * 2000 + "1" + "}" * 2000,
        "train.seed=0x" + "f" * 4000,
    ]
    return [each.encode() for each in inputs]


def options() -> list[bytes]:
    inputs = [
        "--beam=2",
        f"--beam={DIGITS}",
        f"--batch-size={'9' * 25}",
        "--batch-size=0",
        f"--n-best={DIGITS}\n--json",
    ]
    inputs += [
        "--sample\n--temperature=nan",
        f"--sample\n--seed={DIGITS}",
        "--sample\n--top-k=-1",
        "--device=\x1b[2J",
    ]
    inputs += [
        f"--precision={'x' * 100_000}",
        "--sample\n--top-p=inf",
        "--length-penalty=nan",
        "--device=cuda:99999999999",
    ]
    return [each.encode() for each in inputs]


# Requests ------------------------------------------------------------------------------------------


def plain_texts() -> list[bytes]:
    """Texts to cut into sentences."""
    own = [
        "Dr. Lee paid 3.50. Why?\n\nNobody knows.",
        "...)))" * 8000,
        ")" * 50_000,
        "\u2028\x85\n" * 100,
        "。！？" * 9000,
    ]
    theirs = [each.fields["q"] for each in ATTACKS if isinstance(each.fields.get("q"), str)]
    return [text.encode("utf-8", "replace") for text in (*own, *theirs)]


def html() -> list[bytes]:
    """Markup."""
    own = [
        'A <b>red</b> house in <span translate="no">Red Hill</span><p>x</p><!-- c --><script>a<b</script>',
        "<b>" * 560 + "a b c",
        "<i><b></i></b>" * 900,
        "<p translate=no>a <b>b</b>" * 900,
        "<svg><svg>a</svg>",
        "<br>" * 20_000,
        "<!" * 30_000,
        "</" * 30_000,
    ]
    theirs = [each.fields["q"] for each in ATTACKS if each.fields.get("format") == "html"]
    return [text.encode() for text in (*own, *theirs)]


def glossaries() -> list[bytes]:
    """Lines of `term=wanted`, then the text."""
    hits = "cat=Kater\n" + "cat " * 10_000
    many = "".join(f"w{n}=W{n}\n" for n in range(200)) + " ".join(f"w{n % 200}" for n in range(2000))
    inputs = [
        hits,
        many,
        "a=b\na b a. A b.",
        "a a=x\na=y\n" + "a " * 5000,
        "(=)\n((((",
        "\u0301=x\na\u0301" * 9,
    ]
    inputs += [
        "cat=cat\nThe cat sat. The cat sat.\u2028cat",
        ".=!\n" + "." * 20_000,
        "ß=x\nSS ß",
        " = \na b",
        "a=\na",
    ]
    return [each.encode() for each in inputs]


def _asked(path: str, **fields: Any) -> bytes:
    return f"{path} application/json\n".encode() + json.dumps(fields).encode()


def bodies() -> list[bytes]:
    """Address and kind of content, then the body, as `requests.py` takes them."""
    pair = {"source": "en", "target": "de"}
    form = b"/translate application/x-www-form-urlencoded\n"
    parts = b"/translate multipart/form-data; boundary"
    own = [
        _asked("/translate", q="the cat sat", **pair),
        _asked("/translate", q=["a", "", "b. c."], alternatives=2, source="auto", target="de"),
        _asked("/translate", q="a b", stream=True, words=True, **pair),
        _asked("/translate/stream", q="a b. c d.", **pair),
        _asked("/detect", q="a b"),
        _asked("/v1/completions", prompt="the cat", max_tokens=3, logprobs=2, echo=True, seed=1),
        _asked("/v1/completions", prompt=["a", "b"], n=2, stop=["t"], stream=True, temperature=0.5),
        _asked("/v1/completions", prompt=[5, 7], logit_bias={"5": -100}, top_p=0.5, top_k=2, min_p=0.1),
        b"/v1/models \n",
        b"/v1/models/writer \n",
        b"/v1/models/%ff%00 \n",
        _asked("/attention", q="a b", heads_off={"decoder.0.cross": [1]}, **pair),
        _asked("/attention", q="a b", heads_off={"decoder.0.cross": [4095]}, **pair),
        _asked("/translate", q="\ud800 a \udfff", glossary={"\ud800": "\udfff"}, words=True, **pair),
        _asked("/translate", q="a", api_key="\ud800", **pair),
        _asked("/translate", q="a", source="\ud800", target="x" * 35),
        form + b"q=a%20b&source=en&target=de&glossary=%7B%22a%22%3A%22b%22%7D",
        form + b"q=a&source=en&target=de&glossary=" + b"[" * 50_000,
        parts + b"=x\n--x\r\nContent-Disposition: form-data; name=q\r\n\r\na\r\n--x--",
        parts + b"=\n--\r\n\r\n----",
        b"/translate application/json\n\xff\xfe",
        b"/model \n",
        b"/model?source=en&target=de \n",
        b"/metrics \n",
        b"/nowhere?\xbf \n",
        b"/%00/..%2f..%2fetc/passwd \n",
    ]
    theirs = [f"{each.path} {each.kind}\n".encode() + each.body for each in ATTACKS]
    return own + theirs


def raw_requests() -> list[bytes]:
    """What is wrong before there is a body: for a real socket."""
    post = b"POST /translate HTTP/1.1\r\nHost: x\r\n"
    text = b'{"q": "a", "source": "en", "target": "de"}'
    chunk = b"%x\r\n%s\r\n" % (len(text), text)
    smuggled = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    upgrade = b"Upgrade: h2c\r\nConnection: Upgrade\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunk
    return [
        post + upgrade + b"Content-Length: %d\r\n\r\n" % len(smuggled) + smuggled,
        chunked + b"0\r\n\r\n",
        chunked + b"0\r\n" + b"X: y\r\n" * 500_000 + b"\r\n",
        chunked + b"0\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        chunked + b"fffffffffffffffff\r\n",
        post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
        post + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
        post + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        post + b"X: y\r\n" * 5000 + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n" * 500,
    ]
