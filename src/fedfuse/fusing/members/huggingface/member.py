"""A classifier that lies in a folder of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.fusing.members.asking import frozen, voice_of
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.files import sha256_of_files
from fedfuse.fusing.members.huggingface.blueprint import HuggingFaceBlueprint
from fedfuse.fusing.members.huggingface.folder import Folder, float32
from fedfuse.fusing.members.huggingface.network import Answering, class_of, config_of, described, filled
from fedfuse.fusing.members.licences import origins_in
from fedfuse.fusing.members.said import Said


class HuggingFaceMember(Member):
    """Its preparation of inputs is the folder's, and its weights have the names of the folder's files."""

    def __init__(self, folder: Folder, said: Said) -> None:
        self.folder, path = folder, folder.path
        if folder.task is None:
            raise DataError(
                f"{path} holds a {shortened(folder.class_name)!a}, which is no classifier of images or texts and so "
                "cannot teach; it can be a student"
            )
        if folder.config.get("problem_type") == "multi_label_classification" or len(folder.class_names) < 2:
            raise DataError(f"{path} does not choose one of several classes, so it cannot teach a classifier")
        self._blueprint = HuggingFaceBlueprint(folder, folder.task, said.normalise)
        network = described(folder, class_of(folder), config_of(folder))
        origins = origins_in(path)
        self.about = About(
            name=said.name,
            origin=str(path),
            format="Hugging Face",
            architecture=folder.class_name,
            reads=folder.task,
            shape=self.blueprint.shape,
            classes=len(folder.class_names),
            class_names=said.class_names(len(folder.class_names), folder.class_names),
            parameters=sum(parameter.numel() for parameter in network.parameters()),
            dtype=folder.dtype,
            sha256=sha256_of_files(folder.deciding_files),
            licence=said.licence or origins.licence,
            base_model=origins.base_model,
            vocabulary=self.blueprint.tokens.fingerprint if folder.task == "texts" else None,
            notes=self.blueprint.notes,
        )

    @property
    def weights(self) -> Mapping[str, Tensor]:
        return self.folder.tensors

    @property
    def blueprint(self) -> HuggingFaceBlueprint:
        return self._blueprint

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        config = self.blueprint.config(self.about.classes)
        weights = float32(self.folder.tensors)
        inner = filled(class_of(self.folder), config, weights, str(self.folder.path))
        network = frozen(Answering(inner), device)
        yield voice_of(network, self.blueprint.prepare, self.about, device)
