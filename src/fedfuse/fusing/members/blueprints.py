"""Students: a blueprint from whatever somebody calls a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fedfuse.core.choice import is_address
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.foreign import findable
from fedfuse.core.paths import expanded
from fedfuse.core.text import TextShape
from fedfuse.data.tokens import VOCABULARY
from fedfuse.fusing.members.base import Blueprint, Member
from fedfuse.fusing.members.find import open_member
from fedfuse.fusing.members.huggingface.blueprint import blueprint_of
from fedfuse.fusing.members.huggingface.folder import CONFIG, Folder
from fedfuse.fusing.members.inputs import Normalise, askable, inputs_of
from fedfuse.fusing.members.own import ModuleBlueprint
from fedfuse.fusing.members.saved import SavedMember
from fedfuse.fusing.members.state_dict import TOKENS, architecture_of
from fedfuse.fusing.members.zoo import ZooBlueprint
from fedfuse.fusing.raw import Raw, kind_of_raw
from fedfuse.models import ARCHITECTURES, Architecture, Classifier

Student = str | Path | nn.Module | Callable[..., Any] | Mapping[str, Any] | Architecture | Member | Blueprint


def find_blueprint(
    what: Student,
    raw: Raw,
    class_names: Sequence[str],
    normalise: Normalise | None = None,
    trust_own_code: bool = False,
) -> Blueprint:
    """The network that is meant, for these inputs and classes.

    A name of the zoo, its options as a mapping, or ``package.module:function``; a folder of transformers or a file of
    fedfuse, whose weights it begins with (``{"folder": ..., "fresh": True}``: not); a module, which is copied; a
    function that makes one; a trained model, of whose kind it is to be.
    """
    if isinstance(what, Blueprint):
        return what
    if isinstance(what, Member):
        if what.blueprint is None:
            raise ConfigError(
                f"{what.about.name} ({what.about.format}) can be asked but not trained; choose another student"
            )
        return what.blueprint
    if isinstance(what, nn.Module):
        return _of_module(what, raw, normalise)
    if isinstance(what, Mapping) and "folder" in what:
        return _in_place(Path(what["folder"]), raw, class_names, normalise, trust_own_code, bool(what.get("fresh")))
    if isinstance(what, Architecture | Mapping):
        return _of_zoo(what, raw, normalise)
    if isinstance(what, str) and (what in ARCHITECTURES or is_address(what)):
        return _of_zoo(what, raw, normalise)
    if isinstance(what, str | Path):
        return _in_place(expanded(str(what), "student"), raw, class_names, normalise, trust_own_code)
    return _of_zoo({"arch": "own", "callable": findable(what, "student")}, raw, normalise)


def _of_zoo(what: str | Mapping[str, Any] | Architecture, raw: Raw, normalise: Normalise | None) -> ZooBlueprint:
    architecture = architecture_of(what)
    shape = shape_of(raw)
    return ZooBlueprint(architecture, shape, inputs_of(raw, shape, normalise, architecture.arch))


def _of_module(network: nn.Module, raw: Raw, normalise: Normalise | None) -> Blueprint:
    known = network.predictor if isinstance(network, Classifier) and normalise is None else None
    if known is not None:
        inputs = askable(known.interface.inputs, type(network).__name__)
        return ModuleBlueprint(network, inputs, known.input_shape)
    shape = shape_of(raw)
    return ModuleBlueprint(network, inputs_of(raw, shape, normalise, type(network).__name__), shape)


def _in_place(
    path: Path,
    raw: Raw,
    class_names: Sequence[str],
    normalise: Normalise | None,
    trust_own_code: bool,
    fresh: bool = False,
) -> Blueprint:
    if not path.exists():
        known = ", ".join(sorted(ARCHITECTURES))
        raise DataError(f"student: {path} is no file or folder, no package.module:function and none of {known}")
    if path.is_dir() and (path / CONFIG).is_file():
        return blueprint_of(Folder.open(path), kind_of_raw(raw), normalise, class_names, fresh)
    member = open_member(path, normalise=normalise, trust_own_code=trust_own_code)
    if isinstance(member, SavedMember) and not fresh:
        return member.starting(class_names)
    return find_blueprint(member, raw, class_names)


def shape_of(raw: Raw) -> tuple[int, ...]:
    """Of one input, as a network is told it that learns from these."""
    if isinstance(raw, Tensor):
        return tuple(raw.shape[1:])
    return TextShape(TOKENS, VOCABULARY)
