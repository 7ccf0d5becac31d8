"""CTranslate2, the C++ runtime: a model folder of ours becomes one of its own, and can be run from here.

`write` lays the weights out as its TransformerSpec wants them: query, key and value in one matrix, positions
as a table. The folder also holds our tokenizer and decoding defaults, so that `load` gives a translator of
raw text. The search is the same on both sides (`regard/decoding/beam.py`), and so are the translations.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import Tokens
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Wanted
from regard.errors import ModelError, UsageError
from regard.foreign import MOST_JSON, loads, read_bytes, read_json
from regard.interop.parts import need, plain, position_table, query_scale
from regard.layers import FeedForward, Residual
from regard.layers.residual import gain_and_bias
from regard.models.folder import GENERATION, TOKENIZER, Loaded
from regard.models.transformer import Transformer
from regard.tasks.translation.translator import Translator
from regard.text.tokenizer import OUR_SPECIALS, Tokenizer

NAME = "ctranslate2"
PRECISIONS = {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"}
_NEVER = -1e9  # the bias of a token that is never written

# Writing -----------------------------------------------------------------------------------------


def write(loaded: Loaded, out: Path) -> None:
    """A folder that `ctranslate2.Translator` opens, in float32; it can compute in others."""
    need(NAME)
    kinds = ("sinusoidal", "learned", "rotary", "none")
    allowed = {"attention.score": ("scaled-dot", "dot"), "positions.kind": kinds}
    model = plain(loaded.model, loaded.config, "CTranslate2", allowed)
    spec = _spec(model, loaded.config)
    _fill_ends(spec, model, loaded)
    here: Any
    for there, here in zip(spec.encoder.layer, model.encoder, strict=True):
        _fill_attention(there.self_attention, here.attention, here.around_attention)
        _fill_feed_forward(there.ffn, here.feed_forward, here.around_feed_forward)
    for there, here in zip(spec.decoder.layer, model.decoder, strict=True):
        _fill_attention(there.self_attention, here.attention, here.around_attention)
        _fill_attention(there.attention, here.cross, here.around_cross)
        _fill_feed_forward(there.ffn, here.feed_forward, here.around_feed_forward)
    spec.validate()
    spec.optimize(quantization="float32")
    spec.save(str(out))
    (out / TOKENIZER).write_text(loaded.tokenizer.to_json(), encoding="utf-8")
    (out / GENERATION).write_text(json.dumps(dataclasses.asdict(loaded.config.decode), indent=2) + "\n")


def _spec(model: Transformer, config: Config) -> Any:
    """An empty specification of the model's shape, with its vocabularies."""
    specs = need("ctranslate2.specs")
    shape = config.model
    options = {
        "pre_norm": shape.norm == "pre",
        "activation": specs.Activation[shape.activation.upper()],
    }
    decoder_heads = shape.decoder_heads or shape.n_heads
    return specs.TransformerSpec(
        specs.TransformerEncoderSpec(
            shape.encoder_layers, shape.n_heads, **options, **_turns(config, shape.n_heads)
        ),
        specs.TransformerDecoderSpec(
            shape.decoder_layers, decoder_heads, **options, **_turns(config, decoder_heads)
        ),
    )


def _turns(config: Config, heads: int) -> dict[str, Any]:
    """Rotary positions of halves, as ours are; CTranslate2's own choice would be neighbours."""
    if config.positions.kind != "rotary":
        return {}
    return {"rotary_dim": config.model.d_model // heads, "rotary_interleave": False}


def _fill_ends(spec: Any, model: Transformer, loaded: Loaded) -> None:
    """Embeddings, positions, closing norms, the output layer and the vocabularies."""
    config, tokenizer = loaded.config, loaded.tokenizer
    spec.encoder.embeddings[0].weight = model.embedding.weight.detach()
    spec.decoder.embeddings.weight = model.target_embedding.weight.detach()
    norm: Any
    for side, norm in ((spec.encoder, model.encoder_norm), (spec.decoder, model.decoder_norm)):
        side.scale_embeddings = config.model.scale_embedding
        if config.positions.kind != "rotary":
            side.position_encodings.encodings = position_table(model, config)
        if config.model.norm == "pre":
            _fill_norm(side.layer_norm, norm)
    spec.decoder.projection.weight = model.output_weight.detach()
    bias = _output_bias(model, tokenizer)
    if bias is not None:
        spec.decoder.projection.bias = bias
    sizes = len(model.embedding.weight), len(model.output_weight)
    spec.register_source_vocabulary(_words(tokenizer.pieces, sizes[0]))
    spec.register_target_vocabulary(_words(tokenizer.target_pieces, sizes[1]))
    spec.config.bos_token = spec.config.decoder_start_token = tokenizer.target_pieces[tokenizer.begin_id]
    spec.config.eos_token = tokenizer.target_pieces[tokenizer.end_id]
    spec.config.unk_token = tokenizer.pieces[tokenizer.unknown_id]
    spec.config.add_source_eos = True


def _output_bias(model: Transformer, tokenizer: Tokenizer) -> Tensor | None:
    """The bias of the output layer; it also keeps an imported model from what it must not write.

    CTranslate2 then shares that mass among the other tokens, so that scores are a little higher than ours.
    """
    size, tokens = len(model.output_weight), tokenizer.target_vocab_size
    bias = None if model.output_bias is None else model.output_bias.detach().clone()
    if tokenizer.specials == OUR_SPECIALS and size == tokens:
        return bias  # our own models are trained not to write what they must not
    bias = torch.zeros(size) if bias is None else bias
    bias[list(tokenizer.specials.never)] = _NEVER
    bias[tokens:] = _NEVER
    return bias


def _words(pieces: tuple[str, ...], size: int) -> list[str]:
    """The vocabulary, with names for rows that have no token."""
    return [*pieces, *(f"<unused{number}>" for number in range(len(pieces), size))]


def _fill_norm(there: Any, norm: nn.LayerNorm | nn.RMSNorm) -> None:
    there.gamma, there.beta = (each.detach() for each in gain_and_bias(norm))


def _fill_linear(there: Any, *parts: nn.Linear) -> None:
    """One matrix from several that read the same vectors."""
    there.weight = torch.cat([part.weight.detach() for part in parts])
    there.bias = torch.cat([part.bias.detach() for part in parts])


def _fill_attention(there: Any, heads: MultiHead, around: Residual) -> None:
    if len(there.linear) == 2:  # self-attention
        _fill_linear(there.linear[0], heads.query, heads.key_value)
    else:
        _fill_linear(there.linear[0], heads.query)
        _fill_linear(there.linear[1], heads.key_value)
    _fill_linear(there.linear[-1], heads.out)
    _fill_norm(there.layer_norm, around.norm)
    there.queries_scale = query_scale(heads)


def _fill_feed_forward(there: Any, network: FeedForward, around: Residual) -> None:
    _fill_linear(there.linear_0, network.inner)
    _fill_linear(there.linear_1, network.outer)
    _fill_norm(there.layer_norm, around.norm)


# Running -----------------------------------------------------------------------------------------


def load(folder: Path, *, device: str = "cpu", precision: str = "fp32") -> Translator:
    """The translator in a folder that `write` made; CTranslate2 does its work."""
    for name in ("model.bin", "config.json", TOKENIZER, GENERATION):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}; make it with regard export --to ctranslate2")
    translator = Translator(_Elsewhere(), _tokenizer(folder), _decode(folder))
    translator.engine = Runner(folder, device=device, precision=precision)
    return translator


class Runner:
    """CTranslate2's search in the place of ours; the Searcher of `regard.tasks.translation.translator`."""

    def __init__(self, folder: Path, *, device: str = "cpu", precision: str = "fp32") -> None:
        if precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise UsageError(f"precision ({precision}) must be one of {known} for CTranslate2")
        self._sources, self._targets = _vocabularies(folder)
        self._ids = {word: number for number, word in enumerate(self._targets)}
        try:
            self._engine = need(NAME).Translator(
                str(folder),
                device=device,
                compute_type=PRECISIONS[precision],
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{folder} does not open in CTranslate2: {_line(error)}") from error

    def answer(
        self, sources: Sequence[Sequence[int]], rules: Rules, wanted: Wanted, *, batch_size: int
    ) -> list[list[Hypothesis]]:
        """`search`, as whoever translates asks for it."""
        beam, n_best = wanted.decode.beam, wanted.n_best
        return self.search(sources, rules, beam=beam, n_best=n_best, batch_size=batch_size)

    def search(
        self, sources: Sequence[Sequence[int]], rules: Rules, *, beam: int, n_best: int, batch_size: int
    ) -> list[list[Hypothesis]]:
        """The `n_best` outputs of each source; one that passes its own bound is searched again alone.

        CTranslate2 has one bound a call. All `beam` outputs are asked for, to see when a search was over;
        without a length penalty the number that is asked for decides that.
        """
        most, least = rules.most.tolist(), rules.least.tolist()
        options = {
            "beam_size": beam,
            "num_hypotheses": beam if rules.penalty else n_best,
            "length_penalty": rules.penalty,
            "max_batch_size": batch_size,
            "max_input_length": 0,
            "return_scores": True,
        }
        if any(least):
            rows = zip(sources, most, least, strict=True)
            found = [self._run([ids], options, bound, fewest)[0] for ids, bound, fewest in rows]
        else:
            found = self._run(sources, options, max(most), 0)
            for row, bound in enumerate(most):
                if any(each.length > bound for each in found[row]):
                    found[row] = self._run(sources[row : row + 1], options, bound, 0)[0]
        return [outputs[:n_best] for outputs in found]

    def _run(
        self, sources: Sequence[Sequence[int]], options: dict[str, Any], most: int, least: int
    ) -> list[list[Hypothesis]]:
        """The outputs of each source, the end of which CTranslate2 adds itself."""
        words = [[self._sources[number] for number in ids[:-1]] for ids in sources]
        results = self._engine.translate_batch(
            words, max_decoding_length=most, min_decoding_length=least, **options
        )
        return [
            [
                Hypothesis([self._ids[word] for word in output], score, len(output) == most)
                for output, score in zip(each.hypotheses, each.scores, strict=True)
            ]
            for each in results
        ]


class _Elsewhere:
    """The place of a model that is not here."""

    max_length: int | None = None

    def start(self, inputs: Tokens) -> Any:
        """Only what the runner can do is done."""
        raise UsageError(
            "drawing words and looking at attention need a model folder, not --engine ctranslate2"
        )

    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _tokenizer(folder: Path) -> Tokenizer:
    try:
        return Tokenizer.from_json(read_bytes(folder / TOKENIZER, MOST_JSON).decode())
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{folder / TOKENIZER}: {_line(error)}") from error


def _decode(folder: Path) -> DecodeConfig:
    try:
        tree = read_json(folder / GENERATION, "settings")
        return merge(Config(), {f"decode.{key}": value for key, value in tree.items()}).decode
    except UsageError as error:
        raise ModelError(f"{folder / GENERATION}: {_line(error)}") from error


def _vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """The words of the source and of the target by id."""
    shared = folder / "shared_vocabulary.json"
    paths = (
        [shared] * 2
        if shared.is_file()
        else [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    )
    try:
        source, target = (loads(read_bytes(path, MOST_JSON)) for path in paths)
    except ValueError as error:  # a ModelError is one
        raise ModelError(f"{folder} has no vocabulary that can be read: {_line(error)}") from error
    if not all(
        isinstance(side, list) and all(isinstance(word, str) for word in side) for side in (source, target)
    ):
        raise ModelError(f"{folder}: a vocabulary must be a list of words; export the model again")
    return source, target
