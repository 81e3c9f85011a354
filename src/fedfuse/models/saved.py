"""A model as one safetensors file that is enough by itself: weights, architecture, inputs, classes; no pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from torch import Tensor

from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.part import first_mistake
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import DamagedError, read_header, read_safetensors, write_safetensors
from fedfuse.core.weights import Layout, Weights, is_finite
from fedfuse.models import Architecture, Classifier, create
from fedfuse.models.adapt import AdaptedClassifier
from fedfuse.models.bounded import created
from fedfuse.models.card import FORMAT, ModelCard
from fedfuse.models.interface import Interface
from fedfuse.models.predictor import Predictor
from fedfuse.models.widths import fitted

PARTITION = "partition.safetensors"
"""What lies in a run folder and is no model."""
LONGEST_REASON = 200
"""Characters of a reason, which may quote the file."""


def save_model(
    path: Path,
    architecture: Architecture,
    input_shape: tuple[int, ...],
    classes: int,
    weights: Weights,
    interface: Interface | None = None,
    network: Classifier | None = None,
) -> None:
    """Write named tensors and, as metadata, what is needed to rebuild the network and to use it.

    ``network``, if given, holds the weights; one of the user's own then has the names in the file that it has itself.
    """
    adapted = network if isinstance(network, AdaptedClassifier) else None
    card = ModelCard(
        format=FORMAT if interface is not None and not interface.is_as_before else FORMAT - 1,
        architecture=architecture,
        input_shape=input_shape,
        classes=classes,
        interface=interface,
        own_names=adapted is not None,
    )
    tensors = weights if adapted is None else adapted.own_state(weights)
    write_safetensors(path, tensors, card.model_dump(mode="json"))


def load_model(path: str | Path, trust_own_code: bool = False) -> Classifier:
    """Rebuild a saved model, in eval mode: ``model.predict(raw_inputs)``, or ``model(tensor)`` on normalised ones.

    A model with ``arch: own`` is rebuilt by importing and calling what the file names. That is code of whoever wrote
    the file, so it runs only if ``trust_own_code`` says so.

    >>> folder = fedfuse.run("digits", method="fedavg", federation={"rounds": 1}, training={"epochs": 1}).folder.path
    >>> model = fedfuse.load_model(folder / "final" / "mlp.safetensors")
    >>> model(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    _check_file(Path(path))
    card, model = described(Path(path), trust_own_code)
    model = _filled(model, _tensors(Path(path)), card, path)
    if card.interface is not None:
        model.predictor = Predictor(card.interface, card.input_shape)
        model.classes_ = card.interface.classes
    return model.eval()


def described(path: Path, trust_own_code: bool) -> tuple[ModelCard, Classifier]:
    """What the file says of its model, and the network that it describes."""
    try:
        header = read_header(path)
        _check_format(path, header.about)
        own = _own_code(header.about)
        if own is None:
            card = ModelCard.model_validate(header.about)
            return card, created(card, {name: place.shape for name, place in header.tensors.items()})
        if trust_own_code:
            card = ModelCard.model_validate(header.about)
    except ValidationError as error:
        raise _not_a_model(path, first_mistake(error)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _not_a_model(path, f"{error}") from None
    if trust_own_code:
        return card, create(card.architecture, card.input_shape, card.classes, Key(0))
    raise DataError(
        f"{path} is built by calling '{own}'; if you trust the file, load it with trust_own_code=True "
        "(fedfuse export: --trust-own-code)"
    )


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return read_safetensors(path)[0]
    except (DamagedError, OSError) as error:
        raise _not_a_model(path, f"{error}") from None


def is_saved_model(path: Path) -> bool:
    """Whether the file says of itself what it is, as models of fedfuse do."""
    try:
        about = read_header(path).about
    except (OSError, ValueError):
        return False
    return isinstance(about, Mapping) and "architecture" in about


def _check_format(path: Path, about: Any) -> None:
    number = about.get("format") if isinstance(about, Mapping) else None
    if isinstance(number, int) and number > FORMAT:
        raise DataError(
            f"{path} has format {str(number)[:9]}, and this version of fedfuse reads up to {FORMAT}; update fedfuse"
        )


def _own_code(about: Any) -> str | None:
    """The address of what is not ours, found without importing it."""
    architecture = about.get("architecture") if isinstance(about, Mapping) else None
    if not isinstance(architecture, Mapping):
        return None
    arch = architecture.get("arch")
    return str(architecture.get("callable"))[:LONGEST_REASON] if arch == "own" else arch if is_address(arch) else None


def _not_a_model(path: Path, reason: str) -> DataError:
    first_line = ascii(reason.partition("\n")[0][:LONGEST_REASON])[1:-1]
    return DataError(f"{path} is not a model saved by fedfuse: {first_line}")


def _filled(model: Classifier, tensors: Mapping[str, Tensor], card: ModelCard, path: str | Path) -> Classifier:
    if card.own_names and isinstance(model, AdaptedClassifier):
        tensors = model.adapted_state(tensors)
    try:
        model = fitted(model, _layout_of(tensors, like=Layout.of(model)))
    except (ConfigError, ValueError, KeyError) as error:
        raise DataError(
            f"{path} does not fit the network that '{card.architecture.arch}' builds now; was its code changed? "
            f"({error})"
        ) from None
    for name in Layout.of(model).by_name:
        if not (tensors[name].is_floating_point() and is_finite(tensors[name])):
            raise DataError(f"{path}: '{name}' holds what is not a finite number; the run that made it has diverged")
    model.load_state_dict(tensors, strict=False)  # counters are not saved
    return model


def _check_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.is_dir():
        models = [*sorted(path.glob("final/*.safetensors")), *sorted(path.glob("*.safetensors"))]
        example = next((f", for example {file}" for file in models if file.name != PARTITION), "")
        raise DataError(f"{path} is a folder; give the file of a model{example}")


def _layout_of(tensors: Mapping[str, Tensor], like: Layout) -> Layout:
    """The layout with the shapes that were saved, which differ from the architecture's in widths perhaps."""

    def shaped(rows: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((name, tuple(tensors[name].shape)) for name, _ in rows)

    return Layout(shaped(like.parameters), shaped(like.buffers))
