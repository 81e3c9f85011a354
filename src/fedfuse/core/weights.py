"""A model's state as one flat vector with a layout, and the arithmetic on it.

One vector is what averages fast, travels fast and hashes fast. Parameters come first, then the floating
buffers (BatchNorm statistics), so "only the parameters" is a slice. Integer buffers do not travel:
BatchNorm's batch counter is reset on load, other ones are constants of the architecture.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from fedfuse.core.hashes import sha256_of
from fedfuse.core.sums import Sum

LOOKED_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Entry:
    """One tensor inside the flat vector."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """Names and shapes, in order, of a model's parameters and then of its floating buffers."""

    parameters: tuple[tuple[str, tuple[int, ...]], ...]
    buffers: tuple[tuple[str, tuple[int, ...]], ...]

    @staticmethod
    def of(model: nn.Module) -> Layout:
        return Layout(
            tuple((name, tuple(p.shape)) for name, p in model.named_parameters()),
            tuple((name, tuple(b.shape)) for name, b in _floating_buffers(model)),
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        entries, offset = [], 0
        for name, shape in self.parameters + self.buffers:
            entries.append(Entry(name, shape, offset))
            offset += math.prod(shape)
        return tuple(entries)

    @cached_property
    def by_name(self) -> Mapping[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def parameter_count(self) -> int:
        """P of the papers."""
        return sum(math.prod(shape) for _, shape in self.parameters)

    @cached_property
    def size(self) -> int:
        """P + B of the papers."""
        return self.parameter_count + sum(math.prod(shape) for _, shape in self.buffers)

    def to_json(self) -> dict[str, list[list[object]]]:
        return {
            "parameters": [[name, list(shape)] for name, shape in self.parameters],
            "buffers": [[name, list(shape)] for name, shape in self.buffers],
        }

    @staticmethod
    def from_json(value: Mapping[str, Sequence[Sequence[object]]]) -> Layout:
        def read(rows: Sequence[Sequence[object]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
            return tuple((str(name), tuple(int(n) for n in shape)) for name, shape in rows)  # type: ignore[attr-defined]

        return Layout(read(value["parameters"]), read(value["buffers"]))


class Weights(Mapping[str, Tensor]):
    """An immutable snapshot of a model: one flat vector, and a mapping from names to parts of it.

    >>> weights = fedfuse.Weights.of(torch.nn.Linear(2, 3))
    >>> list(weights), weights["weight"].shape, weights.flat.shape
    (['weight', 'bias'], torch.Size([3, 2]), torch.Size([9]))
    """

    def __init__(self, flat: Tensor, layout: Layout) -> None:
        if flat.shape != (layout.size,):
            raise ValueError(f"{tuple(flat.shape)} numbers for a layout of {layout.size}")
        self.flat = flat
        self.layout = layout

    @staticmethod
    def of(model: nn.Module, layout: Layout | None = None) -> Weights:
        """Copy the model's present state."""
        layout = layout or Layout.of(model)
        places = _places(model).floats
        with torch.no_grad():
            flat = torch.cat([places[entry.name].tensor.reshape(-1) for entry in layout.entries])
        return Weights(flat.cpu(), layout)

    def load_into(self, model: nn.Module) -> None:
        """Overwrite the model's state in place, so that one resident model serves many clients."""
        places = _places(model)
        with torch.no_grad():
            for name, place in places.floats.items():
                place.tensor.copy_(self[name])
            for place in places.counters:
                place.tensor.zero_()

    @property
    def here(self) -> Weights:
        """These weights in memory, for whoever looks at them more than once."""
        return self

    def between(self, begin: int, end: int) -> Tensor:
        """Some numbers of the flat vector."""
        return self.flat[begin:end]

    def __getitem__(self, name: str) -> Tensor:
        entry = self.layout.by_name[name]
        return self.flat[entry.offset : entry.offset + entry.size].view(entry.shape)

    def __iter__(self) -> Iterator[str]:
        return (entry.name for entry in self.layout.entries)

    def __len__(self) -> int:
        return len(self.layout.entries)

    @property
    def parameters(self) -> Tensor:
        """The trainable part of the flat vector."""
        return self.flat[: self.layout.parameter_count]

    @property
    def buffers(self) -> Tensor:
        """The floating buffers' part of the flat vector."""
        return self.flat[self.layout.parameter_count :]

    def with_parameters(self, parameters: Tensor) -> Weights:
        """These weights with other parameters and the same buffers."""
        return Weights(torch.cat([parameters, self.buffers]), self.layout)

    def with_buffers(self, buffers: Tensor) -> Weights:
        """These weights with other buffers and the same parameters."""
        return Weights(torch.cat([self.parameters, buffers]), self.layout)

    def __add__(self, other: Weights) -> Weights:
        return Weights(self.flat + other.flat, self.layout)

    def __sub__(self, other: Weights) -> Weights:
        return Weights(self.flat - other.flat, self.layout)

    def __mul__(self, factor: float) -> Weights:
        return Weights(self.flat * factor, self.layout)

    __rmul__ = __mul__

    @property
    def nbytes(self) -> int:
        return self.flat.numel() * self.flat.element_size()

    def equals(self, other: Weights) -> bool:
        """Bit for bit."""
        return self.layout == other.layout and torch.equal(self.flat, other.flat)

    def is_finite(self) -> bool:
        return is_finite(self.flat)

    def sha256(self) -> str:
        return sha256_of(self.flat)


def is_finite(tensor: Tensor) -> bool:
    """Whether all entries are."""
    if not tensor.is_complex() and math.isfinite(tensor.sum()):
        return True
    # A sum may overflow. Piece by piece, because torch makes copies to find it out.
    return all(bool(piece.isfinite().all()) for piece in tensor.reshape(-1).split(LOOKED_AT_ONCE))


class DistantWeights(Weights):
    """Weights that are brought whenever somebody looks at them, and forgotten again."""

    def __init__(self, dtype: torch.dtype, layout: Layout) -> None:
        self.dtype = dtype
        self.layout = layout

    @abstractmethod
    def read(self) -> Tensor:
        """The flat vector."""

    @property
    def flat(self) -> Tensor:  # type: ignore[override]
        return self.read()

    @property
    def here(self) -> Weights:
        return Weights(self.read(), self.layout)

    def load_into(self, model: nn.Module) -> None:
        self.here.load_into(model)

    @property
    def nbytes(self) -> int:
        return self.layout.size * self.dtype.itemsize

    def __reduce__(self) -> tuple[type[Weights], tuple[Tensor, Layout]]:
        """What travels to another process are the weights themselves."""
        return Weights, (self.read(), self.layout)


NOTHING = Weights(torch.empty(0), Layout((), ()))
"""In a message that carries no weights."""


def mean(weights: Sequence[Weights], coefficients: Sequence[float]) -> Weights:
    """The average with coefficients that are normalised here, summed in the given order.

    The sum runs in double precision, so that averaging copies of one model gives that model back exactly.
    """
    average = Average(weights[0])
    for one, share in zip(weights, shares(coefficients), strict=True):
        average.add(one, share)
    return average.result()


def shares(coefficients: Sequence[float]) -> list[float]:
    """Of the sum of all, each one's part."""
    total = sum(coefficients)
    return [coefficient / total for coefficient in coefficients]


class Average:
    """A mean of weights that are ``like`` these and come one by one, each with its share."""

    def __init__(self, like: Weights) -> None:
        self._layout, self._dtype = like.layout, like.flat.dtype
        self._sum = Sum(like.layout.size)

    def add(self, weights: Weights, share: float) -> None:
        self._sum.add(weights.flat, share)

    def result(self) -> Weights:
        return Weights(self._sum.total.to(self._dtype), self._layout)


def as_parameters(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """A flat vector as one tensor for each parameter of a model, on the parameters' device."""
    pieces = flat.split([p.numel() for p in parameters])
    return [piece.view(p.shape).to(p.device) for piece, p in zip(pieces, parameters, strict=True)]


def _floating_buffers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return ((name, b) for name, b in model.named_buffers() if b.is_floating_point())


@dataclass(frozen=True)
class _Place:
    """Where a module has one of its tensors, which may be replaced by another one."""

    held: Mapping[str, Tensor | None]
    name: str

    @property
    def tensor(self) -> Tensor:
        tensor = self.held[self.name]
        assert tensor is not None
        return tensor


@dataclass(frozen=True)
class _Places:
    """All that a model's weights are read from and written to."""

    floats: Mapping[str, _Place]
    counters: Sequence[_Place]


_KNOWN: WeakKeyDictionary[nn.Module, _Places] = WeakKeyDictionary()


def _places(model: nn.Module) -> _Places:
    """Found once for each model: to walk through its modules takes longer than to copy what a small one holds."""
    known = _KNOWN.get(model)
    if known is None:
        known = _KNOWN[model] = _walk(model)
    return known


def _walk(model: nn.Module) -> _Places:
    buffers = dict(model.named_buffers())
    parameters = {name: _place(model, name, "_parameters") for name, _ in model.named_parameters()}
    floating = {name: _place(model, name, "_buffers") for name, _ in _floating_buffers(model)}
    counters = [_place(model, name, "_buffers") for name in buffers if name.endswith("num_batches_tracked")]
    return _Places({**parameters, **floating}, counters)


def _place(model: nn.Module, name: str, kind: str) -> _Place:
    path, _, own = name.rpartition(".")
    return _Place(getattr(model.get_submodule(path), kind), own)
