"""What each kind of operation means for the units of the tensors that it reads.

A tensor has fields: each says, for every number in it, to which unit the number belongs. An activation has one field
or none, a weight one for each axis. A field is held with one place along the axes along which it does not differ.
Axes without a field (batch, pixels, tokens) are in an order that nobody changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.models.permutations.ties import ANYONE, FIXED, Ties, compact, varying

Fields = tuple[Tensor, ...]


class UnfollowedError(Exception):
    """An operation does with units what no rule says."""


@dataclass(frozen=True)
class Operand:
    """A tensor that an operation reads; ``fields`` is None for a constant, which neither data nor weights reach."""

    tensor: Tensor
    fields: Fields | None

    @property
    def known(self) -> Fields:
        return self.fields or ()

    @property
    def shape(self) -> torch.Size:
        return self.tensor.shape

    def dense(self) -> list[Tensor]:
        """The fields with a mark for every number."""
        return [field.expand(self.shape) for field in self.known]

    def blank(self) -> Tensor:
        """The one field of a tensor without any: a constant of equal numbers may stand for any unit."""
        equal = self.fields is None and (self.tensor.numel() == 0 or bool((self.tensor == self.tensor.min()).all()))
        return torch.full((1,) * self.tensor.ndim, ANYONE if equal else FIXED).expand(self.shape)

    def differs(self, axes: frozenset[int], rank: int) -> bool:
        """Whether its numbers are of any kind along these axes of a result that has ``rank`` of them."""
        own = [axis - (rank - self.tensor.ndim) for axis in axes]
        long = [axis for axis in own if axis >= 0 and self.shape[axis] > 1]
        if self.fields is not None:
            return bool(long)
        return any(bool((self.tensor != self.tensor.narrow(axis, 0, 1)).any()) for axis in long)

    def beside(self, axis: int, rank: int) -> Operand:
        """A vector as it meets a tensor of ``rank`` axes along one of them."""
        shape = [1] * rank
        shape[axis] = -1
        return Operand(self.tensor.reshape(shape), self.fields and tuple(f.reshape(shape) for f in self.fields))


def number_by_number(ties: Ties, operands: Sequence[Operand], rank: int) -> Fields:
    """Sums, products, activations: numbers that meet belong to one unit."""
    met: list[tuple[Tensor, set[int]]] = []
    for place, operand in enumerate(operands):
        for field in operand.known:
            field = field.reshape((1,) * (rank - field.ndim) + field.shape)
            same = next((i for i, (other, by) in enumerate(met) if place not in by and _nested(field, other)), None)
            if same is None:
                met.append((field, {place}))
            else:
                other, by = met[same]
                met[same] = (compact(ties.tie(other, field)), {*by, place})
    free = []
    for field, by in met:
        others = [operand for place, operand in enumerate(operands) if place not in by]
        if any(operand.differs(varying(field), rank) for operand in others):
            ties.hold(field)
        else:
            free.append(field)
    return tuple(free)


def symmetric(ties: Ties, operand: Operand, axes: Sequence[int]) -> Fields:
    """Means, maxima, norms over ``axes``: what they say does not depend on the order of the numbers there.

    Returns the fields of what has no order along them, which a norm goes on with.
    """
    over = frozenset(axis % max(operand.tensor.ndim, 1) for axis in axes)
    for field in operand.known:
        if varying(field) & over:
            _confine(ties, field, varying(field) - over)
    return operand.known


def reduced(ties: Ties, operand: Operand, axes: Sequence[int] | None, keep: bool) -> Fields:
    """The fields of a sum or maximum over ``axes``, or over all."""
    rank = operand.tensor.ndim
    over = axes or range(rank)
    symmetric(ties, operand, list(over))
    gone = sorted({axis % max(rank, 1) for axis in over})
    left = [field for field in operand.known if not varying(field) & set(gone)]
    return tuple(field if keep else _without(field, gone) for field in left)


def one_by_one(operand: Operand, axis: int) -> Fields:
    """What goes along an axis in its order, such as a running sum, for each of the other places by itself."""
    if any(axis % operand.tensor.ndim in varying(field) for field in operand.known):
        raise UnfollowedError
    return operand.known


def halves(ties: Ties, operand: Operand, axis: int, rank: int) -> Fields:
    """One half of an axis is the gate of the other."""
    parts = zip(*(field.expand(operand.shape).chunk(2, axis) for field in operand.known), strict=True)
    first, second = operand.tensor.chunk(2, axis)
    operands = [Operand(t, tuple(map(compact, fields))) for t, fields in zip((first, second), parts, strict=True)]
    return number_by_number(ties, operands, rank)


def by_channel(ties: Ties, operand: Operand) -> Fields:
    """Pooling, resizing, norms: every channel by itself, in all places."""
    return tuple(_flattened(ties, field, keep=(1,)) for field in operand.known)


def multiplied(ties: Ties, left: Operand, right: Operand) -> Fields:
    """A product of matrices, or of as many as the first axis says: (b, n, k) times (b, k, m)."""
    several = left.tensor.ndim == 3
    ours = [field if several else field.unsqueeze(0) for field in left.known]
    theirs = [(field if several else field.unsqueeze(0)).mT for field in right.known]
    inner = [
        [_flattened(ties, field, keep=(0, 2)).squeeze(1) for field in side if 2 in varying(field)]
        for side in (ours, theirs)
    ]
    rank = left.tensor.ndim
    for side, operand, axis in zip(inner, (left, right), (rank - 1, rank - 2), strict=True):
        if operand.fields is None and not operand.differs(frozenset({axis}), rank):
            side.append(torch.full((1, 1), ANYONE))
    _contract(ties, *inner)
    rows, columns = ([field for field in side if 2 not in varying(field)] for side in (ours, theirs))
    for field in (*rows, *columns):
        if 0 in varying(field):
            _confine(ties, field, frozenset({0}))
    fields = (*rows, *(field.mT for field in columns))
    return fields if several else tuple(field.squeeze(0) for field in fields)


def convolved(ties: Ties, x: Operand, weight: Operand, groups: int, transposed: bool) -> Fields:
    """A convolution: a sum over channels, or over those of a group."""
    rank, channels = x.tensor.ndim, x.shape[1]
    if any(len(varying(field)) > 1 for field in weight.known) or (transposed and groups > 1):
        raise UnfollowedError
    for field in weight.known:
        if varying(field) - {0, 1}:
            ties.hold(field)
    first, second = (_vectors(weight, axis) for axis in (0, 1))
    channel = [field.reshape(-1) for field in by_channel(ties, x)]
    if groups == 1:
        inner, outer = (first, second) if transposed else (second, first)
        _contract(ties, *([vector.unsqueeze(0) for vector in side] for side in (channel, inner)))
        return tuple(_beside(vector, rank) for vector in outer)
    rows = weight.shape[0] // groups
    for field in channel[1:]:
        ties.tie(field, channel[0])
    inputs = _one(channel, channels).reshape(groups, -1)
    outputs = _one(first, weight.shape[0]).reshape(groups, rows)
    if channels == groups:  # each channel by itself: what comes out of it is the same unit
        return (_beside(ties.tie(inputs, outputs).reshape(-1), rank),)
    ties.tie(inputs, _one(second, channels // groups).unsqueeze(0))
    ties.confine(outputs, torch.arange(groups).unsqueeze(1))
    return (_beside(outputs.reshape(-1), rank),)


def normalised_in_groups(ties: Ties, x: Operand, groups: int) -> Fields:
    """GroupNorm: channels may change places inside their group."""
    block = torch.arange(x.shape[1]) // (x.shape[1] // groups)
    fields = by_channel(ties, x)
    for field in fields:
        ties.confine(field.reshape(-1), block)
    return fields


def looked_up(ties: Ties, table: Operand, rank: int) -> Fields:
    """Rows of a table by their number: the rows stay in place, their columns are units."""
    for field in table.known:
        if 0 in varying(field):
            ties.hold(field)
    return tuple(vector.reshape((1,) * (rank - 1) + (-1,)) for vector in _vectors(table, 1))


def _contract(ties: Ties, ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    """A sum over the last axis, of numbers that meet along it, for each place of the first."""
    if len(ours) == len(theirs) == 1:
        _confine(ties, ties.tie(ours[0], theirs[0]), frozenset({0}))
        return
    for field in (*ours, *theirs):
        ties.hold(field)


def _flattened(ties: Ties, field: Tensor, keep: Sequence[int]) -> Tensor:
    """One place along all other axes: what is there belongs together."""
    others = [axis for axis in range(field.ndim) if axis not in keep]
    first = field.amax(others, keepdim=True) if others else field  # a constant's mark is the smallest
    ties.tie(field, first)
    return first


def _confine(ties: Ties, field: Tensor, axes: frozenset[int]) -> None:
    """Inside each place along ``axes``."""
    shape = [size if axis in axes else 1 for axis, size in enumerate(field.shape)]
    ties.confine(field, torch.arange(torch.Size(shape).numel()).reshape(shape))


def _vectors(operand: Operand, axis: int) -> list[Tensor]:
    """The fields along one axis."""
    return [field.reshape(-1) for field in operand.known if varying(field) == {axis}]


def _one(vectors: Sequence[Tensor], size: int) -> Tensor:
    return vectors[0] if vectors else torch.full((size,), FIXED)


def _beside(vector: Tensor, rank: int) -> Tensor:
    return vector.reshape(1, -1, *(1,) * (rank - 2))


def _without(field: Tensor, axes: Sequence[int]) -> Tensor:
    for axis in reversed(axes):
        field = field.squeeze(axis)
    return field


def _nested(one: Tensor, other: Tensor) -> bool:
    """Whether one differs only where the other does."""
    ours, theirs = varying(one), varying(other)
    return ours <= theirs or theirs <= ours
