"""Writes one benchmark's table to `results/NAME.md` with the machine, versions, command and commit."""

import datetime
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "tokenizers", "sacrebleu", "transformers")


def machine() -> str:
    """Processor, its vector units, cores and memory."""
    import torch

    info = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")]
    units = torch.backends.cpu.get_cpu_capability()
    return f"{names[0] if names else platform.processor()}, {len(names)} cores, {units}"


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


def write_report(name: str, title: str, header: list[str], rows: list[list[str]], note: str = "") -> Path:
    """One Markdown file a benchmark; printed too."""
    table = [header, ["---"] * len(header), *rows]
    lines = [f"# {title}", "", *("| " + " | ".join(row) + " |" for row in table), ""]
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
    path.write_text("\n".join(lines), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))
    return path
