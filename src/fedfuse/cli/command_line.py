"""From a command line to a command, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.interrupts import hear_interrupts, ignore_interrupts
from fedfuse.cli.letters import use_known_letters
from fedfuse.core.asked import asked_by_command_line
from fedfuse.core.errors import ConfigError, FedfuseError, OlderKeyWarning, unknown
from fedfuse.core.version import __version__

TRACEBACK = "--traceback"
LISTED = {"methods": 1, "datasets": 1, "models": 1, "presets": 1, "parts": 2, "keys": 1}
"""Commands that need no options, and how many names may follow them."""


def main() -> None:
    """Run the command line; mistakes end with one sentence and exit code 2, a run that taught nothing with 3."""
    with asked_by_command_line():
        _main()


def _main() -> None:
    hear_interrupts()
    warnings.showwarning = partial(_note, warnings.showwarning)
    use_known_letters()
    words = [word for word in sys.argv[1:] if word != TRACEBACK]
    traced = len(words) < len(sys.argv) - 1 or os.environ.get("FEDFUSE_TRACEBACK", "") not in ("", "0")
    try:
        _obey(words)
    except FedfuseError as error:
        _fail(str(error), error.exit_code, error if traced else None)
    except BrokenPipeError:
        _nobody_reads()
    except OSError as error:
        _fail(_disk_sentence(error), FedfuseError.exit_code, error if traced else None)
    except KeyboardInterrupt:
        _fail("interrupted", FedfuseError.exit_code)
    except Exception as error:
        if (sentence := _own_code_sentence(error)) is None:
            raise
        _fail(sentence, FedfuseError.exit_code, error if traced else None)
    finally:
        ignore_interrupts()


def _note(otherwise: Callable[..., None], message: Warning | str, *where: Any) -> None:
    """What we warn of is meant for the person at the terminal; the rest is as Python shows it."""
    if isinstance(message, OlderKeyWarning):
        sys.stderr.write(f"note: {message}\n")
    else:
        otherwise(message, *where)


def _obey(words: Sequence[str]) -> None:
    """Do what needs no options at once: typer, which reads them, takes longer to import than to print any list."""
    match words:
        case [name, *names] if len(names) <= LISTED.get(name, -1) and not any(map(_is_option, names)):
            from fedfuse.cli.lists import show

            show(name, *names)
            return
        case ["help", name, *more] if name not in COMMANDS and not any(map(_is_option, (name, *more))):
            if _is_known(name):
                words = [name, "--help"]
            else:
                from fedfuse.cli.named import explain

                explain(name, *more)
                return
        case ["doctor"] | ["doctor", "--json"]:  # who needs one may not have what reads options
            from fedfuse.cli.doctor import doctor

            doctor(as_json=len(words) > 1)
            return
        case ["completion", "--line", *asked]:
            from fedfuse.cli.completion import answer

            with suppress(Exception):  # a shell wants words, whatever is wrong with the line
                answer(*asked)
            return
        case ["--version"]:
            sys.stdout.write(f"fedfuse {__version__}\n")
            return
        case [name, *_] if not _is_option(name) and name not in COMMANDS:
            _check_command(name)
        case ["run" | "compare" as name, experiment, *rest] if not _is_option(experiment):
            _check_experiment(experiment, rest, methods=name == "run")
    with quick_imports():
        from fedfuse.cli.parsing import obey
    obey(words)


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _check_experiment(name: str, words: Sequence[str], methods: bool) -> None:
    """Refuse what is surely misspelt, in the sentence that the command itself would have for it, only much later."""
    from fedfuse.cli.words import words_of
    from fedfuse.experiment.finding import check_keys, check_method, find_experiment

    find_experiment(name)
    said = [(option, value) for option, value in pairwise(words) if option in ("--set", "--method", "--methods")]
    shortcuts = [f"method={value}" for option, value in said if option == "--method" and methods]
    changes = [*shortcuts, *(value for option, value in said if option == "--set")]
    if changes or name.endswith((".yaml", ".yml")):
        check_keys(name, changes, methods)
    for method in (word for option, value in said if option == "--methods" for word in words_of(value)):
        check_method(method, name)


def _is_known(name: str) -> bool:
    """Whether another package has a command of this name."""
    from fedfuse.cli import entry_points

    return entry_points.find(name) is not None


def _check_command(name: str) -> None:
    """Refuse a command that neither we nor any other package has."""
    if not _is_known(name):
        from fedfuse.cli import entry_points

        raise ConfigError(unknown("command", name, [*COMMANDS, *entry_points.names()]))


def _own_code_sentence(error: Exception) -> str | None:
    """About an error in a part, a network or a function of the user's own; one in ours is not for a sentence."""
    if "fedfuse.core.imports" not in sys.modules:
        return None
    from fedfuse.core.imports import first_line, place_in_own_code

    if place_in_own_code(error) is None:
        return None
    return f"your own code failed: {first_line(error)}; --traceback shows the way there"


def _disk_sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{where}; finished rounds are kept, free some space and go on with --resume"
    return f"{error.strerror or error}{where}"


def _fail(sentence: str, code: int, error: BaseException | None = None) -> NoReturn:
    ignore_interrupts()
    if error is not None:
        _show_traceback(error)
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    begin, end = ("\x1b[31m", "\x1b[0m") if coloured else ("", "")
    sys.stderr.write(f"{begin}fedfuse: {sentence}{end}\n")
    sys.exit(code)


def _show_traceback(error: BaseException) -> None:
    """With what a sentence otherwise stands in the place of: the error that it was made from."""
    import traceback

    inner: BaseException | None = error
    while inner is not None:
        inner.__suppress_context__ = inner.__cause__ is not None
        inner = inner.__cause__ or inner.__context__
    traceback.print_exception(error)


def _nobody_reads() -> NoReturn:
    """``fedfuse methods | head``: whoever read the output has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
