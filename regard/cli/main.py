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
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from regard import __version__
from regard.cli import (
    check,
    classify,
    compare,
    demo,
    detect,
    distill,
    documents,
    draw,
    embed,
    evaluate,
    export,
    fill,
    generate,
    import_,
    look,
    machine,
    pack,
    serve,
    shortlist,
    show,
    tag,
    train,
    transcribe,
    translate,
)
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


app = typer.Typer(
    name="regard",
    help="Translators, language models and encoders of your own, from plain files.",
    epilog="Start with `regard demo`. Each verb has its own --help.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command(cls=train.TrainCommand)(train.train)
app.command()(translate.translate)
app.command()(generate.generate)
app.command()(fill.fill)
app.command()(embed.embed)
app.command()(classify.classify)
app.command()(tag.tag)
app.command()(draw.draw)
app.command()(detect.detect)
app.command()(transcribe.transcribe)
app.command()(evaluate.evaluate)
app.command()(check.check)
app.command(cls=compare.CompareCommand)(compare.compare)
app.command()(look.look)
app.command()(documents.documents)
app.command()(serve.serve)
app.command()(show.show)
app.command()(machine.machine)
app.command("import")(import_.import_)
app.command()(export.export)
app.command()(pack.pack)
app.command()(shortlist.shortlist)
app.command(cls=train.TrainCommand)(distill.distill)


@app.command("help")
def _help(verb: Annotated[str, typer.Argument(help="What to tell about.", show_default="all")] = "") -> None:
    """Tell what a verb takes, as its --help does."""
    raise typer.Exit(run([verb, "--help"] if verb else ["--help"]))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"regard {__version__}", flush=True)
        raise typer.Exit


@app.callback()
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
        command = typer.main.get_command(app)
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
        typer.main.get_command(app)(prog_name="regard")
    sys.exit(run(sys.argv[1:]))
