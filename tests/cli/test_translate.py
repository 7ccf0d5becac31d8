"""`regard translate` as a process: N lines in, N lines out, whatever the lines, the files and the pipes."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from command import POSITIONS, Run, command, complaint, environment, interruptible, letters, write_lines
from formats import docx, members, run

from regard.cli import main

OTHER_ENDS = "a\u2028b\u0085c"  # one line, though Unicode has breaks in it


def test_as_many_lines_come_out_in_order(model: Path, regard: Run):
    lines = ["a b c", "", "h", OTHER_ENDS, "   ", "d d d d", "</s> <pad> <0x41>", "日本語", "b a"]
    text = "\ufeff" + "\r\n".join(lines) + "\r\n"
    done = regard("translate", "-m", model, input=text.encode(), text=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\n")
    found = done.stdout.decode()[:-1].split("\n")
    assert len(found) == len(lines)
    assert (found[1], found[4]) == ("", "   ")
    assert (found[0], found[2], found[8]) == ("A B C", "H", "B A")


def test_a_text_on_the_command_line(model: Path, tmp_path: Path, regard: Run):
    done = regard("translate", "-m", model, "a b\nc", "d", input="never read")
    assert (done.returncode, done.stdout, done.stderr) == (0, "A B\nC\nD\n", "")
    done = regard("translate", "-m", model, "a b", "-i", write_lines(tmp_path / "in", ["c"]))
    assert "give one of them" in complaint(done)


def test_files_gzip_and_batch_size(model: Path, tmp_path: Path, regard: Run):
    src, _ = letters(70, seed=5)
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress("\n".join(src).encode(), mtime=0))  # no line end at the end
    done = regard("translate", "-m", model, "-i", source, "-o", tmp_path / "out.gz")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    zipped = gzip.decompress((tmp_path / "out.gz").read_bytes())
    with source.open("rb") as stdin:
        done = regard(
            "translate", "-m", model, "-i", "-", "--batch-size", 3, "-o", "plain", stdin=stdin, cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plain").read_bytes() == zipped
    assert zipped.count(b"\n") == len(src)


def test_json_lines(model: Path, regard: Run):
    done = regard("translate", "-m", model, "--json", "--n-best", 3, "--beam", 4, input="a b\n\nc\n")
    assert done.returncode == 0, done.stderr
    first, empty, _ = (json.loads(line) for line in done.stdout.splitlines())
    assert set(first) == {"text", "score", "truncated", "n_best"}
    assert first["text"] == "A B"
    assert first["truncated"] is False
    assert [set(each) for each in first["n_best"]] == [{"text", "score", "truncated"}] * 3
    scores = [each["score"] for each in first["n_best"]]
    assert scores == sorted(scores, reverse=True)
    assert empty["text"] == ""


def test_one_translation_has_no_n_best(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    source = write_lines(tmp_path / "in", ["a"])
    assert main.run(["translate", "-m", str(model), "-i", str(source), "--json"]) == 0
    assert set(json.loads(capfd.readouterr().out)) == {"text", "score", "truncated"}


def test_sampling_follows_its_seed(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    source = write_lines(tmp_path / "in", letters(30, seed=9)[0])

    def sample(*flags: str) -> str:
        assert main.run(["translate", "-m", str(model), "-i", str(source), "--sample", *flags]) == 0
        return capfd.readouterr().out

    hot = ("--temperature", "3")
    assert sample(*hot) == sample(*hot) == sample(*hot, "--seed", "1")
    assert sample(*hot) != sample(*hot, "--seed", "2")
    likeliest = sample("--top-k", "1")
    exact = ["--beam", "1", "--precision", "fp32"]
    assert main.run(["translate", "-m", str(model), "-i", str(source), *exact]) == 0
    assert likeliest == capfd.readouterr().out, "the likeliest alone is greedy"


def test_a_closed_pipe_is_quiet_and_endless_input_needs_no_more_memory(model: Path):
    yes = subprocess.Popen(["yes", "a b c"], stdout=subprocess.PIPE)
    translate = subprocess.Popen(
        command("translate", "-m", model, "--beam", 1),
        stdin=yes.stdout,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert yes.stdout is not None
    yes.stdout.close()
    try:
        early = _memory_after(translate, 2_000)
        late = _memory_after(translate, 10_000)
        translate.stdout.close()
        assert translate.wait(timeout=120) == 0
        assert translate.stderr.read() == b""
        translate.stderr.close()
        assert late - early < 20_000, "kB more for five times the lines"
    finally:
        for process in (translate, yes):
            process.kill()
            process.wait()


def _memory_after(process, lines: int) -> int:
    """Read so many lines; the memory in kB that the process has then."""
    assert all(line == b"A B C\n" for line in islice(process.stdout, lines))
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_with_their_code(model: Path, number: signal.Signals, code: int):
    with interruptible():
        process = subprocess.Popen(
            command("translate", "-m", model, "--batch-size", 1),
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
            env=environment(),
        )
    try:
        process.stdin.write(b"a\n")  # answered at once, while more may come
        process.stdin.flush()
        assert process.stdout.readline() == b"A\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == code
    assert said.decode().splitlines() == [f"regard: {'interrupted' if code == 130 else 'terminated'}"]


# What must be refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b"a\nb\n\xff\nd\n", ["stdin line 3", "UTF-8"]),
        (b"a\nb\nc\0\n", ["stdin line 3", "NUL"]),
        (b"a\nb\n" + b"h " * 2 * POSITIONS + b"\nd\n", ["line 3", str(POSITIONS)]),
        (b"a\nb\n" + b"x" * 1_000_000 + b"\nd\n", ["line 3", str(POSITIONS)]),
    ],
    ids=["not UTF-8", "NUL", "over-long", "1 MB"],
)
def test_what_stands_before_a_bad_line_is_not_lost(raw: bytes, named: list[str], model: Path, regard: Run):
    done = regard("translate", "-m", model, "--lines", input=raw, text=False)
    assert done.stdout == b"A\nB\n"
    message = done.stderr.decode()
    assert done.returncode == 2
    assert message.startswith("regard: error: ")
    assert message.count("\n") == 1
    assert all(word in message for word in named)


def test_a_full_disk(model: Path, regard: Run):
    with Path("/dev/full").open("w") as full:
        done = regard("translate", "-m", model, input="a\nb\n", stdout=full)
    assert "No space left" in complaint(done, 5)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--n-best", "2"], ["--n-best 2", "--json"]),
        (["--n-best", "9", "--json", "--beam", "4"], ["n_best (9)", "beam (4)"]),
        (["--precision", "int4"], ["int4", "fp32"]),
        (["--beam", "0"], ["beam (0)"]),
        (["--batch-size", "0"], ["batch_size (0)"]),
        (["--top-k", "3"], ["--top-k", "--sample"]),
        (["--sample", "--beam", "4"], ["--sample", "--beam"]),
        (["--sample", "--temperature", "0"], ["temperature (0)"]),
        (["--device", "warp"], ["warp"]),
        (["-i", "nowhere"], ["nowhere does not exist"]),
        (["-i", "."], ["directory"]),
        (["-o", "nowhere/out"], ["nowhere/out"]),
        (["-o", "."], ["cannot write"]),
        (["-i", "text", "-o", "text"], ["same file"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_flags(
    flags: list[str], named: list[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
):
    monkeypatch.chdir(tmp_path)
    text = write_lines(tmp_path / "text", ["a b"])
    given = flags if "-i" in flags else [*flags, "-i", "text"]
    assert main.run(["translate", "-m", str(model), *given]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("regard: error: ")
    assert err.count("\n") == 1
    assert all(word in err for word in named), err
    assert text.read_text() == "a b\n"


def _without_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.json").unlink()
    return "tokenizer.json"


def _truncated(folder: Path) -> str:
    weights = folder / "model.safetensors"
    os.truncate(weights, weights.stat().st_size // 2)
    return "model.safetensors"


def _flipped(folder: Path) -> str:
    weights = folder / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-5] ^= 4
    weights.write_bytes(raw)
    return "model.safetensors"


def _pickled(folder: Path) -> str:
    (folder / "model.safetensors").write_bytes(b"\x80\x04cos\nsystem\n(S'touch ran'\ntR.")
    return "pickle"


def _other_shape(folder: Path) -> str:
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"d_ff": 64', '"d_ff": 96'))
    return "config.json"


def _gone(folder: Path) -> str:
    shutil.rmtree(folder)
    return "does not exist"


BREAKS = (_without_tokenizer, _truncated, _flipped, _pickled, _other_shape, _gone)


@pytest.mark.parametrize("spoil", BREAKS, ids=lambda spoil: spoil.__name__.strip("_"))
def test_a_broken_folder(spoil, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    named = spoil(folder)
    output = write_lines(tmp_path / "out", ["dear to me"])
    source = write_lines(tmp_path / "in", ["a"])
    assert main.run(["translate", "-m", str(folder), "-i", str(source), "-o", str(output)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("regard: error: ")
    assert err.count("\n") == 1
    assert named in err
    assert output.read_text() == "dear to me\n", "the model is loaded before the output is opened"


# Texts, not only lines -----------------------------------------------------------------------------


def translated(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main.run(["translate", *map(str, arguments)]) == 0
    return capfd.readouterr().out


def test_sentences_of_a_line_are_found_unless_told(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    source = write_lines(tmp_path / "in", ["a b! C d!", "", "  h", "a\rb"])
    split = translated(capfd, "-m", model, "-i", source).split("\n")
    lines = translated(capfd, "-m", model, "-i", source, "--lines").split("\n")
    assert len(split) == len(lines) == 5
    one, two = translated(capfd, "-m", model, "a b!", "C d!").splitlines()
    assert split[0] == f"{one} {two}"
    assert (split[2], lines[2]) == ("  H", "H")


def test_a_page_keeps_its_tags(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    page = tmp_path / "page.htm"
    page.write_text("<h1>a</h1>\n<p>b <i>c</i>\nd</p>\n<script>\nif (a < b) {}\n</script>\n")
    found = translated(capfd, "-m", model, "--format", "html", "-i", page)
    assert found.startswith("<h1>A</h1>\n<p>")
    assert found.count("<i>") == found.count("</i>") == 1
    assert found.endswith("<script>\nif (a < b) {}\n</script>\n")


def test_terms_and_words(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    terms = write_lines(tmp_path / "terms.tsv", ["# ours", "", "b\tBär"])
    found = json.loads(translated(capfd, "-m", model, "--glossary", terms, "--words", "a b c"))
    assert "Bär" in found["text"]
    assert {word["text"]: word["confidence"] for word in found["words"]}["Bär"] is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--format", "html", "--lines"], "--format html looks for sentences, --lines does not"),
        (["--format", "pdf"], "--format (pdf) must be one of auto, text, txt, md"),
        (["--format", "html", "--words"], "--words tells of lines of text; a html comes back"),
        (["--glossary", "no.tsv"], "no.tsv"),
        (["--glossary", "one.tsv"], "one.tsv, line 1: give a term"),
        (["--glossary", "two.tsv"], "two.tsv, line 2: 'b' is there twice"),
    ],
)
def test_what_makes_no_sense_is_refused(
    model: Path, tmp_path: Path, flags: list[str], said: str, capfd: pytest.CaptureFixture[str], monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "one.tsv", ["b"])
    write_lines(tmp_path / "two.tsv", ["b\tc", "b\td"])
    assert main.run(["translate", "-m", str(model), *flags, "a b"]) == 2
    assert said in capfd.readouterr().err.splitlines()[-1]


def test_files_come_back_as_files(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    film = tmp_path / "film.srt"
    film.write_text("1\n00:00:01,000 --> 00:00:02,000\na b\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>c</i>\n")
    assert translated(capfd, "-m", model, "-i", film, "-o", tmp_path / "out.srt") == ""
    found = (tmp_path / "out.srt").read_text()
    assert found == film.read_text().replace("a b", "A B").replace(">c<", ">C<")
    (tmp_path / "a.docx").write_bytes(docx([run("a b "), run("c", "<w:b/>")]))
    translated(capfd, "-m", model, "-i", tmp_path / "a.docx", "-o", tmp_path / "b.docx")
    made = members((tmp_path / "b.docx").read_bytes())["word/document.xml"].decode()
    assert "A B" in made
    assert made.count("<w:b/>") == 1
    other = tmp_path / "out.vtt"  # would be no vtt
    assert main.run(["translate", "-m", str(model), "-i", str(film), "-o", str(other)]) == 2
    assert f"{other} would hold srt" in capfd.readouterr().err
    lines = translated(capfd, "-m", model, "-i", film, "--format", "text")
    assert len(lines.splitlines()) == len(film.read_text().splitlines())


@pytest.mark.parametrize("name", ["bad.docx", "none.srt", "bad.xliff"])
def test_a_file_that_is_none_is_refused(
    model: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / f"bad{Path(name).suffix}").write_bytes(b"PK nonsense")
    out = tmp_path / "out"
    assert main.run(["translate", "-m", str(model), "-i", str(tmp_path / name), "-o", str(out)]) == 2
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert name in message
    assert not out.exists()
