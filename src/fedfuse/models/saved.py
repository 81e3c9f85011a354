"""A model as one safetensors file that knows its architecture; no pickle."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from fedfuse.core.errors import DataError
from fedfuse.core.files import write_bytes
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.models import AnyArchitecture, Architecture, Classifier, create


def save_model(
    path: Path, architecture: Architecture, input_shape: tuple[int, ...], classes: int, weights: Weights
) -> None:
    """Write named tensors and, as metadata, what is needed to rebuild the network."""
    about = {"architecture": architecture.model_dump(mode="json"), "input_shape": input_shape, "classes": classes}
    # One metadata key only: the file's bytes must not depend on a hash map's order.
    content = save({name: weights[name].contiguous() for name in weights}, {"fedfuse": json.dumps(about)})
    write_bytes(path, content)


def load_model(path: str | Path) -> Classifier:
    """Rebuild a saved model, in eval mode."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["fedfuse"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        architecture: Architecture = TypeAdapter(AnyArchitecture).validate_python(about["architecture"])
    except (SafetensorError, OSError, ValidationError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a model saved by fedfuse: {error}") from None
    model = create(architecture, tuple(about["input_shape"]), about["classes"], Key(0))
    model.load_state_dict(tensors, strict=False)
    return model.eval()
