"""Write the index of methods and architectures from the code: ``python -m fedfuse.experiment.write_index``."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedfuse.catalogue.index import ModelRow
from fedfuse.core.files import write_text
from fedfuse.experiment.details import details, page_of
from fedfuse.experiment.listing import method_row
from fedfuse.methods import METHODS
from fedfuse.models import ARCHITECTURES, TEXTS, Listed, layout_of

CLASSES = 10
IMAGES = "3x32x32 inputs"


def texts() -> dict[str, str]:
    """What the files in ``catalogue/`` should hold, by name."""
    return {"index.json": _text(index()), "details.json": _text(details())}


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def index() -> dict[str, Any]:
    """A line of a list for every method and architecture."""
    methods = {
        name: asdict(replace(method_row(method), page=f"docs/{page_of(name)}")) for name, method in METHODS.items()
    }
    models = {name: asdict(_model_row(name, listed)) for name, listed in ARCHITECTURES.items()}
    return {"methods": methods, "models": models}


def _model_row(name: str, listed: Listed) -> ModelRow:
    if not listed.has_defaults:
        return ModelRow(listed.description, None, None)
    layout = layout_of(listed.config(arch=name), listed.shape, CLASSES)
    sizes = layout.parameter_count, layout.size - layout.parameter_count
    return ModelRow(listed.description, *sizes, "texts of 64 tokens, 10,000 words" if listed.shape is TEXTS else IMAGES)


if __name__ == "__main__":
    for name, text in texts().items():
        write_text(Path(str(files("fedfuse.catalogue") / name)), text)
