"""One stack under two masks: it sees what it may, learns both ways, and three verbs take its folder."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.cli.main import run as command
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.kinds import TASKS
from regard.models import build
from regard.models.folder import load_folder
from regard.tasks.both.lesson import BothFeed
from regard.tasks.labels.lesson import Labels
from regard.tasks.masked.lesson import HiddenBatch, Rows
from regard.text.running import RunningText

SHAPE = {
    "task": "both",
    "model.kind": "decoder",
    "model.d_model": 28,
    "model.n_heads": 2,
    "model.d_ff": 34,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "model.vocab_size": 31,
    "model.bigrams": 17,
    "positions.kind": "rotary",
}
SMALL = [
    *("--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.decoder_layers=1"),
    *("--set", "model.d_ff=32", "--set", "data.context=24", "--set", "train.batch_tokens=120"),
    *("--set", "train.max_steps=12", "--set", "train.valid_every=6", "--set", "train.save_every=0"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1", "--set", "text.vocab_size=300"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "story.txt"
    path.write_text("the cat sat on a mat, and the dog saw the cat.\n" * 60, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("both") / "model"
    assert command(["train", "--task", "both", str(text), "-o", str(out), *SMALL]) == 0
    return out


def test_what_is_seen() -> None:
    """The last place sees the whole row either way; what is later is seen only by reading it as a whole."""
    torch.manual_seed(1)
    model = build(merge(Config(), SHAPE)).eval()
    ids = torch.randint(4, 31, (2, 7))
    other = ids.clone()
    other[:, 5] = (other[:, 5] - 3) % 27 + 4
    with torch.no_grad():
        causal, whole = model(Tokens(ids)), model.encode(Tokens(ids))
        changed, turned = model(Tokens(other)), model.encode(Tokens(other))
    torch.testing.assert_close(causal[:, -1], whole[:, -1])
    torch.testing.assert_close(causal[:, :5], changed[:, :5])
    assert (whole[:, :5] - turned[:, :5]).abs().amax((0, 2)).min() > 1e-4


def test_padding_changes_nothing_that_is_read_as_a_whole() -> None:
    torch.manual_seed(2)
    model = build(merge(Config(), SHAPE | {"model.decoder_layers": 3})).eval()
    ids = torch.randint(4, 31, (1, 5))
    padded = torch.cat([ids, torch.zeros(1, 3, dtype=torch.int64)], 1)
    with torch.no_grad():
        alone, beside = model.encode(Tokens(ids)), model.encode(Tokens(padded, padded > 0))
    torch.testing.assert_close(alone, beside[:, :5])


@pytest.mark.parametrize(("masked", "wanted"), [(0.0, 0), (0.5, 8), (0.25, 4), (1.0, 16)])
def test_batches_are_shared_evenly(masked: float, wanted: int) -> None:
    tokenizer = RunningText.learn(["a cat sat"], "bytes")
    rows = Rows(np.arange(4, 4 + 200) % 256 + 4, tokenizer, 0.3, 1)
    train = merge(Config(), {"train.batch_tokens": 10}).train
    feed = BothFeed(rows, 12, train, masked)
    kinds = [isinstance(feed.batch(epoch, i), HiddenBatch) for epoch in (0, 1) for i in range(8)]
    assert sum(kinds) == wanted


def test_one_folder_writes_on_fills_and_gives_vectors(
    folder: Path, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command(["generate", "-m", str(folder), "the cat", "--tokens", "5"]) == 0
    assert capfd.readouterr().out.startswith("the cat")
    assert command(["fill", "-m", str(folder), "the [MASK] sat", "--top", "3"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 4
    (tmp_path / "lines").write_text("the cat\n\nthe dog sat on a mat\n", encoding="utf-8")
    out = tmp_path / "vectors.npy"
    assert command(["embed", "-m", str(folder), "-i", str(tmp_path / "lines"), "-o", str(out)]) == 0
    assert np.load(out).shape == (3, 16)
    capfd.readouterr()
    assert command(["evaluate", "-m", str(folder), str(text), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert {"loss", "bits_per_byte", "perplexity", "gap_perplexity", "gap_accuracy"} <= found.keys()
    assert command(["show", str(folder)]) == 0
    assert "50% of the batches had gaps" in capfd.readouterr().out
    assert command(["look", "-m", str(folder), "the cat", "-o", str(tmp_path / "look.json")]) == 0


def test_gaps_are_foretold_one_place_before(folder: Path) -> None:
    """What fills a gap is what the place before it foretells, with the gap and all that follows in sight."""
    filler = TASKS["masked"].load(folder)
    (found,) = filler.fill(["the [MASK] sat"], top=1)
    row = filler.reader.framed(filler.ids("the [MASK] sat"))
    with torch.no_grad():
        logits = filler.model.project(filler.model.encode(Tokens(torch.tensor([row]))))[0]
    before = row.index(filler.tokenizer.mask_id) - 1
    logits[:, list(filler.tokenizer.specials.never)] = float("-inf")
    word = filler.tokenizer.spell([int(logits[before].argmax())]).decode("utf-8", "replace")
    assert found.gaps[0][0].text == (word.strip() or word)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("attention.kind=local", "task=both needs attention.kind=full, not local"),
        ("positions.kind=relative", "task=both takes no positions.kind=relative"),
        ("both.masked=2", "both.masked (2)"),
    ],
)
def test_what_cannot_look_both_ways(
    setting: str, said: str, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "--task", "both", str(text), "-o", str(tmp_path / "m"), *SMALL, "--set", setting]
    assert command(arguments) == 2
    assert said in capfd.readouterr().err


def test_other_verbs_say_what_it_is(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command(["classify", "-m", str(folder), "a"]) == 2
    assert "holds a model that writes on and fills gaps; use regard generate" in capfd.readouterr().err


def test_three_masks_are_compared() -> None:
    family = TASKS["both"].family()
    assert {name: one["both.masked"] for name, one in family.variants.items()} == {
        "causal": 0.0,
        "full": 1.0,
        "both": 0.5,
    }


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_labels_begin_with_it(
    task: str, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its stack reads both ways for labels too: all of it is taken over; embed, look and --from take that."""
    file, out = tmp_path / "train.tsv", tmp_path / "labels"
    texts = ["the cat sat\tA\n", "a dog\tB\n", "on a mat\tA\n", "the dog\tB\n"] * 6
    words = ["the\tD\ncat\tN\n\n", "a\tD\nmat\tN\n\n"] * 6
    file.write_text("".join(texts if task == "classify" else words), encoding="utf-8")
    still = ["--set", "train.max_steps=2", "--set", "train.lr=0.0", "--set", "train.weight_decay=0.0"]
    arguments = ["train", "--task", task, str(file), *still, "--set", "train.precision=fp32"]
    assert command([*arguments, "--from", str(folder), "-o", str(out)]) == 0
    theirs, ours = load_folder(folder), load_folder(out)
    held = theirs.model.state_dict()
    for name, tensor in ours.model.body.state_dict().items():
        assert torch.equal(tensor, held[name])
    capfd.readouterr()
    assert command([task, "-m", str(out), "the cat sat", "--engine", "readable"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    lines = tmp_path / "lines"
    lines.write_text("the cat\na dog\n", encoding="utf-8")
    for name, model in (("one", folder), ("two", out)):
        assert (
            command(["embed", "-m", str(model), "-i", str(lines), "-o", str(tmp_path / f"{name}.npy")]) == 0
        )
    assert np.allclose(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"), atol=1e-5)
    assert command(["look", "-m", str(out), "the cat", "-o", str(tmp_path / "look.json")]) == 0
    seen = json.loads((tmp_path / "look.json").read_text(encoding="utf-8"))
    assert {each["queries"] for each in seen["maps"]} == set(seen["sides"])
    assert command([*arguments, "--from", str(out), "-o", str(tmp_path / "again")]) == 0


def test_words_of_running_text_have_their_spaces(folder: Path) -> None:
    """A sentence's words are cut as the sentence is, so that labels are learned of what the model knows."""
    tokenizer = load_folder(folder).tokenizer
    words = ["the", "cat", "sat", ",", "naïve"]
    ids = [number for each in tokenizer.encode_words(words) for number in each]
    assert tokenizer.decode(ids) == "the cat sat , naïve"
    assert ids[: len(tokenizer.encode("the cat sat"))] == tokenizer.encode("the cat sat")


def test_the_last_layer_moves_most(folder: Path) -> None:
    whole = torch.nn.Module()
    whole.body, whole.output = (
        build(merge(Config(), SHAPE | {"model.decoder_layers": 2})),
        torch.nn.Linear(28, 3),
    )
    group = Labels(0.1, pace=0.5, decay=0.1).groups(whole)["all"]
    shares = {name: share for (name, _), share in zip(whole.named_parameters(), group.shares, strict=True)}
    assert shares["output.weight"] == 1.0
    assert {share for name, share in shares.items() if name.startswith("body.decoder.1.")} == {0.5}
    assert {share for name, share in shares.items() if name.startswith("body.decoder.0.")} == {0.05}
    assert shares["body.decoder_norm.weight"] == 0.5


def test_a_decoder_that_never_looked_ahead_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a\tA\nb\tB\n" * 3, encoding="utf-8")
    arguments = ["train", "--task", "classify", str(file), "-o", str(tmp_path / "m")]
    assert command([*arguments, "--set", "model.kind=decoder"]) == 2
    assert "begin with a folder of task=both (--from)" in capfd.readouterr().err
