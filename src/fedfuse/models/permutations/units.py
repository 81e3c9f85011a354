"""Hidden units that may change places: groups of them, found by following the network and proved by asking it."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import first_line
from fedfuse.core.randomness import Key
from fedfuse.models.permutations.following import Follower
from fedfuse.models.permutations.proof import computes_the_same


@dataclass(frozen=True, eq=False)
class Axis:
    """Where an axis of a tensor has the units of a group: row i of ``places`` are those of unit i, in their order."""

    tensor: str
    axis: int
    places: Tensor


@dataclass(frozen=True, eq=False)
class Group:
    """Units of which any may take the place of any other, along all these axes at once."""

    size: int
    axes: tuple[Axis, ...]

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(axis.tensor for axis in self.axes))

    def reorder(self, tensors: dict[str, Tensor], order: Tensor) -> None:
        """Put unit ``order[i]`` into place i, in all tensors that are there; they are replaced, not written to."""
        for axis in self.axes:
            if axis.tensor not in tensors:
                continue
            tensor = tensors[axis.tensor]
            index = torch.arange(tensor.shape[axis.axis])
            index[axis.places.reshape(-1)] = axis.places[order].reshape(-1)
            tensors[axis.tensor] = tensor.index_select(axis.axis, index.to(tensor.device))


@dataclass(frozen=True, eq=False)
class Units:
    """All groups of a network, in the order in which an input meets them; ``unfollowed`` says what is in none."""

    groups: tuple[Group, ...]
    unfollowed: Mapping[str, str]

    def required(self, partly: bool) -> Units:
        """These, unless some could not be followed; with ``partly`` they stay where they are."""
        if self.unfollowed and not (partly and self.groups):
            layer, reason = next(iter(self.unfollowed.items()))
            advice = "; partly: true leaves them in place and aligns the others" if self.groups else ""
            raise ConfigError(f"its hidden units cannot all be followed: '{layer}' {reason}{advice}")
        return self

    def reordered(self, weights: Mapping[str, Tensor], orders: Sequence[Tensor]) -> dict[str, Tensor]:
        """The same network with each group's units in another order."""
        tensors = dict(weights)
        for group, order in zip(self.groups, orders, strict=True):
            group.reorder(tensors, order)
        return tensors


_KNOWN: WeakKeyDictionary[nn.Module, Units] = WeakKeyDictionary()


def units_of(network: nn.Module, example: Tensor) -> Units:
    """The units of a network that takes inputs like ``example``, of which there are at least two.

    A ConfigError says why there are none: they could not be followed, or the network's answers are others when all of
    them have changed places. The network itself is left alone.
    """
    known = _KNOWN.get(network)
    if known is None:
        with torch.inference_mode(False):
            known = _KNOWN[network] = _found(copy.deepcopy(network).cpu().eval(), example.cpu().clone())
    return known


def _found(network: nn.Module, example: Tensor) -> Units:
    follower = _followed(network, example)
    found = Units(_groups(follower), follower.unfollowed)
    if not found.groups and not found.unfollowed:
        raise ConfigError("it has no hidden units whose order could be another one")
    orders = [
        torch.randperm(group.size, generator=Key(0, ("order", i)).torch()) for i, group in enumerate(found.groups)
    ]
    if not computes_the_same(network, example, lambda weights: found.reordered(weights, orders)):
        raise ConfigError("it does not compute the same after its hidden units have changed places")
    return found


def _followed(network: nn.Module, example: Tensor) -> Follower:
    """In double precision, for which torch has fewer special ways; else in single."""
    for precision in (torch.float64, torch.float32):
        follower = Follower(network.to(precision))
        try:
            with Key(0, ("units",)).default_generator():
                follower.follow(network, example.to(precision) if example.is_floating_point() else example)
            return follower
        except Exception as error:  # somebody else's network may fail in any way
            reason = first_line(error)
    raise ConfigError(f"its hidden units cannot be followed: {reason}")


def _groups(follower: Follower) -> tuple[Group, ...]:
    """Units are of one group if they have as many places along every axis, and in every block that keeps them."""
    units = follower.ties.units()
    places: dict[int, dict[tuple[str, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for axis, marks in follower.marks.items():
        for place, unit in enumerate(units[marks.numpy()].tolist()):
            places[unit][axis].append(place)
    blocks: dict[int, Counter[int]] = defaultdict(Counter)
    for marks_and_blocks in follower.ties.blocks:
        for mark, block in marks_and_blocks.tolist():
            blocks[int(units[mark])][block] += 1
    alike: dict[object, list[int]] = defaultdict(list)
    for unit, where in places.items():
        if unit != 0:
            signature = tuple((axis, len(found)) for axis, found in where.items()), tuple(sorted(blocks[unit].items()))
            alike[signature].append(unit)
    return tuple(_group([places[unit] for unit in members]) for members in alike.values() if len(members) > 1)


def _group(members: Sequence[Mapping[tuple[str, int], Sequence[int]]]) -> Group:
    return Group(
        len(members), tuple(Axis(*axis, torch.tensor([unit[axis] for unit in members])) for axis in members[0])
    )
