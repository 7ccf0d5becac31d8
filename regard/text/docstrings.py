"""A corpus that every Python brings along: source code in, the summary of its docstring out.

    def area(width, height): ¶→ return width * height        The area of a rectangle.

Modules, classes and functions of the standard library, each without its own docstring (those of what it
holds stay), folded to one line by `documents.py`. The name of the module decides whether a document is for
training, validation or test. `regard documents` trains on it.
"""

import ast
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from regard.errors import DataError
from regard.text.documents import fold

SPLITS = ("train", "valid", "test")
WORDS = (3, 60)  # of a summary: fewer say nothing, more are no summary
# Not the standard library, or not written to be read.
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Document(NamedTuple):
    """One thing with a docstring; `source` is folded."""

    split: str  # train, valid or test
    kind: str  # module, class or function
    name: str  # dotted, from the module on
    source: str
    summary: str
    lead: str  # the first line of its body


def documents(folder: Path | None = None) -> Iterator[Document]:
    """The documents of all splits in the order of their modules; the same files give the same.

    `folder` holds other Python files to read. A source comes once, whatever the number of its copies, so a
    document of one split is never in another.
    """
    root = standard_library() if folder is None else folder
    if not root.is_dir():
        raise DataError(f"{root} is no folder; give one with Python files")
    return _stream(root)


def standard_library() -> Path:
    """Where this Python keeps its own modules."""
    return Path(sysconfig.get_path("stdlib"))


def split_of(module: str) -> str:
    """The split of a module: one in ten test, one in twenty validation."""
    place = int.from_bytes(blake2b(module.encode(), digest_size=8).digest(), "big") % 20
    return {0: "test", 1: "test", 2: "valid"}.get(place, "train")


def modules(root: Path | None = None) -> Iterator[tuple[Path, str]]:
    """The files of a library, this Python's own unless told, with the names of their modules, in order."""
    root = root or standard_library()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if _LEFT_OUT.isdisjoint(parts):
            yield path, ".".join(parts).removesuffix(".__init__")


def _stream(root: Path) -> Iterator[Document]:
    seen: set[int] = set()
    for path, module in modules(root):
        for document in _of_file(path, module):
            mark = hash(document.source)
            if mark not in seen:
                seen.add(mark)
                yield document


def _of_file(path: Path, module: str) -> Iterator[Document]:
    """Everything in one file that has a docstring; a file that is no Python has nothing."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old escapes in the code that is read
            tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # or nested beyond the parser
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, Documented) and (document := _document(node, lines, module)):
            yield document


def _document(node: Documented, lines: list[str], module: str) -> Document | None:
    """What `node` is and what its docstring says; None if it says nothing worth learning."""
    docstring = ast.get_docstring(node)
    words = docstring.strip().split("\n\n")[0].split() if docstring else []
    if not WORDS[0] <= len(words) <= WORDS[1]:
        return None
    source = fold("\n".join(_without_docstring(node, lines)))
    if not source:
        return None
    kind = {"Module": "module", "ClassDef": "class"}.get(type(node).__name__, "function")
    name = module if isinstance(node, ast.Module) else f"{module}.{node.name}"
    lead = lines[node.body[1].lineno - 1].strip() if len(node.body) > 1 else ""
    return Document(split_of(module), kind, name, source, fold(" ".join(words)), lead)


def _without_docstring(node: Documented, lines: list[str]) -> list[str]:
    """The lines of `node`, its decorators too, without those of its docstring."""
    if isinstance(node, ast.Module):
        first, last = 1, len(lines)
    else:
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        last = node.end_lineno or node.lineno
    docstring = node.body[0]
    begin, end = docstring.lineno, docstring.end_lineno or docstring.lineno
    # What shares a line with the docstring stays; columns count bytes.
    before = lines[begin - 1].encode()[: docstring.col_offset].decode()
    after = lines[end - 1].encode()[docstring.end_col_offset :].decode()
    rest = [before + after.rstrip()] if (before + after).strip(" \t;") else []
    return [*lines[first - 1 : begin - 1], *rest, *lines[end:last]]
