"""The page as a file: one policy, two hashes that fit, no address, data that cannot leave its block."""

import base64
import hashlib
import html
import json
import re

import pytest

from regard.look.html import PAGE, bundle, data_block, page


def parts(text: str) -> dict[str, str]:
    data = r'<script type="application/json" id="regard-data">(.*?)</script>'
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    return {
        "policy": policy,
        "style": re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1],
        "script": re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)[1],
        "data": re.search(data, text, re.DOTALL)[1],
    }


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_exactly_what_is_inside(seen):
    found = parts(seen.to_html())
    assert found["policy"] == (
        f"default-src 'none'; script-src 'sha256-{digest(found['script'])}'; "
        f"style-src 'sha256-{digest(found['style'])}'; base-uri 'none'; form-action 'none'"
    )


def test_no_address_is_in_it(seen):
    found = parts(seen.to_html())
    own = found["script"].replace("http://www.w3.org/2000/svg", "")
    network = r"https?:|//\w|@import|url\(|fetch\(|XMLHttp|WebSocket"
    assert not re.search(network, own + found["style"])


def test_the_data_is_the_document(seen):
    assert json.loads(parts(seen.to_html())["data"]) == json.loads(seen.to_json())


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--", "]]>", "\u2028\u2029", "&lt;", "\ud800"]
)
def test_data_cannot_leave_its_block(text):
    block = data_block({"a": text})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block)["a"] == text.encode("utf-8", "replace").decode()


def test_titles_are_escaped(seen):
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in page({"text": "</title><b>"})


@pytest.mark.parametrize("entry", ["look.js", "contexts.js", "picture.js", "sound.js"])
def test_the_modules_become_one_script(entry):
    script = bundle(entry)
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|class|let) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "two modules share a name"


def test_modules_parse_no_markup_and_use_no_network():
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|fetch\("
    for module in PAGE.iterdir():
        if module.name.endswith(".js"):
            source = module.read_text(encoding="utf-8")
            assert not re.search(forbidden, source)
