"""Which of the formats a folder or file is in, by looking at it, and what is read of it.

    config.json with model_type    a folder of Hugging Face: marian, pegasus, gpt2, gpt_neox, llama, bert,
                                   distilbert, vit, deit, detr, whisper
    *.bin, *.pt                    a model of llama2.c, of OpenAI's Whisper
    model*.bin beside vocab*.spm   a translator of Firefox, in Marian's binary format

Before this file: one file a format; after it: `regard import`.
"""

from importlib import import_module
from pathlib import Path

from regard.config.file import refuse_exports
from regard.errors import ModelError, shown
from regard.foreign import read_json
from regard.interop import bergamot
from regard.models.card import code
from regard.models.folder import Loaded
from regard.models.transformer import count_parameters
from regard.tasks.task import task_named, with_article

READERS = {
    "marian": "marian",
    "pegasus": "marian",
    "gpt2": "gpt2",
    "gpt_neox": "gpt2",
    "llama": "llama",
    "bert": "bert",
    "distilbert": "bert",
    "vit": "vit",
    "deit": "vit",
    "detr": "detr",
    "whisper": "whisper",
}


def read(path: Path) -> Loaded:
    """The model that somebody else's program left there."""
    if found := bergamot.marian_at(path):
        return bergamot.read(found)
    if path.is_file() and path.suffix == ".bin":
        from regard.interop import llama

        return llama.read_file(path)
    if weights := _whisper_at(path):
        from regard.interop import whisper

        return whisper.read_file(weights)
    if not path.is_dir():
        what = (
            "is no model of llama2.c (a .bin file) and none of Whisper (a .pt file)"
            if path.exists()
            else "does not exist"
        )
        raise ModelError(f"{path} {what}; give the folder of a {', '.join(READERS)} model")
    if not (path / "config.json").is_file():
        raise ModelError(f"{path} holds no config.json; give the folder of a {', '.join(READERS)} model")
    refuse_exports(path)
    if {"model", "decode"} <= (settings := read_json(path / "config.json")).keys():
        raise ModelError(f"{path} is a model of Regard already; give it to a verb with -m {path}")
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in READERS:
        raise ModelError(
            f"{path} holds a model of type {shown(kind)}; regard import knows {', '.join(READERS)}"
        )
    loaded: Loaded = import_module(f"regard.interop.{READERS[kind]}").read(path)
    return loaded


def _whisper_at(path: Path) -> Path | None:
    """OpenAI's .pt: the file itself, or the only one of a folder that says nothing else of what is in it."""
    if path.is_file():
        return path if path.suffix == ".pt" else None
    found = [] if (path / "config.json").exists() else sorted(path.glob("*.pt"))
    return found[0] if len(found) == 1 else None


def add(path: Path, loaded: Loaded, folder: Path) -> None:
    """Put into a model folder what lies beside a model and is none of its own files: a shortlist."""
    found = bergamot.marian_at(path)
    short = bergamot.lexicon(found, loaded.tokenizer) if found else None
    if short is not None:
        short.save(folder, loaded.tokenizer)


def card(path: Path, loaded: Loaded) -> str:
    """A README.md for what was imported."""
    shape, task = loaded.config.model, task_named(loaded.config.task)
    stacks = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    layers = " and ".join(f"{count} {name}" for name, count in stacks.items() if count)
    tokens = f"- a vocabulary of {loaded.text.vocab_size:,} tokens\n" if loaded.text else ""
    return (
        f"# {with_article(task.noun).capitalize()} imported from {code(path.resolve().name)}\n\n"
        f"- {layers} layers, "
        f"d\\_model {shape.d_model}, {shape.n_heads} heads, {shape.norm}-norm, "
        f"{count_parameters(loaded.model):,} parameters\n"
        f"{tokens}\n"
        "Its training data and scores are told where it came from. Use it with "
        f"`regard {task.verb} -m DIR`.\n"
    )
