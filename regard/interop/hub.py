"""A model folder as it is shared: small weights, nothing of its training, and a card for the Hub.

    config.json, model.safetensors (fp16 or int8), tokenizer.json, generation.json, README.md, the shortlist
    where there is one; beside the folder a zip of it.

The card begins with the lines that Hugging Face's Hub reads (YAML between two rulers). The weights become
32-bit floats again when they are loaded, by whatever loads a folder; what does not fit stays as it is.
"""

import shutil
import zipfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from regard.atomic import write_atomically
from regard.config import Config
from regard.engine.shortlist import FILE as SHORTLIST
from regard.errors import StorageError
from regard.foreign import MOST_SETTINGS, read_bytes
from regard.interop.parts import new_folder
from regard.models.folder import CARD, load_folder, save
from regard.text.directions import Directions

RULER = "---"
MOST_SHORTLIST = 2**30  # bytes
_TAGS = {
    "translation": "translation",
    "language": "text-generation",
    "embed": "sentence-similarity",
    "masked": "fill-mask",
    "classify": "text-classification",
    "tag": "token-classification",
    "image": "image-classification",
    "detection": "object-detection",
    "gan": "unconditional-image-generation",
    "speech": "automatic-speech-recognition",
}


class Shared(NamedTuple):
    """What was made, in bytes."""

    folder: int
    archive: int


def share(folder: Path, out: Path, *, licence: str = "", int8: bool = False) -> Shared:
    """Write a folder for others to `out`, and `out`.zip; neither may be there before.

    `int8`: matrices in a quarter of the bytes, each row with a scale.
    """
    loaded = load_folder(folder)
    card = (folder / CARD).is_file() and read_bytes(folder / CARD, MOST_SETTINGS).decode("utf-8", "replace")
    archive = out.with_name(f"{out.name}.zip")
    with new_folder(out) as place:
        save(
            place,
            config=loaded.config,
            model=loaded.model,
            tokenizer=loaded.text,
            files=loaded.files,
            card=front(loaded.config, licence) + bare(card or f"# {out.name}\n"),
            numbers="int8" if int8 else "fp16",
        )
        if (folder / SHORTLIST).is_file():
            (place / SHORTLIST).write_bytes(read_bytes(folder / SHORTLIST, MOST_SHORTLIST))
    try:
        write_atomically(archive, partial(_zip, out))
    except StorageError:
        shutil.rmtree(out, ignore_errors=True)  # both or neither, so that the same command can be tried again
        raise
    return Shared(sum(path.stat().st_size for path in out.iterdir()), archive.stat().st_size)


def front(config: Config, licence: str = "") -> str:
    """The lines that the Hub reads, before the card.

    >>> print(front(Config()), end="")
    ---
    library_name: regard
    pipeline_tag: translation
    tags:
    - regard
    ---
    """
    several = Directions.of(config.text)
    codes = [code for pair in several.pairs for code in pair] if several else []
    codes = codes or [code for code in (config.text.source, config.text.target) if code]
    lines = ["library_name: regard"]
    if config.task in _TAGS:
        lines.append(f"pipeline_tag: {_TAGS[config.task]}")
    if codes:
        lines += ["language:", *(f"- {code}" for code in dict.fromkeys(codes))]
    lines += [f"license: {licence}"] if licence else []
    return "\n".join([RULER, *lines, "tags:", "- regard", RULER, ""])


def bare(card: str) -> str:
    """A card without such lines, if it has any.

    >>> bare("---\\nlicense: mit\\n---\\n# Mine")
    '# Mine'
    """
    _, ruler, rest = card.removeprefix(f"{RULER}\n").partition(f"\n{RULER}\n")
    return rest if card.startswith(f"{RULER}\n") and ruler else card


def _zip(folder: Path, archive: Path) -> None:
    """Every file under the folder's name, in order and without the time, so that equal folders are equal."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            made.writestr(entry, path.read_bytes())
