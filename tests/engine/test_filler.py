"""Models that write several tokens at once, in the engine against their readable twins."""

from dataclasses import replace

import pytest
import torch

from regard.config import AT_ONCE, Config, DecodeConfig, merge
from regard.data.inputs import pad_sources
from regard.decoding.blockwise import written
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Spelling, Wanted, way_of
from regard.engine import library, path
from regard.engine.engine import Engine
from regard.engine.filler import PackedFiller
from regard.models import build
from regard.text.tokenizer import OUR_SPECIALS

pytestmark = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")

VOCAB = 283
SHAPES = {
    "pre": {},
    "post": {"model.norm": "post"},
    "prime": {"model.d_model": 33, "model.n_heads": 3, "model.d_ff": 47},
    "rotary grouped": {"positions.kind": "rotary", "model.n_heads": 4, "model.kv_heads": 2},
    "learned": {"positions.kind": "learned", "positions.max_length": 32},
    "gated": {"model.activation": "swiglu", "model.d_ff": 47, "model.bias": False, "model.norm": "pre-rms"},
    "untied": {"model.tied": "none", "model.output_bias": True, "model.decoder_heads": 2},
}


def make(kind: str, shape: dict[str, object]) -> torch.nn.Module:
    plain = {"model.d_model": 32, "model.d_ff": 64, "model.vocab_size": VOCAB, "model.encoder_layers": 2}
    config = merge(Config(), {**plain, "model.decoder_layers": 2, "model.kind": kind, **shape})
    torch.manual_seed(7)
    model = build(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def sentences() -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    made = [torch.randint(4, VOCAB, (n,), generator=generator).tolist() for n in (1, 7, 2, 5, 11, 3, 4)]
    return [[*ids, OUR_SPECIALS.end] for ids in made]


def rules_for(sources: list[list[int]], **decode: object) -> Rules:
    config = DecodeConfig(**{"max_ratio": 2.0, "max_extra": 8, **decode})
    return Rules.of(config, map(len, sources), vocab_size=VOCAB - 2)


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    assert [[each.ids for each in o] for o in found] == [[each.ids for each in o] for o in wanted]
    assert [[each.truncated for each in o] for o in found] == [[each.truncated for each in o] for o in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert [e.score for e in ours] == pytest.approx([e.score for e in theirs], abs=1e-3, rel=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", AT_ONCE)
def test_it_says_what_the_readable_model_says(kind: str, shape: str) -> None:
    model, sources = make(kind, SHAPES[shape]), sentences()
    rules = rules_for(sources)
    wanted = Wanted(DecodeConfig(beam=1, lengths=2), 1 if kind == "ctc" else 2)
    packed = PackedFiller(model, precision="fp32", threads=2)
    found = packed.answer(sources, rules, wanted, batch_size=3)
    same(found, way_of(model).search(model, pad_sources(sources), rules, wanted))
    same(
        PackedFiller(model, precision="fp32", threads=1).answer(sources, rules, wanted, batch_size=99), found
    )


@pytest.mark.parametrize("kind", AT_ONCE)
def test_lengths_beams_and_ends_are_those_of_the_readable_model(kind: str) -> None:
    model, sources = make(kind, {}), sentences()
    rules, packed = rules_for(sources), PackedFiller(model, precision="fp32", threads=2)
    spelling = Spelling(torch.arange(VOCAB) % 5 + 1, torch.arange(VOCAB) % 2)
    plain = Wanted(DecodeConfig(beam=1))
    asked = [replace(plain, length=3), replace(plain, max_chars=7, spelling=spelling)]
    asked += [Wanted(DecodeConfig(beam=4), 2)] if kind == "ctc" else [Wanted(DecodeConfig(length="end"))]
    for wanted in asked:
        found = packed.answer(sources, rules, wanted)
        same(found, way_of(model).search(model, pad_sources(sources), rules, wanted))


@pytest.mark.parametrize("precision", ["int8", "bf16"])
@pytest.mark.parametrize("kind", AT_ONCE)
def test_neighbours_and_threads_change_no_bit(kind: str, precision: str) -> None:
    model, sources = make(kind, {"positions.kind": "rotary"}), sentences()
    packed, wanted = PackedFiller(model, precision=precision, threads=2), Wanted(DecodeConfig(beam=1))
    together = packed.answer(sources, rules_for(sources), wanted)
    packed.threads = 1
    assert together == [packed.answer([one], rules_for([one]), wanted)[0] for one in sources]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_reading_and_writing_in_one_call_changes_no_bit(shape: str, precision: str) -> None:
    """Against the same engine asked step by step, as other searches ask it."""
    upsample = 1.3 if shape == "prime" else 2
    model, sources = make("ctc", {"model.upsample": upsample, **SHAPES[shape]}), sentences()
    packed, wanted = PackedFiller(model, precision=precision, threads=2), Wanted(DecodeConfig(beam=1))
    rules = rules_for(sources)
    steps = way_of(model).search(packed, pad_sources(sources), rules, wanted)
    for threads in (1, 2, 3):
        packed.threads = threads
        assert packed.answer(sources, rules, wanted) == steps
        assert packed.answer(sources[1:3], rules_for(sources[1:3]), wanted) == steps[1:3]


def test_a_path_says_nothing_beyond_the_vocabulary_and_no_special() -> None:
    model, sources = make("ctc", {}), sentences()
    packed, wanted = PackedFiller(model, threads=1), Wanted(DecodeConfig(beam=1))
    rules = replace(rules_for(sources), vocab_size=11)
    said = {number for (one,) in packed.answer(sources, rules, wanted) for number in one.ids}
    assert max(said) < 11
    assert not said & {*OUR_SPECIALS.never, OUR_SPECIALS.end}


@pytest.mark.parametrize("shape", SHAPES)
def test_drafts_say_what_greedy_search_says(shape: str) -> None:
    model, sources = make("blockwise", SHAPES[shape]), sentences()
    rules = rules_for(sources, min_ratio=0.5)
    wanted = Wanted(DecodeConfig(beam=1))
    engine = Engine(model, precision="fp32", threads=2)
    same(
        engine.answer(sources, rules, wanted),
        way_of(model).search(model, pad_sources(sources), rules, wanted),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_as_much_is_foreseen_as_by_the_readable_model(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that are saved: what is proposed changes no output, so that nothing else would show it."""
    model, sources = make("blockwise", {"model.draft": 5, **SHAPES[shape]}), sentences()
    model.drafter.begin(model.output_weight)  # what it says is right here and there
    rules, saved = rules_for(sources, min_ratio=0.5), 0
    engine, found = Engine(model, precision="fp32", threads=2), []
    translate = engine._packed.translate

    def watched(call: library.Call, places: torch.Tensor | None) -> object:
        found.extend(translate(call, places) or ())
        return found

    monkeypatch.setattr(engine._packed, "translate", watched)
    engine.search(sources, rules, beam=1)
    for row, (output,) in enumerate(found):
        state, number = model.start(pad_sources([sources[row]])), torch.tensor(row)
        _, passes = written(model, state, rules, number, Wanted(DecodeConfig(beam=1)))
        assert output.passes == passes
        saved += len(output.ids) + (not output.cut) - passes
    assert saved > 0 or model.output_bias is not None  # of which what foresees knows nothing


@pytest.mark.parametrize("precision", ["int8", "bf16", "fp32"])
def test_drafts_change_no_token_and_no_bit_of_a_score(precision: str) -> None:
    """Against the engine's own greedy search, of the same weights, which foresee nothing."""
    model, sources = make("blockwise", {"model.draft": 3, "positions.kind": "rotary"}), sentences()
    plain = make("transformer", {"positions.kind": "rotary"})
    plain.load_state_dict({n: w for n, w in model.state_dict().items() if not n.startswith("drafter.")})
    rules = rules_for(sources)
    greedy = Engine(plain, precision=precision, threads=2).search(sources, rules, beam=1)
    for threads, batch in ((2, 3), (1, 32), (2, 1)):
        drafting = Engine(model, precision=precision, threads=threads)
        assert drafting.search(sources, rules, beam=1, batch_size=batch) == greedy
    beams = Engine(plain, precision=precision).search(sources, rules, beam=3, n_best=2)
    assert Engine(model, precision=precision).search(sources, rules, beam=3, n_best=2) == beams


def test_few_bytes_for_caches_leave_fewer_drafts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sources = make("blockwise", {"model.draft": 3}), sentences()
    engine, rules = Engine(model, precision="fp32", threads=2), rules_for(sources)
    translate, slots = engine._packed.translate, []

    def watched(call: library.Call, places: torch.Tensor | None) -> object:
        slots.append(call.slots)
        return translate(call, places)

    monkeypatch.setattr(engine._packed, "translate", watched)
    wanted = engine.search(sources, rules, beam=1)
    longest = int(rules.most.max())
    token = 2 * 16 * 4 * 2 * 4  # bytes: key and value, 4 heads of 8 padded to 16, 2 layers
    share = 3 * 2 * 2 * (longest + 3) * token  # three sentences, for two threads, in rooms that doubled
    try:
        for size in (library.SHARES * share, 1):
            library.bound(size)
            assert engine.search(sources, rules, beam=1) == wanted
    finally:
        library.bound(2**30)
    assert slots == [32, 3, 1]
