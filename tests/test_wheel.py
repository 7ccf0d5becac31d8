"""What is shared: the wheel that `make wheel` left in dist/, and README as a package index shows it."""

import email
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from command import ROOT

import regard

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel; `make check` makes one before it runs the tests, and CI is that."""
    found = sorted((ROOT / "dist").glob(f"regard-{regard.__version__}-*.whl"))
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no wheel: make wheel")
    assert len(found) == 1, found
    return found[0]


def test_readme_leads_to_the_repository_where_it_has_no_files_beside_it() -> None:
    text = runpy.run_path(str(ROOT / "setup.py"))["long_description"]()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    link = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
    home = f"{PROJECT['urls']['Repository']}/"
    assert len(link.findall(text)) == len(link.findall(readme))
    for (picture, here), (_, there) in zip(link.findall(readme), link.findall(text), strict=True):
        if here.startswith(("#", "https:")):
            assert there == here
        else:
            assert there == f"{home}{'raw' if picture else 'blob'}/v{regard.__version__}/{here}"
    assert "docs/images/head.png)" in text


def test_the_wheel_is_for_every_python_and_many_linuxes(wheel: Path) -> None:
    _, version, python, abi, platform = wheel.stem.split("-")
    assert (version, python, abi) == (regard.__version__, "py3", "none")
    assert re.fullmatch(r"manylinux_2_\d+_\w+", platform.split(".")[0]), platform


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (path,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(packed.read(path))
    assert dict(each.split(", ") for each in said.get_all("Project-URL", [])) == PROJECT["urls"]
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert said["Description-Content-Type"] == "text/markdown"
    assert f"({PROJECT['urls']['Repository']}/raw/" in said.get_payload()
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_the_compiled_parts_of_the_wheel_run_and_nothing_is_missing(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    ours = [path.relative_to(ROOT) for path in (ROOT / "regard").rglob("*") if path.is_file()]
    made = {".pyc", ".so"}
    assert [path for path in ours if path.suffix not in made and not (tmp_path / path).exists()] == []
    asked = (
        "import regard.engine.path as path, regard.fused.library as fused; "
        "print(path.compiled()._name, path.path(), fused.available())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", asked],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    library, path, fused = done.stdout.split()
    assert library == str(tmp_path / "regard" / "engine" / "_native.so")
    assert path
    assert fused == "True"
