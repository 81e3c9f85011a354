"""A merged or taught network as an adapter of its base: what it differs by, of a rank that somebody chooses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.fusing.adapters.base import Base, classifier_in
from fedfuse.fusing.adapters.layers import matrix_of
from fedfuse.fusing.adapters.loss import Loss
from fedfuse.fusing.adapters.low_rank import Factors, of_matrix
from fedfuse.fusing.adapters.member import AdaptedFolder, AdapterMember
from fedfuse.fusing.adapters.merging import MergedAdapters
from fedfuse.fusing.adapters.writing import shelved, write_adapter
from fedfuse.fusing.members import Blueprint, Member
from fedfuse.fusing.members.huggingface.blueprint import HuggingFaceBlueprint
from fedfuse.fusing.members.huggingface.member import HuggingFaceMember


def base_for(blueprint: Blueprint | None, given: Member | None, classes: int) -> Base:
    """What networks of a blueprint are adapters of: the model given, an adapter's base, or the student's folder."""
    if isinstance(blueprint, HuggingFaceBlueprint):
        if isinstance(given, HuggingFaceMember) and not isinstance(given, AdapterMember):
            if given.about.architecture != blueprint.class_name:
                raise ConfigError(
                    f"the base {given.about.origin} is a {given.about.architecture}, and no {blueprint.class_name}"
                )
            return classifier_in(given.folder, blueprint.class_name, classes)
        if isinstance(blueprint.folder, AdaptedFolder):
            return classifier_in(blueprint.folder.adapted.base.folder, blueprint.class_name, classes)
        if blueprint.begins_with_weights:
            return classifier_in(blueprint.folder, blueprint.class_name, classes)
    raise ConfigError(
        "LoRA is written as the change from a base model; let the models be adapters, or the student a folder of "
        "transformers with weights, or give the base as one"
    )


def write_merged(merged: MergedAdapters, rank: int, folder: Path) -> Loss:
    """Merged adapters as one, layer by layer; the base is only looked at where the change is no sum of products."""
    changes = {name: merged.factors(name, rank) for name in merged.layers}
    whole = {name: merged[name] for name in merged.base.shapes if name in merged.changed and name not in changes}
    return _write(merged.base, changes, whole, merged, rank, folder)


def student_as_lora(
    blueprint: Blueprint, network: nn.Module, given: Member | None, classes: int, rank: int, folder: Path
) -> Loss:
    """A network of this blueprint as an adapter of its base, with how it prepares its inputs."""
    base = base_for(blueprint, given, classes)
    lost = write_student(base, blueprint.weights_of(network), rank, folder)
    assert isinstance(blueprint, HuggingFaceBlueprint), "it has a base"
    blueprint.write_preparation(folder)
    return lost


def write_student(base: Base, weights: Mapping[str, Tensor], rank: int, folder: Path) -> Loss:
    """A network with these weights, by the names of files, as an adapter of its base."""
    if missing := [name for name in base.shapes if name not in weights]:
        raise ConfigError(f"the student has no '{missing[0]}', which its base has; it cannot be written as LoRA")
    changes, whole = {}, {}
    kinds = {base.names[f"{layer}.weight"]: kind for layer, kind in base.kinds.items()}
    for name in base.shapes:
        before, after = base.tensor(name) if base.has(name) else None, weights[name]
        if before is None:
            whole[name] = after
        elif torch.equal(before.to(after.dtype), after):
            continue
        elif name in kinds:
            changes[name] = of_matrix(matrix_of(after, kinds[name]) - matrix_of(before, kinds[name]), rank)
        else:
            whole[name] = after
    return _write(base, changes, whole, weights, rank, folder)


def _write(
    base: Base,
    changes: Mapping[str, Factors],
    whole: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    rank: int,
    folder: Path,
) -> Loss:
    shelf = shelved(base, changes, whole, weights)
    write_adapter(folder, base, shelf)
    return Loss.of(str(base.folder.path), rank, shelf.layers)
