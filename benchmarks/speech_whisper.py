"""Whisper here, in transformers and in faster-whisper: texts, WER and seconds on the same recordings.

The part `whisper` of `speech.py`. All of them have the weights of one OpenAI file, search greedily, write
without times and never write what Whisper's own code never writes. faster-whisper wants a folder of
CTranslate2: it is made of those weights where it is not there.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from report import write_report

NAMES = {  # OpenAI's names, then Hugging Face's
    "cross_attn_ln": "encoder_attn_layer_norm",
    "attn_ln": "self_attn_layer_norm",
    "mlp_ln": "final_layer_norm",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
    "cross_attn.": "encoder_attn.",
    ".attn.": ".self_attn.",
    ".query.": ".q_proj.",
    ".key.": ".k_proj.",
    ".value.": ".v_proj.",
    "attn.out.": "attn.out_proj.",
    "blocks": "layers",
    "ln_post": "layer_norm",
    "decoder.ln.": "decoder.layer_norm.",
    "token_embedding": "embed_tokens",
    "positional_embedding": "embed_positions.weight",
}


def whisper(options: argparse.Namespace, place: Path) -> None:
    """Every way hears every recording; a row each."""
    from regard.audio.sound import read_sound
    from regard.data.recordings import read_spoken
    from regard.measure.wer import ErrorRates

    spoken = list(read_spoken(options.data / "metadata.tsv"))[: options.files]
    sounds = [read_sound(each.path, 16000) for each in spoken]
    long = sum(map(len, sounds)) / 16000
    found, spent, worked = heard(ways_of(options), sounds)
    rows = []
    for name, written in found.items():
        rates = ErrorRates()
        for text, each in zip(written, spoken, strict=True):
            rates.add(text, each.text)
        same = sum(a == b for a, b in zip(written, found["regard fp32"], strict=True))
        wer = rates.scores()["wer"].value
        times = [f"{spent[name]:.1f}", f"{worked[name]:.1f}", f"{long / spent[name]:.1f}×"]
        rows.append([name, f"{wer:.2%}", f"{same} of {len(spoken)}", *times])
    head = ["Whisper tiny.en", "WER", "texts as regard's fp32", "seconds", "CPU seconds", "real time"]
    note = f"{len(spoken)} recordings, {long:.0f} s, greedy, no times, {options.threads} threads each."
    write_report("speech_whisper", "Whisper", head, rows, note)


def ways_of(options: argparse.Namespace) -> dict[str, Any]:
    """Whoever is to hear, by name: samples in, text out."""
    import torch

    from regard.tasks.task import load

    torch.set_num_threads(options.threads)
    ways: dict[str, Any] = {
        "regard fp32": ours(load(options.model, times=False, precision="fp32", engine="native")),
        "regard int8": ours(load(options.model, times=False, precision="int8", engine="native")),
        "regard, torch fp32": ours(load(options.model, times=False, engine="readable")),
    }
    if options.weights:
        ways["transformers fp32"] = theirs(options.weights)
    if options.faster:
        if not (options.faster / "model.bin").exists():
            convert(options.weights, options.faster)
        ways["faster-whisper int8"] = faster(options.faster, options.threads)
    return ways


def heard(ways: dict[str, Any], sounds: list[Any]) -> tuple[dict[str, list[str]], Any, Any]:
    """What each writes, its seconds by the clock, and those of all its threads."""
    found: dict[str, list[str]] = {name: [] for name in ways}
    spent, worked = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
    for hear in ways.values():
        hear(sounds[0])  # what is slow the first time
    for sound in sounds:  # in turn, so that a busy moment is everybody's
        for name, hear in ways.items():
            began, busy = time.perf_counter(), time.process_time()
            found[name].append(hear(sound).strip())
            spent[name] += time.perf_counter() - began
            worked[name] += time.process_time() - busy
    return found, spent, worked


def ours(listener: Any) -> Any:
    """How a listener of ours is asked."""
    return lambda samples: " ".join(each.text for each in listener.transcribe(samples, words=False))


def faster(folder: Path, threads: int) -> Any:
    """faster-whisper's greedy search."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=threads)
    asked = {"language": "en", "beam_size": 1, "without_timestamps": True}
    return lambda samples: " ".join(each.text.strip() for each in model.transcribe(samples, **asked)[0])


def read(weights: Path) -> tuple[Any, Any]:
    """transformers' model with the weights of OpenAI's tiny.en.pt, and our listener of the same file."""
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    from regard.interop.whisper import read_file
    from regard.tasks.speech.whisper import Whisper

    state = {}
    for name, tensor in torch.load(weights, weights_only=True)["model_state_dict"].items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        state[f"model.{name}"] = tensor.float()
    model = WhisperForConditionalGeneration(WhisperConfig(vocab_size=51864)).eval()
    model.load_state_dict(state | {"proj_out.weight": state["model.decoder.embed_tokens.weight"]})
    return model, Whisper(read_file(weights), times=False)


def theirs(weights: Path) -> Any:
    """Greedy search of transformers, by the same rules."""
    import torch
    from transformers import WhisperFeatureExtractor

    model, listener = read(weights)
    extract, steer = WhisperFeatureExtractor(), listener.steering

    def hear(samples: Any) -> str:
        frames = extract(samples, sampling_rate=16000, return_tensors="pt").input_features
        with torch.inference_mode():
            out = model.generate(
                frames,
                decoder_input_ids=torch.tensor([[steer.start, steer.no_times]]),
                max_new_tokens=224,
                do_sample=False,
                suppress_tokens=[*listener.never, *range(steer.times, steer.times + 1501)],
                begin_suppress_tokens=listener.first,
            )[0].tolist()
        return str(listener.tokenizer.decode([token for token in out if token < steer.end]))

    return hear


def convert(weights: Path, folder: Path) -> None:
    """A folder of CTranslate2 for faster-whisper, by CTranslate2's own converter, with its tokenizer."""
    from ctranslate2.converters import TransformersConverter
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    model, listener = read(weights)
    text, end = listener.tokenizer, listener.steering.end
    pieces = {piece: number for number, piece in enumerate(text.pieces[:end])}
    tokens = Tokenizer(models.BPE(pieces, text.merges))
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    tokens.add_special_tokens([AddedToken(piece, special=True) for piece in text.pieces[end:]])
    place = folder.with_name(f"{folder.name}.transformers")
    model.generation_config.suppress_tokens = list(listener.never)
    model.generation_config.begin_suppress_tokens = list(listener.first)
    model.save_pretrained(place)
    PreTrainedTokenizerFast(tokenizer_object=tokens).save_pretrained(place)
    TransformersConverter(str(place), copy_files=["tokenizer.json"]).convert(str(folder), quantization="int8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["suppress_ids"] == list(listener.never), "faster-whisper would write by other rules"
