"""How good models are, where there are labels; how much they agree and how sure they are, where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from fedfuse.parts.voting import measured
from fedfuse.report.sheet import Sheet


@dataclass(frozen=True)
class Quality:
    """Of one model's answers over the common classes; shares from 0 to 1, None where there is nothing to know it by."""

    accuracy: float | None
    """On labelled examples that nothing was chosen by."""
    loss: float | None
    calibration_error: float | None
    agreement: float
    """How often its first choice is the ensemble's, on the inputs without labels."""
    confidence: float
    """The mean probability of its first choice there."""

    def as_json(self) -> dict[str, float | None]:
        return asdict(self)


def quality(on_inputs: Tensor, ensemble: Tensor, on_examples: Tensor | None, labels: Tensor | None) -> Quality:
    """From log-probabilities or logits for the inputs and, where there are labels, for the examples."""
    agreement = float((on_inputs.argmax(dim=1) == ensemble.argmax(dim=1)).double().mean())
    confidence = float(on_inputs.double().softmax(dim=1).amax(dim=1).mean())
    if on_examples is None or labels is None or not len(labels):
        return Quality(None, None, None, agreement, confidence)
    found = measured(on_examples.double().log_softmax(dim=1), labels)
    return Quality(found.accuracy, found.nll, found.calibration_error, agreement, confidence)


def among_all(logits: Tensor, columns: Tensor, classes: int) -> Tensor:
    """A member's own answer with nothing for classes that it does not know: here, never its choice."""
    table = logits.new_full((len(logits), classes), -torch.inf)
    table[:, columns] = logits
    return table


def quality_sheet(qualities: Mapping[str, Quality]) -> Sheet:
    """A row for each model; what nobody could measure is left out."""
    measured = any(one.accuracy is not None for one in qualities.values())
    headings = ("accuracy\n%", "calibration\nerror %", "agrees with\nensemble %", "confidence\n%")
    shown = headings if measured else headings[2:]
    rows = [
        ((name,), tuple(map(_percent, values if measured else values[2:])))
        for name, one in qualities.items()
        for values in [(one.accuracy, one.calibration_error, one.agreement, one.confidence)]
    ]
    return Sheet("How good it is", ("model",), shown, rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
