"""What is the user's own, named ``package.module:name`` in an experiment file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fedfuse.core.errors import ConfigError, unknown


def _is_an_address(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", value):
        raise ValueError(f"'{value}' should be written as package.module:function")
    return value


Address = Annotated[str, AfterValidator(_is_an_address)]
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
    try:
        with working_folder_importable():
            module = import_module(module_name)
    except Exception as error:  # a user's module may raise anything while it is imported
        raise ConfigError(
            f"{what}: {module_name} cannot be imported from the working folder or the installed packages: "
            f"{first_line(error)}"
        ) from error
    if not hasattr(module, attribute):
        check_findable_elsewhere([address])
        there = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module_name]
        raise ConfigError(f"{what}: {unknown(kind, attribute, there)}")
    return getattr(module, attribute)


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


def first_line(error: Exception) -> str:
    """The error's type and the first line of what it says."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]
