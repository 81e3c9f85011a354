"""Trained models into one: check, ask, compare ensembles, compare starts, teach, measure, write.

    members --ask--> answers --compare--> ensemble --teach--> student --write--> folder
                                            start --^

Whatever takes long is kept in ``.fusing`` inside the output folder, under the hash of all that it depends on: a fusion
that was killed goes on with the same command, and one with other settings takes over what is still true.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.core.slices import spread
from fedfuse.core.version import __version__
from fedfuse.core.weights import Weights
from fedfuse.federation.shelf import Shelf
from fedfuse.fusing.adapters.as_lora import student_as_lora
from fedfuse.fusing.adapters.loss import Loss
from fedfuse.fusing.answers import Answers, ask
from fedfuse.fusing.bayesian import WeightsMember, bayesian
from fedfuse.fusing.card import choice_sheet, members_sheet, plain, write_card
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.data_free import made_inputs
from fedfuse.fusing.inputs import FuseInputs, Labelled
from fedfuse.fusing.measuring import Quality, among_all, quality, quality_sheet
from fedfuse.fusing.members import Blueprint, Member
from fedfuse.fusing.merged import MERGES, Alike, merge_of
from fedfuse.fusing.plan import AUTO, FusePlan
from fedfuse.fusing.raw import Raw, rows_of
from fedfuse.fusing.result_folder import ResultFolder
from fedfuse.fusing.starting import FRESH, Begun, Measure, Start, as_base, as_students, begin, starts
from fedfuse.fusing.student import Examiner, StudentInputs, logits_of
from fedfuse.fusing.teaching import FileBookmark, teach
from fedfuse.parts.fuse.distiller import Distilled
from fedfuse.parts.sources.synthesised import SynthesisSettings
from fedfuse.parts.voting import Choice, compare
from fedfuse.report.sheet import Sheet
from fedfuse.runtime.compute import Compute, device_of
from fedfuse.runtime.pool import Progress

MOST_COMPARED = 4096
"""Inputs on which ensembles are compared where there are no labels; more change nothing but the time it takes."""
AGREEMENT_INPUTS = 1000
"""Inputs on which starts are compared where there are no labels."""


@dataclass(frozen=True)
class DataFree:
    """There are no inputs; they are to be made of this shape."""

    shape: tuple[int, ...]
    settings: SynthesisSettings


@dataclass(frozen=True)
class Request:
    """All that a fusion needs, found and checked."""

    members: Sequence[Member]
    classes: Classes
    inputs: FuseInputs | DataFree
    blueprint: Blueprint
    plan: FusePlan
    examples: Labelled | None = None
    """Their labels are numbers of the common classes."""
    command: str = ""
    base: Member | None = None
    """What all members were trained from, if somebody says so."""


@dataclass(frozen=True, repr=False)
class FuseResult:
    """What came out: the network in memory, and everything the card says."""

    network: nn.Module
    folder: Path
    class_names: tuple[str, ...]
    qualities: Mapping[str, Quality]
    choice: Choice
    starts: Begun
    distilled: Distilled
    reasons: tuple[str, ...]

    @property
    def student(self) -> Quality:
        return self.qualities[STUDENT]

    @property
    def ensemble(self) -> Quality:
        return self.qualities[ENSEMBLE]

    def __repr__(self) -> str:
        return "\n".join([quality_sheet(self.qualities).text(), "", *self.reasons, f"folder   {self.folder}"])

    def _repr_html_(self) -> str:
        said = "<br>".join(map(escape, (*self.reasons, f"folder {self.folder}")))
        return f"{quality_sheet(self.qualities).html()}<p>{said}</p>"


STUDENT, ENSEMBLE = "student", "ensemble"


@dataclass(frozen=True)
class Halves:
    """Labelled examples: by the first half things are chosen, on the second they are measured."""

    choose: Tensor
    measure: Tensor

    @staticmethod
    def of(count: int, key: Key) -> Halves:
        order = torch.randperm(count, generator=key.torch())
        return Halves(order[: count // 2].sort().values, order[count // 2 :].sort().values)


def fuse_models(request: Request, folder: ResultFolder, progress: Progress) -> FuseResult:
    """Do it, in a folder in which nobody else works."""
    if isinstance(request.inputs, DataFree):
        request = replace(request, inputs=_made(request, request.inputs, folder.work, progress))
    fusion = Fusion(request, folder.work, progress)
    choice = fusion.choice
    target = fusion.answers.log_probabilities(choice.fitted)
    student, begun = fusion.start(target)
    distilled = fusion.taught(student, target, begun)
    qualities = fusion.qualities(student, target)
    network = student.to("cpu", memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]
    reasons: tuple[str, ...] = (choice.why, begun.why)
    lost, made = None, folder.staging()
    if request.plan.as_lora:
        with fusion.compute.at_work():
            classes, rank = len(request.classes.names), request.plan.rank
            lost = student_as_lora(request.blueprint, network, request.base, classes, rank, made)
        reasons = (*reasons, f"{lost}; the qualities are those of the whole student")
    result = FuseResult(network, folder.path, request.classes.names, qualities, choice, begun, distilled, reasons)
    folder.publish(made, _written(request, result, lost, made))
    return result


@dataclass(frozen=True)
class Fusion:
    """The stages of one fusion, each of which finds again what it had done before."""

    request: Request
    work: Path
    progress: Progress

    @cached_property
    def key(self) -> Key:
        return Key(self.request.plan.seed)

    @cached_property
    def compute(self) -> Compute:
        return compute_of(self.request)

    @cached_property
    def shelf(self) -> Shelf:
        """Where weights lie that are looked at one after another."""
        return Shelf(self.work)

    @cached_property
    def members(self) -> Sequence[Member]:
        """Those of the request, and those that FedBE makes of them."""
        plan, members = self.request.plan, self.request.members
        if plan.method != "fedbe":
            return members
        return bayesian(members, plan.samples, self.key.child("fedbe"), self.shelf)

    @cached_property
    def inputs(self) -> FuseInputs:
        assert isinstance(self.request.inputs, FuseInputs), "they were made before"
        return self.request.inputs

    @cached_property
    def answers(self) -> Answers:
        """What everybody says about the inputs."""
        return self._asked(self.inputs.raw)

    @cached_property
    def examined(self) -> Examined | None:
        """What everybody says about the labelled examples, if there are any."""
        examples = self.request.examples
        if examples is None:
            return None
        return Examined(examples, self._asked(examples.raw), Halves.of(len(examples), self.key.child("halves")))

    @cached_property
    def choice(self) -> Choice:
        """The ensemble: by labels where there are some, by agreement where there are none."""
        examined, given = self.examined, self.request.plan.weights or ()
        if examined is None:
            heard = self.answers.heard(torch.tensor(spread(len(self.answers), MOST_COMPARED)))
        else:
            heard = examined.answers.heard(examined.halves.choose, examined.labels[examined.halves.choose])
        plan, heard = self.request.plan, replace(heard, given=given)
        choice = compare(heard, [] if plan.voting is None else [plan.voting])
        return choice.as_sure_as_right(heard) if plan.makes_sure else choice

    @cached_property
    def shown(self) -> StudentInputs:
        """The inputs as the student sees them."""
        augment = self.request.plan.augment
        raw, blueprint = self.inputs.raw, self.request.blueprint
        return StudentInputs(raw, blueprint, self.compute, "crop" in augment, "flip" in augment)

    @cached_property
    def examiner(self) -> Examiner | None:
        """Whoever judges starts: the half of the labelled examples that things are chosen by."""
        if self.examined is None:
            return None
        half = self.examined.halves.choose
        return Examiner(self._shown(rows_of(self.examined.examples.raw, half)), self.examined.labels[half])

    def start(self, target: Tensor) -> tuple[nn.Module, Begun]:
        """The student as it begins."""
        request, plan, key = self.request, self.request.plan, self.key.child("fresh")
        student = self.compute.place(request.blueprint.build(len(request.classes.names), key))
        fresh = self.shelf.keep(Weights.of(student))
        models = as_students(request.blueprint, request.members, request.classes, student, key, self.shelf)
        base = None
        if request.base is not None:
            base = as_base(request.blueprint, request.base, request.classes, student, key, self.shelf)
        alike = Alike(models, base, student, self.shown, self.examiner, self.key.child("merge"))
        found: Iterable[Start]
        if plan.start in MERGES:
            found = [Start(plan.start, alike.merged(plan.start, merge_of(plan.start, plan.merge)))]
        elif plan.start in (FRESH, *models):
            found = [Start(plan.start, {FRESH: fresh, **models}[plan.start])]
        elif plan.start == AUTO:
            found = starts(fresh, alike)
        else:
            known = [AUTO, FRESH, *models, *MERGES]
            raise ConfigError(f"{unknown('start', plan.start, known)}; models of other architectures are none")
        begun = begin(found, student, *self._measure(target))
        begun.chosen.weights.load_into(student)
        return student, begun

    def taught(self, student: nn.Module, target: Tensor, begun: Begun) -> Distilled:
        """The student as it ends, in place."""
        bookmark = FileBookmark(self.work / "lesson.safetensors", self._identity(begun))
        distiller, key = self.request.plan.distiller(student), self.key.child("lesson")
        return teach(student, self.shown, target, distiller, None, key, bookmark, self.progress)

    def qualities(self, student: nn.Module, target: Tensor) -> dict[str, Quality]:
        """Of every member, of the ensemble and of the student; on the half of examples that nothing was chosen by."""
        examined, fitted, classes = self.examined, self.choice.fitted, len(self.request.classes.names)
        labels = rows = None
        if examined is not None:
            rows = examined.halves.measure
            labels = examined.labels[rows]
        found, columns_of = {}, self.answers.classes.sets.columns
        for place, member in enumerate(self.members):
            columns = columns_of[place]
            own = among_all(self.answers.of(place), columns, classes)
            told = None if examined is None else among_all(examined.answers.of(place, rows), columns, classes)
            found[member.about.name] = quality(own, target, told, labels)
        together = None if examined is None else fitted.log_probabilities(examined.answers.heard(rows).said)
        found[ENSEMBLE] = quality(target, target, together, labels)
        alone = None
        if examined is not None:
            alone = logits_of(student, self._shown(rows_of(examined.examples.raw, examined.halves.measure)))
        found[STUDENT] = quality(logits_of(student, self.shown), target, alone, labels)
        return found

    def _asked(self, raw: Raw) -> Answers:
        members, folder, device = self.members, self.work / "answers", self.compute.device
        classes = extended(self.request.classes, self.request.members, members)
        with self.compute.at_work():
            return ask(members, raw, classes, folder, self.progress, device, self.request.plan.workers)

    def _shown(self, raw: Raw) -> StudentInputs:
        return StudentInputs(raw, self.request.blueprint, self.compute)

    def _measure(self, target: Tensor) -> tuple[Measure, str]:
        """How good a start is, and of what that is a share."""
        examiner = self.examiner
        if examiner is not None:
            return (lambda network: examiner.score(network).accuracy), "of the labelled examples right"
        where = torch.tensor(spread(len(target), AGREEMENT_INPUTS))
        part, first = self._shown(rows_of(self.shown.raw, where)), target[where].argmax(dim=1)
        return (lambda network: Examiner(part, first).score(network).accuracy), "of the ensemble's first choices"

    def _identity(self, begun: Begun) -> str:
        """Of all that the lesson depends on."""
        request = self.request
        about = {
            "plan": request.plan.model_dump(mode="json", exclude={"as_lora", "rank"}),
            "members": [member.about.sha256 for member in self.members],
            "inputs": self.inputs.sha256,
            "classes": request.classes.names,
            "student": [request.blueprint.name, request.blueprint.shape],
            "voting": repr(self.choice.fitted),
            "start": begun.chosen.weights.sha256(),
            "versions": [__version__, torch.__version__],
        }
        return hashlib.sha256(dumps(about).encode()).hexdigest()


@dataclass(frozen=True)
class Examined:
    """Labelled examples, what everybody says about them, and which of them are for what."""

    examples: Labelled
    answers: Answers
    halves: Halves

    @property
    def labels(self) -> Tensor:
        return self.examples.labels


def _made(request: Request, wish: DataFree, work: Path, progress: Progress) -> FuseInputs:
    """Inputs that are made from the models; the student, as it would begin afresh, rehearses with them."""
    key = Key(request.plan.seed)
    about = [[member.about.sha256 for member in request.members], list(wish.shape), request.plan.seed]
    plan = hashlib.sha256(dumps([about, wish.settings.model_dump(mode="json"), __version__]).encode()).hexdigest()
    fresh = request.blueprint.build(len(request.classes.names), key.child("fresh"))
    return made_inputs(
        request.members, request.classes, wish.shape, (request.blueprint, fresh), wish.settings, key.child("inputs"),
        compute_of(request), work / "inputs.safetensors", plan, progress,
    )  # fmt: skip


def compute_of(request: Request) -> Compute:
    """Where everything is computed."""
    return Compute(device_of(request.plan.device), request.plan.threads, request.members[0].about.reads == "images")


def extended(classes: Classes, members: Sequence[Member], everybody: Sequence[Member]) -> Classes:
    """The classes with those of members that were made of others, and know what these do."""
    known = {member.about.name: own for member, own in zip(members, classes.members, strict=True)}
    added = [known[member.like] for member in everybody if isinstance(member, WeightsMember)]
    return replace(classes, members=(*classes.members, *added))


def _written(request: Request, result: FuseResult, lost: Loss | None, made: Path) -> dict[str, Any]:
    """The facts, after all other files of the result."""
    facts = {**_facts(request, result), "lora": None if lost is None else vars(lost)}
    if lost is None:
        request.blueprint.write(made, result.network, result.class_names, facts)
    abouts = [member.about for member in request.members]
    sections: dict[str, str | Sheet] = {
        "How good it is": quality_sheet(result.qualities),
        "How it was made": "\n".join(f"- {reason}" for reason in result.reasons),
        "Ensembles that were compared": choice_sheet(result.choice),
        "Models that it was made from": members_sheet(abouts),
        "Classes": plain(", ".join(result.class_names)),
    }
    base = None if lost is None else lost.base
    write_card(made, result.folder.resolve().name, abouts, sections, request.command, base)
    return facts


def _facts(request: Request, result: FuseResult) -> dict[str, Any]:
    inputs = request.inputs
    assert isinstance(inputs, FuseInputs), "they were made before"
    return {
        "fedfuse": __version__,
        "torch": torch.__version__,
        "command": request.command,
        "plan": request.plan.model_dump(mode="json"),
        "student": request.blueprint.name,
        "classes": list(result.class_names),
        "inputs": {"name": inputs.name, "count": len(inputs), "sha256": inputs.sha256},
        "examples": None if request.examples is None else len(request.examples),
        "models": [vars(member.about) for member in request.members],
        "quality": {name: one.as_json() for name, one in result.qualities.items()},
        "starts": dict(result.starts.worth),
        "start": result.starts.chosen.name,
        "ensemble": str(result.choice.voting),
        "reasons": list(result.reasons),
        "lesson": result.distilled.report(),
    }


def command_of(words: Sequence[str]) -> str:
    """What was typed, so that it can be typed again."""
    return shlex.join(["fedfuse", *words])
