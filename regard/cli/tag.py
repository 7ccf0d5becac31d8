"""`regard tag`: a sentence a line in, its words with their tags a line out. The work is regard/tasks/labels'.

Words are cut at spaces and before punctuation, or at spaces alone (`--words`), as a treebank has them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import takes

if TYPE_CHECKING:
    from regard.tasks.labels.labeller import Labels

# A word with what is joined to it, the shortened forms of English by themselves, or a sign.
_SHORT = r"n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+?(?=n['’]t\b)"
_WORD = re.compile(rf"{_SHORT}|\w+(?:[-./]\w+)*|[^\w\s]", re.IGNORECASE)


def cut_words(line: str) -> list[str]:
    """The words of a line.

    >>> cut_words("She didn't see the well-known U.S. dog's tail, did she?")[:8]
    ['She', 'did', "n't", 'see', 'the', 'well-known', 'U.S', '.']
    """
    return _WORD.findall(line)


@dataclass(frozen=True)
class Options:
    """What `regard tag` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    text: Annotated[
        str | None, typer.Argument(help="A sentence.", show_default="a sentence each line of the input")
    ] = None
    source: Annotated[
        Path,
        typer.Option("-i", "--input", metavar="F", readable=False, help="A sentence a line; - is stdin."),
    ] = Path("-")
    output: Annotated[Path, typer.Option("-o", "--output", metavar="F", help="- is stdout.")] = Path("-")
    words: Annotated[bool, typer.Option("--words", help="Words are what stands between spaces.")] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a sentence: words, tags, probabilities.")
    ] = False
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def tag(options: Options) -> None:
    """Say what each word is."""
    from regard.cli.streams import reading, refuse_same_file, writing
    from regard.process.device import pick_device
    from regard.tasks.task import expect, load

    refuse_same_file(options.source, options.output)
    expect(options.model, "tag")
    labels: Labels = load(options.model, device=pick_device(options.device))
    with reading(options.source) as lines, writing(options.output) as write:
        given = lines if options.text is None else iter([options.text])
        cut = str.split if options.words else cut_words
        for line in _tagged(labels, map(cut, given), options.as_json):
            write(line)


def _tagged(labels: "Labels", sentences: Iterator[list[str]], as_json: bool) -> Iterator[str]:
    ours, theirs = tee(sentences)
    for words, found in zip(ours, labels.tag(theirs), strict=True):
        tags = [label.name for label in found]
        if as_json:
            chances = [label.probability for label in found]
            yield json.dumps({"words": words, "tags": tags, "probabilities": chances}, ensure_ascii=False)
        else:
            yield " ".join(f"{word}/{name}" for word, name in zip(words, tags, strict=True))
