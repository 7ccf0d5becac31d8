"""The scripts of the pages: what their formatter leaves alone, long texts and comments, is short too."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "regard").glob("*/page/*.js"))


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 10


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_lines_are_short(script: Path) -> None:
    lines = script.read_text(encoding="utf-8").splitlines()
    long = [f"{number}: {len(line)} characters" for number, line in enumerate(lines, 1) if len(line) > 110]
    assert not long
    assert len(lines) <= 400
