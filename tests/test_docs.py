"""The documents keep to the code: keys and defaults, links, commands, examples, rooms, dependencies.

`python tests/test_docs.py` writes new defaults and rules into docs/configuration.md; the meanings in it
are written by hand.
"""

import ast
import doctest
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from regard.config import Config, known_keys, merge
from regard.errors import UsageError
from regard.kinds import KERNELS, MODELS, POSITIONS, SCORES, TASKS
from regard.presets import PRESETS, preset
from regard.tasks.translation.prepare import with_dropout
from regard.training.budget import DEFAULT_MINUTES

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "docs" / "configuration.md"
# From the first room a sentence enters to the last; a room may use those before it.
ROOMS = (
    *("errors", "atomic", "foreign", "process", "kinds", "config", "presets", "text", "files", "images"),
    *(
        "audio",
        "data",
        "fused",
        "attention",
        "layers",
        "measure",
        "models",
        "decoding",
        "engine",
        "training",
        "tasks",
        "interop",
    ),
    *("look", "compare", "serving", "cli"),
)
UNWRITTEN = "(to be written)"

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| `[^`]*` \| .* \| (.+) \|$", re.MULTILINE)


def pages() -> list[Path]:
    """Every Markdown file of the project; what is installed or trained is none of it."""
    own = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
    return sorted(own)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# The table of settings ---------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A default as TOML would have it."""
    return json.dumps(value) if isinstance(value, str | bool) else f"{value}"


def rule(key: str) -> str:
    """What a key takes, in the words of the error that a wrong value gives."""
    default = known_keys()[key]
    if isinstance(default, bool):
        return "`true` or `false`"
    wrong = "-" if isinstance(default, str) else type(default)(-2)
    with pytest.raises(UsageError) as caught:
        merge(Config(), {key: wrong})
    message = str(caught.value)
    if words := re.search(r"must be one of (.*)", message):
        return ", ".join(f"`{word}`" for word in words[1].split(", "))
    if kind := re.search(r"must be (an? .*)", message):
        return kind[1]
    found = re.search(r"must be between ([^ ,]+) and ([^ ,]+)(, or [^ ,]+)?", message)
    assert found, f"{key} is refused without its bounds: {message}"
    low, high = float(found[1]), float(found[2])
    span = f"{low:,g} to {high:,.2f}".removesuffix(".00") if high < 1e12 else f"{low:,g} or more"
    return span + (found[3] or "")


def refreshed(page: str) -> str:
    """The page with every key in its table, its default and rule as they are, its meaning as it was."""
    meanings = dict(_ROW.findall(page))
    for table in dict.fromkeys(key.partition(".")[0] for key in known_keys()):
        rows = [
            f"| `{key}` | `{shown(default)}` | {rule(key)} | {meanings.get(key, UNWRITTEN)} |"
            for key, default in known_keys().items()
            if key.startswith(f"{table}.")
        ]
        text = "\n".join(["| key | default | takes | meaning |", "|---|---|---|---|", *rows])
        page = _between(page, table, text)
    return _between(page, "presets", preset_table())


def preset_table() -> str:
    """One column a preset, one row a key that any of them sets."""
    keys = [key for key in known_keys() if any(key in changes for changes in PRESETS.values())]
    values = {name: merge(Config(), preset(name)) for name in PRESETS}
    rows = [
        [f"`{key}`", *(shown(getattr(getattr(config, table), leaf)) for config in values.values())]
        for key in keys
        for table, _, leaf in [key.partition(".")]
    ]
    head = ["key", *(f"`{name}`" for name in PRESETS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _between(page: str, name: str, text: str) -> str:
    """The page with `text` between the marks `<!-- name -->` and `<!-- /name -->`."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, found, rest = page.partition(start)
    assert found, f"docs/configuration.md has no place for the table {name}: add {start.strip()}"
    return before + start + text + end + rest.partition(end)[2]


def test_every_key_stands_in_the_page_with_its_default_and_rule():
    page = CONFIGURATION.read_text(encoding="utf-8")
    assert page == refreshed(page), "run: python tests/test_docs.py"


def test_every_key_has_a_meaning():
    meanings = dict(_ROW.findall(CONFIGURATION.read_text(encoding="utf-8")))
    assert meanings.keys() == known_keys().keys()
    assert [key for key, meaning in meanings.items() if meaning == UNWRITTEN] == []


def test_what_a_run_chooses_by_itself_is_told():
    page = CONFIGURATION.read_text(encoding="utf-8")
    assert f"{DEFAULT_MINUTES:g} minutes" in page
    shape = merge(Config(), {"model.vocab_size": 8000})
    little, much = (with_dropout(shape, pairs).model.dropout for pairs in (29_000, 1_000_000))
    assert f"{little:g} for 29,000 pairs and {much:g} for a million" in page


def test_a_changed_default_is_noticed():
    page = CONFIGURATION.read_text(encoding="utf-8")
    stale = page.replace("| `model.d_model` | `256` |", "| `model.d_model` | `257` |")
    assert stale != page
    assert refreshed(stale) == page


# Links ---------------------------------------------------------------------------------------------


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page)


def anchors(page: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for link in _LINK.findall(prose(path.read_text(encoding="utf-8"))):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", place):
            continue
        target = path.parent / place if place else path
        known = anchors(target.read_text(encoding="utf-8")) if target.suffix == ".md" and anchor else {anchor}
        if not target.exists() or anchor not in known:
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", pages(), ids=named)
def test_links_lead_somewhere(path):
    assert broken_links(path) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing, two\n[a](page.md#one-thing-two) [b](#two) [c](gone.md) [d](https://x.org/y)"
    )
    assert broken_links(page) == ["#two", "gone.md"]


# Examples and commands -----------------------------------------------------------------------------


def blocks(path: Path, *languages: str) -> Iterator[tuple[int, str]]:
    """The fenced blocks in one of the languages, each with the number of its first line."""
    page = path.read_text(encoding="utf-8")
    for found in _FENCE.finditer(page):
        if found[1] in languages:
            yield page.count("\n", 0, found.start(2)), found[2]


def with_blocks(*languages: str) -> list[Path]:
    return [path for path in pages() if any(blocks(path, *languages))]


@pytest.mark.parametrize("path", with_blocks("python"), ids=named)
def test_python_examples_do_what_the_page_says(path, tmp_path, monkeypatch):
    """Blocks with `>>>` are run one after the other, in an empty folder; the others must at least parse."""
    monkeypatch.chdir(tmp_path)
    for table in (SCORES, KERNELS, POSITIONS, MODELS, TASKS):  # what a page adds is gone after it
        monkeypatch.setattr(table, "_held", dict(table._held))
    examples: list[doctest.Example] = []
    for line, block in blocks(path, "python"):
        if ">>>" not in block:
            ast.parse(block)
            continue
        for example in doctest.DocTestParser().get_examples(block):
            example.lineno += line
            examples.append(example)
    test = doctest.DocTest(examples, {}, named(path), str(path), 0, None)
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every `regard ...` in a shell block: where it stands, and its words."""
    for path in with_blocks("sh", "bash", "console"):
        for _, block in blocks(path, "sh", "bash", "console"):
            for call in re.findall(r"(?:^|[|$] *)regard ([^#|<>\n]+)", block, re.MULTILINE):
                yield named(path), call.split()


def test_commands_exist_with_their_flags():
    import typer.main

    from regard.cli.main import app

    verbs = typer.main.get_command(app()).commands  # type: ignore[attr-defined]
    known = {
        verb: {flag for parameter in command.params for flag in parameter.opts} | {"-h", "--help"}
        for verb, command in verbs.items()
    } | {"--help": set(), "--version": set()}
    unknown = []
    for place, (verb, *words) in commands():
        flags = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
        if verb not in known:
            unknown.append(f"{place}: regard {verb}")
        unknown += [f"{place}: regard {verb} {flag}" for flag in flags if flag not in known.get(verb, flags)]
    assert unknown == []


# Rooms and dependencies ----------------------------------------------------------------------------


def room(module: str) -> str:
    """The room of `regard.room.file`; nothing for `regard` itself."""
    return module.split(".")[1] if module.startswith("regard.") else ""


def imports(path: Path) -> set[str]:
    """The rooms that a file imports from, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "regard":
            found |= {alias.name for alias in node.names if alias.name in ROOMS}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(room(node.module))
        elif isinstance(node, ast.Import):
            found |= {room(alias.name) for alias in node.names}
    return found - {""}


def test_imports_point_up_the_rooms():
    down = []
    for path in sorted((ROOT / "regard").rglob("*.py")):
        name = path.relative_to(ROOT / "regard").with_suffix("").parts[0]
        if name not in ("__init__", "__main__"):
            assert name in ROOMS, f"{name} is no room of ARCHITECTURE.md"
            above = ROOMS[: ROOMS.index(name) + 1]
            down += [f"{named(path)} -> {used}" for used in imports(path) if used not in above]
    assert down == []


def test_the_architecture_names_the_rooms_in_order_and_every_file():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:\.py|/)` \| (.*) \|$", page, re.MULTILINE)
    assert tuple(name for name, _ in rows) == ROOMS
    texts = dict(rows)
    lost = []
    for name in ROOMS:
        files = {path.stem for path in (ROOT / "regard" / name).glob("*.py")} - {"__init__"}
        lost += [f"{name}/{file}" for file in sorted(files) if f"`{file}`" not in texts[name]]
    assert lost == []


def placed(nav: list[dict[str, Any]]) -> Iterator[str]:
    """The pages that a part of the site's navigation names."""
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else placed(value)


def test_every_page_has_a_place_on_the_site():
    there = list(placed(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    wanted = {named(path) for path in pages() if path.parent in (ROOT, ROOT / "docs")}
    wanted |= {f"{named(path)}.md" for path in ROOT.glob("docs/notebooks/*.ipynb")}
    assert sorted(there) == sorted({*wanted, "benchmarks/results.md"})  # a line of mkdocs.yml each


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for group in project["optional-dependencies"].values() for one in group]
    wanted = {re.split(r"[^\w-]", one)[0] for one in [*project["dependencies"], *extras]}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[?`([\w-]+)`", page, re.MULTILINE)) == wanted


if __name__ == "__main__":
    CONFIGURATION.write_text(refreshed(CONFIGURATION.read_text(encoding="utf-8")), encoding="utf-8")
