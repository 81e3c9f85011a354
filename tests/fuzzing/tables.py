"""What the targets of data have in common."""

from __future__ import annotations

from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load


def load_file(name: str, path: object, **settings: object) -> None:
    """As an experiment would."""
    load(DataSettings.model_validate({"name": name, "path": str(path), **settings}), Key(0))
