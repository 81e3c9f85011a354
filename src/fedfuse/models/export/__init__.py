"""A saved model for other programs: ONNX, TorchScript, or its weights alone; each file is read again and checked."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.files import write_atomically
from fedfuse.models.classifier import Classifier
from fedfuse.models.export.format import Format
from fedfuse.models.export.onnx import Onnx
from fedfuse.models.export.quiet import quietly
from fedfuse.models.export.state_dict import StateDict
from fedfuse.models.export.torchscript import TorchScript
from fedfuse.models.saved import is_saved_model

__all__ = ["FORMATS", "TOLERANCE", "Exported", "export"]

TOLERANCE = 1e-4
"""How far a probability may be from the original's, and a logit in relation to the largest."""
FORMATS: dict[str, Format] = {
    ".onnx": Onnx(),
    ".pt": TorchScript(),
    ".ts": TorchScript(),
    ".safetensors": StateDict(),
}


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it was checked."""

    file: Path
    reads: str
    gives: str
    difference: float
    """The largest one between the file's numbers and the original's."""


def export(model: Classifier, to: str | Path, overwrite: bool = False) -> Exported:
    """Write ``model`` in the format that the suffix of ``to`` names, whole or not at all.

    The file is read again and asked about made-up inputs; one that answers otherwise than the model is not kept.
    """
    file = Path(to)
    kind = _format(file, overwrite)
    model = copy.deepcopy(model).cpu().eval()
    reads, gives, difference = kind.reads(model), kind.gives(model), 0.0

    def write_and_check(temporary: Path) -> None:
        nonlocal difference
        with quietly():
            kind.write(model, temporary)
            difference = kind.difference(model, temporary)
        if not difference <= TOLERANCE:
            raise DataError(
                f"{file} was not written: its answers would differ from the model's by {difference:.1e}, more than "
                f"{TOLERANCE:.0e}; choose another format"
            )

    write_atomically(file, write_and_check)
    return Exported(file, reads, gives, difference)


def _format(file: Path, overwrite: bool) -> Format:
    if file.suffix not in FORMATS:
        raise ConfigError(f"{file}: the format is told by the suffix; give a name that ends in {', '.join(FORMATS)}")
    if file.exists() and not overwrite:
        raise ConfigError(f"{file} exists already; add --overwrite or give another name")
    if file.suffix == ".safetensors" and file.exists() and is_saved_model(file):
        raise ConfigError(f"{file} is a model of fedfuse, of which bare weights would leave little; give another name")
    return FORMATS[file.suffix]
