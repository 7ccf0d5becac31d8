"""Sentence encoders: a text in, a vector out. They are imported (`regard.interop.bert`) and used."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.tasks.encoder import Encoding, open_embedder

if TYPE_CHECKING:
    from regard.tasks.embed.embedder import Embedder


class Embed(Encoding):
    """A text, and where it stands among others."""

    name = "embed"
    noun = "encoder of sentences"
    verb = "embed"
    serves = "regard.serving.encoders:Vectors"

    def load(self, folder: Path, **options: Any) -> "Embedder":
        """The encoder in a folder, ready to give vectors."""
        return open_embedder(folder, **options)


TASK = Embed()
