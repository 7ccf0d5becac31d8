"""A tokenizer and the text it was learned from, for the tests of this room."""

from itertools import islice

import pytest

from regard.text.phrasebook import phrases
from regard.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """Phrases in English, German and Russian."""
    pairs = [*islice(phrases("de"), 700), *islice(phrases("ru", seed=2), 300)]
    return [line for pair in pairs for line in pair]


@pytest.fixture(scope="session")
def tokenizer(lines: list[str]) -> Tokenizer:
    return Tokenizer.train(lines, vocab_size=1000)
