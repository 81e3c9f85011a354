"""The user's own Python function as a dataset, named ``module:function``.

It is called without arguments and returns ``(inputs, labels)``, or ``((inputs, labels), (test_inputs, test_labels))``,
or a mapping of arrays with the names of an npz file (``x_train``, ``y_train``, ``x_test``, ``y_test``, ``clients``).
Arrays may be NumPy arrays, tensors or lists; images are uint8, texts are strings, anything else becomes float32
features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.imports import first_line, import_function, working_folder_importable
from fedfuse.data.readers.contents import Array, Found, Reading
from fedfuse.data.readers.npz import contents_of_arrays


def read_callable(name: str, reading: Reading, what: str = "data.path") -> Found:
    """Call ``module:function``; the module may lie in the current folder. ``what`` is where the name was given."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigError(f"{what} = {name} must be module:function, for example my_data:load")
    load = import_function(name, what)
    try:
        with working_folder_importable():
            result = load()
    except Exception as error:  # the user's own code may raise anything
        raise DataError(f"{name} raised {first_line(error)}") from error
    return Found(*contents_of_arrays(_named(result, name), name, reading), name)


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
