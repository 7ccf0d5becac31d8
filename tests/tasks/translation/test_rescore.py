"""Another model has the last word."""

from pathlib import Path

import pytest
import torch

from regard.config import Config, merge
from regard.data.inputs import pad_sources
from regard.decoding.search import Hypothesis
from regard.errors import ModelError, UsageError
from regard.models import build
from regard.models.folder import save
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.rescore import Rescoring, load_rescorer
from regard.text.tokenizer import Tokenizer

LINES = ["the small dog runs", "a man and a house", "the cats run to the river"]
SHAPE = {"model.d_model": 16, "model.n_heads": 2, "model.d_ff": 32}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind with one vocabulary, and a judge with another."""
    folder, tokenizer = tmp_path_factory.mktemp("rescore"), Tokenizer.train(LINES * 9, 0)
    other = Tokenizer.train([*LINES, "something else entirely"] * 9, 0)
    for name, kind, words in (
        ("judge", "transformer", tokenizer),
        ("ctc", "ctc", tokenizer),
        ("parallel", "parallel", tokenizer),
        ("foreign", "transformer", other),
    ):
        torch.manual_seed(3)
        config = merge(Config(), SHAPE | {"model.kind": kind, "model.vocab_size": words.vocab_size})
        save(folder / name, config=config, model=build(config), tokenizer=words, card="")
    return folder


def test_scores_are_those_of_a_forced_pass(place: Path) -> None:
    judge = load_rescorer(place / "judge", load_translator(place / "ctc"))
    model, penalty = judge.judge.model, judge.judge.decode.length_penalty
    sources = [[300, 301, 2], [302, 2]]
    found = [
        [Hypothesis([270, 271], 0.0, False), Hypothesis([272], 0.0, False)],
        [Hypothesis([273], 0.0, False)],
    ]
    scored = judge(sources, found)
    assert [len(outputs) for outputs in scored] == [2, 1]
    for source, outputs in zip(sources, scored, strict=True):
        assert outputs == sorted(outputs, key=lambda each: -each.score)
        for each in outputs:
            read, said = torch.tensor([[1, *each.ids]]), [*each.ids, 2]
            with torch.inference_mode():
                logp = model.project(model(pad_sources([source]), read))[0].log_softmax(-1)
            total = sum(float(logp[place, token]) for place, token in enumerate(said))
            assert each.score == pytest.approx(total / len(said) ** penalty, rel=1e-4)


@pytest.mark.parametrize("kind", ["ctc", "parallel"])
def test_the_likeliest_of_what_was_found_comes_out(place: Path, kind: str) -> None:
    translator = load_translator(place / kind)
    judge = load_rescorer(place / "judge", translator)
    assert isinstance(judge, Rescoring)
    plain = list(translator.stream(LINES, beam=3, n_best=3))
    beam = 3 if kind == "ctc" else 1  # several lengths are found without one
    chosen = list(translator.stream(LINES, beam=beam, rescorer=judge))
    sources = [[*translator.tokenizer.encode(line), 2] for line in LINES]
    for source, each, other in zip(sources, plain, chosen, strict=True):
        found = [Hypothesis(list(one.ids), one.score, False) for one in each.n_best]
        assert other.text in {one.text for one in each.n_best}
        assert list(other.ids) == judge([source], [found])[0][0].ids


def test_a_judge_of_another_vocabulary_is_one_line_with_the_numbers(place: Path) -> None:
    with pytest.raises(ModelError, match=r"foreign has another vocabulary \(\d+ tokens, this model \d+\)"):
        load_rescorer(place / "foreign", load_translator(place / "ctc"))
    with pytest.raises(UsageError, match="writes all at once; a rescorer reads from left to right"):
        load_rescorer(place / "parallel", load_translator(place / "ctc"))
