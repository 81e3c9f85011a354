"""Parts from outside the package: named by their address, and known by the source behind it.

A run's identity must change when such a part's code does. So it holds a hash of the module that defines the part, and
of the modules beside it that it imports: of a package all its files, of a single file those in the same folder.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import import_object

PACKAGE = __name__.partition(".")[0]


def address_of(part: type) -> str:
    """``package.module:Class``, by which another process or a later run finds it again."""
    module = "__main__" if part.__module__ == "__mp_main__" else part.__module__  # a worker's name for the script
    return f"{module}:{part.__qualname__}"


def findable(value: Any, what: str) -> str:
    """The address of a function or class, if that is where another process finds it; ``what`` begins the refusal."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", type(value).__name__)
    if getattr(sys.modules.get(str(module)), name, None) is not value:
        raise ConfigError(
            f"{what}: {name} of {module} is a lambda, or was made inside something else, where no other process finds "
            "it; write it as a function or class of its own at the top of a file"
        )
    return f"{module}:{name}"


def is_ours(part: type) -> bool:
    """Whether a class belongs to this package, so that its version says what it does."""
    return part.__module__.partition(".")[0] == PACKAGE


def source_sha256(address: str) -> str:
    """A hash of the source behind an address."""
    found = import_object(address, address)
    module_name = address.partition(":")[0]
    file = _file_of(module_name)
    if file is None:
        return hashlib.sha256(_source_of(found, address).encode()).hexdigest()
    if _imported_as.get(module_name, now := file.read_bytes()) != now:
        raise ConfigError(
            f"{address}: {file.name} was changed after this process had imported it; start the process again"
        )
    digest = hashlib.sha256()
    for path in _files(file, module_name):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


_imported_as: dict[str, bytes] = {}
"""By module, its file as it was when a part was defined there."""


def remember_source(part: type) -> None:
    """So that code of a process that has long been running is not taken for what its file says by now."""
    if file := _file_of(part.__module__):
        _imported_as[part.__module__] = file.read_bytes()


def _file_of(module_name: str) -> Path | None:
    file = getattr(sys.modules.get(module_name), "__file__", None)
    return None if file is None else Path(file)


def _source_of(found: Any, address: str) -> str:
    """Of something that was typed into a notebook or an interpreter, or is built into Python itself."""
    if address.partition(":")[0] in sys.builtin_module_names:
        return sys.version
    try:
        return inspect.getsource(found)
    except (OSError, TypeError):
        if cells := _cells_of(found):
            return cells
        raise ConfigError(
            f"{address} has no source that could be recognised again; put it into a file and name it from there"
        ) from None


def _cells_of(found: Any) -> str:
    """The cells of a notebook in which the methods of a class were written; Python itself finds functions only."""
    methods = [value for value in getattr(found, "__dict__", {}).values() if isinstance(value, FunctionType)]
    files = sorted({method.__code__.co_filename for method in methods})
    return "".join(line for file in files for line in linecache.getlines(file))


def _files(file: Path, module_name: str) -> list[Path]:
    """The module's own file, and those of its folder or package that belong to it; a compiled one is all there is."""
    if file.suffix != ".py":
        return [file]
    depth = module_name.count(".") + (file.name == "__init__.py")
    if depth:
        return sorted(file.parents[depth - 1].rglob("*.py"))
    return sorted(_beside(file, set()))


def _beside(file: Path, seen: set[Path]) -> set[Path]:
    """A single file, and the files and packages beside it that it imports."""
    if file in seen:
        return seen
    seen.add(file)
    if any(file.parent.glob("*.dist-info")):  # installed: what lies beside it belongs to others
        return seen
    for name in _imported(file):
        neighbour = file.parent / f"{name}.py"
        if neighbour.exists():
            _beside(neighbour, seen)
        elif (file.parent / name / "__init__.py").exists():
            seen.update((file.parent / name).rglob("*.py"))
    return seen


def _imported(file: Path) -> Iterator[str]:
    """The top-level names that a file imports."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
