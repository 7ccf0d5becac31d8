"""Every reader of foreign bytes, as a function of bytes: what a stranger can send or put into a folder.

Each goes the way that the commands go, and then uses what it read, because some costs come later. Their
corpus: `corpus.py`. Tried by `trial.py`. Modules are imported when first used, so that a reader that needs no
torch begins at once.
"""

import contextlib
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from fuzz import families, ground
from fuzz.requests import body

FOLDER = ("config.json", "generation.json", "tokenizer.json", "model.safetensors")
MARIAN = ("config.json", "vocab.json", "tokenizer_config.json", "model.safetensors", "pytorch_model.bin")
BERT = ("config.json", "vocab.txt", "tokenizer.json", "modules.json")
TEXTS = ("", "the cat sat", "a b c h at ▁ x 狗 \u0301", "aaaaaaaaaaaaaaaaa")


def _written(name: str, data: bytes) -> Path:
    path = ground.place() / name
    path.write_bytes(data)
    return path


# Model folders -------------------------------------------------------------------------------------


def _folder(name: str) -> Callable[[bytes], None]:
    """A model folder of ours with this file from a stranger: loaded, and a line translated."""

    def parser(data: bytes) -> None:
        from regard import load
        from regard.serving.family import parse_place

        folder = ground.exchanged(name, data)
        translator = load(folder)
        for text in TEXTS:
            ids = translator.tokenizer.encode(text)
            translator.tokenizer.decode(ids)
        translator.translate(["a b", "the cat"], beam=1)
        parse_place(str(folder))

    return parser


def shortlist(data: bytes) -> None:
    """A shortlist beside a model, and the engine that uses it."""
    from regard import load

    translator = load(ground.exchanged("shortlist.safetensors", data), shortlist=True)
    translator.translate(["a b", "the cat"], beam=2)


def metrics(data: bytes) -> None:
    """metrics.jsonl: as a run goes on from it, and as `/model` tells it."""
    from regard.serving.about import description
    from regard.serving.answers import answer
    from regard.serving.family import Place
    from regard.training.metrics import Metrics, read_metrics

    folder = ground.exchanged("metrics.jsonl", data)
    answer([description(Place(folder, "en-de"))])
    read_metrics(folder / "metrics.jsonl")
    with Metrics(folder, step=7) as kept:
        kept.write({"step": 8, "loss": 1.5})


# Foreign models ------------------------------------------------------------------------------------


def _marian(name: str) -> Callable[[bytes], None]:
    """A Marian folder with this file from a stranger: imported, and its tokenizer used."""

    def parser(data: bytes) -> None:
        from regard.interop import marian

        loaded = marian.read(ground.exchanged_marian(name, data))
        for text in TEXTS:
            loaded.tokenizer.decode(loaded.tokenizer.encode_targets([text])[0])
            loaded.tokenizer.encode(text)

    return parser


def _bert(name: str) -> Callable[[bytes], None]:
    """A sentence encoder with this file from a stranger: imported, and its tokenizer used."""

    def parser(data: bytes) -> None:
        from regard.interop import known

        loaded = known.read(ground.exchanged_bert(name, data))
        for text in TEXTS:
            loaded.tokenizer.decode(loaded.tokenizer.encode(text))

    return parser


def sentencepiece(data: bytes) -> None:
    """A SentencePiece model: read, and lines cut with it."""
    from regard.interop.sentencepiece import read

    read(_written("source.spm", data)).cut(TEXTS)


# Text files ----------------------------------------------------------------------------------------


def conllu(data: bytes) -> None:
    """A file of parses, laid over the lines that it spells and over their tokens."""
    from regard.data.corpus import open_parses
    from regard.data.parses import token_heads

    parses = open_parses([_written("parses.conllu", data)])
    for number, text in enumerate(_spelled(data), 1):
        parse = parses.of(text, f"line {number}")
        token_heads(parse, text, [f"▁{word}" for word in text.split()])
    parses.finish("the text")


def _spelled(data: bytes) -> list[str]:
    """The text that a CoNLL-U file is about, read as carelessly as one can."""
    texts: list[list[str]] = [[]]
    covered = 0
    for line in data.split(b"\n"):
        columns = line.decode("utf-8", "replace").split("\t")
        if not line.strip():
            texts, covered = [*texts, []], 0
        elif len(columns) > 1 and "." not in columns[0] and not line.startswith(b"#"):
            first, dash, last = columns[0].partition("-")
            if dash or not (first.isdecimal() and len(first) < 9 and int(first) <= covered):
                texts[-1].append(columns[1])
            covered = int(last) if dash and last.isdecimal() and len(last) < 9 else covered
    return [" ".join(words) for words in texts if words]


def text_files(data: bytes) -> None:
    """A file of pairs, plain or zipped: looked through as `regard check` does, vocabulary and all."""
    _run("check", _written("pairs.tsv", data))


def running_text(data: bytes) -> None:
    """A file of running text: surveyed, and cut into parts of which nothing is lost."""
    from regard.data.texts import Texts, hold_out, parts

    documents = Texts((_written("running.txt", data),)).documents
    kept, held = hold_out(documents)
    letters = sum(len(part.text) for part in parts([*kept, *held]))
    assert letters == sum(map(len, documents))


def translated_file(data: bytes) -> None:
    """A file of lines to translate."""
    _run("translate", "-m", ground.model_folder(), "--beam", 1, "-i", _written("lines.txt", data))


def python_files(data: bytes) -> None:
    """A folder of Python files, as `regard documents` reads it."""
    from regard.text.docstrings import documents

    folder = ground.place() / "python"
    folder.mkdir(exist_ok=True)
    (folder / "module.py").write_bytes(data)
    for document in documents(folder):
        assert "\n" not in document.source + document.summary


# Settings ------------------------------------------------------------------------------------------


def toml(data: bytes) -> None:
    """A file of settings."""
    from regard.config import Config, from_dict, merge, read_toml, to_dict

    config = merge(Config(), read_toml(_written("settings.toml", data)))
    assert from_dict(to_dict(config)) == config


def setting(data: bytes) -> None:
    """One `--set`."""
    from regard.config import Config, merge, parse_set

    merge(Config(), dict([parse_set(data.decode("utf-8", "replace"))]))


def options(data: bytes) -> None:
    """Options of the command line, one a line, before an empty file is translated."""
    words = data.decode("utf-8", "replace").replace("\0", "").split("\n")
    flags = [word for word in words if word.partition("=")[0] in _FLAGS]
    _run("translate", "-m", ground.model_folder(), "-i", _written("empty.txt", b""), *flags)


_FLAGS = (
    *("--beam", "--batch-size", "--n-best", "--length-penalty", "--max-length", "--temperature", "--top-k"),
    *("--top-p", "--seed", "--precision", "--engine", "--json", "--sample", "--device", "--shortlist"),
)


def _run(*words: object) -> None:
    """A command in this process: 0 or 2, one line of complaint."""
    from regard.cli.main import run

    said, told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = run([str(word) for word in words])
    complaint = told.getvalue()
    assert code in (0, 2), complaint[-1500:]
    assert code == 0 or complaint.count("regard: error:") == 1, complaint[-1500:]


# Texts of requests ---------------------------------------------------------------------------------


def sentences(data: bytes) -> None:
    """A text cut into sentences, and those into pieces that fit."""
    from regard.text.sentences import fitting, sentences

    text = data.decode("utf-8", "replace")
    spans = [
        part for span in sentences(text) for part in fitting(text, span, lambda piece: len(piece) // 3, 19)
    ]
    assert all(start < end for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    kept = "".join(text[start:end] for start, end in spans)
    assert "".join(kept.split()) == "".join(text.split())


def markup(data: bytes) -> None:
    """HTML: taken apart, and put together again as if each sentence were its own translation."""
    _document(data.decode("utf-8", "replace"), {}, markup=True)


def glossary(data: bytes) -> None:
    """A text and the terms of a glossary: lines of `term=wanted`, then the text."""
    *lines, text = data.decode("utf-8", "replace").split("\n")
    pairs = (line.partition("=") for line in lines[:200])
    _document(text, {term[:200]: wanted[:200] for term, _, wanted in pairs if term}, markup=False)


def _document(text: str, terms: dict[str, str], *, markup: bool) -> None:
    from regard.tasks.translation.document import read_document
    from regard.tasks.translation.reading import Reading
    from regard.text.glossary import Glossary

    known = Glossary(terms)
    document = read_document(text[:100_000], markup=markup, glossary=known, count=len, limit=64)
    readings = [Reading(sentence.text, 0.0) for sentence in document.sentences]
    "".join(document.pieces(readings))


def _file(form: str) -> Callable[[bytes], None]:
    """A file of a format, and the same again with its own segments."""

    def read(data: bytes) -> None:
        from regard.files.file import open_data

        opened = open_data(data, form, "a file")
        opened.written(opened.segments)

    return read


# Pictures ------------------------------------------------------------------------------------------


def picture(data: bytes) -> None:
    """A picture, brought to a model's size."""
    from regard.images.picture import Fit, open_picture, pixels

    pixels(open_picture(data), Fit(32, 32, 3, "pad"))


def _labelled(name: str) -> Callable[[bytes], None]:
    """A list or an array of pictures."""

    def parser(data: bytes) -> None:
        from regard.data.pictures import Pictures

        _ = Pictures((_written(name, data),)).survey

    return parser


def _boxed(name: str) -> Callable[[bytes], None]:
    """A folder of pictures with boxes, in which this file is a stranger's."""

    def parser(data: bytes) -> None:
        from regard.data.boxes import Scenes

        root = ground.place() / f"boxes-{Path(name).name}"
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        _ = Scenes((root,)).survey

    return parser


LISTS = ("list.csv", "held.npz", "a-images-idx3-ubyte")
BOXES = ("annotations/all.json", "data.yaml", "Annotations/a.xml")
FILES = ("md", "srt", "po", "xliff", "docx", "odt", "epub")
PARSERS = {
    **{f"file-{name}": _file(name) for name in FILES},
    **{f"folder-{name}": _folder(name) for name in FOLDER},
    "shortlist": shortlist,
    "metrics": metrics,
    **{f"marian-{name}": _marian(name) for name in MARIAN},
    **{f"bert-{name}": _bert(name) for name in BERT},
    **families.PARSERS,
    "picture": picture,
    **{f"pictures-{name}": _labelled(name) for name in LISTS},
    **{f"boxes-{Path(name).name}": _boxed(name) for name in BOXES},
    "sentencepiece": sentencepiece,
    "conllu": conllu,
    "text": text_files,
    "running": running_text,
    "lines": translated_file,
    "python": python_files,
    "toml": toml,
    "set": setting,
    "options": options,
    "sentences": sentences,
    "markup": markup,
    "glossary": glossary,
    "body": body,
}
