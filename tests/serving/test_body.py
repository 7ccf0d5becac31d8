"""Fields out of JSON, forms and query strings; everything hostile is a refusal."""

import asyncio
import json
import tracemalloc
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as some
from starlette.requests import Request

from regard.serving.body import Bodies, parse_json, parse_query
from regard.serving.desk import Desk
from regard.serving.limits import Limits, Refusal

FORM = "application/x-www-form-urlencoded"


def fields(body=b"", kind="", query=b"", limits=None, chunks=None, **headers):
    """What is read of one request."""
    parts = chunks if chunks is not None else [body]
    messages = [
        {"type": "http.request", "body": part, "more_body": n < len(parts) - 1}
        for n, part in enumerate(parts)
    ]

    async def receive():
        if not messages:
            await asyncio.sleep(60)
        return messages.pop(0)

    named = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    bodies = Bodies(limits or Limits(), desk := Desk())
    try:
        return asyncio.run(bodies.fields(Request(scope, receive), dict))
    finally:
        desk.close()
        assert bodies.held == 0


def refused(call, *arguments, **options):
    with pytest.raises(Refusal) as caught:
        call(*arguments, **options)
    return caught.value.status


def test_json_form_and_query():
    assert fields(b'{"q": "a"}', "application/json") == {"q": "a"}
    assert fields('{"q": "ä"}'.encode("utf-8-sig")) == {"q": "ä"}
    assert fields(b"q=a+b%26&q=c&target=de", FORM) == {"q": ["a b&", "c"], "target": "de"}
    assert fields(query=b"q=a&source=en") == {"q": "a", "source": "en"}
    assert fields(b'{"q": "body"}', query=b"q=query&target=de") == {"q": "body", "target": "de"}
    assert fields(b"q=%ff", FORM) == {"q": "\ufffd"}


def test_multipart():
    body = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na b\r\n--x--\r\n'
    assert fields(body, "multipart/form-data; boundary=x") == {"q": "a b"}
    assert refused(fields, b"no boundary here", "multipart/form-data; boundary=x") == 400
    assert refused(fields, body, "multipart/form-data") == 400
    upload = body.replace(b'name="q"', b'name="q"; filename="f"')
    assert refused(fields, upload, "multipart/form-data; boundary=x") == 400


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"null",
        b"[1]",
        b'"q"',
        b"\xff\xfe",
        b'{"q": NaN}',
        b'{"alternatives": Infinity}',
        b'{"alternatives": -Infinity}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"q": ' + b"[" * 20 + b"]" * 20 + b"}",
        json.dumps({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}).encode(),
    ],
)
def test_json_that_is_none_or_too_deep(body):
    assert refused(parse_json, body) == 400


def test_forms_with_too_many_fields_or_bad_bytes():
    assert refused(parse_query, b"&".join([b"a=b"] * 5000)) == 400
    assert refused(parse_query, b"q=\xff\xfe") == 400


@given(some.text(some.sampled_from("q%=&+4cCé€A~ 9\x00"), max_size=47))
def test_a_form_is_read_as_the_standard_library_reads_it(text):
    wanted = parse_qsl(text, keep_blank_values=True, errors="replace")
    assert parse_query(text.encode()) == wanted


def test_a_form_of_escapes_alone_takes_little():
    form = b"q=" + b"%41" * 100_000
    tracemalloc.start()
    try:
        assert parse_query(form) == [("q", "A" * 100_000)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(form)


def test_a_body_that_is_too_large_is_refused_before_it_is_read():
    limits = Limits(characters=1)
    assert refused(fields, chunks=[], limits=limits, content_length=str(1 << 30)) == 413
    assert refused(fields, chunks=[], limits=limits, content_length="9" * 5000) == 413


def test_a_body_without_a_length_is_counted():
    assert refused(fields, limits=Limits(characters=1), chunks=[b"x" * 50_000] * 3) == 413


def test_all_bodies_together_are_bounded():
    bodies = Bodies(Limits(characters=1), desk := Desk())
    bodies.held = bodies.limits.bodies

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    with pytest.raises(Refusal) as caught:
        asyncio.run(bodies.fields(Request(scope, receive), dict))
    desk.close()
    assert caught.value.status == 429
    assert bodies.held == bodies.limits.bodies


def test_a_client_that_does_not_go_on_is_not_waited_for():
    status = refused(fields, limits=Limits(body_seconds=0.05), chunks=[], content_length="9")
    assert status == 408
