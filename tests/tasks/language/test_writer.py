"""Writing on: what is written is what the model says, row by row, whatever its neighbours; stops, bounds."""

from itertools import groupby
from typing import Any

import pytest
import torch

from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.decoding.sampling import Sampling
from regard.errors import UsageError
from regard.models.decoder import Decoder
from regard.tasks.language.writer import Wish, Writer
from regard.text.running import RunningText

TEXT = "the cat sat on the mat, the dog sat — naïve — on the cat\n" * 9
PROMPTS = ["the cat", "", "a dog — sat on the mat, a", "x"]


@pytest.fixture(scope="module")
def writer() -> Writer:
    torch.manual_seed(2)
    tokenizer = RunningText.learn([TEXT], "characters")
    shape = {
        "model.vocab_size": tokenizer.vocab_size,
        "model.d_model": 24,
        "model.n_heads": 3,
        "model.d_ff": 17,
    }
    more = {"model.decoder_layers": 2, "model.dropout": 0.0, "positions.kind": "learned", "task": "language"}
    model = Decoder(merge(Config(), shape | more | {"positions.max_length": 61, "model.kind": "decoder"}))
    with torch.no_grad():
        model.embedding.weight.mul_(4)  # so that it prefers something
    return Writer(model.eval(), tokenizer)


def naive(writer: Writer, prompt: str, tokens: int) -> tuple[list[int], list[float]]:
    """The likeliest token each time, the whole text read anew for each; what may not come left out."""
    ids = writer.tokenizer.encode(prompt) or [writer.tokenizer.begin_id]
    start, logps = len(ids), []
    for _ in range(tokens):
        with torch.no_grad():
            logits = writer.model.project(writer.model(Tokens(torch.tensor([ids])))[0, -1])
        logp = logits.log_softmax(-1)
        logp[list(writer.tokenizer.specials.never)] = float("-inf")
        ids.append(int(logp.argmax()))
        logps.append(float(logp.max()))
        if ids[-1] == writer.tokenizer.end_id:
            break
    return ids[start:], logps


def test_it_writes_what_a_plain_loop_writes_in_batches_and_alone(writer: Writer) -> None:
    together = list(writer.generate(PROMPTS, Wish(tokens=17), batch=3))
    assert [text.prompt for text in together] == PROMPTS
    for text in together:
        ids, logps = naive(writer, text.prompt, 17)
        end = writer.tokenizer.end_id
        assert text.ids == [number for number in ids if number != end]
        assert text.logp == pytest.approx(logps, abs=1e-4)
        assert text.ended == ("end" if ids[-1] == end else "length")
        assert text.text == writer.tokenizer.decode(text.ids)


def test_a_stream_is_the_text_in_pieces(writer: Writer) -> None:
    wish = Wish(tokens=23, sampling=Sampling(1.5), draws=2)
    pieces = list(writer.stream(PROMPTS, wish))
    whole = list(writer.generate(PROMPTS, wish, batch=99))
    by_row = sorted(pieces, key=lambda piece: piece.row)
    for row, mine in groupby(by_row, key=lambda piece: piece.row):
        parts = list(mine)
        assert "".join(part.text for part in parts) == whole[row].text
        assert [part.whole is None for part in parts] == [True] * (len(parts) - 1) + [False]


def test_draws_depend_on_seed_and_prompt_alone(writer: Writer) -> None:
    wish = Wish(tokens=11, sampling=Sampling(2.0, seed=5), draws=3)
    together = [text.text for text in writer.generate(PROMPTS, wish)]
    alone = [text.text for prompt in PROMPTS for text in writer.generate([prompt], wish)]
    assert together == alone
    assert len(set(together[:3])) > 1
    other = Wish(tokens=11, sampling=Sampling(2.0, seed=6), draws=3)
    assert [text.text for text in writer.generate(PROMPTS, other)] != together


def test_a_text_ends_before_a_stop_string_and_never_shows_its_beginning(writer: Writer) -> None:
    wish = Wish(tokens=40, sampling=Sampling(1.5))
    free = next(writer.generate(["the"], wish)).text
    assert len(free) > 12
    stop = free[7:10]
    found = next(writer.generate(["the"], Wish(tokens=40, sampling=Sampling(1.5), stop=("zzzz", stop))))
    assert found.ended == "stop"
    assert found.text == free[: free.index(stop)]
    shown = ""
    for piece in writer.stream(["the"], Wish(tokens=40, sampling=Sampling(1.5), stop=(stop,))):
        shown += piece.text
        assert free.startswith(shown)
        assert len(shown) <= free.index(stop)


def test_past_its_positions_it_slides_or_refuses(writer: Writer) -> None:
    assert len(next(writer.generate(["the cat"], Wish(tokens=150, sampling=Sampling(1.0)))).ids) > 0
    with pytest.raises(UsageError, match=r"a prompt of 7 tokens and 150 more do not fit into the model's 61"):
        next(writer.generate(["the cat"], Wish(tokens=150, slide=False)))
    fits = next(writer.generate(["the cat"], Wish(tokens=55, slide=False)))
    assert fits.text == next(writer.generate(["the cat"], Wish(tokens=55))).text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tokens": 0}, r"tokens \(0\) must be between 1"),
        ({"draws": 2}, "2 texts would all be the same"),
        ({"stop": ("",)}, "a stop string must hold something"),
    ],
)
def test_bad_wishes(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Wish(**wrong)
