"""A model as one safetensors file that knows its architecture; no pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import AnyArchitecture, Architecture, Classifier, Own, create
from fedfuse.models.widths import fitted


def save_model(
    path: Path, architecture: Architecture, input_shape: tuple[int, ...], classes: int, weights: Weights
) -> None:
    """Write named tensors and, as metadata, what is needed to rebuild the network."""
    shape = input_shape._asdict() if isinstance(input_shape, TextShape) else input_shape
    about = {"architecture": architecture.model_dump(mode="json"), "input_shape": shape, "classes": classes}
    write_safetensors(path, weights, about)


def load_model(path: str | Path, trust_own_code: bool = False) -> Classifier:
    """Rebuild a saved model, in eval mode.

    A model with ``arch: own`` is rebuilt by importing and calling what the file names. That is code of whoever wrote
    the file, so it runs only if ``trust_own_code`` says so.
    """
    _check_file(Path(path))
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
    shape = about["input_shape"]
    input_shape = TextShape(**shape) if isinstance(shape, dict) else tuple(shape)
    model = create(architecture, input_shape, about["classes"], Key(0))
    try:
        model = fitted(model, _layout_of(tensors, like=Layout.of(model)))
    except (ConfigError, ValueError, KeyError) as error:
        raise DataError(
            f"{path} does not fit the network that '{architecture.arch}' builds now; was its code changed? ({error})"
        ) from None
    model.load_state_dict(tensors, strict=False)  # counters are not saved
    return model.eval()


def _check_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.is_dir():
        models = sorted([*path.glob("*.safetensors"), *path.glob("final/*.safetensors")])
        example = f", for example {models[0]}" if models else ""
        raise DataError(f"{path} is a folder; give the file of a model{example}")


def _layout_of(tensors: Mapping[str, Tensor], like: Layout) -> Layout:
    """The layout with the shapes that were saved, which differ from the architecture's in widths perhaps."""

    def shaped(rows: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((name, tuple(tensors[name].shape)) for name, _ in rows)

    return Layout(shaped(like.parameters), shaped(like.buffers))
