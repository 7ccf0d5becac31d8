"""Recordings: what is read of every kind, and one line for what is none."""

import contextlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from regard.audio.sound import BLOCK, Recording, pcm_blocks, read_sound
from regard.errors import DataError

TONE = np.sin(2 * np.pi * 440 * np.arange(4000) / 8000).astype(np.float32) / 2


@pytest.mark.parametrize(
    ("ending", "subtype"),
    [
        ("wav", "PCM_U8"),
        ("wav", "PCM_16"),
        ("wav", "PCM_24"),
        ("wav", "FLOAT"),
        ("wav", "DOUBLE"),
        ("flac", "PCM_16"),
        ("ogg", "VORBIS"),
        ("mp3", "MPEG_LAYER_III"),
    ],
)
def test_every_kind_is_read(tmp_path: Path, ending: str, subtype: str) -> None:
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, np.stack([TONE, TONE], 1), 8000, subtype=subtype)
    found = read_sound(path, 8000)
    assert found.dtype == np.float32
    assert abs(len(found) - len(TONE)) < 1500  # an MP3 has silence at its ends
    assert np.abs(found).max() == pytest.approx(0.5, abs=0.1)


def test_channels_are_averaged_and_the_rate_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([TONE, -TONE, 3 * TONE / 2], 1), 192_000, subtype="FLOAT")
    assert len(read_sound(path, 16000)) == -(-len(TONE) * 16 // 192)
    np.testing.assert_allclose(read_sound(path, 192_000), TONE / 2, atol=1e-6)


def test_what_is_no_sound_is_one_line(tmp_path: Path) -> None:
    words = tmp_path / "words.wav"
    words.write_text("this is no sound", encoding="utf-8")
    empty = tmp_path / "empty.wav"
    empty.touch()
    for path, said in (
        (words, "is no sound file"),
        (empty, "is empty"),
        (tmp_path / "no.wav", "does not exist"),
        (tmp_path, "is no file"),
    ):
        with pytest.raises(DataError, match=said):
            read_sound(path, 8000)


@pytest.mark.parametrize(("count", "said"), [(0, "no samples"), (1, "1 sample"), (159, "159 samples")])
def test_what_is_too_short_to_hear_is_refused(tmp_path: Path, count: int, said: str) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, TONE[:count], 8000)
    with pytest.raises(DataError, match=f"holds {said}, too few to hear anything"):
        read_sound(path, 8000)
    soundfile.write(path, TONE[:160], 8000)
    assert len(read_sound(path, 8000)) == 160


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_samples_that_are_no_numbers_are_refused_with_their_time(tmp_path: Path, value: float) -> None:
    samples = TONE.copy()
    samples[800] = value
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 8000, subtype="FLOAT")
    with pytest.raises(DataError, match=r"the sample at 0\.100 s is"):
        read_sound(path, 8000)


@pytest.mark.parametrize("rate", [1, 4_000_000])
def test_a_rate_that_no_recording_has_is_refused(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, TONE, 8000)
    raw = bytearray(path.read_bytes())
    raw[24:28] = rate.to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(DataError, match="its header says"):
        Recording(path)


def test_of_a_recording_that_is_too_long_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.tile(TONE, 60), 8000)  # half a minute
    found = read_sound(path, 8000, longest=9.0)
    assert 9.0 < len(found) / 8000 <= 9.0 + BLOCK
    np.testing.assert_array_equal(found, read_sound(path, 8000)[: len(found)])


@pytest.mark.parametrize("ending", ["wav", "aiff", "au", "mp3"])
def test_a_file_that_ends_early_gives_what_is_there_and_knows_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, np.tile(TONE, 4), 8000)
    whole = Recording(path)
    assert sum(map(len, whole.blocks(8000))) >= 16_000
    assert whole.lost == 0.0
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    cut = Recording(path)
    heard = sum(map(len, cut.blocks(8000))) / 8000
    assert 0.5 < heard < 1.5
    assert heard + cut.lost == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("said", [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000 - 44])
def test_a_writer_that_did_not_know_the_end_has_lost_nothing(tmp_path: Path, said: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, TONE, 8000)
    raw = bytearray(path.read_bytes())
    raw[40:44] = said.to_bytes(4, "little")
    path.write_bytes(raw)
    recording = Recording(path)
    assert sum(map(len, recording.blocks(8000))) == len(TONE)
    assert recording.lost == 0.0


def test_raw_samples() -> None:
    raw = (TONE * 32768).astype("<i2").tobytes()
    found = np.concatenate(list(pcm_blocks(io.BytesIO(raw), 8000, 0.011)))
    np.testing.assert_allclose(found, TONE, atol=1e-4)
    with pytest.raises(DataError, match="in the middle"):
        list(pcm_blocks(io.BytesIO(raw[:-1]), 8000))


def test_a_broken_mp3_is_one_line_and_not_its_decoders(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.mp3"
    soundfile.write(path, np.random.default_rng(1).normal(size=80_000) * 0.1, 8000)
    raw = bytearray(path.read_bytes())
    half = len(raw) // 2
    raw[half : half + 3000] = bytes((7 * each + 13) % 256 for each in raw[half : half + 3000])
    path.write_bytes(raw)
    with contextlib.suppress(DataError):
        list(Recording(path).blocks(8000))
    print("said", file=sys.stderr)
    assert capfd.readouterr().err == "said\n"
