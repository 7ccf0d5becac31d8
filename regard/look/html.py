"""A page in one file: data, style and scripts inside it, no network, nothing that the data says can run.

The scripts are the modules of `page/`, the same that the server hands out one by one; here they are laid
together in the order of their imports. A content policy allows exactly these two blocks, by their hashes.
Data is a JSON block in which no tag can end, and reaches the page as text only. Before this file:
`document.py`.
"""

import base64
import hashlib
import html
import re
from functools import cache
from importlib import resources
from typing import Any

from regard.look.document import as_json

PAGE = resources.files("regard.look") / "page"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)

_DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="regard"></main>
<noscript>This page draws itself with a script that is inside it; allow scripts to see it.</noscript>
<script type="application/json" id="regard-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page(tree: dict[str, Any], entry: str = "look.js") -> str:
    """The page that the module `entry` makes of a document."""
    style, script = stylesheet(), bundle(entry)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = str(tree.get("text") or tree.get("word") or "Attention")
    return _DOCUMENT.format(
        policy=html.escape(policy, quote=True),
        title=html.escape(_sound(title)),
        style=style,
        data=data_block(tree),
        script=script,
    )


def notebook_frame(text: str, title: str) -> str:
    """The page inside a notebook: a frame of an origin of its own, that can reach nothing around it."""
    return (
        f'<iframe sandbox="allow-scripts" title="{html.escape(_sound(title), quote=True)}" width="100%" '
        f'height="900" style="border:0" srcdoc="{html.escape(text, quote=True)}"></iframe>'
    )


def data_block(tree: dict[str, Any]) -> str:
    """JSON that stays one block wherever it stands: no tag, no entity, no line end of old scripts.

    >>> data_block({"a": "</script>&"})
    '{"a":"\\\\u003c/script\\\\u003e\\\\u0026"}'
    """
    text = _sound(as_json(tree))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def stylesheet() -> str:
    """The style of all pages."""
    return (PAGE / "theme.css").read_text(encoding="utf-8")


@cache
def bundle(entry: str) -> str:
    """A module and all it imports as one, each once, after what it needs."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        source = (PAGE / name).read_text(encoding="utf-8")
        for needed in _IMPORT.findall(source):
            add(needed)
        parts[name] = _EXPORT.sub("", _IMPORT.sub("", source))

    add(entry)
    return "\n".join([*parts.values(), f'{_mounter(entry)}(document.getElementById("regard"));\n'])


def _mounter(entry: str) -> str:
    """The function of a page's module that draws it from the data beside it: `showLook` of look.js."""
    return f"show{entry.removesuffix('.js').title()}"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _sound(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
