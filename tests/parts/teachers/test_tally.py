"""Teachers heard one at a time come to what they say together."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedfuse.parts.scores import ByConfidence
from fedfuse.parts.teachers import Asked, Ensemble, Question, Tally
from fedfuse.runtime.pool import silence
from tests.helpers import make_source
from tests.parts.teachers.test_ensemble import TARGETS, mixed


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weigh", [None, ByConfidence().weigh], ids=["as a whole", "by input"])
def test_teachers_may_leave_when_they_were_heard(target, weigh):
    """As updates arrive: of each teacher nothing is held but what it added. Bit for bit."""
    bank, teachers = mixed()
    teachers = [replace(teacher, weight=0.5 + place) for place, teacher in enumerate(teachers)]
    source = make_source(30)
    ensemble, every = Ensemble(bank, teachers, target, weigh), source.all_indices()
    question = Question(bank, Asked.about(source, every).batches, target, weigh)
    tally = Tally(target, has_weights=weigh is not None)
    for teacher, coefficient in zip(teachers, ensemble.coefficients, strict=True):
        tally.add(question(teacher), coefficient)
    assert torch.equal(tally.log_probabilities(), ensemble.predict(source, every, silence))
