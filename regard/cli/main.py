"""Where the verbs meet: the command `regard`, and what each way of failing ends with.

A person's mistake is one line on stderr and the exit code of its error class (regard/errors.py). A fault of
ours shows its traceback. Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

import contextlib
import errno
import os
import signal
import sys
import traceback
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from regard import __version__
from regard.cli.console import steady_streams
from regard.errors import RegardError, error_line, one_line
from regard.kinds import TABLES, at_fault

_COMPLETING = "_REGARD_COMPLETE"
INTERRUPTED = 128 + signal.SIGINT

# What a person can put right by naming another path; any other failure of the system is the disk's.
_WRONG_PATH = {
    errno.ENOENT,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; unwinds like Ctrl-C, so that open files are closed."""

    exit_code = 128 + signal.SIGTERM


# Every verb and what its help begins with; the verb itself is the function of its name in regard/cli, of the
# command class `Command` if its file has one, and is imported only when it is asked for.
VERBS = {
    "demo": "Train on what every machine has, score, use it.",
    "train": "Train a model on your data; run again, it goes on.",
    "translate": "Translate text, line by line.",
    "generate": "Write on with a language model.",
    "fill": "Fill the gaps of a text.",
    "embed": "Turn lines into vectors, or compare them.",
    "classify": "Say what kind each text or picture is.",
    "tag": "Say what each word is.",
    "draw": "Draw pictures with a generator.",
    "detect": "Find what is in pictures, and where.",
    "transcribe": "What is said in recordings.",
    "evaluate": "Score a model on what it has not seen, as its task does.",
    "check": "Say what is wrong with files to learn from.",
    "compare": "The attention family side by side: quality, time, memory.",
    "look": "Show what every head looked at.",
    "documents": "Learn to write docstrings: source code in, its summary out.",
    "serve": "Serve models over HTTP, as LibreTranslate and OpenAI do.",
    "show": "Show a model's card: data, training, scores.",
    "machine": "Say what this machine really can do, measured.",
    "import": "Take over a model that another program trained.",
    "export": "Write a model for CTranslate2, Hugging Face or ONNX.",
    "pack": "Make the small folder that is shared, and a zip of it.",
    "shortlist": "Learn which words to expect: a faster output layer.",
    "distill": "Train a faster student on what a teacher translates.",
    "backtranslate": "Learn from text in the target language too.",
}


def app(verbs: Collection[str] = tuple(VERBS)) -> typer.Typer:
    """The command line; of the verbs that are not asked for it knows the name and what they are for."""
    made = typer.Typer(
        name="regard",
        help="Translators, language models and encoders of your own, from plain files.",
        epilog="Start with `regard demo`. Each verb has its own --help.",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_start)
    for verb, line in VERBS.items():
        if verb in verbs:
            name = "import_" if verb == "import" else verb  # a word of Python's own
            module = import_module(f"regard.cli.{name}")
            made.command(verb, cls=getattr(module, "Command", None))(getattr(module, name))
        else:
            made.command(verb, help=line)(_unasked)
    made.command("help")(_help)
    return made


def _unasked() -> None:
    """Stands for a verb that this command line does not call."""


def _help(verb: Annotated[str, typer.Argument(help="What to tell about.", show_default="all")] = "") -> None:
    """Tell what a verb takes, as its --help does."""
    raise typer.Exit(run([verb, "--help"] if verb else ["--help"]))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"regard {__version__}", flush=True)
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Translators, language models and encoders of your own, from plain files."""


def run(argv: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    for table in TABLES:
        table.asked.clear()
    try:
        verb = next((word for word in argv if not word.startswith("-")), "")
        command = typer.main.get_command(app([verb]))
        with command.make_context("regard", list(argv) or ["--help"]) as context:
            command.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except typer.Exit as leave:
        return leave.exit_code
    except typer.TyperException as error:
        return _misunderstood(error)
    except KeyboardInterrupt as stop:  # training's own says what was saved
        return _end(str(stop) or "interrupted", getattr(stop, "exit_code", INTERRUPTED))
    except BrokenPipeError:
        return _end("", 0)  # whoever read our output has seen enough
    except RegardError as error:
        return _end(f"error: {error}", error.exit_code)
    except OSError as error:
        return _end(f"error: {_describe(error)}", 2 if error.errno in _WRONG_PATH else 5)
    except Exception as error:
        if who := at_fault(error):
            return _end(f"error: {who} broke: {error_line(error)}", 2)
        traceback.print_exc()
        return _end("this is a fault of Regard, not yours: please report it with the lines above", 1)
    return 0


def _misunderstood(error: Any) -> int:
    """A command line that makes no sense: one line, with the place where help is to be had."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return _end(f"error: {message} (see {context.command_path if context else 'regard'} --help)", 2)


def _describe(error: OSError) -> str:
    """What the system said and of which path."""
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")


def _end(message: str, code: int) -> int:
    """At most one line on stderr, and nothing more on stdout: what is still buffered could fail once more."""
    with contextlib.suppress(OSError):  # stderr may be full, too
        if message:
            print(f"regard: {one_line(message)}", file=sys.stderr, flush=True)
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated("terminated")


def main() -> None:
    """The entry point of the command `regard`."""
    signal.signal(signal.SIGTERM, _terminate)
    steady_streams()
    if _COMPLETING in os.environ:  # a shell asks what could stand here
        typer.main.get_command(app())(prog_name="regard")
    sys.exit(run(sys.argv[1:]))
