"""``target: auto``: what an ensemble averages, and how loud its teachers speak, are chosen anew in every round.

Mean of logits or of probabilities, of teachers as they are, normalised or calibrated (``parts/voting``): on the
server's validation examples if there are some, else by agreement on public inputs. How much each teacher counts stays
the affair of ``scores``. What the fusion averages by default is taken unless something else is clearly better.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from fedfuse.core.slices import spread
from fedfuse.parts.context import ServerView
from fedfuse.parts.teachers import Asked, Ensemble
from fedfuse.parts.voting import Heard, LabelSets, compare, ways_to_vote
from fedfuse.runtime.evaluate import Evaluator

MOST_ASKED = 1000
"""Inputs on which ensembles are compared."""


def chosen(view: ServerView, ensemble: Ensemble) -> Ensemble:
    """The same teachers heard in the best way, and why; one teacher leaves nothing to choose."""
    if len(ensemble.teachers) == 1:
        return ensemble
    ways = ways_to_vote(with_labels=False, weightings=["given"])
    choice = compare(_heard(view, ensemble), sorted(ways, key=lambda way: way.target != ensemble.target))
    teachers = [
        replace(teacher, loudness=factor)
        for teacher, factor in zip(ensemble.teachers, choice.fitted.factors, strict=True)
    ]
    return replace(ensemble, teachers=teachers, target=choice.voting.target, why=choice.why)


def _heard(view: ServerView, ensemble: Ensemble) -> Heard:
    weights = [teacher.weight for teacher in ensemble.teachers]
    sets = LabelSets.equal(len(weights), view.bank.classes)
    if view.validation is None or any(isinstance(weight, Tensor) for weight in weights):
        rows = torch.tensor(spread(len(view.public), MOST_ASKED))
        tables = [weight[rows].cpu() if isinstance(weight, Tensor) else weight for weight in weights]
        return Heard(ensemble.each(Asked.about(view.public, rows), view.pool), sets, None, tables, ensemble.weigh)
    examples, rows = view.validation.examples, torch.tensor(spread(len(view.validation), MOST_ASKED))
    batches = [partial(_inputs, view.validation, some) for some in rows.split(view.validation.batch_size)]
    said = ensemble.each(Asked(batches), view.pool)
    return Heard(said, sets, examples.labels[rows], weights, ensemble.weigh)


def _inputs(validation: Evaluator, rows: Tensor) -> Tensor:
    return validation.compute.inputs(validation.transform(validation.examples.inputs[rows]))
