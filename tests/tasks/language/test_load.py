"""A language model with the engine: the text of the readable decoder, and a word where it is not taken."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.config import Config, merge
from regard.decoding.sampling import Sampling
from regard.engine import path
from regard.engine.decoder import PackedDecoder
from regard.errors import UsageError
from regard.interop import known
from regard.models import build, folder
from regard.tasks.language.load import equip
from regard.tasks.language.writer import Wish, Writer
from regard.tasks.task import load
from tests.tasks.language.test_writer import PROMPTS
from tests.tasks.language.test_writer import writer as writer  # a fixture

native = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")
WISHES = {
    "likeliest": Wish(tokens=40),
    "drawn": Wish(tokens=23, sampling=Sampling(1.5, top_k=9), draws=3),
    "penalised": Wish(tokens=19, penalty=1.7),
    "past its positions": Wish(tokens=150, sampling=Sampling(1.0, top_p=0.9)),
    "stopped": Wish(tokens=40, sampling=Sampling(1.5), stop=("a", "t ")),
}


@native
@pytest.mark.parametrize("name", WISHES)
def test_in_fp32_the_engine_writes_what_the_readable_decoder_writes(writer: Writer, name: str) -> None:
    fast = Writer(writer.model, writer.tokenizer)
    equip(fast, precision="fp32", engine="native")
    wanted = list(writer.generate(PROMPTS, WISHES[name], batch=3))
    found = list(fast.generate(PROMPTS, WISHES[name], batch=3))
    assert [(each.ids, each.ended) for each in found] == [(each.ids, each.ended) for each in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.logp == pytest.approx(theirs.logp, abs=1e-3)


@native
def test_it_tells_the_stories_of_real_weights_word_for_word(real: Callable[[str], Path]) -> None:
    loaded = known.read(real("stories15M") / "stories15M.bin")
    readable, fast = (Writer(loaded.model.eval(), loaded.tokenizer) for _ in range(2))
    equip(fast, precision="fp32", engine="native")
    prompts = ["Once upon a time", "Tom and his dog went to the park. They"]
    wanted = list(readable.generate(prompts, Wish(tokens=100), batch=2))
    found = list(fast.generate(prompts, Wish(tokens=100), batch=2))
    assert [each.ids for each in found] == [each.ids for each in wanted]
    assert wanted[0].text.startswith(", there was a little girl named Lily")
    assert len(wanted[0].ids) == 100


@native
def test_what_only_the_readable_decoder_can_do_goes_there(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = Writer(writer.model, writer.tokenizer)
    equip(fast)
    asked: list[int] = []
    monkeypatch.setattr(fast.engine, "start", lambda *_: asked.append(1))
    with record() as tape:
        list(fast.generate(["the"], Wish(tokens=2)))
    assert tape.names()
    with heads_off({"decoder.0.self": {0}}):
        list(fast.generate(["the"], Wish(tokens=2)))
    assert asked == []


@native
def test_a_folder_is_loaded_with_the_engine_where_it_knows_the_model(writer: Writer, tmp_path: Path) -> None:
    shape = {"model.vocab_size": writer.tokenizer.vocab_size, "model.d_model": 24, "model.n_heads": 3}
    config = merge(Config(), shape | {"task": "language", "model.kind": "decoder", "model.decoder_layers": 1})
    for kind in ("rotary", "alibi"):
        own = merge(config, {"positions.kind": kind, "model.bigrams": 31})
        model = build(own)
        folder.save(tmp_path / kind, config=own, model=model, card="", tokenizer=writer.tokenizer)
    rotary, alibi = load(tmp_path / "rotary", precision="int8"), load(tmp_path / "alibi")
    assert isinstance(rotary.engine, PackedDecoder)
    assert rotary.note is None
    assert rotary.engine.precision == "int8"
    assert load(tmp_path / "rotary").engine.precision == "fp32"
    assert alibi.engine is None
    assert "the readable decoder writes, in fp32: no native engine, it does not know Alibi" in alibi.note
    readable = load(tmp_path / "rotary", engine="readable")
    assert (readable.engine, readable.note) == (None, None)
    for wish in ({"engine": "native"}, {"precision": "int8"}):
        with pytest.raises(UsageError, match="needs the native engine, which cannot be used"):
            load(tmp_path / "alibi", **wish)


def test_unknown_wishes_are_refused(writer: Writer) -> None:
    with pytest.raises(UsageError, match=r"precision \(int4\) must be one of auto, int8, bf16, fp32"):
        equip(writer, precision="int4")
    with pytest.raises(UsageError, match=r"engine \(warp\) must be one of auto, native, readable"):
        equip(writer, engine="warp")
