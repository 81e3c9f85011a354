"""Networks of transformers: only as large as their files, filled without a pickle, never with code of a folder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError, MissingExtraError, shortened
from fedfuse.fusing.members.files import in_brief
from fedfuse.fusing.members.huggingface.folder import Folder
from fedfuse.fusing.members.tensors import check_finite
from fedfuse.models.bounded import REPLACED, SLACK, SMALL, at_most
from fedfuse.models.export.quiet import quietly


class Answering(nn.Module):
    """A network of transformers that is called with what its blueprint prepares, and gives logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, prepared: Tensor | Mapping[str, Tensor]) -> Tensor:
        named = {"pixel_values": prepared} if isinstance(prepared, Tensor) else prepared
        output = self.inner(**named)
        logits: Tensor = output.logits
        return logits


def transformers_for(what: str) -> Any:
    """The package, which is optional."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(what, "text") from error
    return transformers


def class_of(folder: Folder, name: str | None = None) -> Any:
    """The network's class, if it is one of the package's own."""
    transformers = transformers_for(str(folder.path))
    wanted = name or folder.class_name
    found = getattr(transformers, wanted, None) if wanted.isidentifier() else None
    if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
        return found
    code = " and brings code of its own, which is never run" if "auto_map" in folder.config else ""
    raise DataError(
        f"{folder.path} is a {shortened(wanted)!a}, which transformers {transformers.__version__} does not have{code}; "
        "export it to ONNX, or give it as a module from Python"
    )


def config_of(folder: Folder, **changes: Any) -> Any:
    """The config as the package has it, from what was read and checked here."""
    transformers = transformers_for(str(folder.path))
    kind = folder.config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        code = "; it brings code of its own, which is never run" if "auto_map" in folder.config else ""
        raise DataError(
            f"{folder.path}: transformers {transformers.__version__} knows no networks of type "
            f"{shortened(str(kind))!a}{code}"
        )
    with _sentences(f"{folder.path}: its config cannot be read"):
        return transformers.CONFIG_MAPPING[kind].from_dict({**folder.clean_config, **changes})


def outlined(folder: Folder, cls: Any, config: Any) -> nn.Module:
    """The network without its weights, given up where the files cannot hold them."""
    shapes = folder.shapes
    most = SLACK * sum(map(prod, shapes.values())) + SMALL
    with _sentences(f"{folder.path}: its network cannot be built"), torch.device("meta"):
        try:
            with at_most(4 * len(shapes) + REPLACED, most):
                network: nn.Module = cls(config)
        except ValueError as error:
            if "much larger" not in str(error):
                raise
            raise DataError(f"{folder.path}: config.json describes a network much larger than its weights") from None
    return network


def described(folder: Folder, cls: Any, config: Any) -> nn.Module:
    """The same, and the weights in the files have its shapes."""
    network, shapes = outlined(folder, cls, config), folder.shapes
    own = network.state_dict()
    for name in own.keys() & shapes.keys():
        if tuple(own[name].shape) != shapes[name]:
            raise DataError(
                f"{folder.path}: '{name}' has the shape {shapes[name]}, but config.json describes "
                f"{tuple(own[name].shape)}; the two do not belong together"
            )
    return network


def filled(
    cls: Any, config: Any, weights: Mapping[str, Tensor], where: str, may_be_new: Callable[[str], bool] | None = None
) -> nn.Module:
    """A network with these weights, which have the names of the files; only what ``may_be_new`` may be missing."""
    check_finite(weights, where)
    with _sentences(f"{where}: its weights cannot be loaded"):
        network, found = cls.from_pretrained(
            None, config=config, state_dict=dict(weights), output_loading_info=True, ignore_mismatched_sizes=True
        )
    lacking = sorted({*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])})
    wrong = [name for name in lacking if may_be_new is None or not may_be_new(name)]
    if wrong:
        more = f", nor for {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise DataError(f"{where} holds nothing that fits '{wrong[0]}' of {cls.__name__}{more}")
    whole: nn.Module = network.float()
    return whole


def head_of(cls: Any, config: Any, where: str) -> frozenset[str]:
    """The names of the weights whose number depends on that of the classes."""

    def shapes(classes: int) -> dict[str, torch.Size]:
        other = copy.deepcopy(config)
        other.num_labels = classes
        with torch.device("meta"):
            return {name: tensor.shape for name, tensor in cls(other).named_parameters()}

    with _sentences(f"{where}: its network cannot be built"):
        few, more = shapes(2), shapes(3)
    return frozenset(name for name, shape in few.items() if more[name] != shape)


def fresh(cls: Any, config: Any, where: str) -> nn.Module:
    """A network drawn from torch's default generator."""
    with _sentences(f"{where}: its network cannot be built"):
        network: nn.Module = cls(config).float()
    return network


def names_in_files(network: nn.Module) -> dict[str, Tensor]:
    """A network's weights by the names that its files have, which are older than those of its layers."""
    return _as_in_files(network, {name: tensor.detach().clone() for name, tensor in network.state_dict().items()})


def names_of_files(network: nn.Module) -> dict[str, str]:
    """What files call a tensor, by its name in the network; without those that files have in another form."""
    state = network.state_dict()
    names = {id(tensor): name for name, tensor in state.items()}
    with _sentences("the names of its weights cannot be found"):
        renamed = _as_in_files(network, dict(state))
    return {names[id(tensor)]: name for name, tensor in renamed.items() if id(tensor) in names}


def _as_in_files(network: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:  # before version 5 both were the same
        return state
    renamed: dict[str, Tensor] = revert_weight_conversion(network, state)
    return renamed


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    """Quietly, and with one sentence for whatever the package raises."""
    transformers = transformers_for(what)
    transformers.logging.disable_progress_bar()
    try:
        with quietly():
            yield
    except (DataError, MissingExtraError):
        raise
    except Exception as error:  # the package raises its own, torch's and Python's errors
        raise DataError(f"{what} ({in_brief(error)})") from None
