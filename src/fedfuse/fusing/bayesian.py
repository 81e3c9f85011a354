"""FedBE's ensemble: beside the models themselves, their average and samples around it, for each architecture.

The Gaussian is that of federations (``parts/teachers/gaussian.py``; Chen and Chao, 2021), with models in the place of
clients, all of which count the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean
from fedfuse.federation.shelf import Shelf
from fedfuse.fusing.members import Blueprint, Member, Voice
from fedfuse.fusing.members.asking import frozen, voice_of
from fedfuse.parts.teachers import GaussianTeachers, RoundModels


class WeightsMember(Member):
    """A model that lies in no file: weights in a network of a member's kind."""

    def __init__(self, like: Member, blueprint: Blueprint, name: str, weights: Weights) -> None:
        self._blueprint, self._weights, self.like = blueprint, weights, like.about.name
        self.about = replace(
            like.about, name=name, origin=f"made of {like.about.architecture}", sha256=weights.sha256()
        )

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        network = self._blueprint.build(self.about.classes, Key(0))
        self._weights.load_into(network)
        network = frozen(network, device)
        yield voice_of(network, self._blueprint.prepare, self.about, device)


def bayesian(members: Sequence[Member], samples: int, key: Key, shelf: Shelf) -> list[Member]:
    """The members with those that are made of them; a ConfigError if no two are of one architecture."""
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(_kind(member), []).append(member)
    added: list[Member] = []
    several = {kind: alike for kind, alike in groups.items() if kind and len(alike) > 1}
    architectures = [alike[0].about.architecture for alike in several.values()]
    for kind, alike in several.items():
        called = alike[0].about.architecture
        if architectures.count(called) > 1:  # they differ in shape or classes
            called = f"{called} like {alike[0].about.name}"
        added += _made_of(alike, called, samples, key.child(kind), shelf)
    if not added:
        raise ConfigError("fedbe draws models around several of one architecture, and here are no two; choose auto")
    return [*members, *added]


def _kind(member: Member) -> str:
    """What models have in common that can be averaged; nothing, for one whose weights are not known."""
    blueprint, weights = member.blueprint, member.weights
    if blueprint is None or weights is None:
        return ""
    return repr((blueprint.name, blueprint.shape, member.about.class_names, member.about.classes, sorted(weights)))


def _made_of(alike: Sequence[Member], called: str, samples: int, key: Key, shelf: Shelf) -> Iterator[Member]:
    first, blueprint = alike[0], alike[0].blueprint
    assert blueprint is not None, "otherwise they are of no kind"
    network = blueprint.build(first.about.classes, Key(0))
    updates = []
    for place, member in enumerate(alike):
        assert member.weights is not None, "otherwise they are of no kind"
        blueprint.load(network, member.weights)
        updates.append(Update(0, place, "", shelf.keep(Weights.of(network)), examples=1))
    average = mean([update.weights for update in updates], [1.0] * len(updates))
    yield WeightsMember(first, blueprint, f"average of {called}", shelf.keep(average))
    drawn = GaussianTeachers(number=max(samples, 1)).samples(RoundModels(updates, {}, {}, key), "", updates)
    for number, weights in zip(range(1, samples + 1), drawn, strict=False):
        yield WeightsMember(first, blueprint, f"{called} sample {number}", shelf.keep(weights))
