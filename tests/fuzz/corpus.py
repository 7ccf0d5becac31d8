"""Where fuzzing begins: for each reader of `parsers.py` its inputs, and how new ones are made from them.

The inputs are in `folders.py` and `texts.py`; a new finding becomes a line there. The mutator: `mutate.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import formats
from fuzz import families, folders, pictures, texts
from fuzz.parsers import FILES


@dataclass(frozen=True)
class Seeds:
    """The inputs of one reader."""

    form: str  # of `mutate.py`
    words: str  # that the format knows
    make: Callable[[], list[bytes]]


_JSON = 'null true NaN 1e999 "\\ud800" kind model vocab merges'
_TENSORS = "F32 BF16 I32 shape data_offsets __metadata__"
_TAGS = "<b> </b> <p> <code> <!-- --> &amp; &# translate=no <![CDATA[ <script>"
_FILES = "PK <w:t> <!DOCTYPE [<!ENTITY --> ``` ** []( msgid msgstr <i> 00:00:01,000"
_FIELDS = '"q": "words":true "glossary":{} "alternatives":10 "format":"html"'

CORPUS = {
    **{
        f"file-{name}": Seeds("bytes", _FILES, lambda name=name: [formats.MAKERS[name]("A b. C", "d & e")])
        for name in FILES
    },
    "folder-config.json": Seeds("json", _JSON, folders.configs),
    "folder-generation.json": Seeds("json", _JSON, folders.generations),
    "folder-tokenizer.json": Seeds("json", _JSON, folders.tokenizers),
    "folder-model.safetensors": Seeds("safetensors", _TENSORS, folders.weights),
    "shortlist": Seeds("safetensors", _TENSORS, folders.shortlists),
    "metrics": Seeds("json lines", "step NaN Infinity", folders.metrics),
    "marian-config.json": Seeds("json", _JSON, folders.marian_configs),
    "marian-vocab.json": Seeds("json", _JSON, folders.vocabularies),
    "marian-tokenizer_config.json": Seeds("json", _JSON, folders.tokenizer_configs),
    "marian-model.safetensors": Seeds("safetensors", _TENSORS, folders.marian_weights),
    "marian-pytorch_model.bin": Seeds("bytes", "archive/data.pkl torch._utils FloatStorage", folders.pickles),
    "bert-config.json": Seeds("json", _JSON, folders.bert_configs),
    "bert-vocab.txt": Seeds("bytes", "[UNK] [CLS] [SEP] [MASK] ##", folders.wordpieces),
    "bert-tokenizer.json": Seeds("json", _JSON, folders.bert_tokenizers),
    "bert-modules.json": Seeds("json", "type path Pooling Normalize Dense", folders.bert_modules),
    **{
        name: Seeds(
            "json" if name.endswith(".json") else "bytes", _JSON, lambda name=name: families.seeds(name)
        )
        for name in families.PARSERS
    },
    "picture": Seeds("bytes", "IHDR IDAT PLTE tRNS eXIf JFIF Exif II* GIF89a BM", pictures.files),
    "pictures-list.csv": Seeds("bytes", 'path label , " ../', pictures.lists),
    "pictures-held.npz": Seeds(
        "bytes", "images.npy labels.npy descr shape fortran_order <f4 |O", pictures.archives
    ),
    "pictures-a-images-idx3-ubyte": Seeds("bytes", "\x00 \x08 \x03", pictures.idx),
    "boxes-all.json": Seeds(
        "json", "images annotations categories bbox image_id category_id iscrowd", pictures.coco
    ),
    "boxes-data.yaml": Seeds("bytes", "names: train: path: - & * !! [ ] { }", pictures.yolo),
    "boxes-a.xml": Seeds("bytes", "<object> <bndbox> <xmin> <!DOCTYPE [<!ENTITY &x; <![CDATA[", pictures.voc),
    "sentencepiece": Seeds("message", "▁ a", folders.piece_models),
    "conllu": Seeds("bytes", "# 1-2 1.1 _ 0 -1", texts.conllu),
    "text": Seeds("bytes", "\u0301 \u200d", texts.pairs),
    "running": Seeds("bytes", "\\r\\n \u2028 \u0301", texts.running),
    "lines": Seeds("bytes", "\u0301 \u200d", texts.lines),
    "python": Seeds("bytes", 'def class async lambda """ # coding: \\', texts.python),
    "toml": Seeds("bytes", 'model. train. = [ ] { } nan inf 0x """', texts.toml),
    "set": Seeds("bytes", "model. train. decode. = nan inf", texts.settings),
    "options": Seeds("bytes", "--beam= --batch-size= --sample --n-best= --json nan", texts.options),
    "sentences": Seeds("bytes", ". ! ? … 。 ) » U.S. Dr.", texts.plain_texts),
    "markup": Seeds("bytes", _TAGS, texts.html),
    "glossary": Seeds("bytes", "= a A cat", texts.glossaries),
    "body": Seeds("request", _FIELDS, texts.bodies),
}
