"""A LoRA adapter as a trained model: a network of transformers with the base's weights, changed by the adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.paths import expanded
from fedfuse.fusing.adapters.base import Base, classifier_in
from fedfuse.fusing.adapters.config import CONFIG, AdapterConfig
from fedfuse.fusing.adapters.tensors import AdaptedTensors, own_name
from fedfuse.fusing.members.files import sha256_of_files
from fedfuse.fusing.members.huggingface.blueprint import HuggingFaceBlueprint
from fedfuse.fusing.members.huggingface.folder import CONFIG as BASE_CONFIG
from fedfuse.fusing.members.huggingface.folder import MOST, TASKS, Folder
from fedfuse.fusing.members.huggingface.member import HuggingFaceMember
from fedfuse.fusing.members.licences import origins_in
from fedfuse.fusing.members.said import Said
from fedfuse.fusing.members.tensors import FileTensors

WEIGHTS = "adapter_model.safetensors"
PICKLED = "adapter_model.bin"
FORMAT = "LoRA adapter"


@dataclass(frozen=True)
class AdaptedFolder(Folder):
    """A base's folder, whose weights are those that an adapter makes of it."""

    adapter: Path
    adapted: AdaptedTensors

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        return self.adapted

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.adapted.shapes

    @property
    def dtype(self) -> str:
        return self.adapted.base.folder.dtype

    @property
    def deciding_files(self) -> list[Path]:
        return [*super().deciding_files, self.adapter / CONFIG, self.adapter / WEIGHTS]


class AdapterMember(HuggingFaceMember):
    """Answers, weights and blueprint are those of the base with the adapter merged into it; peft is not needed."""

    folder: AdaptedFolder

    def __init__(self, path: Path, said: Said) -> None:
        config = AdapterConfig.read(path)
        if not (path / WEIGHTS).exists() and (path / PICKLED).exists():
            raise DataError(f"{path} holds a pickle ({PICKLED}), which is never opened; save it as safetensors")
        file = FileTensors([path / WEIGHTS])
        base = classifier_of(_base_folder(config, path, said), config, file)
        adapted = AdaptedTensors(base, file, config, path / WEIGHTS)
        super().__init__(AdaptedFolder(base.folder.path, base.folder.config, path, adapted), said)
        own, of_base = origins_in(path), origins_in(base.folder.path)
        self.about = replace(
            self.about,
            origin=str(path),
            format=FORMAT,
            licence=said.licence or own.licence or of_base.licence,
            base_model=own.base_model or config.base,
        )

    @property
    def adapted(self) -> AdaptedTensors:
        return self.folder.adapted

    @cached_property
    def base_sha256(self) -> str:
        """Of the weights that it changes."""
        return sha256_of_files(self.folder.weight_files)


def classifier_of(folder: Folder, config: AdapterConfig, file: FileTensors) -> Base:
    """The classifier that was trained, with as many classes as the last layer has that the adapter brings."""
    class_name = _class_name(folder, config)
    found = classifier_in(folder, class_name)
    known = found.network.state_dict()  # before anything else is built: a hostile config is given up here
    rows = {file.shapes[place][:1] for place in file if own_name(place) in found.head & known.keys()}
    if len(rows) != 1:
        return found
    [[classes]] = rows
    if not 2 <= classes <= MOST:
        raise DataError(f"{config.where.parent}: its last layer has {classes} rows, which is no number of classes")
    return classifier_in(folder, class_name, classes)


def _class_name(folder: Folder, config: AdapterConfig) -> str:
    if config.class_name is not None and any(part in config.class_name for part in TASKS):
        return config.class_name
    if folder.task is not None:
        return folder.class_name
    if config.is_text_classifier:
        return HuggingFaceBlueprint(folder, "texts").class_name
    raise DataError(f"{config.where.parent} is no adapter of a classifier of images or texts, so it cannot teach")


def _base_folder(config: AdapterConfig, path: Path, said: Said) -> Folder:
    """Where the caller says, or else where the adapter does: from here, or from its own folder."""
    if said.base is not None:
        places = [expanded(str(said.base), "base")]
    elif config.base is None:
        raise DataError(f"{config.where} does not name the model that it was trained from; say so (--base)")
    else:
        places = [Path(config.base), path / config.base]
    for place in places:
        if (place / BASE_CONFIG).is_file():
            return Folder.open(place)
    told = "is no folder of transformers" if said.base is not None else "is no folder here, and none is downloaded"
    raise DataError(f"{path} is an adapter of {places[0]}, which {told}; say where its base model lies (--base)")
