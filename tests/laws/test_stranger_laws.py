"""Whatever a stranger sends, it loads or is refused in one line and with exit code 2, in bounded memory."""

import json
from pathlib import Path
from typing import Any

import pytest
import strangers
import strangers_packed
from strangers import Case, Outcome

from regard.data.corpus import Corpus
from regard.engine.shortlist import FILE, Shortlist
from regard.errors import LONGEST_MESSAGE, DataError
from regard.interop import marian
from regard.models import folder

MEGABYTES = 300


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return strangers.healthy(tmp_path_factory.mktemp("healthy") / "model")


@pytest.fixture(scope="module")
def marian_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return strangers.marian(tmp_path_factory.mktemp("marian") / "model")


def hold(outcomes: list[Outcome], grown: float) -> None:
    """The law."""
    unlawful = "\n".join(
        f"{each.name}: {each.error} ({each.code}) {each.message[:200]!r}"
        for each in outcomes
        if each.error
        and not (each.code == 2 and each.message.isprintable() and len(each.message) <= LONGEST_MESSAGE)
    )
    assert not unlawful, unlawful
    worst = max(outcomes, key=lambda each: each.megabytes)
    assert worst.megabytes < MEGABYTES, worst.name
    assert grown < MEGABYTES


def load(place: Path) -> None:
    loaded = folder.load_folder(place)
    loaded.tokenizer.encode_batch(["the cat sees"])


def test_three_hundred_folders(base: Path, tmp_path: Path) -> None:
    cases = strangers.folders()
    assert len(cases) >= 300
    outcomes, grown = strangers.bounded(cases, base, tmp_path / "copy", load)
    hold(outcomes, grown)
    refused = sum(bool(each.error) for each in outcomes)
    assert refused > 0.7 * len(cases), "the generator has become harmless"


def test_the_healthy_ones_load(base: Path, marian_base: Path, tmp_path: Path) -> None:
    nothing = Case("nothing", lambda place: None)
    for work, origin in ((load, base), (marian.read, marian_base)):
        (outcome,), _ = strangers.bounded([nothing], origin, tmp_path / "copy", work)
        assert outcome.error == "", outcome.message


def test_fifty_pickles(marian_base: Path, tmp_path: Path) -> None:
    cases = strangers_packed.pickles()
    assert len(cases) >= 50

    def work(place: Path) -> None:
        try:
            marian.read(place)
        finally:
            assert not (place / "ran").exists()

    outcomes, grown = strangers.bounded(cases, marian_base, tmp_path / "copy", work)
    hold(outcomes, grown)
    assert all(each.error for each in outcomes)


def test_forty_archives(marian_base: Path, tmp_path: Path) -> None:
    lines = strangers_packed.zipped_lines()
    cases = strangers_packed.packed_weights()
    assert len(lines) + len(cases) >= 40
    outcomes, grown = strangers.bounded(cases, marian_base, tmp_path / "copy", marian.read)
    hold(outcomes, grown)
    texts = [
        Case(name, lambda place, data=data: (place / "pairs.tsv.gz").write_bytes(data))
        for name, data in lines.items()
    ]

    def work(place: Path) -> None:
        Corpus.of([place / "pairs.tsv.gz"]).check_files()

    outcomes, grown = strangers.bounded(texts, marian_base, tmp_path / "copy", work)
    hold(outcomes, grown)
    assert {each.error for each in outcomes} <= {"", DataError.__name__}


SETTINGS: list[dict[str, Any]] = [
    {"activation_function": ["relu"]},
    {"bad_words_ids": 5},
    {"bad_words_ids": ["x"]},
    {"model_type": ["marian"]},
    {"vocab_size": 4_000_000},
    {"encoder_layers": 65536},
    {"encoder_layers": 256},
    {"d_model": 65536},
    {"max_position_embeddings": 10**400},
    {"num_beams": 10**400},
    {"pad_token_id": 10**400},
    {"length_penalty": 10**400},
    {"eos_token_id": [[]]},
    {"dropout": float("nan")},
]


def test_settings_of_marian_folders(marian_base: Path, tmp_path: Path) -> None:
    def changed(change: dict[str, Any]) -> Case:
        def spoil(place: Path) -> None:
            tree = json.loads((place / "config.json").read_text())
            (place / "config.json").write_text(json.dumps(tree | change))

        return Case(next(iter(change)), spoil)

    hold(*strangers.bounded(map(changed, SETTINGS), marian_base, tmp_path / "copy", marian.read))
    # Two words that must not follow each other are no reason to refuse a model.
    (outcome,), _ = strangers.bounded(
        [changed({"bad_words_ids": [[1, 2]]})], marian_base, tmp_path / "copy", marian.read
    )
    assert outcome.error == "", outcome.message


def test_shortlists(base: Path, tmp_path: Path) -> None:
    def work(place: Path) -> None:
        Shortlist.load(place, folder.load_folder(place).tokenizer)

    headers = [b'{"__metadata__": null}', b'{"__metadata__": {"tokenizer": [1]}}', b"[]", b"{", b"9" * 5000]
    cases = [
        Case(
            str(header[:20]),
            lambda place, data=header: (place / FILE).write_bytes(len(data).to_bytes(8, "little") + data),
        )
        for header in headers
    ]
    outcomes, grown = strangers.bounded(cases, base, tmp_path / "copy", work)
    hold(outcomes, grown)
    assert all(each.error for each in outcomes)
