"""Results are kept a section for each kind of machine."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from command import ROOT


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/report.py, writing into the test's folder."""
    spec = importlib.util.spec_from_file_location("report", ROOT / "benchmarks" / "report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def write(report: ModuleType, kind: str, figure: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(report, "kind", lambda: kind)
    path: Path = report.write_report("speed", "Speed", ["what", "figure"], [["ours", figure]], "A note.")
    return path.read_text(encoding="utf-8")


def test_a_kind_writes_its_own_section_and_no_other(
    report: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(report, "avx2", "1", monkeypatch)
    assert first.startswith(
        "# Speed\n\n## avx2\n\n| what | figure |\n| --- | --- |\n| ours | 1 |\n\nA note.\n\n- command"
    )
    both = write(report, "avx512-vnni, tiles die", "2", monkeypatch)
    assert both.startswith(first + "\n## avx512-vnni, tiles die\n\n")
    again = write(report, "avx512-vnni, tiles die", "3", monkeypatch)
    assert again == both.replace("| ours | 2 |", "| ours | 3 |")
    back = write(report, "avx2", "4", monkeypatch)
    assert back == again.replace("| ours | 1 |", "| ours | 4 |")


def test_a_kind_that_is_part_of_another_name_is_another(
    report: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(report, "avx512-vnni machine, forced to avx2", "1", monkeypatch)
    page = write(report, "avx2", "2", monkeypatch)
    assert page.count("\n## ") == 2
    assert "| ours | 1 |" in page


def test_every_result_of_this_project_has_its_kind(report: ModuleType) -> None:
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        page = path.read_text(encoding="utf-8")
        title, *sections = page.split("\n## ")
        assert title.count("\n") == 1, path
        assert sections, path
        name, text = sections[-1].split("\n\n", 1)
        assert report.with_section(page, title.removeprefix("# ").strip(), name, text) == page, path
