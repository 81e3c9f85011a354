"""Networks brought into the order of another one: weight matching (Ainsworth et al., Git Re-Basin, ICLR 2023).

Of a network with weights w, the order P of its units is sought that makes <w_ref, P(w)> the largest, group by group:
with all other groups as they are, unit j in place i gains

    A_ij = sum over the group's axes of <w_ref at i, w at j>

and the best of all orders of the group is a linear assignment. A step is taken only if the product grows, so it ends.
It begins twice: from the order as it is, and from one that is found from the inputs on, each group by those weights
whose other axes are settled already. The larger product wins, the first among equals.

Several networks: each is matched with the reference; then, in random orders, each with the mean of the reference and
all others, until nothing changes (algorithm 3 of the paper, with a reference that stays as it is).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights, is_finite
from fedfuse.models.permutations.units import Axis, Units, units_of

State = dict[str, Tensor]
"""A network's weights by name, in double precision where they are compared."""

PASSES = 100
"""Over all groups, at most; about ten are needed."""
GAIN = 1e-9
"""Of the norms of what is compared: a smaller one is rounding."""
ITERATIONS = 5


def align(
    network: nn.Module,
    example: Tensor,
    reference: Mapping[str, Tensor],
    others: Sequence[Mapping[str, Tensor]],
    key: Key,
    iterations: int = ITERATIONS,
    partly: bool = False,
) -> list[Weights]:
    """Each of the others with its hidden units in the reference's order; it computes what it did.

    All are weights of ``network``, which takes inputs like ``example``, a batch of at least two. In each of
    ``iterations`` everyone is matched once more, with the mean of everybody else. A ConfigError says why the network's
    units have no order that can be changed, or which ones cannot be followed, unless it is enough to align it
    ``partly``; a DataError says which weights are not its own.
    """
    layout = Layout.of(network)
    for which, weights in (("the reference", reference), *((f"network {i + 1}", w) for i, w in enumerate(others))):
        _check(layout, which, weights)
    return aligned(units_of(network, example).required(partly), layout, reference, others, key, iterations)


def aligned(
    units: Units,
    layout: Layout,
    reference: Mapping[str, Tensor],
    others: Sequence[Mapping[str, Tensor]],
    key: Key,
    iterations: int = ITERATIONS,
) -> list[Weights]:
    """The same with units that were found before."""
    compared = [name for name, _ in layout.parameters]
    target = _double(reference, compared)
    states = [_double(other, compared) for other in others]
    orders = []
    for place, state in enumerate(states):
        orders.append(_matched(units, target, state, key.child("first", place)))
        _reorder(units, state, orders[-1])
    for iteration in range(iterations if len(states) > 1 else 0):
        if not _once_more(units, target, states, orders, key.child("again", iteration)):
            break
    return [_as_weights(units.reordered(w, o), layout) for w, o in zip(others, orders, strict=True)]


def _once_more(units: Units, target: State, states: list[State], orders: list[list[Tensor]], key: Key) -> bool:
    """Match each with the mean of all others; whether anybody changed."""
    total = {name: target[name] + sum(state[name] for state in states) for name in target}
    changed = False
    for place in key.child("who").numpy().permutation(len(states)).tolist():
        state = states[place]
        rest = {name: (total[name] - state[name]) / len(states) for name in total}
        step = _descent(units, rest, dict(state), key.child(place))
        if all(torch.equal(order, torch.arange(len(order))) for order in step):
            continue
        changed = True
        _reorder(units, state, step)
        orders[place] = [before[then] for before, then in zip(orders[place], step, strict=True)]
        total = {name: rest[name] * len(states) + state[name] for name in total}
    return changed


def _matched(units: Units, target: State, state: State, key: Key) -> list[Tensor]:
    """The better of two descents: from the order as it is, and from that of a walk from the inputs on."""
    walked = _walk(units, target, dict(state))
    further = dict(state)
    _reorder(units, further, walked)
    from_walk = [w[then] for w, then in zip(walked, _descent(units, target, dict(further), key), strict=True)]
    from_here = _descent(units, target, dict(state), key)
    here, there = (_product(target, units.reordered(state, orders)) for orders in (from_here, from_walk))
    return from_walk if there > here + GAIN * _product(target, target) else from_here


def _descent(units: Units, target: State, state: State, key: Key) -> list[Tensor]:
    """Coordinate descent over the groups; ``state`` is changed as it goes."""
    orders = [torch.arange(group.size) for group in units.groups]
    for sweep in range(PASSES):
        grew = False
        for place in key.child(sweep).numpy().permutation(len(orders)).tolist():
            group = units.groups[place]
            order = _best(group.size, [_gains(axis, target, state) for axis in group.axes if axis.tensor in target])
            after = {name: state[name] for name in group.tensors if name in state}
            before = dict(after)
            group.reorder(after, order)
            step = sum(float((target[name] * (after[name] - before[name])).sum()) for name in after)
            if step > GAIN * sum(float(target[name].norm() * before[name].norm()) for name in after):
                state |= after
                orders[place] = orders[place][order]
                grew = True
        if not grew:
            break
    return orders


def _walk(units: Units, target: State, state: State) -> list[Tensor]:
    """Each group once, that first of which most is known: by weights whose other axes are settled."""
    orders = [torch.arange(group.size) for group in units.groups]
    left = list(range(len(orders)))
    while left:
        unsettled = {(axis.tensor, axis.axis) for place in left for axis in units.groups[place].axes}
        settled = {
            place: [axis for axis in units.groups[place].axes if _is_settled(axis, unsettled) and axis.tensor in target]
            for place in left
        }
        place = max(left, key=lambda place: sum(target[axis.tensor].numel() for axis in settled[place]))
        group = units.groups[place]
        orders[place] = _best(group.size, [_gains(axis, target, state) for axis in settled[place]])
        group.reorder(state, orders[place])
        left.remove(place)
    return orders


def _is_settled(axis: Axis, unsettled: set[tuple[str, int]]) -> bool:
    return not any(tensor == axis.tensor and other != axis.axis for tensor, other in unsettled)


def _gains(axis: Axis, target: State, state: State) -> Tensor:
    """What each unit (column) gains in each place (row), along one axis."""
    ours, theirs = (_rows(axis, tensors[axis.tensor]) for tensors in (target, state))
    return ours @ theirs.T


def _rows(axis: Axis, tensor: Tensor) -> Tensor:
    """One row for each unit, with all that the axis has of it."""
    moved = tensor.movedim(axis.axis, 0)[axis.places.reshape(-1)]
    return moved.reshape(len(axis.places), -1)


def _best(size: int, gains: Sequence[Tensor]) -> Tensor:
    from scipy.optimize import linear_sum_assignment  # half a second that other methods need not pay

    total = sum(gains, torch.zeros(size, size, dtype=torch.float64))
    _, columns = linear_sum_assignment(total.numpy(), maximize=True)
    return torch.from_numpy(columns)


def _reorder(units: Units, state: State, orders: Sequence[Tensor]) -> None:
    state |= units.reordered(state, orders)


def _product(one: State, other: State) -> float:
    return sum(float((one[name] * other[name]).sum()) for name in one)


def _double(weights: Mapping[str, Tensor], names: Sequence[str]) -> State:
    return {name: weights[name].detach().cpu().double() for name in names}


def _as_weights(tensors: Mapping[str, Tensor], layout: Layout) -> Weights:
    return Weights(torch.cat([tensors[entry.name].reshape(-1) for entry in layout.entries]), layout)


def _check(layout: Layout, which: str, weights: Mapping[str, Tensor]) -> None:
    for entry in layout.entries:
        found = weights.get(entry.name)
        if found is None or tuple(found.shape) != entry.shape:
            has = "has none" if found is None else f"has one of shape {tuple(found.shape)}"
            raise DataError(f"the network has '{entry.name}' of shape {entry.shape}, but {which} to be aligned {has}")
        if not is_finite(found):
            raise DataError(f"'{entry.name}' of {which} to be aligned is not finite")
