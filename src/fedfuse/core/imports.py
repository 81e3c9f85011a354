"""What is the user's own, named ``package.module:name`` in an experiment file."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Annotated, Any

from pydantic import AfterValidator

from fedfuse.core.errors import ConfigError, shortened, unknown

PACKAGE = Path(__file__).parents[1]
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def _well_formed(value: str) -> str:
    if not FORM.fullmatch(value):
        raise ValueError(f"'{shortened(value)}' should be written as package.module:name")
    return value


Address = Annotated[str, AfterValidator(_well_formed)]
"""Such a name."""


def import_function(address: str, what: str) -> Callable[..., Any]:
    """A function; ``what`` begins the sentence about one that cannot be had."""
    function = import_object(address, what, "function")
    if not callable(function):
        raise ConfigError(f"{what}: {address} is not a function but {type(function).__name__}")
    return function  # type: ignore[no-any-return]


def import_object(address: str, what: str, kind: str = "name") -> Any:
    """Whatever has this address."""
    module_name, _, attribute = address.partition(":")
    if "." in attribute:
        raise ConfigError(
            f"{what}: {shortened(attribute)} of {shortened(module_name)} was made inside a function or class, where no "
            "other process finds it; move it to the top of the file"
        )
    if not FORM.fullmatch(address):
        raise ConfigError(f"{what}: '{shortened(address)}' should be written as package.module:name")
    module = _imported(module_name, what)
    if not hasattr(module, attribute):
        check_findable_elsewhere([address])
        raise ConfigError(f"{what}: {unknown(kind, attribute, _own_names(module))}")
    return getattr(module, attribute)


def _imported(name: str, what: str) -> ModuleType:
    try:
        with working_folder_importable():
            return import_module(name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything while it is imported
        raise ConfigError(
            f"{what}: {shortened(name)} cannot be imported from the working folder or the installed packages: "
            f"{shortened(first_line(error), 500)}"
        ) from error


def _own_names(module: ModuleType) -> list[str]:
    """What a module defines, and not what it imports."""

    def is_own(value: Any) -> bool:
        if isinstance(value, type | FunctionType):
            return value.__module__ == module.__name__
        return not isinstance(value, ModuleType)

    return [name for name, value in vars(module).items() if not name.startswith("_") and is_own(value)]


def check_findable_elsewhere(addresses: Iterable[str]) -> None:
    """Refuse what another process than its own does not find."""
    for address in addresses:
        module, _, name = address.partition(":")
        if module == "__main__":
            raise ConfigError(
                f"{name} was written in a script or notebook, where only its own process finds it; move it into a "
                "file and import it from there"
            )


@contextmanager
def working_folder_importable() -> Iterator[None]:
    """As for ``python -m``; an installed command does not look there by itself."""
    here = str(Path.cwd())
    invalidate_caches()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def first_line(error: BaseException) -> str:
    """The error's type, the first line of what it says, and where in the user's own code it was raised, if there."""
    said = f"{type(error).__name__}: {error}".partition("\n")[0].removesuffix(": ")
    where = place_in_own_code(error)
    return f"{said} ({where})" if where and where not in said else said


def place_in_own_code(error: BaseException) -> str | None:
    """The file and the line of the innermost code that is neither ours nor of anything installed."""
    if isinstance(error, SyntaxError) and error.filename and _is_own_file(error.filename):
        return f"{_shown(error.filename)}, line {error.lineno}"
    frames = (*_frames(error.__traceback__), *_noted(error))
    own = [frame for frame in frames if _is_own_file(frame[0])]
    return f"{_shown(own[-1][0])}, line {own[-1][1]}" if own else None


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def _noted(error: BaseException) -> Iterator[tuple[str, int]]:
    """The frames of another process, which it left as a note on the error."""
    for note in getattr(error, "__notes__", ()):
        yield from ((file, int(line)) for file, line in FRAME.findall(note))


def _is_own_file(name: str) -> bool:
    path = Path(name)
    if not path.is_absolute() or not path.is_file() or path.is_relative_to(PACKAGE):
        return False
    return not any(path.is_relative_to(folder) for folder in _installed_folders())


@cache
def _installed_folders() -> tuple[Path, ...]:
    """Where Python's own modules and installed packages are; a user's folder may lie beside them, but not inside."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(Path(path) for path in paths if path)


def _shown(name: str) -> str:
    """As seen from the working folder, or its name alone: a sentence may end up in a log that others read."""
    path = Path(name)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name
