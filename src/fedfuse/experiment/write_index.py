"""Write the index of methods and architectures from the code: ``python -m fedfuse.experiment.write_index``."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from fedfuse.catalogue.index import ModelRow
from fedfuse.core.files import write_text
from fedfuse.experiment.listing import method_row
from fedfuse.methods import METHODS
from fedfuse.models import ARCHITECTURES, Listed, layout_of

CLASSES = 10


def index_text() -> str:
    """What ``catalogue/index.json`` should hold."""
    methods = {name: asdict(method_row(method)) for name, method in METHODS.items()}
    models = {name: asdict(_model_row(name, listed)) for name, listed in ARCHITECTURES.items()}
    return json.dumps({"methods": methods, "models": models}, indent=1, ensure_ascii=False) + "\n"


def _model_row(name: str, listed: Listed) -> ModelRow:
    if not listed.has_defaults:
        return ModelRow(listed.description, None, None)
    layout = layout_of(listed.config(arch=name), listed.shape, CLASSES)
    return ModelRow(listed.description, layout.parameter_count, layout.size - layout.parameter_count)


if __name__ == "__main__":
    write_text(Path(str(files("fedfuse.catalogue") / "index.json")), index_text())
