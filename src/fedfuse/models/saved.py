"""A model as one safetensors file that knows its architecture; no pickle."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import AnyArchitecture, Architecture, Classifier, Own, create


def save_model(
    path: Path, architecture: Architecture, input_shape: tuple[int, ...], classes: int, weights: Weights
) -> None:
    """Write named tensors and, as metadata, what is needed to rebuild the network."""
    about = {"architecture": architecture.model_dump(mode="json"), "input_shape": input_shape, "classes": classes}
    write_safetensors(path, weights, about)


def load_model(path: str | Path, trust_own_code: bool = False) -> Classifier:
    """Rebuild a saved model, in eval mode.

    A model with ``arch: own`` is rebuilt by importing and calling what the file names. That is code of whoever wrote
    the file, so it runs only if ``trust_own_code`` says so.
    """
    try:
        tensors, about = read_safetensors(Path(path))
        architecture: Architecture = TypeAdapter(AnyArchitecture).validate_python(about["architecture"])
    except (SafetensorError, OSError, ValidationError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a model saved by fedfuse: {error}") from None
    if isinstance(architecture, Own) and not trust_own_code:
        raise DataError(
            f"{path} is built by calling '{architecture.callable}'; if you trust the file, load it with "
            "trust_own_code=True"
        )
    model = create(architecture, tuple(about["input_shape"]), about["classes"], Key(0))
    layout = Layout.of(model)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != dict(layout.parameters + layout.buffers):
        raise DataError(f"{path} does not fit the network that '{architecture.arch}' builds now; was its code changed?")
    model.load_state_dict(tensors, strict=False)  # counters are not saved
    return model.eval()
