"""Where a student starts: fresh, as a member of its own architecture, or as a merge of several of them.

Every start is judged by the same measure before anything is taught: by accuracy where there are labelled examples, and
by how often it agrees with the ensemble where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.federation.shelf import Shelf
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.members import Blueprint, Member
from fedfuse.fusing.merged import Alike

FRESH = "fresh"

Measure = Callable[[nn.Module], float]
"""How good a network is; the larger, the better."""


@dataclass(frozen=True)
class Start:
    """One way to begin: its name, and the weights of the student's network."""

    name: str
    weights: Weights


@dataclass(frozen=True)
class Begun:
    """The starts by name with what each is worth, the best first; the one that was chosen, and why."""

    worth: Mapping[str, float]
    chosen: Start
    why: str


def as_students(
    blueprint: Blueprint, members: Sequence[Member], classes: Classes, network: nn.Module, key: Key, shelf: Shelf
) -> dict[str, Weights]:
    """The weights of those members that are of the student's architecture, by their names; large ones are put away."""
    fresh, heads = Weights.of(network), _heads(blueprint, len(classes.names), key)
    found = {}
    for member, names in zip(members, classes.members, strict=True):
        own = torch.tensor([classes.names.index(name) for name in names])
        if (weights := _as_student(blueprint, member, own, fresh, network, heads)) is not None:
            found[member.about.name] = shelf.keep(weights)
    return found


def as_base(
    blueprint: Blueprint, base: Member, classes: Classes, network: nn.Module, key: Key, shelf: Shelf
) -> Weights:
    """What all models were trained from, as weights of the student's network; it has the common classes in order."""
    found = as_students(blueprint, [base], replace(classes, members=(classes.names,)), network, key, shelf)
    if base.about.classes != len(classes.names) or not found:
        raise ConfigError(f"the base {base.about.name} is of another architecture or has other classes")
    return found[base.about.name]


def starts(fresh: Weights, alike: Alike) -> Iterator[Start]:
    """All starts that there are: fresh, each model, and what their weights can be merged to quickly."""
    yield Start(FRESH, fresh)
    for name, weights in alike.models.items():
        yield Start(name, weights)
    if len(alike.models) > 1:
        for name, weights in alike.quick():
            yield Start(name, weights)


def begin(found: Iterable[Start], network: nn.Module, measure: Measure, of_what: str) -> Begun:
    """Judge the starts by a share ``of_what``, one after another; of equals the first one wins."""
    worth: dict[str, float] = {}
    best: Start | None = None
    for start in found:
        start.weights.load_into(network)
        worth[start.name] = measure(network)
        if best is None or worth[start.name] > worth[best.name]:
            best = start
    assert best is not None, "one can always begin afresh"
    why = f"the student begins as {best.name}, which gets {100 * worth[best.name]:.1f} % {of_what}"
    others = sorted(((share, name) for name, share in worth.items() if name != best.name), reverse=True)
    if others:
        why += f"; the next best start, {others[0][1]}, {100 * others[0][0]:.1f} %"
    return Begun(dict(sorted(worth.items(), key=lambda item: -item[1])), best, why)


def _as_student(
    blueprint: Blueprint, member: Member, own: Tensor, fresh: Weights, network: nn.Module, heads: frozenset[str]
) -> Weights | None:
    """A member's weights in the student's network, with fresh rows for classes it does not know; None if it differs."""
    weights = member.weights
    if weights is None or member.blueprint is None or member.blueprint.name != blueprint.name:
        return None
    fresh.load_into(network)
    ours = blueprint.weights_of(network)
    if weights.keys() != ours.keys():
        return None
    fitted = {name: _fitted(weights[name], tensor, own if name in heads else None) for name, tensor in ours.items()}
    found = {name: tensor for name, tensor in fitted.items() if tensor is not None}
    if len(found) < len(fitted):
        return None
    try:
        blueprint.load(network, found)
    except ConfigError:
        return None
    as_student = Weights.of(network)
    return as_student if as_student.is_finite() else None


def _fitted(theirs: Tensor, ours: Tensor, own: Tensor | None) -> Tensor | None:
    """A tensor of a member in the place of a student's; one whose rows are classes goes there row by row."""
    if own is None:
        return theirs if theirs.shape == ours.shape else None
    if theirs.shape != (len(own), *ours.shape[1:]):
        return None
    return ours.clone().index_copy(0, own, theirs.to(ours.dtype))


def _heads(blueprint: Blueprint, classes: int, key: Key) -> frozenset[str]:
    """The names of weights whose rows are classes: those that change their shape with the number of classes."""
    try:
        fewer, more = (blueprint.weights_of(blueprint.build(number, key)) for number in (classes, classes + 1))
    except ConfigError:  # a network of a fixed number of classes
        return frozenset()
    return frozenset(name for name, tensor in fewer.items() if name in more and more[name].shape != tensor.shape)
