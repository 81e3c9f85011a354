"""Whether a network's twin computes what the network does, found by asking both.

Two questions, about random weights and inputs. In double precision: are features, logits and gradients of every client
the plain network's, also when its batch is filled up with examples that do not count? In single precision: has a client
the same bits in another place and company? A network with dropout or batch statistics, or whose code mixes channels,
fails the first. The answer depends on the network and the shapes alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.models.classifier import Classifier
from fedfuse.models.stacked import Twin

TOLERANCE = 1e-9
"""Of the difference, relative to the largest number, in double precision."""


def has_twin(network: Classifier, input_shape: tuple[int, ...], length: int, size: int, device: torch.device) -> bool:
    """Whether ``size`` clients with batches of up to ``length`` inputs can be trained as one."""
    before = torch.default_generator.get_state()
    try:
        cases = _cases(network, input_shape, length, size)
        right = _is_right(network, cases, length, device) and _is_blind(network, cases, length, device)
    except Exception:  # somebody else's network may fail in any way when it is used otherwise than it was written for
        return False
    finally:
        drew = not torch.equal(torch.default_generator.get_state(), before)
        torch.default_generator.set_state(before)
    return right and not drew


@dataclass(frozen=True)
class _Case:
    """A client: weights, inputs, and directions in which to look at the outputs."""

    weights: Tensor
    inputs: Tensor
    along: Sequence[Tensor]


Outcome = tuple[Tensor, ...]
"""Features, logits and gradient of a case."""


def _cases(network: Classifier, shape: tuple[int, ...], length: int, size: int) -> list[_Case]:
    """Their lengths differ, so that some batches have to be filled up."""
    random = Key(0, ("twin", size, length)).torch()
    start, network = Weights.of(network).flat, copy.deepcopy(network).train()
    return [_case(network, start, (max(1, length - place % 3), *shape), random) for place in range(size)]


@torch.no_grad()
def _case(network: Classifier, start: Tensor, shape: tuple[int, ...], random: torch.Generator) -> _Case:
    inputs, noise = (torch.randn(shape, generator=random) for shape in (shape, start.shape))
    along = [torch.randn(output.shape, generator=random) for output in _outputs(network, inputs)]
    return _Case(start * (1 + 0.1 * noise) + 0.01 * noise.flip(0), inputs, along)


def _is_right(network: Classifier, cases: Sequence[_Case], length: int, device: torch.device) -> bool:
    twin = Twin(network, len(cases), device, torch.float64)
    plain = copy.deepcopy(network).to(device, torch.float64).train()
    pairs = zip(_by_twin(twin, cases, length), (_by_network(plain, case) for case in cases), strict=True)
    return all(_near(one, other) for pair in pairs for one, other in zip(*pair, strict=True))


def _is_blind(network: Classifier, cases: Sequence[_Case], length: int, device: torch.device) -> bool:
    """The first client among the others, and alone in every place."""
    twin = Twin(network, len(cases), device)
    expected = _by_twin(twin, cases, length)[0]
    return all(_same(expected, _alone(twin, cases[0], place, length)) for place in range(len(cases)))


def _alone(twin: Twin, case: _Case, place: int, length: int) -> Outcome:
    nobody = _Case(torch.zeros_like(case.weights), case.inputs[:0], [along[:0] for along in case.along])
    cases = [nobody] * twin.size
    cases[place] = case
    return _by_twin(twin, cases, length)[place]


def _by_network(network: Classifier, case: _Case) -> Outcome:
    parameters = list(network.parameters())
    Weights(case.weights.to(parameters[0].dtype), Layout.of(network)).load_into(network)
    outputs = _outputs(network, case.inputs.to(parameters[0]))
    gradients = torch.autograd.grad(_seen(outputs, case), parameters)
    return *(output.detach() for output in outputs), torch.cat([gradient.reshape(-1) for gradient in gradients])


def _by_twin(twin: Twin, cases: Sequence[_Case], length: int) -> list[Outcome]:
    like = twin.parameters[0]
    twin.write(torch.stack([case.weights for case in cases]))
    inputs = torch.zeros(length, len(cases), *cases[0].inputs.shape[1:], device=like.device, dtype=like.dtype)
    for place, case in enumerate(cases):
        inputs[: len(case.inputs), place] = case.inputs.to(like)
    features, logits = map(twin.apart, _outputs(twin.network, twin.stacked(inputs)))
    outputs = [(f[: len(c.inputs)], o[: len(c.inputs)]) for f, o, c in zip(features, logits, cases, strict=True)]
    seen = [_seen(own, case) for own, case in zip(outputs, cases, strict=True)]
    gradients = twin.by_client(torch.autograd.grad(torch.stack(seen).sum(), twin.parameters))
    return [(*(o.detach() for o in own), gradient) for own, gradient in zip(outputs, gradients, strict=True)]


def _outputs(network: Classifier, inputs: Tensor) -> tuple[Tensor, Tensor]:
    features = network.features(inputs)
    return features, network.classifier(features)


def _seen(outputs: Sequence[Tensor], case: _Case) -> Tensor:
    """One number whose gradient reaches everything."""
    return torch.stack([(o * a.to(o)).sum() for o, a in zip(outputs, case.along, strict=True)]).sum()


def _same(one: Outcome, other: Outcome) -> bool:
    return all(map(torch.equal, one, other))


def _near(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() <= TOLERANCE * other.abs().max())
