"""Which way to hear members together is best, measured before anybody is taught.

With labels: by accuracy, then by negative log-likelihood (NLL). Whatever is fitted, temperatures too, is fitted on four
fifths of the examples and measured on the last fifth, five times. Another way than the default is taken only if it is
better by more than two standard errors of the difference, example by example, so that a few labels do not decide by
luck; among those, the first in the list that is within one standard error of the best.

Without labels: by agreement, the mean probability that members, made equally sure of themselves, give to an ensemble's
first choice among their classes. An ensemble that is one loud member agrees with that one alone. But agreement is a
weak witness: members can agree on what is wrong, so it takes a clear difference to leave the default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.parts.metrics import CalibrationError, Predictions
from fedfuse.parts.teachers.question import Target
from fedfuse.parts.voting.label_sets import LabelSets
from fedfuse.parts.voting.loudness import LEAST_LOG, Loudness, factors
from fedfuse.parts.voting.voting import FittedVoting, Heard, Voting, Weighting

FOLDS = 5
CLEARLY = 2.0
"""Standard errors by which another way than the default has to be better."""
MARGIN = 0.05
"""By how much more agreement another way than the default has to have."""


@dataclass(frozen=True)
class Measures:
    """How good answers about labelled examples are."""

    accuracy: float
    nll: float
    calibration_error: float


@dataclass(frozen=True)
class Row:
    """One way to vote, beside the others. None where it was not measured."""

    voting: Voting
    agreement: float
    measures: Measures | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Choice:
    """The way to vote that was chosen, what it was compared with, and one sentence that says why."""

    fitted: FittedVoting
    rows: tuple[Row, ...]
    why: str

    @property
    def voting(self) -> Voting:
        return self.fitted.voting

    def as_sure_as_right(self, heard: Heard) -> Choice:
        """The same ensemble, as sure of itself as its labels say, or as its members are where there are none."""
        fitted = self.fitted.made_sure(heard)
        rule = "its members are" if heard.labels is None else "it is right"
        why = f"{self.why}; its logits times {fitted.sureness:.2f}, as sure as {rule}"
        return replace(self, fitted=fitted, why=why)


def ways_to_vote(with_labels: bool, weightings: Sequence[Weighting] = ()) -> list[Voting]:
    """All that there are, those before others that take less for granted."""
    known = weightings or [weighting for weighting in get_args(Weighting) if weighting != "given"]
    all_ways = [
        Voting(target, loudness, weighting)
        for target in reversed(get_args(Target))
        for loudness in get_args(Loudness)
        for weighting in known
    ]
    return [voting for voting in all_ways if with_labels or not voting.needs_labels]


def compare(heard: Heard, ways: Sequence[Voting] = ()) -> Choice:
    """Try all ways to vote, or these, of which the first is the default."""
    ways = ways or ways_to_vote(heard.labels is not None)
    return _by_agreement(heard, ways) if heard.labels is None else _by_labels(heard, heard.labels, ways)


def measured(log_probabilities: Tensor, labels: Tensor) -> Measures:
    """Accuracy, NLL and expected calibration error."""
    said = log_probabilities.double().clamp_min(LEAST_LOG)
    names = tuple(map(str, range(said.shape[1])))
    gap = CalibrationError().compute(Predictions(said.numpy(), labels.numpy(), names))
    return Measures(float(_right(said, labels).mean()), float(F.nll_loss(said, labels)), gap)


def agreement(log_probabilities: Tensor, equally_sure: Sequence[Tensor], sets: LabelSets) -> float:
    """What members think of an ensemble: the mean probability that they give to what it prefers of their classes.

    ``equally_sure`` are the members' logits, so that nobody's approval is worth more because it is louder.
    """
    approved = [
        float(one.softmax(dim=1).gather(1, log_probabilities[:, own].argmax(dim=1, keepdim=True)).double().mean())
        for own, one in zip(sets.columns, equally_sure, strict=True)
    ]
    return math.fsum(approved) / len(approved)


def _by_agreement(heard: Heard, ways: Sequence[Voting]) -> Choice:
    fitted = [voting.fitted(heard) for voting in ways]
    approved = _approved([one.log_probabilities(heard.said) for one in fitted], heard)
    best = max(range(len(ways)), key=lambda place: (approved[place], -place))
    chosen = best if approved[best] > approved[0] + MARGIN else 0
    members = f"its first choices have {_percent(approved[chosen])} probability with the {len(heard.said)} members"
    if chosen:
        why = f"{ways[chosen]}: {members}, against {_percent(approved[0])} of {ways[0]}"
    else:
        why = f"{ways[0]}: {members}, and nothing else that was tried had {100 * MARGIN:.0f} points more"
    rows = [Row(way, approved[place], None, place == chosen) for place, way in enumerate(ways)]
    return Choice(fitted[chosen], tuple(rows), why)


def _by_labels(heard: Heard, labels: Tensor, ways: Sequence[Voting]) -> Choice:
    answers = _cross_fitted(heard, labels, ways)
    approved = _approved(answers, heard)
    measures = [measured(answer, labels) for answer in answers]
    right = torch.stack([_right(answer, labels) for answer in answers])
    loss = torch.stack([-_log_of(answer, labels) for answer in answers])
    better = [place for place in range(1, len(ways)) if _is_better(right, loss, place)]
    ranked = sorted(better, key=lambda place: (-measures[place].accuracy, measures[place].nll, place))
    chosen = next((place for place in better if not _exceeds(right[ranked[0]] - right[place], 1)), 0) if ranked else 0
    rows = [Row(way, approved[place], measures[place], place == chosen) for place, way in enumerate(ways)]
    return Choice(ways[chosen].fitted(heard), tuple(rows), _because(rows, chosen, len(labels)))


def _cross_fitted(heard: Heard, labels: Tensor, ways: Sequence[Voting]) -> list[Tensor]:
    """For each way, answers about every example by a vote that has not seen its label."""
    answers = [torch.empty(len(labels), heard.sets.classes) for _ in ways]
    folds = min(FOLDS, len(labels))
    fold_of = torch.from_numpy(Key(0).child("folds").numpy().permutation(len(labels)) % folds)
    for fold in range(folds):
        held_out = fold_of == fold
        seen, unseen = heard.part(~held_out if folds > 1 else held_out), heard.part(held_out)
        for answer, voting in zip(answers, ways, strict=True):
            answer[held_out] = voting.fitted(seen).log_probabilities(unseen.said)
    return answers


def _is_better(right: Tensor, loss: Tensor, place: int) -> bool:
    """Than the default: clearly more often right, or no less often and clearly nearer to the truth."""
    gained = right[place] - right[0]
    return _exceeds(gained, CLEARLY) or (float(gained.sum()) >= 0 and _exceeds(loss[0] - loss[place], CLEARLY))


def _exceeds(differences: Tensor, errors: float) -> bool:
    """Whether their mean is above zero by more than so many of its standard errors, which one example does not have."""
    if len(differences) < 2:
        return False
    return float(differences.mean()) > errors * float(differences.std()) / math.sqrt(len(differences))


def _because(rows: Sequence[Row], chosen: int, examples: int) -> str:
    default, measures = rows[0], [row.measures for row in rows]
    own, usual = measures[chosen], measures[0]
    assert own is not None
    assert usual is not None
    found = f"{rows[chosen].voting}: {_percent(own.accuracy)} of {examples} labelled examples right, NLL {own.nll:.3f}"
    if chosen:
        return f"{found}, against {_percent(usual.accuracy)} and {usual.nll:.3f} of {default.voting}"
    return f"{found}, and nothing else that was tried was better by two standard errors"


def _approved(answers: Sequence[Tensor], heard: Heard) -> list[float]:
    equally_sure = [one * factor for one, factor in zip(heard.said, factors("calibrated", heard.said), strict=True)]
    return [agreement(answer, equally_sure, heard.sets) for answer in answers]


def _right(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    return (log_probabilities.argmax(dim=1) == labels).double()


def _log_of(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    return log_probabilities.double().clamp_min(LEAST_LOG).gather(1, labels.unsqueeze(1)).squeeze(1)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
