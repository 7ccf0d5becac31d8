"""`regard translate`: lines in, as many lines out, in order, for as long as lines come.

A line is a text: sentences are found in it, unless every line is said to be one. What stands on the command
line is a text too. Files of other formats come back as files (`files.py`). The model is loaded before the
output is opened, so that a broken one empties no file.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import counted
from regard.cli.options import From, On, Part, To, refuse_sharing, takes
from regard.data.address import place
from regard.errors import DataError, UsageError
from regard.files.file import FORMATS, format_of
from regard.foreign import LONGEST_LINE

if TYPE_CHECKING:
    from regard.cli.bulk import Answer
    from regard.decoding.sampling import Sampling
    from regard.tasks.translation.translator import Translation, Translator

STANDARD = Path("-")


@dataclass(frozen=True)
class Options:
    """What `regard translate` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="What to translate.", show_default="the lines of the input"),
    ] = None
    source: Annotated[
        Path,
        typer.Option(
            "-i",
            "--input",
            metavar="F",
            parser=place,
            help="Text to translate, a file or an address, plain or .gz; - is stdin.",
        ),
    ] = STANDARD
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="F", parser=place, help="Where it goes; .gz is zipped, - is stdout."
        ),
    ] = STANDARD
    lines: Annotated[
        bool, typer.Option("--lines", help="Every line is one sentence; look for none in it.")
    ] = False
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="text, html, md, srt, vtt, po, xliff, docx, pptx, odt, epub; auto: by the input's ending.",
        ),
    ] = "auto"
    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="F.tsv", readable=False, help="Terms and what they must become, with a tab between."
        ),
    ] = None
    words: Annotated[
        bool, typer.Option("--words", help="Tell where each word came from, as --json does.")
    ] = False
    document: Annotated[
        bool, typer.Option("--document", help="The whole input is one text, its line breaks kept as ¶.")
    ] = False
    parses: Annotated[
        Path | None,
        typer.Option(
            metavar="F.conllu", readable=False, help="Dependency trees of the text, if it reads them."
        ),
    ] = None
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", show_default="the model's")
    ] = None
    n_best: Annotated[int, typer.Option(help="Translations of each line; more than 1 need --json.")] = 1
    batch_size: Annotated[
        int, typer.Option(help="Lines translated together; 1 answers each line at once.")
    ] = 32
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a line: text, score, truncated, n_best.")
    ] = False
    iterations: Annotated[
        int | None,
        typer.Option(help="model.kind=parallel: passes over all places.", show_default="the model's"),
    ] = None
    lengths: Annotated[
        int | None,
        typer.Option(help="model.kind=parallel: lengths that are tried.", show_default="the model's"),
    ] = None
    length: Annotated[
        int | None, typer.Option(help="model.kind=parallel or ctc: tokens of each line, exactly.")
    ] = None
    max_chars: Annotated[
        int | None, typer.Option(help="model.kind=parallel or ctc: characters of each line, at most.")
    ] = None
    rescore: Annotated[
        Path | None,
        typer.Option(metavar="DIR", readable=False, help="A model that chooses from what was found."),
    ] = None
    sample: Annotated[bool, typer.Option("--sample", help="Draw words instead of searching the best.")] = (
        False
    )
    temperature: Annotated[
        float | None, typer.Option(help="With --sample: below 1 is more careful.", show_default="1")
    ] = None
    top_k: Annotated[int | None, typer.Option(help="With --sample: the k likeliest.", show_default="all")] = (
        None
    )
    top_p: Annotated[
        float | None, typer.Option(help="With --sample: the likeliest with this mass.", show_default="1")
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="With --sample: another seed, other words.", show_default="1")
    ] = None
    precision: Annotated[str, typer.Option(help="int8, bf16, fp32; auto: the fastest that is as good.")] = (
        "auto"
    )
    engine: Annotated[
        str,
        typer.Option(
            help="native, readable; auto: native where it knows the model; ctranslate2 for an export."
        ),
    ] = "auto"
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Choose from the folder's shortlist (regard shortlist): faster."),
    ] = False
    came_from: From = ""
    to: To = ""
    part: Part = None
    on: On = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None

    def __post_init__(self) -> None:
        self._check_texts()
        whole = self.text or self.document or self.parses or self.kind != "text"
        if whole:
            refuse_sharing(
                self.part, self.on, "shares out the lines of a file; give it with -i FILE and plain text"
            )
        if self.text and str(self.source) != "-":
            raise UsageError(f"there is a text to translate and a file, {self.source}; give one of them")
        if self.n_best > 1 and not self.told:
            raise UsageError(
                f"--n-best {self.n_best} gives several translations of a line; add --json to see them"
            )
        if self._drawing() and not self.sample:
            raise UsageError(f"--{next(iter(self._drawing())).replace('_', '-')} needs --sample")
        for name in ("iterations", "lengths", "length", "max_chars"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"--{name.replace('_', '-')} ({value}) must be at least 1")
        if self.rescore and (self.sample or self.engine == "ctranslate2"):
            other = "--sample" if self.sample else "--engine ctranslate2"
            raise UsageError(f"--rescore chooses from what a search found; it means nothing to {other}")
        if self.sample and self.beam is not None:
            raise UsageError("--sample draws and --beam searches; give one of them")
        if self.engine == "ctranslate2" and (self.came_from or self.to):
            raise UsageError("--from and --to are for folders of Regard; an export has one pair of languages")
        if self.shortlist and (self.sample or self.engine == "ctranslate2"):
            other = "--sample" if self.sample else "--engine ctranslate2"
            raise UsageError(f"--shortlist narrows the native engine; it means nothing to {other}")

    def _check_texts(self) -> None:
        """What is asked of a text as a whole, and what of a line, do not go together."""
        if self.form not in ("auto", "text", *FORMATS):
            raise UsageError(f"--format ({self.form}) must be one of auto, text, {', '.join(FORMATS)}")
        form = self.kind
        whole = {f"--format {form}": form != "text", "--glossary": self.glossary, "--words": self.words}
        line: dict[str, Any] = {"--lines": self.lines, "--document": self.document, "--parses": self.parses}
        line |= {"--length": self.length, "--max-chars": self.max_chars}
        asked = [[flag for flag, given in flags.items() if given] for flags in (whole, line)]
        if all(asked):
            raise UsageError(f"{asked[0][0]} looks for sentences, {asked[1][0]} does not; give one of them")
        if form != "text" and (self.told or self.n_best > 1):
            flag = "--words" if self.words else "--json" if self.as_json else "--n-best"
            raise UsageError(f"{flag} tells of lines of text; a {form} comes back as one, leave it out")

    @property
    def kind(self) -> str:
        """The format of the input: as it is said, or by the ending of its name."""
        if self.form == "auto" and (self.by_line or self.text):
            return "text"
        found = (format_of(str(self.source)) or "text") if self.form == "auto" else self.form
        return "text" if found == "txt" else found

    @property
    def told(self) -> bool:
        """Whether every answer is an object."""
        return self.as_json or self.words

    @property
    def by_line(self) -> bool:
        """Whether a line is what the model reads."""
        return self.lines or self.document or any((self.parses, self.length, self.max_chars))

    def _drawing(self) -> dict[str, Any]:
        """The flags that say how to draw, as far as they were given."""
        flags = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "seed")}
        return {name: value for name, value in flags.items() if value is not None}

    def sampling(self) -> "Sampling | None":
        """How to draw, if words are drawn."""
        from regard.decoding.sampling import Sampling

        return Sampling(**self._drawing()) if self.sample else None


@takes(Options)
def translate(options: Options) -> None:
    """Translate text, line by line."""
    from regard.cli.bulk import answer_lines
    from regard.cli.streams import refuse_same_file

    if options.kind != "text" and not options.text:
        from regard.cli.files import translate_file

        refuse_same_file(options.source, options.output)
        translate_file(
            options.source,
            options.output,
            options.kind,
            lambda texts: counted(_translating(options)(texts), "lines", on=sys.stderr),
        )
        return
    answer_lines(options, answerer, _given(options) if options.text else None)


def answerer(options: Options) -> "Answer":
    """Lines to lines, by a model that is loaded."""
    from regard.text.normalise import one_line

    translate = _translating(options)

    def answer(lines: Iterable[str]) -> Iterator[str]:
        for each in translate(_folded(lines) if options.document else iter(lines)):
            yield _as_json(each) if options.told else one_line(each.text)

    return answer


def _given(options: Options) -> Iterator[str]:
    """The lines of the texts on the command line."""
    return (line for text in options.text or () for line in text.split("\n"))


def _folded(lines: Iterable[str]) -> Iterator[str]:
    """All lines as one: see regard/text/documents.py."""
    from regard.text.documents import fold

    text: list[str] = []
    characters = 0
    for line in lines:
        text.append(line)
        characters += len(line) + 1
        if characters > LONGEST_LINE:
            raise DataError(f"the document has more than {LONGEST_LINE:,} characters; translate parts of it")
    yield fold("\n".join(text))


def _translating(options: Options) -> "Callable[[Iterator[str]], Iterator[Translation]]":
    """Loads the model; the text is read as it is translated."""
    from regard.cli.streams import is_standard
    from regard.tasks.translation.files import glossary_of

    terms = glossary_of(options.glossary) if options.glossary else None
    translator = _load(options)
    for line in translator.notes:
        print(line, file=sys.stderr)
    if options.parses:
        translator = translator.parsed(options.parses)
    rescorer = None
    if options.rescore:
        from regard.tasks.translation.rescore import load_rescorer

        rescorer = load_rescorer(options.rescore, translator)
    typed = not options.text and is_standard(options.source) and sys.stdin is not None and sys.stdin.isatty()
    waiting = options.batch_size == 1 or typed
    names = ("beam", "n_best", "batch_size", "iterations", "lengths", "length", "max_chars")
    search: dict[str, Any] = {name: getattr(options, name) for name in names}
    search |= {"sampling": options.sampling(), "rescorer": rescorer}
    search["window"] = 1 if waiting else 0  # somebody waits for the answer to each line
    if options.by_line or not translator.by_sentence:
        return lambda lines: translator.stream(lines, **search)
    search |= {"html": options.kind != "text", "glossary": terms, "words": options.words}
    return lambda lines: translator.texts(lines, **search)


def _load(options: Options) -> "Translator":
    """A model folder of ours, or one that was exported for CTranslate2."""
    from regard.process.device import pick_device

    device = pick_device(options.device)
    if options.engine == "ctranslate2":
        from regard.interop import ctranslate2

        precision = "fp32" if options.precision == "auto" else options.precision
        return ctranslate2.load(options.model, device=device.type, precision=precision)
    from regard.tasks.translation.load import load_translator

    return load_translator(
        options.model,
        device=device,
        precision=options.precision,
        engine=options.engine,
        shortlist=options.shortlist,
        source=options.came_from,
        target=options.to,
    )


def _as_json(each: "Translation") -> str:
    """One line of JSON; the n-best list only where one was asked for."""
    fields = _fields(each)
    if each.n_best:
        fields["n_best"] = [_fields(other) for other in each.n_best]
    if each.words is not None:
        fields["words"] = each.words
    return json.dumps(fields, ensure_ascii=False)


def _fields(each: "Translation") -> dict[str, Any]:
    return {"text": each.text, "score": each.score, "truncated": each.truncated}
