"""A model folder as a translator that uses the engine where it can, and says where it cannot.

Before this file: `translator.py` and `regard.engine`; after it: the command line and the server.
"""

from os import PathLike
from pathlib import Path

import torch

from regard.config import TextConfig
from regard.config.file import read_config
from regard.engine.engine import ENGINES, Engine, left_aside, precision_named
from regard.engine.filler import PackedFiller
from regard.engine.shortlist import Shortlist
from regard.engine.weights import AT_ONCE, word_of
from regard.errors import UsageError
from regard.tasks.translation.translator import Translator, load_readable


def load_translator(
    folder: str | PathLike[str],
    *,
    device: str | torch.device = "cpu",
    precision: str = "auto",
    engine: str = "auto",
    shortlist: bool = False,
    source: str = "",
    target: str = "",
) -> Translator:
    """The translator in a model folder.

    `precision`: int8, bf16, fp32, or auto for the fastest that keeps the quality. `engine`: native, readable,
    or auto for native where it knows the model; `translator.note` then says why it was not taken.
    `shortlist`: each sentence is written with the tokens that the folder's shortlist has for it (`regard
    shortlist`). `source` and `target` are languages, for a folder that serves several.
    """
    precision_named(precision, auto="")
    if engine not in ENGINES:
        raise UsageError(f"engine ({engine}) must be one of {', '.join(ENGINES)}")
    translator = load_readable(folder, device=device)
    short = Shortlist.load(Path(folder), translator.tokenizer) if shortlist else None
    equip(translator, precision=precision, engine=engine, shortlist=short)
    return directed(translator, read_config(Path(folder)).text, source, target)


def equip(
    translator: Translator,
    *,
    precision: str = "auto",
    engine: str = "auto",
    shortlist: Shortlist | None = None,
) -> None:
    """Give a translator the engine, or the note that says why it has none."""
    if (word := word_of(translator.model)) in AT_ONCE:
        reason = left_aside(translator.model, word, precision=precision, engine=engine)
        if shortlist is not None:
            raise UsageError(
                "--shortlist is for models that write token by token; this one writes all at once"
            )
        if reason is None:
            translator.engine = PackedFiller(translator.model, precision=precision)
            return
    else:
        reason = left_aside(translator.model, precision=precision, engine=engine)
    if reason is None:
        translator.engine = Engine(translator.model, precision=precision, shortlist=shortlist)
        return
    if engine == "readable" and shortlist is not None:
        raise UsageError("--shortlist narrows the native engine; it means nothing to --engine readable")
    if engine != "readable":
        without = ", without the shortlist" if shortlist is not None else ""
        translator.note = f"the readable decoder translates, in fp32{without}: no native engine, {reason}"


def directed(translator: Translator, text: TextConfig, source: str = "", target: str = "") -> Translator:
    """A translator for the languages that were asked for; one that has a single pair must be of that."""
    if translator.directions is not None:
        return translator.to(target, source) if source or target else translator
    for asked, held in ((source, text.source), (target, text.target)):
        if asked and asked.lower() != held.lower():
            there = f"from {text.source} to {text.target}" if held else "languages that it does not name"
            raise UsageError(f"this model translates {there}; it knows no {asked}")
    return translator
