"""Whisper's models: read from transformers' folders and OpenAI's files, equal to transformers' own."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration
from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor

from regard.cli.main import run as command
from regard.engine.listener import PackedListener
from regard.errors import ModelError, UsageError
from regard.interop import known
from regard.models.folder import Loaded
from regard.tasks.speech.listener import load_listener
from regard.tasks.speech.whisper import Whisper, _Try
from regard.text.running import ALPHABET, RunningText
from regard.text.whisper import Steering, read_ranks, whisper_text

TEXT = ["the thin cat sat in the tin hat, then the cat ran in"] * 9
NAMES = {  # Hugging Face's names, then OpenAI's
    "encoder_attn_layer_norm": "cross_attn_ln",
    "self_attn_layer_norm": "attn_ln",
    "final_layer_norm": "mlp_ln",
    "encoder_attn.": "cross_attn.",
    "self_attn.": "attn.",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
    "layers.": "blocks.",
    "encoder.layer_norm": "encoder.ln_post",
    "decoder.layer_norm": "decoder.ln",
    "embed_tokens": "token_embedding",
    "embed_positions.weight": "positional_embedding",
}


def pieces() -> tuple[list[str], list[tuple[str, str]]]:
    """Bytes and some merges of them, as GPT-2's vocabulary has them."""
    learned = RunningText.learn(TEXT, vocab_size=275)
    made = ["".join(pair) for pair in learned.merges]
    return [*ALPHABET, *made], learned.merges


@pytest.fixture(scope="module")
def theirs() -> WhisperForConditionalGeneration:
    names, _ = pieces()
    torch.manual_seed(5)
    shape = WhisperConfig(
        vocab_size=len(names) + 2 + 99 + 6 + 1501,
        d_model=12,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        decoder_start_token_id=len(names) + 1,
        eos_token_id=len(names),
        pad_token_id=len(names),
        bos_token_id=len(names),
        begin_suppress_tokens=[],
    )
    return WhisperForConditionalGeneration(shape).eval()


@pytest.fixture(scope="module")
def folder(theirs: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whisper")
    theirs.save_pretrained(place)
    names, merges = pieces()
    ids = {name: number for number, name in enumerate([*names, "<|endoftext|>"])}
    (place / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (place / "merges.txt").write_text("\n".join(map(" ".join, merges)), encoding="utf-8")
    return place


def write_file(theirs: Any, path: Path) -> None:
    """The same model as OpenAI keeps it, with the ranks beside it."""
    names, _ = pieces()
    tensors = {}
    for name, tensor in theirs.model.state_dict().items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        tensors[name] = tensor
    dims = {"n_mels": 80, "n_vocab": theirs.config.vocab_size, "n_audio_ctx": 1500, "n_audio_state": 12}
    dims |= {"n_audio_head": 3, "n_audio_layer": 2, "n_text_ctx": 448, "n_text_layer": 3}
    torch.save({"dims": dims, "model_state_dict": tensors}, path)
    raw = [bytes(ALPHABET.index(letter) for letter in name) for name in names]
    lines = (f"{base64.b64encode(each).decode()} {number}\n" for number, each in enumerate(raw))
    (path.parent / "multilingual.tiktoken").write_text("".join(lines), encoding="ascii")


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Loaded:
    return known.read(folder)


def test_encoder_and_logits_are_transformers(theirs: Any, loaded: Loaded) -> None:
    listener = Whisper(loaded)
    samples = (np.random.default_rng(1).normal(size=20_000) * 0.1).astype(np.float32)
    from transformers import WhisperFeatureExtractor

    heard = WhisperFeatureExtractor()(samples, sampling_rate=16000, return_tensors="pt").input_features
    ids = torch.tensor([[theirs.config.decoder_start_token_id, 9, 270, 33]])
    with torch.inference_mode():
        wanted = theirs.model.encoder(heard).last_hidden_state
        found = listener.encode(samples)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        logits = theirs(encoder_outputs=(wanted,), decoder_input_ids=ids).logits[:, -1]
        ours, _ = listener.model.read(ids, listener.model.begin(found))
    torch.testing.assert_close(ours, logits, atol=1e-4, rtol=1e-4)


def test_openais_file_is_the_same_model(theirs: Any, loaded: Loaded, tmp_path: Path) -> None:
    write_file(theirs, tmp_path / "tiny.pt")
    out = tmp_path / "out"
    assert command(["import", str(tmp_path / "tiny.pt"), "-o", str(out)]) == 0
    from regard.tasks.task import load

    found = load(out)
    assert isinstance(found, Whisper)
    for name, tensor in loaded.model.state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], tensor)
    assert found.tokenizer.pieces == loaded.tokenizer.pieces
    assert found.tokenizer.encode("the thin hat") == loaded.tokenizer.encode("the thin hat")
    assert found.tokenizer.decode(found.tokenizer.encode("the thin hat")) == "the thin hat"


def test_a_file_without_its_vocabulary_is_one_line(
    theirs: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_file(theirs, tmp_path / "tiny.pt")
    assert command(["import", str(tmp_path), "-o", str(tmp_path / "folder")]) == 0  # the only .pt in it
    (tmp_path / "multilingual.tiktoken").unlink()
    capfd.readouterr()
    assert command(["import", str(tmp_path / "tiny.pt"), "-o", str(tmp_path / "out")]) == 2
    assert "put multilingual.tiktoken beside it" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


class Bomb:
    def __reduce__(self) -> Any:
        return print, ("boom",)


def test_nothing_in_a_pickle_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torch.save({"dims": Bomb(), "model_state_dict": {}}, tmp_path / "bad.pt")
    with pytest.raises(ModelError, match="could run code"):
        known.read(tmp_path / "bad.pt")
    assert "boom" not in capfd.readouterr().out
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(ModelError, match="does not hold dims"):
        known.read(tmp_path / "list.pt")


def test_ranks_make_the_merges_that_made_them() -> None:
    names, merges = pieces()
    raw = [bytes(ALPHABET.index(letter) for letter in name) for name in names]
    lines = "\n".join(f"{base64.b64encode(each).decode()} {number}" for number, each in enumerate(raw))
    found, joined = read_ranks(lines)
    assert found == names
    assert joined == merges
    with pytest.raises(ModelError, match="line 2 of the ranks"):
        read_ranks("IQ== 0\nIg== 7\n")
    with pytest.raises(ModelError, match="none of Whisper's"):
        whisper_text(names, merges, 300)


@pytest.mark.parametrize("seed", range(4))
def test_rules_of_times_are_transformers(loaded: Loaded, seed: int) -> None:
    listener = Whisper(loaded)
    listener.never, listener.first = [listener.steering.no_times], []
    times, end = listener.steering.times, listener.steering.end
    options = GenerationConfig(eos_token_id=end, no_timestamps_token_id=times - 1)
    options.max_initial_timestamp_index = 50
    theirs = WhisperTimeStampLogitsProcessor(options, begin_index=1)
    random = np.random.default_rng(seed)
    for written in (
        [],
        [times],
        [times + 3, 5],
        [times + 3, 5, times + 9],
        [times + 3, 5, times + 9, times + 9],
        [times + 3, 5, times + 9, times + 9, 7, 8],
    ):
        logits = torch.from_numpy(random.normal(size=len(loaded.tokenizer.pieces)) * 3).float()
        ids = torch.tensor([[listener.steering.start, *written]])
        wanted = theirs(ids, logits[None].clone())[0]
        torch.testing.assert_close(listener.ruled(logits.clone(), written), wanted)


def test_it_listens_in_windows(loaded: Loaded) -> None:
    listener = Whisper(loaded, language="en")
    samples = (np.random.default_rng(2).normal(size=24_000) * 0.1).astype(np.float32)
    segments = list(listener.transcribe(samples))
    assert all(0 <= each.start <= each.end <= 30 for each in segments)
    assert Steering.of(loaded.tokenizer).languages["de"] == len(pieces()[0]) + 4


def test_silence_gives_no_text(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whisper is fairly sure that silence says "you"; that nobody speaks it is surer of."""
    listener = Whisper(loaded, language="en")
    heard = _Try(ids=[listener.steering.times, 5, 6], logp=[-0.5, -0.5, -0.5], no_speech=0.9)
    monkeypatch.setattr(listener, "_best", lambda pen: heard)
    noise = np.random.default_rng(2).normal(size=24_000).astype(np.float32)
    for level, texts in ((0.0, 0), (1e-4, 0), (0.1, 1)):
        assert len(list(listener.transcribe(noise * np.float32(level), words=False))) == texts
    heard.no_speech = 0.2  # however faint, somebody speaks
    assert len(list(listener.transcribe(noise * np.float32(1e-4), words=False))) == 1


def test_a_language_is_told_or_heard(loaded: Loaded) -> None:
    samples = (np.random.default_rng(2).normal(size=24_000) * 0.1).astype(np.float32)
    listener = Whisper(loaded)
    german = listener.asked(language="de", temperature=0.4)
    steer = listener.steering
    assert german._prompt("de") == [steer.start, steer.languages["de"], steer.tasks["transcribe"]]
    with torch.inference_mode():
        heard = german._best(german._begin(samples, False))
        assert (heard.language, heard.warm) == ("de", 0.4)
        assert listener._best(listener._begin(samples, False)).language in steer.languages
    with pytest.raises(UsageError, match="does not know the language xx"):
        listener.asked(language="xx")
    with pytest.raises(UsageError, match="does not know the language xx"):
        Whisper(loaded, language="xx")


def test_a_prompt_is_what_was_said_before(loaded: Loaded) -> None:
    listener = Whisper(loaded, language="en")
    told = listener.asked(prompt="the thin cat")
    assert isinstance(told, Whisper)
    steer, before = listener.steering, listener.tokenizer.encode(" the thin cat")
    assert loaded.tokenizer.pieces[steer.before] == "<|startofprev|>"
    assert told._prompt("en") == [steer.before, *before, *listener._prompt("en")]
    assert listener.asked(prompt=" ")._prompt("en") == listener._prompt("en")
    full = listener.asked(prompt="the cat " * 999)
    assert len(full._prompt("en")) < listener.model.max_length // 2
    samples = (np.random.default_rng(2).normal(size=24_000) * 0.1).astype(np.float32)
    packed = Whisper(loaded, language="en", packed=PackedListener(loaded.model, precision="fp32"))
    with torch.inference_mode():
        wanted = told._best(told._begin(samples, False))
        plain = listener._best(listener._begin(samples, False))
        other = packed.asked(prompt="the thin cat")
        found = other._best(other._begin(samples, False))
        longest = full._best(full._begin(samples, False))
    assert found.ids == wanted.ids
    assert found.no_speech == pytest.approx(wanted.no_speech, rel=1e-3)
    assert wanted.logp != pytest.approx(plain.logp, abs=1e-4)
    assert len(longest.ids) <= listener.model.max_length // 2


def cut(listener: Whisper, ids: list[int], long: float) -> Any:
    return listener._cut(_Try(ids=ids), long)


def test_a_window_ends_where_its_last_segment_does(loaded: Loaded) -> None:
    listener = Whisper(loaded)
    t = listener.steering.times
    two = [t, 5, 6, t + 100, t + 100, 7, t + 250, t + 250]
    assert cut(listener, two, 30.0) == ([(0, 4, 0.0, 2.0), (4, 7, 2.0, 5.0)], 5.0)
    closed = [t, 5, t + 100, t + 100, 7, t + 250]
    assert cut(listener, closed, 30.0) == ([(0, 3, 0.0, 2.0), (3, 6, 2.0, 5.0)], 30.0)
    assert cut(listener, [t, 5, t + 100], 9.0) == ([(0, 3, 0.0, 2.0)], 9.0)
    assert cut(listener, [], 9.0) == ([(0, 0, 0.0, 9.0)], 9.0)


def test_the_engine_writes_what_torch_writes(loaded: Loaded, folder: Path, tmp_path: Path) -> None:
    samples = (np.random.default_rng(2).normal(size=24_000) * 0.1).astype(np.float32)
    packed = Whisper(loaded, language="en", packed=PackedListener(loaded.model, precision="fp32"))
    with torch.inference_mode():
        wanted = Whisper(loaded, language="en")._best(packed.asked(readable=True)._begin(samples, True))
        found = packed._best(packed._begin(samples, False))
        taped = packed._best(packed._begin(samples, True))
    assert found.ids == wanted.ids == taped.ids
    assert found.logp == pytest.approx(wanted.logp, abs=1e-3)
    assert (len(found.rows), len(taped.rows)) == (0, len(taped.ids))
    np.testing.assert_allclose(taped.rows, wanted.rows, atol=1e-6, rtol=1e-3)
    assert command(["import", str(folder), "-o", str(tmp_path / "whisper")]) == 0
    assert load_listener(tmp_path / "whisper").packed is not None  # type: ignore[attr-defined]
    assert load_listener(tmp_path / "whisper", engine="readable").packed is None  # type: ignore[attr-defined]
