"""Masked language models: a text with a gap in, what may stand there out (Devlin et al. 2019, 3.1)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.tasks.encoder import EmbedConfig, Encoding

if TYPE_CHECKING:
    from regard.tasks.masked.filler import Filler


class Masked(Encoding):
    """A text with gaps, and what stood there."""

    name = "masked"
    noun = "model that fills gaps"
    verb = "fill"

    def load(self, folder: Path, **options: Any) -> "Filler":
        """The model in a folder, ready to fill."""
        from regard.models.folder import load_folder
        from regard.tasks.masked.filler import Filler

        loaded = load_folder(folder, **options)
        return Filler(loaded.model, loaded.tokenizer, max_length=loaded.config.of(EmbedConfig).max_length)


TASK = Masked()
