"""`regard check`: the report on stdout, and a code for scripts."""

import json
from pathlib import Path

import pytest
from command import Run, complaint, write_lines

from regard.cli import main


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    src = write_lines(tmp_path / "src", ["a b c", "a b c", "", "same", "d e"])
    tgt = write_lines(tmp_path / "tgt", ["A B C", "A B C", "X", "same", "D E"])
    return src, tgt


def test_findings_with_counts_and_lines(files, regard: Run):
    done = regard("check", *files)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 pairs" in done.stdout
    for kind, line in (("duplicate", "line 2"), ("empty", "line 3"), ("identical", "line 4")):
        assert f"{kind}: 1" in done.stdout
        assert line in done.stdout


def test_json(files, capfd: pytest.CaptureFixture[str]):
    assert main.run(["check", *map(str, files), "--json", "--examples", "0"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["pairs"], report["kept"], report["trains"]) == (5, 4, True)
    assert all(finding["examples"] == [] for finding in report["findings"])


def test_what_training_would_refuse_ends_with_2_and_still_reports(files, tmp_path: Path, regard: Run):
    longer = write_lines(tmp_path / "longer", ["A"] * 7)
    done = regard("check", files[0], longer)
    assert "misaligned" in done.stdout
    assert "refuse" in complaint(done)


@pytest.mark.parametrize("name", ["nowhere", "", "empty"])
def test_files_that_are_none(name: str, files, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "empty").touch()
    assert main.run(["check", str(files[0]), str(tmp_path / name)]) == 2
    assert capfd.readouterr().err.startswith(f"regard: error: {tmp_path / name} ")
