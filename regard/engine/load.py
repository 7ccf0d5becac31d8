"""A model folder as a translator that uses the engine where it can, and says where it cannot.

Before this file: `engine.py` and `regard.decoding.translator`; after it: the command line and the server.
"""

from os import PathLike

import torch

from regard.decoding.translator import Translator
from regard.decoding.translator import load as load_readable
from regard.engine.engine import PRECISIONS, Engine, refusal
from regard.errors import UsageError

ENGINES = ("auto", "native", "readable")


def load(
    folder: str | PathLike[str],
    *,
    device: str | torch.device = "cpu",
    precision: str = "auto",
    engine: str = "auto",
) -> Translator:
    """The translator in a model folder.

    `precision`: int8, fp32, or auto for the fastest that keeps the quality. `engine`: native, readable, or
    auto for native where it knows the model; `translator.note` then says why it was not taken.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision ({precision}) must be one of {', '.join(PRECISIONS)}")
    if engine not in ENGINES:
        raise UsageError(f"engine ({engine}) must be one of {', '.join(ENGINES)}")
    translator = load_readable(folder, device=device)
    equip(translator, precision=precision, engine=engine)
    return translator


def equip(translator: Translator, *, precision: str = "auto", engine: str = "auto") -> None:
    """Give a translator the engine, or the note that says why it has none."""
    reason = "it was asked for" if engine == "readable" else refusal(translator.model)
    if reason is None:
        translator.engine = Engine(translator.model, precision=precision)
        return
    if engine == "native" or precision == "int8":
        wish = "--engine native" if engine == "native" else "--precision int8"
        raise UsageError(f"{wish} needs the native engine, which cannot be used: {reason}")
    if engine != "readable":
        translator.note = f"the readable decoder translates, in fp32: no native engine, {reason}"
