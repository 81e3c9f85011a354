"""From a command line to a command, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from fedfuse.cli.console import errors
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.interrupts import hear_interrupts, ignore_interrupts
from fedfuse.core.errors import FedfuseError, OlderKeyWarning
from fedfuse.experiment.finding import find_experiment


def main() -> None:
    """Run the command line; mistakes end with one sentence and exit code 2, a run that taught nothing with 3."""
    hear_interrupts()
    warnings.showwarning = partial(_note, warnings.showwarning)
    try:
        _obey(sys.argv[1:])
    except FedfuseError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        _fail(_disk_sentence(error), FedfuseError.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", FedfuseError.exit_code)
    finally:
        ignore_interrupts()


def _note(otherwise: Callable[..., None], message: Warning | str, *where: Any) -> None:
    """What we warn of is meant for the person at the terminal; the rest is as Python shows it."""
    if isinstance(message, OlderKeyWarning):
        errors.print(f"note: {message}", highlight=False, markup=False, soft_wrap=True)
    else:
        otherwise(message, *where)


def _obey(words: Sequence[str]) -> None:
    """Do what needs no options at once: typer, which reads them, takes longer to import than to print any list."""
    match words:
        case [("methods" | "datasets" | "models" | "presets") as name]:
            from fedfuse.cli.lists import LISTS

            LISTS[name]()
            return
        case ["run" | "compare", name] if not name.startswith("-"):
            find_experiment(name)
    with quick_imports():
        from fedfuse.cli.app import app
    app()


def _disk_sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{where}; finished rounds are kept, free some space and go on with --resume"
    return f"{error.strerror or error}{where}"


def _fail(sentence: str, code: int) -> NoReturn:
    ignore_interrupts()
    errors.print(f"fedfuse: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
