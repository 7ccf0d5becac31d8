"""`regard generate`: a beginning in, and what a language model writes after it.

A prompt on the command line is written on as one watches; without one, each line of the input is a prompt and
each line of the output its text. The work is regard/tasks/language's.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import On, Part, refuse_sharing, takes
from regard.data.address import place
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.bulk import Answer
    from regard.tasks.language.writer import Text, Wish, Writer

OVERFLOW = ("slide", "refuse")


@dataclass(frozen=True)
class Options:
    """What `regard generate` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    prompt: Annotated[
        str | None, typer.Argument(help="What to write on.", show_default="a prompt each line of the input")
    ] = None
    source: Annotated[
        Path,
        typer.Option(
            "-i", "--input", metavar="F", parser=place, help="Prompts, a line each; an address; - is stdin."
        ),
    ] = Path("-")
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="F", parser=place, help="- is stdout.")
    ] = Path("-")
    part: Part = None
    on: On = None
    tokens: Annotated[int, typer.Option(help="Written at most.")] = 200
    temperature: Annotated[
        float | None,
        typer.Option(help="Draw; below 1 is more careful, 0 the likeliest.", show_default="the likeliest"),
    ] = None
    top_k: Annotated[int, typer.Option(help="Draw from the k likeliest; 0: all.")] = 0
    top_p: Annotated[float, typer.Option(help="Draw from the likeliest with this mass.")] = 1.0
    min_p: Annotated[float, typer.Option(help="Draw from what has this share of the likeliest's.")] = 0.0
    seed: Annotated[int, typer.Option(help="Another seed, another text.")] = 1
    n: Annotated[int, typer.Option("-n", "--texts", help="Texts for each prompt.")] = 1
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: what was read comes less often.")] = 1.0
    stop: Annotated[
        list[str] | None, typer.Option(help="End before this; may be given again.", show_default="nothing")
    ] = None
    overflow: Annotated[
        str, typer.Option(help="Past the model's positions: slide (forget the beginning) or refuse.")
    ] = "slide"
    batch_size: Annotated[int, typer.Option(help="Prompts written on together.")] = 8
    precision: Annotated[
        str, typer.Option(help="int8, bf16, fp32; auto: fp32, the text that the weights give.")
    ] = "auto"
    engine: Annotated[str, typer.Option(help="native, readable; auto: native where it knows the model.")] = (
        "auto"
    )
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a text: prompt, text, ended, ids, logprobs.")
    ] = False

    def __post_init__(self) -> None:
        drawing = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
        given = [name for name, plain in drawing.items() if getattr(self, name) != plain]
        if given and not self.temperature:
            raise UsageError(
                f"--{given[0].replace('_', '-')} says how to draw; it needs --temperature above 0"
            )
        if self.prompt is not None and str(self.source) != "-":
            raise UsageError(f"a prompt and -i {self.source} were given; prompts come from one of them")
        if self.overflow not in OVERFLOW:
            raise UsageError(f"--overflow ({self.overflow}) must be one of {', '.join(OVERFLOW)}")
        if self.prompt is not None:
            refuse_sharing(self.part, self.on)
        if self.batch_size < 1:
            raise UsageError(f"--batch-size ({self.batch_size}) must be at least 1")

    def wish(self) -> "Wish":
        """How to write."""
        from regard.decoding.sampling import Sampling
        from regard.tasks.language.writer import Wish

        sampling = (
            None
            if not self.temperature
            else Sampling(self.temperature, self.top_k, self.top_p, self.seed, self.min_p)
        )
        stop = tuple(self.stop or ())
        slide = self.overflow == "slide"
        return Wish(self.tokens, sampling, self.n, self.repetition_penalty, stop, slide)


@takes(Options)
def generate(options: Options) -> None:
    """Write on with a language model."""
    from regard.cli.bulk import answer_lines
    from regard.cli.streams import is_standard

    wish = options.wish()
    if options.prompt is not None and options.n == 1 and not options.as_json and is_standard(options.output):
        _watch(_writer(options), options.prompt, wish)
        return
    answer_lines(options, answerer, None if options.prompt is None else [options.prompt])


def answerer(options: Options) -> "Answer":
    """Prompts to texts, by a model that is loaded; of each as many as are asked for."""
    from regard.text.normalise import one_line

    writer, wish = _writer(options), options.wish()

    def answer(prompts: Iterable[str]) -> Iterator[str]:
        for text in writer.generate(prompts, wish, batch=options.batch_size):
            yield _as_json(text) if options.as_json else one_line(text.text)

    return answer


def _writer(options: Options) -> "Writer":
    from regard.tasks.task import expect, load

    expect(options.model, "language")
    writer: Writer = load(options.model, precision=options.precision, engine=options.engine)
    if writer.note:
        print(writer.note, file=sys.stderr)
    return writer


def _watch(writer: "Writer", prompt: str, wish: "Wish") -> None:
    """The prompt, once it is taken, and what comes after it, as it comes."""
    if sys.stdout is None:
        raise UsageError("stdout is closed; there is nowhere to write to")
    out, before = sys.stdout.buffer, prompt
    for piece in writer.stream([prompt], wish):
        out.write(f"{before}{piece.text}".encode("utf-8", "replace"))
        out.flush()
        before = ""
    out.write(f"{before}\n".encode("utf-8", "replace"))
    out.flush()


def _as_json(text: "Text") -> str:
    tree = {
        "prompt": text.prompt,
        "text": text.text,
        "ended": text.ended,
        "ids": text.ids,
        "logprobs": text.logp,
    }
    return json.dumps(tree, ensure_ascii=False)
