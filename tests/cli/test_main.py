"""The command itself: help, versions, and what each way of failing ends with."""

import errno
import os
import subprocess
import sys

import pytest
import typer.main
from command import ROOT, Run, complaint, environment

from regard import __version__, errors
from regard.cli import main, show

VERBS = ("demo", "train", "translate", "evaluate", "check", "show")


def test_help_names_every_verb_on_stdout(regard: Run):
    done = regard("--help")
    assert done.returncode == 0
    assert all(f"\n  {verb} " in done.stdout for verb in VERBS)
    assert done.stderr == ""
    assert "..." not in done.stdout.partition("Commands:")[2], "a verb's line was cut"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from regard.cli.main import run\n"
        "assert run(['--help']) == 0 and run(['train', '--help']) == 0\n"
        "heavy = {'torch', 'numpy', 'rich', 'tokenizers', 'babel', 'sacrebleu'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_only_the_verb_that_is_asked_for_is_loaded():
    script = (
        "import sys\nfrom regard.cli.main import VERBS, run\nrun(['show', '--help'])\n"
        "print(*[verb for verb in VERBS if f'regard.cli.{verb}' in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr.split() == ["show"]


def test_the_table_says_what_each_verb_says():
    commands = typer.main.get_command(main.app()).commands  # type: ignore[attr-defined]
    said = {verb: command.get_short_help_str(100) for verb, command in commands.items()}
    assert said.pop("help")
    assert said == main.VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capfd: pytest.CaptureFixture[str]):
    assert main.run([verb, "--help"]) == 0
    assert f"Usage: regard {verb}" in capfd.readouterr().out


def test_version(capfd: pytest.CaptureFixture[str]):
    assert main.run(["--version"]) == 0
    assert capfd.readouterr().out == f"regard {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fly"], "fly"),
        (["translate"], "--model"),
        (["translate", "-m", "x", "--beam", "many"], "--beam"),
        (["show", "x", "--wings"], "--wings"),
        (["train", "a", "b"], "--output"),
        (["train", "-o", "x"], "SRC TGT"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_one_line(arguments, named, capfd: pytest.CaptureFixture[str]):
    code = main.run(arguments)
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("regard: error: ")
    assert err.count("\n") == 1
    assert named in err


def test_no_verb_gives_help(capfd: pytest.CaptureFixture[str]):
    assert main.run(["--help"]) == 0
    wanted = capfd.readouterr()
    assert main.run([]) == 0
    assert capfd.readouterr() == wanted
    assert main.run(["help"]) == 0
    assert capfd.readouterr() == wanted


def test_help_tells_of_a_verb(capfd: pytest.CaptureFixture[str]):
    assert main.run(["help", "translate"]) == 0
    assert "Usage: regard translate" in capfd.readouterr().out
    assert main.run(["help", "fly"]) == 2
    assert "No such command 'fly'" in capfd.readouterr().err


def test_a_shell_completes_verbs_and_flags(regard: Run):
    asked = {"_REGARD_COMPLETE": "complete_bash", "COMP_WORDS": "regard tra", "COMP_CWORD": "1"}
    done = regard(env=environment() | asked)
    assert (done.returncode, done.stdout.split()) == (0, ["train", "translate", "transcribe"])
    done = regard(env=environment() | asked | {"COMP_WORDS": "regard translate --be", "COMP_CWORD": "2"})
    assert (done.returncode, done.stdout.split()) == (0, ["--beam"])


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.UsageError("a rule"), 2, "regard: error: a rule\n"),
        (errors.DataError("a file,\nline 3"), 2, "regard: error: a file, line 3\n"),
        (errors.ModelError("a folder"), 2, "regard: error: a folder\n"),
        (errors.QualityError("a gate"), 3, "regard: error: a gate\n"),
        (errors.DivergedError("a loss"), 4, "regard: error: a loss\n"),
        (errors.StorageError("a disk"), 5, "regard: error: a disk\n"),
        (OSError(errno.ENOSPC, "No space left", "f"), 5, "regard: error: No space left: f\n"),
        (OSError(errno.EIO, "Input/output error"), 5, "regard: error: Input/output error\n"),
        (FileNotFoundError(errno.ENOENT, "No such file", "f"), 2, "regard: error: No such file: f\n"),
        (KeyboardInterrupt(), 130, "regard: interrupted\n"),
        (main.Terminated("terminated"), 143, "regard: terminated\n"),
        (BrokenPipeError(), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_how_a_verb_fails_decides_how_it_ends(
    error, code, message, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def fail(_: object) -> str:
        raise error

    monkeypatch.setattr(show, "read_card", fail)
    assert main.run(["show", "folder"]) == code
    assert capfd.readouterr() == ("", message)


def test_a_fault_of_ours_shows_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(show, "read_card", lambda _: 1 // 0)
    assert main.run(["show", "folder"]) == 1
    err = capfd.readouterr().err
    assert "Traceback" in err
    assert "ZeroDivisionError" in err
    assert "please report" in err.splitlines()[-1]


def test_full_stdout_is_the_disks_failure(regard: Run):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = regard("--help", stdout=full)
    assert "No space left" in complaint(done, 5)


def test_closed_stdout_is_quiet(regard: Run):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = regard("train", "--help", stdout=closed)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_installed_command_is_this_one():
    assert 'regard = "regard.cli.main:main"' in (ROOT / "pyproject.toml").read_text()
    assert callable(main.main)
