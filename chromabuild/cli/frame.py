"""What all commands share: the app, the common options, how results are printed and how errors end the program."""

import errno
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.core import TyperGroup

from chromabuild.base.errors import BadInputError, ChromabuildError, InterruptedRunError, ResourceError
from chromabuild.base.files import remedy_of
from chromabuild.base.stop_signals import stops_go_to
from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages import STAGES

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings

_MEANING = {0: "done", 2: "wrong use of the command line"} | {
    error.exit_code: error.told for error in (ChromabuildError, *ChromabuildError.__subclasses__())}
EXIT_CODES = f"Exit codes: {', '.join(f'{code} {_MEANING[code]}' for code in sorted(_MEANING))}."

HELP = f"""From a gene locus to a running all-atom molecular dynamics simulation.

Start with `chromabuild init --example demo demo`, then `cd demo` and `chromabuild all`.

{EXIT_CODES}"""
_AFTER = {"scaffold": ("ensemble",), "solvate": ("shards",)}
"""Commands that belong to a stage but are none."""
ORDER = ("init", "validate", "plan", "all",
         *(name for stage in STAGES for name in (stage.name, *_AFTER.get(stage.name, ()))),
         "contact-energies", "view", "verify", "workflow", "analyse", "template", "import", "export", "qm")
IMPORT_SECONDS = 5.0
"""How long an interruption waits at most for modules that are being imported."""
_first_stop = 0.0
"""When the interruption came that waits, by the monotonic clock; 0: none does."""
INTERRUPTED = "interrupted: the same command continues"
OUT_OF_MEMORY = ("out of memory: `chromabuild plan` tells what each stage needs and what would save it; a limit of "
                 "`ulimit -v` or `ulimit -d` counts addresses that are not used too")
_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE, errno.EACCES, errno.EPERM,
                errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG}
"""Errors of the system that say something of a disk, not of the program."""


class _InChainOrder(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:
        """Commands in the order in which they are used."""
        return [name for name in ORDER if name in self.commands]


app = typer.Typer(
    cls=_InChainOrder,
    name="chromabuild",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from chromabuild import __version__

        print(f"chromabuild {__version__}")
        raise typer.Exit()


@app.callback()
def _common(version: Annotated[bool, typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version.")] = False) -> None:
    pass


ConfigOption = Annotated[Path, typer.Option(
    "--config", "-c", metavar="FILE", help="Settings of the build; `chromabuild init` writes them.")]
SetOption = Annotated[list[str], typer.Option(
    "--set", metavar="SECTION.KEY=VALUE", show_default=False,
    help="Replace one setting of the file, e.g. --set solvate.padding=15; may be repeated.")]
SeedOption = Annotated[int | None, typer.Option(
    "--seed", min=0, show_default="that of the settings file",
    help="Every random decision follows from it; the same seed gives the same bytes.")]
ThreadsOption = Annotated[int | None, typer.Option(
    "--threads", "-t", min=1, show_default="all cores allowed to this process",
    help="Threads to use; the result does not depend on it.")]
JsonOption = Annotated[bool, typer.Option(
    "--json", help="Print the result as one JSON object on standard output; all else goes to standard error.")]
DEFAULT_CONFIG = Path("locus.yaml")


def load(config: Path, overrides: list[str], seed: int | None) -> "Settings":
    """The effective configuration: file, then --set, then --seed."""
    from chromabuild.base.settings import load_config, parse_override

    values = dict(parse_override(text) for text in overrides)
    if seed is not None:
        values["seed"] = seed
    return load_config(config, values)


def show(result: Summary, as_json: bool, lines: list[str]) -> None:
    """Print a command's result: one JSON object, or lines for people."""
    print(json.dumps(result, indent=1) if as_json else "\n".join(lines))


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that every error ends it with one sentence on standard error and the exit code of its class."""

    @functools.wraps(function)
    def guarded(*args: object, **kwargs: object) -> None:
        try:
            with stops_go_to(_interrupt):
                function(*args, **kwargs)
        except (typer.Exit, typer.BadParameter):
            raise
        except ChromabuildError as error:
            if _is_interrupted(error):
                _fail(INTERRUPTED, InterruptedRunError.exit_code)
            _fail(str(error), error.exit_code)
        except KeyboardInterrupt:
            _fail(INTERRUPTED, InterruptedRunError.exit_code)
        except Exception as error:
            if _is_interrupted(error):
                _fail(INTERRUPTED, InterruptedRunError.exit_code)
            if _lacks_memory(error):
                _fail(OUT_OF_MEMORY, ResourceError.exit_code)
            if isinstance(error, BrokenPipeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from None
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                where = f"{error.filename}: " if error.filename else ""
                _fail(f"{where}{error.strerror}: {remedy_of(error)}", ResourceError.exit_code)
            # mesoscale does not know chromabuild's errors: its complaints about input are plain ValueErrors.
            if isinstance(error, ValueError) and _raised_in_mesoscale(error):
                _fail(str(error), BadInputError.exit_code)
            _unexpected(error)

    return guarded


def _interrupt(number: int) -> None:
    """Interrupt the command; at once, but for an import, which ends first if it does so soon.

    Modules in C++ that meet an exception while they are loaded end the process.
    """
    global _first_stop
    _first_stop = _first_stop or time.monotonic()
    if time.monotonic() < _first_stop + IMPORT_SECONDS and _is_importing():
        again = threading.Timer(0.02, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    _first_stop = 0.0
    raise KeyboardInterrupt


def _is_importing() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def leave(number: int) -> NoReturn:
    """End by a signal that comes before a command has begun or after it."""
    print(f"chromabuild: {INTERRUPTED}", file=sys.stderr)
    raise SystemExit(InterruptedRunError.exit_code)


def _is_interrupted(error: BaseException) -> bool:
    """Whether an error is what somebody, such as Python where it makes a class, has made of an interruption."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
        if isinstance(error, KeyboardInterrupt):
            return True
    return False


def _lacks_memory(error: Exception) -> bool:
    """Whether memory ran out: threads and libraries say it in words of their own."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM or any(
        words in str(error) for words in ("can't start new thread", "failed to map segment", "Cannot allocate memory"))


def _raised_in_mesoscale(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).split(".")[0] == "mesoscale"


def _fail(sentence: str, code: int) -> NoReturn:
    print(f"chromabuild: {' '.join(sentence.split())}", file=sys.stderr)
    raise typer.Exit(code)


def _unexpected(error: Exception) -> NoReturn:
    if os.environ.get("CHROMABUILD_DEBUG") == "1":
        raise error
    _fail(f"a fault in chromabuild ({type(error).__name__}: {error}); please report it with the output of the same "
          "command under CHROMABUILD_DEBUG=1", 1)
