"""Models around a model: transformers' own penalty, and windows that equal reading anew."""

import pytest
import torch
from torch import Tensor

from regard.config import Config, merge
from regard.data.inputs import Tokens, pad_prompts
from regard.decoding.bending import Penalised, Sliding, Tallied
from regard.errors import UsageError
from regard.models.decoder import Decoder

V, CONTEXT = 13, 7
PROMPTS = [[4, 5, 6], [7], [8, 9, 10, 11, 4]]


@pytest.fixture(scope="module")
def model() -> Decoder:
    torch.manual_seed(1)
    shape = {"model.vocab_size": V, "model.d_model": 12, "model.n_heads": 3, "model.d_ff": 17}
    places = {"positions.kind": "learned", "positions.max_length": CONTEXT, "model.dropout": 0.0}
    return Decoder(merge(Config(), shape | places | {"model.decoder_layers": 2})).eval()


def walked(model: object, prompts: list[list[int]], steps: int) -> tuple[Tensor, Tensor]:
    """Greedy ids (B, steps) and logits (B, steps, V) after the prompts."""
    state = model.start(pad_prompts([prompt[:-1] for prompt in prompts]))  # type: ignore[attr-defined]
    ids = torch.tensor([prompt[-1] for prompt in prompts])
    written, logits = [], []
    with torch.no_grad():
        for _ in range(steps):
            found, state = model.step(ids, state)  # type: ignore[attr-defined]
            ids = found.argmax(-1)
            written.append(ids)
            logits.append(found)
    return torch.stack(written, 1), torch.stack(logits, 1)


def fresh(model: Decoder, ids: list[int]) -> Tensor:
    """The logits (V,) after a row that is read at once."""
    with torch.no_grad():
        return model.project(model(Tokens(torch.tensor([ids])))[0, -1]).float()


def test_a_tally_counts_what_was_written_and_not_the_prompts(model: Decoder) -> None:
    """Against the formula, with every row read anew at each step."""
    presence, frequency, bias = 0.7, 0.4, {3: 2.5, 11: -1.0}
    tallied = Tallied(model, presence, frequency, tuple(bias.items()))
    written, logits = walked(tallied, PROMPTS, 3)
    for row, prompt in enumerate(PROMPTS):
        for step in range(3):
            before = written[row, :step].tolist()
            wanted = fresh(model, [*prompt, *before])
            for number in range(V):
                times = before.count(number)
                wanted[number] += bias.get(number, 0.0) - frequency * times - presence * (times > 0)
            torch.testing.assert_close(logits[row, step], wanted, atol=1e-4, rtol=1e-4)
    assert tallied.max_length == CONTEXT


def test_the_penalty_is_that_of_transformers(model: Decoder) -> None:
    from transformers import RepetitionPenaltyLogitsProcessor

    theirs = RepetitionPenaltyLogitsProcessor(1.7)
    for prompt in PROMPTS:
        written, logits = walked(Penalised(model, V, 1.7), [prompt], 2)
        read = prompt
        for step in range(2):
            wanted = theirs(torch.tensor([read]), fresh(model, read)[None].clone())
            assert torch.allclose(logits[0, step], wanted[0], atol=1e-5)
            read = [*read, int(written[0, step])]


def test_neighbours_and_their_padding_change_nothing(model: Decoder) -> None:
    for around in (Penalised(model, V, 1.7), Sliding(model)):
        steps = 11 if isinstance(around, Sliding) else 2
        together = walked(around, PROMPTS, steps)
        for row, prompt in enumerate(PROMPTS):
            alone = walked(around, [prompt], steps)
            assert torch.allclose(together[1][row], alone[1][0], atol=1e-5)


def test_a_window_is_the_model_until_it_slides_and_then_the_last_part_read_anew(model: Decoder) -> None:
    keep, prompt = 3, [4, 5, 6]
    written, logits = walked(Sliding(model, keep), [prompt], 10)
    read = prompt
    for step in range(10):
        wanted = fresh(model, read)
        assert torch.allclose(logits[0, step], wanted, atol=1e-5), step
        read = [*read, int(written[0, step])]
        if len(read) > CONTEXT:  # all places are used up before the newest one is read
            read = read[-keep - 1 :]


def test_a_prompt_longer_than_the_positions_is_read_from_its_end(model: Decoder) -> None:
    prompt = [4, 5, 6, 7, 8, 9, 10, 11, 12, 4, 5]
    _, logits = walked(Sliding(model, 3), [prompt], 1)
    assert torch.allclose(logits[0, 0], fresh(model, prompt[-4:]), atol=1e-5)


def test_rows_can_be_chosen_and_repeated(model: Decoder) -> None:
    for around in (Penalised(model, V, 1.3), Sliding(model)):
        state = around.start(pad_prompts(PROMPTS))
        ids, rows = torch.tensor([5, 6, 7]), torch.tensor([2, 0, 2])
        with torch.no_grad():
            whole, _ = around.step(ids, state)  # type: ignore[arg-type]
            chosen, _ = around.step(ids[rows], state.select(rows))  # type: ignore[arg-type]
        assert torch.allclose(whole[rows], chosen, atol=1e-5)


def test_bad_numbers(model: Decoder) -> None:
    with pytest.raises(UsageError, match=r"repetition_penalty \(0\) must be above 0"):
        Penalised(model, V, 0)
    with pytest.raises(UsageError, match=r"keep \(7\) must be at least 1 and below the model's 7"):
        Sliding(model, 7)
