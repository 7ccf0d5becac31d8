"""Classifiers and taggers: they learn, go on bit for bit, begin with an encoder, refuse bad files."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.cli.main import run as command
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.kinds import TASKS
from regard.models.folder import load_folder
from regard.models.labeller import Labeller
from regard.tasks.labels.examples import Labelled, read_tagged
from regard.tasks.labels.lesson import LabelBatch, Labels, as_markdown, cut_words
from regard.text.wordpiece import Marks, WordPieces
from regard.training.objective import Loss
from regard.training.settle import settle

TEXTS = [("the cat sat", "cat"), ("a dog", "dog"), ("the dog sat on a mat", "dog"), ("cats", "cat")] * 12
WORDS = {"the": "DET", "a": "DET", "cat": "NOUN", "dog": "NOUN", "mat": "NOUN", "sat": "VERB", "on": "ADP"}
SMALL = [
    *("--set", "train.max_steps=14", "--set", "train.save_every=0", "--set", "train.valid_every=5"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1", "--set", "train.batch_tokens=90"),
]
SHAPE = ["--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.encoder_layers=1"]


def write_tsv(path: Path, rows: list[tuple[str, str]] = TEXTS) -> Path:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


def write_conllu(path: Path, sentences: list[str]) -> Path:
    blocks = []
    for sentence in sentences:
        rows = [
            f"{i}\t{word}\t_\t{WORDS[word]}\t_\t_\t0\t_\t_\t_" for i, word in enumerate(sentence.split(), 1)
        ]
        blocks.append("# text = x\n" + "\n".join(rows) + "\n")
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("labelled")
    sentences = ["the cat sat", "a dog sat on the mat", "the mat", "a cat", "the dog sat on a cat"] * 9
    return {
        "classify": write_tsv(folder / "train.tsv"),
        "tag": write_conllu(folder / "train.conllu", sentences),
    }


def train(task: str, file: Path, out: Path, *more: object) -> int:
    given = map(str, (file, "--valid", file, "-o", out, *SMALL, *more))
    return command(["train", "--task", task, *given])


@pytest.fixture(scope="module", params=["classify", "tag"])
def trained(
    request: pytest.FixtureRequest,
    files: dict[str, Path],
    sentence_encoder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """One of each, on top of a sentence encoder."""
    out = tmp_path_factory.mktemp("models") / request.param
    faster = ["--set", "train.lr=1e-2", "--set", "labels.pace=1", "--set", "train.max_steps=40"]
    assert train(request.param, files[request.param], out, "--from", sentence_encoder, *faster) == 0
    return request.param, out


def test_it_learns_and_is_used(
    trained: tuple[str, Path], files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task, folder = trained
    assert command(["evaluate", "-m", str(folder), str(files[task]), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["accuracy"] > 0.9
    assert found["macro_f1"] > 0.9
    (tmp_path / "in.txt").write_text("the cat sat\n\na dog\n", encoding="utf-8")
    assert command([task, "-m", str(folder), "-i", str(tmp_path / "in.txt")]) == 0
    lines = capfd.readouterr().out.split("\n")
    assert len(lines) == 4  # three and the last line end
    tagged = ("the/DET cat/NOUN sat/VERB", "a/DET dog/NOUN")
    assert (lines[0], lines[2]) == (("cat", "dog") if task == "classify" else tagged)
    assert command([task, "-m", str(folder), "a dog", "--json"]) == 0
    tree = json.loads(capfd.readouterr().out)
    assert tree["label"] == "dog" if task == "classify" else tree["tags"] == ["DET", "NOUN"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Which was taken for which" in card
    assert "accuracy" in card
    assert (
        command(["embed", "-m", str(folder), "-i", str(tmp_path / "in.txt"), "-o", str(tmp_path / "v.npy")])
        == 0
    )
    assert np.load(tmp_path / "v.npy").shape == (3, 22)


def test_labels_do_not_depend_on_neighbours(trained: tuple[str, Path]) -> None:
    task, folder = trained
    labels = regard.load(folder)
    texts = ["the cat sat", "a dog", "mat " * 9, "on"]
    if task == "classify":
        alone = [next(labels.classify([text])).chances for text in texts]
        among = [label.chances for label in labels.classify(texts)]
        assert np.allclose(alone, among, atol=1e-5)
        return
    sentences = [text.split() for text in [*texts, "cat " * 40]]  # the last is longer than the positions
    alone_tags = [next(labels.tag([words])) for words in sentences]
    for one, other, words in zip(alone_tags, labels.tag(sentences), sentences, strict=True):
        assert len(one) == len(other) == len(words)
        assert np.allclose([each.chances for each in one], [each.chances for each in other], atol=1e-5)


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_killed_it_goes_on_bit_for_bit(
    task: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(task, files[task], tmp_path / "whole", *SHAPE) == 0
    calls, original = iter(range(99)), Labels.losses

    def killed(self: Labels, model: Any, batch: Any) -> Iterator[Loss]:
        if next(calls) == 9:
            raise KeyboardInterrupt
        return original(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Labels, "losses", killed)
        assert train(task, files[task], tmp_path / "killed", *SHAPE) == 130
    assert train(task, files[task], tmp_path / "killed", *SHAPE) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("base", ["embed", "masked", "tag"])
def test_it_begins_with_the_encoder_of_another_task(
    base: str, files: dict[str, Path], tmp_path: Path, an_encoder: Callable[..., Path]
) -> None:
    more = {"labels.count": 3} if base == "tag" else {}
    more |= {"model.output_transform": True, "model.output_bias": True} if base == "masked" else {}
    folder, out = an_encoder(tmp_path / "base", base, more), tmp_path / "model"
    still = ["--set", "train.lr=0.0", "--set", "train.weight_decay=0.0"]
    assert train("classify", files["classify"], out, "--from", folder, *still) == 0
    theirs, ours = load_folder(folder), load_folder(out)
    held = {name.removeprefix("body."): t for name, t in theirs.model.state_dict().items()}
    for name, tensor in ours.model.body.state_dict().items():
        assert torch.equal(tensor, held[name])
    assert ours.tokenizer.to_json() == theirs.tokenizer.to_json()


def test_a_base_without_an_encoder_is_refused(
    model: Path, files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train("classify", files["classify"], tmp_path / "out", "--from", model) == 2
    assert "is of task=translation, not of classify" in capfd.readouterr().err


def test_what_was_trained_before_moves_more_slowly(sentence_encoder: Path) -> None:
    body = load_folder(sentence_encoder).model
    whole = torch.nn.Module()
    whole.body, whole.output = body, torch.nn.Linear(22, 3)
    group = Labels(0.1, pace=0.5, decay=0.1).groups(whole)["all"]
    shares = {name: share for (name, _), share in zip(whole.named_parameters(), group.shares, strict=True)}
    assert shares["output.weight"] == 1.0
    assert shares["body.encoder.1.attention.query.weight"] == 0.5
    assert np.isclose(shares["body.encoder.0.attention.query.weight"], 0.05)
    assert np.isclose(shares["body.embedding.weight"], 0.005)


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc", *(f"##{letter}" for letter in "abc")]


@settings(max_examples=40)
@given(st.lists(st.text("abcx\u200b", min_size=1, max_size=9), min_size=1, max_size=12), st.integers(5, 19))
def test_every_word_has_its_place_in_some_row(words: list[str], room: int) -> None:
    tokenizer = WordPieces(PIECES, Marks(0, 1, 2, 3, 4))
    rows = list(cut_words(tokenizer, words, room))
    assert sum(len(spots) for _, spots in rows) == len(words)
    left = iter(words)
    for ids, spots in rows:
        assert len(ids) <= room
        assert (ids[0], ids[-1]) == (2, 3)
        for first, last in spots:
            wanted = (tokenizer.encode(next(left)) or [1])[: room - 2]
            assert ids[first : last + 1] == wanted


def test_labels_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    one = write_tsv(tmp_path / "a.tsv", TEXTS)
    other = write_tsv(tmp_path / "b.tsv", TEXTS[::-1])
    assert list(Labelled((one,)).labels()) == list(Labelled((other,)).labels()) == ["cat", "dog"]


def test_words_of_several_and_empty_ones_have_no_tag(tmp_path: Path) -> None:
    rows = ["1-2\tdon't", "1\tdo", "2\tn't", "2.1\tgone", "3\tgo"]
    filled = [f"{row}\t_\t{'X' if '-' not in row else '_'}\t_\t_\t_\t_\t_\t_\n" for row in rows]
    (tmp_path / "a.conllu").write_text("".join(filled))
    (example,) = read_tagged(tmp_path / "a.conllu", "upos")
    assert example.words == ("do", "n't", "go")


GOOD = "the cat\tcat\na cat\tcat\na dog\tdog\nthe dog\tdog\n"
TAGGED = "1\tcat\t_\tNOUN\t_\t_\t_\t_\t_\t_\n"
BAD = {
    "one column": ("classify", "the cat\n", "line 1: 1 column where there are 2"),
    "three columns": ("classify", GOOD + "a\tb\tc\n", "line 5: 3 columns where there are 2"),
    "no label": ("classify", GOOD + "a\t \n", "line 5: the label is missing"),
    "no text": ("classify", GOOD + " \tdog\n", "line 5: the text is missing"),
    "a label met once": ("classify", GOOD + "a mat\tmat\n", "the label mat is met once"),
    "one label": ("classify", "a\tb\nc\tb\n", "every label is b; there must be two"),
    "nothing": ("classify", "\n\n", "there is nothing to learn from"),
    "unequal columns": ("tag", TAGGED + "2\tsat\tVERB\n", "line 2: 3 columns where CoNLL-U has 10"),
    "no tag": ("tag", "1\tcat\t_\t_\t_\t_\t_\t_\t_\t_\n", "line 1: a word or its upos is missing"),
    "one tag": ("tag", TAGGED * 2, "every label is NOUN"),
    "not UTF-8": ("classify", "caf\udce9\ta\n", "is not UTF-8"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_files_are_one_line(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    task, content, said = BAD[name]
    path = tmp_path / f"bad{'.tsv' if task == 'classify' else '.conllu'}"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    assert command(["train", "--task", task, str(path), "-o", str(tmp_path / "out")]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_label_of_validation_that_training_never_met(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write_tsv(tmp_path / "a.tsv")
    other = write_tsv(tmp_path / "b.tsv", [*TEXTS, ("a mat", "mat")])
    arguments = ["train", "--task", "classify", str(file), "--valid", str(other), "-o", str(tmp_path / "out")]
    assert command(arguments) == 2
    assert "the label mat is never met in training" in capfd.readouterr().err


def test_check_tells_all_faults(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(GOOD + "broken\n" + "the cat\tcat\n" + "a mat\tmat\n", encoding="utf-8")
    assert command(["check", "--task", "classify", str(path)]) == 2
    said = capfd.readouterr().out
    assert "columns: 1 (training stops)" in said
    assert "rare labels: 1 (training stops) - met once: mat" in said
    assert "repeated: 1 (kept)" in said
    assert command(["check", "--task", "classify", str(write_tsv(tmp_path / "b.tsv"))]) == 0


def test_tags_of_two_columns_or_of_another_one(
    tmp_path: Path, sentence_encoder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A word, a tab and its tag a line are the same sentences as CoNLL-U; xpos is another column of it."""
    rows = [("the", "D"), ("#", "S"), ("cat", "N"), ("", ""), ("#one", "N"), ("sat", "V"), ("", "")]
    plain = tmp_path / "plain.tsv"
    plain.write_text("# said\n" + "".join(f"{a}\t{b}\n" if a else "\n" for a, b in rows), encoding="utf-8")
    conllu = tmp_path / "same.conllu"
    lines = (f"{n}\t{a}\t_\t_\t{b}\t_\t0\troot\t_\t_\n" if a else "\n" for n, (a, b) in enumerate(rows, 1))
    conllu.write_text("".join(lines), encoding="utf-8")
    found = [
        [each[:2] for each in read_tagged(plain, "upos")],
        [each[:2] for each in read_tagged(conllu, "xpos")],
    ]
    assert found[0] == found[1] == [(("the", "#", "cat"), ("D", "S", "N")), (("#one", "sat"), ("N", "V"))]
    assert command(["check", "--task", "tag", str(plain)]) == 0
    capfd.readouterr()
    arguments = [
        "train",
        "--task",
        "tag",
        str(conllu),
        "-o",
        str(tmp_path / "m"),
        "--from",
        str(sentence_encoder),
    ]
    assert command([*arguments, *SMALL]) == 2
    assert "same.conllu line 1: a word or its upos is missing" in capfd.readouterr().err
    assert not (tmp_path / "m").exists(), "nothing is made of files that are refused"
    assert command([*arguments, *SMALL, "--set", "labels.column=xpos"]) == 0
    assert command(["evaluate", "-m", str(tmp_path / "m"), str(conllu), "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["labels"] == 5
    plain.write_text("the\tD\ncat\n", encoding="utf-8")
    assert command(["train", "--task", "tag", str(plain), "-o", str(tmp_path / "n")]) == 2
    assert (
        "plain.tsv line 2: 1 column where the words before have 2 (word, tab, tag)" in capfd.readouterr().err
    )


def test_tokens_are_hidden_only_while_it_learns() -> None:
    class Seen(torch.nn.Module):
        def opinions(self, inputs: Tokens, spots: Any) -> list[torch.Tensor]:
            self.ids = inputs.ids
            return [torch.zeros(len(inputs.ids), 2)]

    model = Seen()
    batch = LabelBatch(Tokens(torch.full((50, 20), 7)), None, torch.zeros(50, dtype=torch.int64))
    for hide, training, low, high in ((0.0, True, 0, 0), (0.3, True, 0.25, 0.35), (0.3, False, 0, 0)):
        torch.manual_seed(1)
        list(Labels(0.0, hide=hide, mask_id=3).losses(model.train(training), batch))
        assert low <= float((model.ids == 3).float().mean()) <= high
    assert bool((batch.inputs.ids == 7).all()), "the batch is as it was"


def test_a_table_is_shown_while_it_can_be_read() -> None:
    assert "| a\\|b | 3 | 1 |" in as_markdown(np.array([[3, 1], [0, 2]]), ["a|b", "c"])
    assert as_markdown(np.zeros((31, 31), np.int64), [str(i) for i in range(31)]) == ""


def test_flags_of_other_tasks_are_refused(files: dict[str, Path]) -> None:
    with pytest.raises(regard.RegardError, match="takes no --parses"):
        TASKS["classify"].read([files["classify"]], parses=Path("x.conllu"))


def test_runs_of_tokens_speak_too(files: dict[str, Path], tmp_path: Path) -> None:
    """A classifier from nothing has both halves; the engine answers as the model does."""
    assert train("classify", files["classify"], tmp_path / "m", *SHAPE, "--set", "labels.grams=101") == 0
    held: Any = load_folder(tmp_path / "m").model.eval()
    assert held.grams.weight.abs().max() > 0, "it has learned"
    texts = ["the cat sat", "a dog", "mat " * 9, ""]
    for engine in ("auto", "readable"):
        labels = regard.load(tmp_path / "m", engine=engine, precision="fp32")
        for text, label in zip(texts, labels.classify(texts), strict=True):
            ids = torch.tensor([labels.row(text)])
            with torch.no_grad():
                wanted = held(Tokens(ids)).softmax(-1)[0]
            assert np.allclose(label.chances, wanted, atol=1e-4)


def test_each_half_learns_by_a_loss_of_its_own() -> None:
    """What one of them says moves nothing of the other."""
    config = merge(Config(), {"task": "classify", "model.kind": "encoder", "model.vocab_size": 31})
    config = merge(config, {"model.d_model": 16, "model.encoder_layers": 1, "model.dropout": 0.0})
    torch.manual_seed(4)
    model = Labeller(config, 2, "mean", grams=53)
    batch = LabelBatch(Tokens(torch.randint(4, 31, (5, 7))), None, torch.tensor([0, 1, 0, 1, 1]))
    grads = []
    for silent in (False, True):
        torch.nn.init.normal_(model.grams.weight, std=0.0 if silent else 3.0)
        model.zero_grad()
        next(iter(Labels(0.1).losses(model, batch))).total.backward()
        grads.append(model.output.weight.grad.clone())
    assert torch.equal(*grads)


@pytest.mark.parametrize(("asked", "wanted"), [({}, 80_000 // len(TEXTS)), ({"train.max_steps": 5}, 0)])
def test_few_texts_are_not_read_for_ever(asked: dict[str, Any], wanted: int, files: dict[str, Path]) -> None:
    task = TASKS["classify"]
    assert settle(task, None, None, asked, examples=task.read([files["classify"]])).train.max_epochs == wanted


def test_words_have_no_runs(
    files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert train("tag", files["tag"], tmp_path / "m", "--set", "labels.grams=7") == 2
    assert "labels.grams is for labels of texts" in capfd.readouterr().err
