"""What every test may ask for: shared data sets, the command line as a process, a small trained model."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

# No test asserts a time, and a busy machine must not fail one.
settings.register_profile("regard", deadline=None, print_blob=True)
settings.load_profile("regard")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared data sets. Missing, a test is skipped; under CI that is a failure."""
    if not SHARED_DATA.is_dir():
        reason = "the data sets of ../shared/data are not here"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return SHARED_DATA
