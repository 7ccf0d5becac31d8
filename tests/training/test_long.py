"""Documents end to end with each long kernel: trained, saved, loaded, translated; and what does not fit."""

from pathlib import Path

import pytest

import regard
from regard.config import Config, merge
from regard.errors import DataError, UsageError
from regard.tasks.translation import TASK
from regard.training.settle import settle

SETTINGS = {
    "model.d_model": 24,
    "model.n_heads": 3,
    "model.d_ff": 32,
    "model.encoder_layers": 2,
    "model.decoder_layers": 1,
    "attention.window": 20,
    "attention.block": 16,
    "attention.rank": 8,
    "attention.max_length": 2048,
    "data.max_length": 2048,
    "data.max_ratio": 10000.0,
    "train.max_steps": 2,
    "train.batch_tokens": 1024,
    "train.recompute": "always",
    "decode.max_ratio": 0.0,
    "decode.max_extra": 5,
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "pairs.tsv"
    text = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "lay", "by", "the", "door", "while"]
    lines = [f"{' '.join((text * 90)[start : start + 1100])}\t{text[start]}" for start in range(6)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "kind", [{"attention.kind": "local"}, {"attention.kind": "bigbird"}]
    + [{"attention.kind": "linformer", "attention.share": share} for share in ("heads", "layers", "none")],
    ids=lambda kind: "-".join(kind.values()),
)  # fmt: skip
def test_a_document_goes_in_and_a_line_comes_out(
    kind: dict[str, str], documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = regard.train(documents, out=tmp_path / "model", preset="tiny", overrides=SETTINGS | kind)
    assert result.steps == 2
    assert "memory: about" in capsys.readouterr().err
    translator = regard.load(tmp_path / "model")
    assert translator.decode.max_source == 2048
    document = documents.read_text(encoding="utf-8").partition("\t")[0]
    (found,) = translator.hypotheses([document], beam=2)
    assert found[0].tokens <= 5
    with pytest.raises(DataError, match=r"tokens, the end counted, and this model takes 2048"):
        translator.translate([f"{document} {document}"])


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    long = {"attention.kind": "linformer", "data.max_length": 8192}
    with pytest.raises(UsageError, match=r"data.max_length \(8192\) .* attention.max_length \(4096\)"):
        settle(TASK, "tiny", None, long)
    with pytest.raises(UsageError, match=r"attention.rank \(300\) must be at most .* \(200\)"):
        merge(Config(), {"attention.rank": 300, "attention.max_length": 200})
    with pytest.raises(UsageError, match=r"attention.window_blocks \(4\) must be odd"):
        merge(Config(), {"attention.window_blocks": 4})
    with pytest.raises(UsageError, match=r"attention.window \(0\) must be between 1"):
        merge(Config(), {"attention.window": 0})


def test_what_is_trained_on_can_be_translated() -> None:
    assert settle(TASK, "tiny", None, {"data.max_length": 16384}).decode.max_source == 16384
    assert settle(TASK, "tiny", None, {}).decode.max_source == Config().decode.max_source
