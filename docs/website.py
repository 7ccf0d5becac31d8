"""The hook of mkdocs that makes a site of the repository's pages, under the names that they have there.

So a link is the same in a checkout and on the site. What a page links to and is none itself (a source file, a
folder, a notebook) becomes one. Before this file: mkdocs.yml; `make site` runs both.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
CARRIED = {".png", ".svg"}  # beside the pages, as they are
LANGUAGES = {".py": "python", ".h": "cpp", ".cpp": "cpp", ".toml": "toml", ".yaml": "yaml"}
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def pages() -> list[Path]:
    """Every Markdown page of the project."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/results/*.md")]
    return sorted(found)


def linked(page: Path) -> Iterator[Path]:
    """What a page links to and is neither page nor picture."""
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path = target(page, link)
        if path is not None:
            yield path


def target(page: Path, link: str) -> Path | None:
    """The file or folder behind a link that is to become a page."""
    parts = urlsplit(link)
    path = Path(os.path.normpath(page.parent / parts.path))
    if parts.scheme or not parts.path or path.suffix in {".md", *CARRIED}:
        return None
    return path if path.exists() and path.is_relative_to(ROOT) else None


def name(path: Path) -> str:
    """The page of a file or folder; mkdocs leaves out what begins with a dot."""
    return f"{path.relative_to(ROOT)}.md".lstrip(".")


def on_files(files: Files, config: Any) -> Files:
    """The repository's pages and pictures in the place of docs/ alone, and those that are made."""
    for file in [each for each in files if each.src_dir == config.docs_dir]:
        files.remove(file)
    for path in [*pages(), *(each for each in ROOT.glob("docs/images/**/*") if each.suffix in CARRIED)]:
        place = path.relative_to(ROOT).as_posix()
        files.append(File(place, str(ROOT), config.site_dir, config.use_directory_urls))
    wanted = {ROOT / "benchmarks" / "results", *ROOT.glob("docs/notebooks/*.ipynb")}
    for path in sorted(wanted.union(*map(linked, pages()))):
        files.append(File.generated(config, name(path), content=shown(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **rest: Any) -> str:
    """The page with its links to files and folders leading to their pages."""
    home = Path(page.file.src_uri).parent
    source = ROOT / page.file.src_uri

    def renamed(match: re.Match[str]) -> str:
        path = target(source, match[1])
        return match[1] if path is None else os.path.relpath(name(path), home)

    return LINK.sub(renamed, markdown)


def shown(path: Path) -> str:
    """A file or folder as a page."""
    title = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"# {title}\n\n" + "".join(listed(path))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n\n".join(map(cell, json.loads(text)["cells"]))
    return f"{UNSEARCHED}# {title}\n\n{fenced(text, LANGUAGES.get(path.suffix, 'text'))}"


def listed(folder: Path) -> Iterator[str]:
    """A line for each file of a folder."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".md":
            heading = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            yield f"- [{heading}]({folder.name}/{path.name})\n"
        elif not path.name.startswith(("_", ".")):
            yield f"- `{path.name}`\n"


def cell(given: dict[str, Any]) -> str:
    """A cell of a notebook: its text, or its code and what that showed."""
    text = "".join(given["source"])
    if given["cell_type"] == "markdown":
        return text
    return "\n\n".join([fenced(text, "python"), *map(output, given["outputs"])])


def output(given: dict[str, Any]) -> str:
    """A picture, or text."""
    data = given.get("data", {})
    if "image/png" in data:
        held = "".join(data["image/png"]).strip()
        return f'<img alt="What the cell above draws" src="data:image/png;base64,{held}">'
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"]).replace("\n", "")
    return fenced("".join(given.get("text") or data["text/plain"]), "text")


def fenced(text: str, language: str) -> str:
    """Text as a block that nothing in it can end."""
    return f"`````{language}\n{text.rstrip()}\n`````"
