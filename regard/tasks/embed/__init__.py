"""Sentence encoders: a text in, a vector out. They are imported (`regard.interop.bert`) and used."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.tasks.encoder import Encoding, open_embedder
from regard.tasks.task import Judge

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

    def judged(self, folder: Path, files: Sequence[Path], limit: int) -> Judge:
        """By how much the vectors of lines turn: their cosine with those that all heads make."""
        from regard.tasks.embed.embedder import judge

        return judge(self.load(folder, engine="readable"), files, limit)


TASK = Embed()
