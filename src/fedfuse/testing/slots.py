"""Where each kind of part goes in an experiment, and which laws have a meaning there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedfuse.core.part import Part
from fedfuse.data import Partition
from fedfuse.engines import EngineSettings
from fedfuse.experiment.config import Raw
from fedfuse.federation.attack import Attack
from fedfuse.methods import Method
from fedfuse.models import Architecture
from fedfuse.parts.fuse import Fuse
from fedfuse.parts.local import Objective
from fedfuse.parts.merge import Merge
from fedfuse.parts.metrics import Metric
from fedfuse.parts.protocol import Protocol
from fedfuse.parts.scores import Scores
from fedfuse.parts.screen import Screen
from fedfuse.parts.sources import SourceSettings
from fedfuse.parts.start import Start
from fedfuse.parts.teachers import TeacherKind
from fedfuse.parts.upload import Upload
from fedfuse.runtime.optimizers import Optimizer
from fedfuse.testing.laws import (
    EVERY,
    Law,
    changes_no_model,
    does_not_change_with_workers,
    does_not_depend_on_the_order_of_arrival,
    gives_no_example_twice,
    is_in_the_identity,
    is_saved_and_loaded,
)

DISTILLED: Raw = {"name": "feddf", "fuse": {"distiller": {"steps": 5, "batch_size": 16}}}
BY_PREDICTIONS: Raw = {"name": "ds-fl"}
IMAGES: Raw = {"name": "digits"}


@dataclass(frozen=True)
class Slot:
    """Parts of one base: the sections that put one into the toy experiment, and the laws that it must keep."""

    base: type[Part] | type[Method]
    place: Callable[[Any], Raw]
    laws: tuple[Law, ...] = EVERY


def _scores(part: Scores) -> Raw:
    return {"method": {**(DISTILLED if part.for_models else BY_PREDICTIONS), "scores": part}}


def _upload(part: Upload) -> Raw:
    return {"method": {**(BY_PREDICTIONS if part.needs_probabilities else {}), "upload": [part]}}


def _fuse(part: Fuse) -> Raw:
    return {"method": {**(BY_PREDICTIONS if part.reads == "predictions" else {}), "fuse": part}}


def _teachers(part: TeacherKind) -> Raw:
    return {"method": {**DISTILLED, "fuse": {**DISTILLED["fuse"], "teachers": [part]}}}


def _attack(part: Attack) -> Raw:
    return {"attack": [part], **({"method": BY_PREDICTIONS} if part.bends == "predictions" else {})}


_ELSEWHERE = (is_in_the_identity, does_not_change_with_workers, does_not_depend_on_the_order_of_arrival)

SLOTS = (
    Slot(Method, lambda method: {"method": method}),
    Slot(Start, lambda part: {"method": {"start": part}}),
    Slot(Protocol, lambda part: {"method": {"protocol": part}}),
    Slot(Upload, _upload),
    Slot(Scores, _scores),
    Slot(Objective, lambda part: {"method": {"local": part}}),
    Slot(Screen, lambda part: {"method": {"screen": [part]}}),
    Slot(Merge, lambda part: {"method": {"merge": part}}),
    Slot(Fuse, _fuse),
    Slot(TeacherKind, _teachers),
    Slot(SourceSettings, lambda part: {"method": DISTILLED, "source": part}),
    Slot(Partition, lambda part: {"partition": part}, (gives_no_example_twice, *EVERY)),
    Slot(Architecture, lambda part: {"data": IMAGES, "models": {"one": part}}, (*EVERY, is_saved_and_loaded)),
    Slot(Attack, _attack),
    Slot(Optimizer, lambda part: {"training": {"optimizer": part}}),
    Slot(Metric, lambda part: {"evaluation": {"metrics": [part]}}, (*EVERY, changes_no_model)),
    Slot(
        EngineSettings,
        lambda part: {"engine": part},
        (*(law for law in EVERY if law not in _ELSEWHERE), changes_no_model),
    ),
)


def slot_of(part: Part | Method) -> Slot:
    """The slot that a part fills."""
    for slot in SLOTS:
        if isinstance(part, slot.base):
            return slot
    bases = ", ".join(slot.base.__name__ for slot in SLOTS)
    raise TypeError(f"{type(part).__name__} fills no slot of an experiment; derive it from one of fedfuse's {bases}")
