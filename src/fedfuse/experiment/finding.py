"""What a command line names, found or refused before anything heavy is imported."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.experiment import presets

YAML = (".yaml", ".yml")


def find_experiment(given: str | Path) -> Path | None:
    """The file or run folder that is meant; None if it is a preset."""
    path = Path(given)
    if path.is_dir() or path.is_file():
        return path
    if path.suffix in YAML:
        if not path.exists():
            raise ConfigError(f"{path}: {os.strerror(errno.ENOENT)}")
        return path
    if str(given) in presets.names():
        return None
    raise ConfigError(unknown("file or preset", str(given), presets.names()))


def check_method(name: str, experiment: str) -> None:
    """Refuse a method that is not there, in the sentence that the experiment would get."""
    from fedfuse.catalogue.method_names import check_name

    try:
        check_name(name)
    except ConfigError as error:
        raise ConfigError(f"{experiment}: {error}") from None
