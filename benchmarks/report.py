"""Writes one benchmark's table to `results/NAME.md` with the machine, versions, command and commit.

A file has a section for each kind of machine (`regard/process/kind.py`). A run writes the section of its own
kind and leaves the others as they are, byte for byte: a faster machine overwrites no slower one's figures.
"""

import datetime
import json
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from regard.process.cores import count_cores
from regard.process.cpu import processor
from regard.process.kind import kind

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "tokenizers", "sacrebleu", "transformers")


def machine() -> str:
    """Processor, the cores that may be used, and torch's vector units."""
    import torch

    units = torch.backends.cpu.get_cpu_capability()
    return f"{processor().name}, {count_cores().usable} cores, {units}"


def versions() -> str:
    """Python and the packages that matter."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def commit() -> str:
    """The commit that was measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def command() -> str:
    """The command line, with the names of absolute paths alone: where they lie is this machine's affair."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def so_far(path: Path | None) -> list[dict[str, Any]]:
    """What earlier commands of a long benchmark have kept, a line of JSON each."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keep(path: Path | None, found: dict[str, Any]) -> None:
    """Add something to it; what is stopped then loses one at most."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


def write_report(name: str, title: str, header: list[str], rows: list[list[str]], note: str = "") -> Path:
    """One Markdown file a benchmark, in it a section a kind of machine; the section is printed too."""
    table = [header, ["---"] * len(header), *rows]
    lines = [*("| " + " | ".join(row) + " |" for row in table), ""]
    if note:
        lines += [note, ""]
    lines += [
        f"- command: `{command()}`",
        f"- machine: {machine()}",
        f"- versions: {versions()}",
        f"- commit {commit()}, {datetime.date.today().isoformat()}",
        "",
    ]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    text = "\n".join(lines)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(with_section(before, title, kind(), text), encoding="utf-8")
    print(f"{path.name}, {kind()}\n\n{text}")
    return path


def with_section(page: str, title: str, name: str, text: str) -> str:
    """A page in which the section `name` holds `text`; the other sections stay as they are."""
    assert not re.search(r"^##? ", text, re.MULTILINE), "a line of a note would begin a section"
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    sections = {part.split("\n", 1)[0].removeprefix("## "): part for part in parts}
    sections[name] = f"## {name}\n\n{text}"
    last = list(sections)[-1]
    for each, part in sections.items():  # a section that becomes the last but one ends in an empty line
        if each != last and not part.endswith("\n\n"):
            sections[each] = part + "\n"
    return f"# {title}\n\n" + "".join(sections.values())
