"""A model folder as a writer that uses the engine where it can, and says where it cannot.

Before this file: `writer.py` and `regard.engine`; after it: `regard.load` and the command line.
"""

from pathlib import Path

import torch

from regard.engine.decoder import PackedDecoder
from regard.engine.engine import left_aside
from regard.engine.weights import ALONE
from regard.models.folder import load_folder
from regard.tasks.language.writer import Writer


def load_writer(
    folder: Path, *, device: str | torch.device = "cpu", precision: str = "auto", engine: str = "auto"
) -> Writer:
    """The language model in a folder, ready to write.

    `precision`: int8, bf16, fp32; auto is fp32, which writes what the weights say. `engine`: native,
    readable, or auto for native where it knows the model; `writer.note` then says why it was not taken.
    """
    loaded = load_folder(folder, device)
    writer = Writer(loaded.model.eval(), loaded.tokenizer, context=loaded.config.decode.context)
    equip(writer, precision=precision, engine=engine)
    return writer


def equip(writer: Writer, *, precision: str = "auto", engine: str = "auto") -> None:
    """Give a writer the engine, or the note that says why it has none."""
    reason = left_aside(writer.model, ALONE, precision=precision, engine=engine)
    if reason is None:
        writer.engine = PackedDecoder(writer.model, precision=precision)
    elif engine != "readable":
        writer.note = f"the readable decoder writes, in fp32: no native engine, {reason}"
