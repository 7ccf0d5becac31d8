"""Calls and a random recogniser, for all tests of speech."""

from pathlib import Path

import pytest
from listeners import random_listener

from regard.audio.tones import write_calls
from regard.models.folder import save


@pytest.fixture(scope="session")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TSV of a dozen calls."""
    return write_calls(tmp_path_factory.mktemp("calls"), 0, 12)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the random one."""
    place = tmp_path_factory.mktemp("listener")
    made = random_listener()
    save(place, config=made.config, model=made.model, tokenizer=made.tokenizer, card="# Random\n")
    return place
