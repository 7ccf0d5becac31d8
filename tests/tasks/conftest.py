"""A small encoder with random weights as a model folder, for what is tested around it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from encoders import write_encoder


@pytest.fixture(scope="session")
def sentence_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that gives vectors."""
    return write_encoder(tmp_path_factory.mktemp("embed"), "embed")


@pytest.fixture(scope="session")
def gap_filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that fills gaps."""
    return write_encoder(tmp_path_factory.mktemp("masked"), "masked")


@pytest.fixture(scope="session")
def an_encoder() -> Callable[..., Path]:
    """`an_encoder(folder, task, settings)`: one of any task."""
    return write_encoder
