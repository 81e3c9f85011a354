"""How an ensemble's members are heard together: what is averaged, how loud each speaks, how much each counts.

Members may know different classes (``label_sets.py``). Groups of members that share no class say nothing of each other,
so that a group is heard by how familiar an input looks to its members: a softmax over the groups of

    the mean over the group's members of ( E_k(x) - mean E_k ) / deviation of E_k,      E_k(x) = - mean_c log p_kc(x),

with mean and deviation over the inputs on which it was fitted. (E is the energy of OOD detection, Liu et al., 2020, for
logits with a mean of zero, as an offset of logits means nothing.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from fedfuse.parts.scores import ByConfidence, ByEntropy, ByOutputs, Coefficient
from fedfuse.parts.teachers.question import Target, Weigh, share
from fedfuse.parts.teachers.tally import Tally, of_mean_one
from fedfuse.parts.voting.label_sets import LabelSets, mean_of_logits, mean_of_probabilities
from fedfuse.parts.voting.loudness import Loudness, factors, sureness

Weighting = Literal["uniform", "confidence", "entropy", "accuracy", "class_accuracy", "given"]
"""confidence, entropy: by what a member says, input by input (``parts/scores``). accuracy: by its share of right
answers about labelled examples of its classes; class_accuracy: of each class by itself. given: as the caller says."""

BY_OUTPUTS: Mapping[str, ByOutputs] = {"confidence": ByConfidence(), "entropy": ByEntropy()}
IN_WORDS: Mapping[str, str] = {
    "as_is": "", "normalised": ", normalised", "calibrated": ", calibrated", "uniform": "", "given": "",
    "confidence": ", by confidence", "entropy": ", by entropy",
    "accuracy": ", by accuracy", "class_accuracy": ", by accuracy in each class",
}  # fmt: skip


@dataclass(frozen=True)
class Heard:
    """What members said of some inputs, and all else that a vote can be fitted to."""

    said: Sequence[Tensor]
    """Each member's logits over its own classes, a row for each input."""
    sets: LabelSets
    labels: Tensor | None = None
    """Numbers of the common classes."""
    given: Sequence[Coefficient] = ()
    """Weights of the members, on any scale: a number, or a row or a table with a column for each of its classes."""
    weigh: Weigh | None = None
    """The same input by input, by what a member says; beside ``given``."""
    _factors: dict[Loudness, tuple[float, ...]] = field(default_factory=dict, repr=False)

    def factors(self, loudness: Loudness) -> tuple[float, ...]:
        """What each member's logits are multiplied by."""
        if loudness not in self._factors:
            self._factors[loudness] = factors(loudness, self.said, self.own_labels)
        return self._factors[loudness]

    @cached_property
    def own_labels(self) -> list[Tensor] | None:
        return None if self.labels is None else self.sets.own_labels(self.labels)

    def part(self, rows: Tensor) -> Heard:
        """About some of the inputs."""
        labels = None if self.labels is None else self.labels[rows]
        return Heard([one[rows] for one in self.said], self.sets, labels, self.given, self.weigh)


@dataclass(frozen=True)
class Voting:
    """One way to hear members together; as it is, the one that does least harm where nothing is known."""

    target: Target = "mean_probabilities"
    loudness: Loudness = "as_is"
    weighting: Weighting = "uniform"

    def __str__(self) -> str:
        averaged = self.target.replace("_", " of ")
        return f"{averaged}{IN_WORDS[self.loudness]}{IN_WORDS[self.weighting]}"

    @property
    def needs_labels(self) -> bool:
        return self.weighting in ("accuracy", "class_accuracy")

    def fitted(self, heard: Heard) -> FittedVoting:
        """With what it takes from these answers and their labels."""
        loud = heard.factors(self.loudness)
        energies = [_energy(one * factor) for one, factor in zip(heard.said, loud, strict=True)]
        usual = tuple((float(one.mean()), float(one.std(unbiased=False))) for one in energies)
        by_outputs = BY_OUTPUTS.get(self.weighting)
        weigh = by_outputs.weigh if by_outputs else heard.weigh if self.weighting == "given" else None
        return FittedVoting(self, heard.sets, loud, tuple(self._weights(heard)), weigh, usual)

    def _weights(self, heard: Heard) -> Sequence[Coefficient]:
        if self.weighting == "given":
            return heard.given
        if not self.needs_labels:
            return [1.0 for _ in heard.said]
        assert heard.own_labels is not None, "whoever lists ways to vote leaves out those that need labels"
        return [_right(*one, self.weighting) for one in zip(heard.said, heard.own_labels, strict=True)]


@dataclass(frozen=True)
class FittedVoting:
    """A way to hear members together that is ready for any answers of theirs."""

    voting: Voting
    sets: LabelSets
    factors: tuple[float, ...]
    """What each member's logits are multiplied by."""
    weights: tuple[Coefficient, ...]
    """How much each counts, on any scale: a number, or one for each of its classes."""
    weigh: Weigh | None
    """How much each counts input by input, by what it says."""
    usual: tuple[tuple[float, float], ...]
    """Mean and deviation of each member's energy."""
    sureness: float = 1.0
    """What the ensemble's own log-probabilities are multiplied by."""

    def made_sure(self, heard: Heard) -> FittedVoting:
        """With the sureness that these answers and their labels say."""
        ensemble = replace(self, sureness=1.0).log_probabilities(heard.said)
        return replace(self, sureness=sureness(ensemble, self._loud(heard.said), heard.labels))

    def log_probabilities(self, said: Sequence[Tensor]) -> Tensor:
        """The ensemble's answer over the common classes: float32, a row for each input."""
        answer = self._together(self._loud(said))
        return answer if self.sureness == 1 else (answer * self.sureness).log_softmax(dim=1)

    def _loud(self, said: Sequence[Tensor]) -> list[Tensor]:
        return [one if factor == 1 else one * factor for one, factor in zip(said, self.factors, strict=True)]

    def _together(self, loud: Sequence[Tensor]) -> Tensor:
        if self.sets.are_equal:
            return self._plain_mean(loud)
        groups = self.sets.groups
        answers = [self._of_group(members, [loud[member] for member in members]) for members in groups]
        if len(groups) > 1:
            familiar = torch.stack([self._familiarity(members, loud) for members in groups], dim=1).log_softmax(dim=1)
            answers = [answer + familiar[:, [place]] for place, answer in enumerate(answers)]
        return torch.stack(answers).logsumexp(dim=0).float()

    def _plain_mean(self, loud: Sequence[Tensor]) -> Tensor:
        """As a federation's teachers are heard, to the bit."""
        target, weigh = self.voting.target, self.weigh
        weights = [self._in_common_order(member, weight) for member, weight in enumerate(self.weights)]
        tally = Tally(target, has_weights=weigh is not None)
        for member, weight in enumerate(of_mean_one(weights)):
            tally.add(share(target, self.sets.placed(member, loud[member]), weigh), weight)
        said = tally.log_probabilities()
        return said.log_softmax(dim=1) if any(isinstance(weight, Tensor) for weight in weights) else said

    def _in_common_order(self, member: int, weight: Coefficient) -> Coefficient:
        return self.sets.placed(member, weight) if isinstance(weight, Tensor) else weight

    def _of_group(self, members: Sequence[int], loud: Sequence[Tensor]) -> Tensor:
        """The answer of members that hang together; minus infinity for classes that none of them knows."""
        probabilities = [one.double().softmax(dim=1) for one in loud]
        weights = [torch.as_tensor(self.weights[member], dtype=torch.float64) for member in members]
        if self.weigh is not None:
            weights = [weight * self.weigh(p) for weight, p in zip(weights, probabilities, strict=True)]
        sets = self.sets.of(members)
        if self.voting.target == "mean_logits":
            return mean_of_logits(loud, weights, sets)
        return mean_of_probabilities(probabilities, weights, sets)

    def _familiarity(self, members: Sequence[int], loud: Sequence[Tensor]) -> Tensor:
        own = [(_energy(loud[member]), *self.usual[member]) for member in members]
        return torch.stack([(one - mean) / deviation if deviation else 0 * one for one, mean, deviation in own]).mean(
            dim=0
        )


def _energy(logits: Tensor) -> Tensor:
    return -logits.double().log_softmax(dim=1).mean(dim=1)


def _right(logits: Tensor, labels: Tensor, weighting: Weighting) -> Coefficient:
    """The share of right answers about its own classes; few of a class lean on all, few of all on none at all."""
    known = labels >= 0
    right, labels, classes = (logits.argmax(dim=1) == labels)[known], labels[known], logits.shape[1]
    overall = (float(right.sum()) + 1) / (len(labels) + classes)
    if weighting == "accuracy":
        return overall
    hits, asked = (torch.bincount(of, minlength=classes) for of in (labels[right], labels))
    return (hits + overall) / (asked + 1)
