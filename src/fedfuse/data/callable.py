"""The user's own Python function as a dataset, named ``module:function``.

It is called without arguments and returns ``(inputs, labels)``, or ``((inputs, labels), (test_inputs, test_labels))``,
or a mapping of arrays with the names of an npz file (``x_train``, ``y_train``, ``x_test``, ``y_test``, ``clients``).
Arrays may be NumPy arrays, tensors or lists; images are uint8, anything else becomes float32 features.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data.readers.contents import Array, Found, Reading
from fedfuse.data.readers.npz import contents_of_arrays


def read_callable(name: str, reading: Reading) -> Found:
    """Call ``module:function``; the module may lie in the current folder."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigError(f"data.path = {name} must be module:function, for example my_data:load")
    with _current_folder_importable():
        result = _call(name, module, function)
    return Found(*contents_of_arrays(_named(result, name), name, reading), name)


def _call(name: str, module: str, function: str) -> Any:
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"data.path = {name} cannot be imported ({error}); run where {module}.py lies") from error
    try:
        return found()
    except Exception as error:  # the user's own code may raise anything
        raise DataError(f"{name} raised {type(error).__name__}: {error}") from error


def _named(result: Any, name: str) -> dict[str, Array]:
    if isinstance(result, Mapping):
        return {str(key): np.asarray(value) for key, value in result.items()}
    if isinstance(result, tuple) and len(result) == 2:
        pairs = result if all(isinstance(part, tuple) and len(part) == 2 for part in result) else (result,)
        names = ("x_train", "y_train", "x_test", "y_test")
        return dict(zip(names, (np.asarray(array) for pair in pairs for array in pair), strict=False))
    raise DataError(
        f"{name} returned {type(result).__name__}; it must return (inputs, labels), a pair of such pairs for training "
        "and test, or a mapping of arrays"
    )


@contextmanager
def _current_folder_importable() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
