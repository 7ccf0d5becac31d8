"""Where a recogniser listened: the weights of its decoding, truncated beside full, in every form."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from listeners import random_listener, write_listener

from regard.attention.masks import band_mask
from regard.audio.tones import write_calls
from regard.errors import DataError, UsageError
from regard.look import look
from regard.look.heard import SoundLook, look_at_recording

SAMPLES = (np.random.default_rng(5).normal(size=5 * 1613) * 0.1).astype(np.float32)


@pytest.fixture(scope="module")
def seen() -> SoundLook:
    return look_at_recording(random_listener(), SAMPLES)


def test_every_token_has_a_row_in_every_head(seen: SoundLook) -> None:
    assert [one.name for one in seen.maps] == ["decoder.0.cross", "decoder.1.cross"]
    for one in seen.maps:
        heads, tokens, moments = one.weights.shape
        assert (heads, tokens) == (2, len(seen.tokens))
        assert moments == -(-(len(SAMPLES) // 80) // 4)
        assert one.weights.sum(-1) == pytest.approx(1, abs=1e-5)
    assert seen.tokens[-1] == ""
    assert all(0 < sure <= 1 for sure in seen.confidence)
    assert seen.frames.shape == (13, len(SAMPLES) // 80)


def test_rows_are_those_of_the_decoding_that_ran(seen: SoundLook) -> None:
    listener = random_listener()
    written: list[Any] = []
    whole = listener._segment
    listener._segment = lambda each, words=True: written.append(each) or whole(each, words)  # type: ignore[method-assign]
    listener.how.__dict__["heard"] = 60.0
    with torch.no_grad():
        listener.model.ctc.bias[0] = -9.0  # it is heard whatever is in it
    list(listener.transcribe(SAMPLES))
    mean = torch.stack([one.weights.mean(0) for one in seen.maps]).mean(0)
    rows = torch.from_numpy(np.stack(written[0].rows))
    assert rows == pytest.approx(mean[: len(rows)], abs=1e-5)


def test_truncated_stands_beside_full(seen: SoundLook) -> None:
    truncated, full = seen.encoders
    assert (truncated.name, full.name) == ("truncated", "full")
    assert truncated.answer == seen.answer
    size = truncated.maps[0].weights.shape[-1]
    band = band_mask(size, size, 5, 2, torch.device("cpu"))
    for narrow, wide in zip(truncated.maps, full.maps, strict=True):
        assert bool((narrow.weights[:, ~band] == 0).all())
        assert bool((wide.weights > 0).all())
        assert wide.weights.sum(-1) == pytest.approx(1, abs=1e-5)
    alone = look_at_recording(random_listener(**{"attention.kind": "full", "attention.ahead": -1}), SAMPLES)
    assert [each.name for each in alone.encoders] == ["full"]
    # The same weights with full attention look where the wide windows did.
    for one, other in zip(alone.encoders[0].maps, full.maps, strict=True):
        assert one.weights == pytest.approx(other.weights, abs=1e-5)


def test_many_numbers_are_joined(seen: SoundLook) -> None:
    few = look_at_recording(random_listener(), SAMPLES, most=1400)
    total = sum(one.weights.numel() for one in few.maps)
    assert total <= 700
    assert sum(one.weights.numel() for each in few.encoders for one in each.maps) <= 700
    for one, whole in zip(few.maps, seen.maps, strict=True):
        join = round(one.moment / whole.moment)
        assert one.weights[..., 0] == pytest.approx(whole.weights[..., :join].sum(-1), abs=1e-5)
        assert one.weights.sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_head_that_is_off_gives_nothing(seen: SoundLook) -> None:
    silent = look_at_recording(random_listener(), SAMPLES, off={"decoder.0.cross": [0, 1]})
    assert silent.confidence != seen.confidence
    assert silent.to_dict()["off"] == {"decoder.0.cross": [0, 1]}


def test_encoders_without_attention_have_no_maps() -> None:
    changes = {"speech.encoder": "conv", "attention.kind": "full", "attention.ahead": -1}
    found = look_at_recording(random_listener(**changes), SAMPLES)
    assert found.encoders[0].maps == ()
    assert found.maps


def test_a_folder_and_a_file_become_every_form(tmp_path: Path) -> None:
    folder = write_listener(tmp_path / "ears")
    call = write_calls(tmp_path / "calls", 3, 1).parent / "3.wav"
    found = look(folder, str(call))
    assert isinstance(found, SoundLook)
    for ending in (".html", ".json", ".png", ".svg"):
        found.save(tmp_path / f"look{ending}")
    tree = json.loads((tmp_path / "look.json").read_text())
    assert tree["format"] == "regard-sound-look"
    assert len(tree["maps"][0]["heads"][0]) == len(tree["tokens"])
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="shows cross-attention"):
        found.figure(kind="encoder")
    with pytest.raises(UsageError, match="there is no layer 7"):
        found.figure(layer=7)
    with pytest.raises(UsageError, match="heads 0 to 1"):
        found.figure(head=2)
    with pytest.raises(UsageError, match="ends in"):
        found.save(tmp_path / "look.txt")


def test_what_cannot_be_looked_into(tmp_path: Path) -> None:
    import soundfile

    long = tmp_path / "long.wav"
    soundfile.write(long, np.zeros(31 * 8000, np.float32), 8000)
    with pytest.raises(DataError, match="at most 30"):
        look_at_recording(random_listener(), str(long))
    with pytest.raises(DataError, match="too few"):
        look_at_recording(random_listener(), np.zeros(3, np.float32))
