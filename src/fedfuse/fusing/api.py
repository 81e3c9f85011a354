"""``fedfuse.fuse``: trained models into one, from Python; the command line calls the same."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor

from fedfuse.core.arguments import place, truth
from fedfuse.core.errors import ConfigError, DataError, FedfuseError, shortened, unknown
from fedfuse.core.interrupts import interruptible
from fedfuse.core.memory import is_lack_of_memory
from fedfuse.core.part import first_mistake
from fedfuse.core.randomness import Key
from fedfuse.fusing.adapters.as_lora import base_for
from fedfuse.fusing.adapters.member import AdapterMember
from fedfuse.fusing.checking import Checked, Finding, remarks, same_kind
from fedfuse.fusing.classes import Classes, common_classes
from fedfuse.fusing.data_free import check_data_free
from fedfuse.fusing.fuse import DataFree, FuseResult, Request, fuse_models
from fedfuse.fusing.inputs import (
    Demand,
    FuseInputs,
    Labelled,
    find_examples,
    find_inputs,
    is_table,
    label_inputs,
    numbers_of,
    raw_of,
)
from fedfuse.fusing.members import Blueprint, Member, find_blueprint, open_member
from fedfuse.fusing.merge_only import MergeRequest, MergeResult, merge_models
from fedfuse.fusing.merged import MERGES
from fedfuse.fusing.plan import FusePlan
from fedfuse.fusing.raw import Raw, kind_of_raw
from fedfuse.fusing.result_folder import own_folder
from fedfuse.parts.sources import SourceSettings
from fedfuse.parts.sources.synthesised import SynthesisSettings
from fedfuse.runtime.pool import Progress, silence

SYNTHESISED = "synthesised"
ABOUT = ("arch", "normalise", "classes", "licence", "shape", "gives", "reads", "base")
"""What may be said of a model whose file does not say it."""
Found = TypeVar("Found")
Models = Sequence[Any] | Mapping[str, Any]
"""Paths, Hugging Face folders, torch modules, functions; or the same by the names that tables shall have."""


def fuse(
    models: Models,
    student: Any = None,
    inputs: Any = None,
    *,
    out: str | Path | None = None,
    method: str = "auto",
    examples: Any = None,
    labels: Any = None,
    classes: Sequence[str] | None = None,
    class_maps: Mapping[str, Any] | None = None,
    about: Mapping[str, Mapping[str, Any]] | None = None,
    base: Any = None,
    normalise: Any = None,
    trust_own_code: bool = False,
    input_column: str | None = None,
    label_column: str | None = None,
    overwrite: bool = False,
    progress: bool | Progress = False,
    command: str | None = None,
    **plan: Any,
) -> FuseResult | MergeResult:
    """Fuse trained models, of whatever architectures, into one student; it learns what their ensemble says of inputs.

    ``models``: files and folders (models of fedfuse, Hugging Face folders, state dicts, TorchScript, ONNX), torch
    modules and functions; a mapping gives them names. ``student``: the name of an architecture (``resnet20``), a
    Hugging Face folder, one of the models' names, a torch module; the first model's architecture if not given.
    ``inputs``: images, numbers or texts without labels, in memory or as a folder, file or dataset's name.

    ``examples`` are labelled: a folder, file, dataset's name or (inputs, labels); ``labels`` are those of the inputs
    themselves. The ensemble and the start are chosen by one half of them and the result is measured on the other; the
    student never learns from them. ``class_maps`` says what a model's classes are called in common, ``about`` what its
    file does not say: ``{"b": {"arch": "resnet20", "normalise": "cifar10"}}``. Further keywords are those of
    :class:`~fedfuse.fusing.plan.FusePlan`, such as ``steps``, ``seed``, ``start`` and ``weights``.

    With the name of a merge as ``method`` and no inputs, nothing but weights of one shape are merged, ``base`` being
    what they were trained from. LoRA adapters are merged through what they make of their base; ``as_lora=True`` and
    ``rank=16`` write the result as one. The result is in the folder ``out``, in a new temporary one if not given; an
    interrupted fusion goes on with the same call. ``progress`` prints a line per step, or is called with what is done,
    how much of it, and of how much.
    """
    listener = _listener(progress)
    call = FuseCall(
        models, student, inputs, method, plan, examples, labels, classes, class_maps or {}, about or {}, base,
        normalise, trust_own_code, input_column, label_column, command or "",
    )  # fmt: skip
    call.checked.require()
    folder = place("out", out) or Path(tempfile.mkdtemp(prefix="fused-"))
    with interruptible(overwrite):
        return call.run(folder, truth("overwrite", overwrite), listener)


@dataclass(frozen=True)
class FuseCall:
    """What somebody wants to be fused, as it was said; looked at once, and all that is wrong with it at once."""

    models: Models
    student: Any = None
    inputs: Any = None
    method: str = "auto"
    plan: Mapping[str, Any] = field(default_factory=dict)
    examples: Any = None
    labels: Any = None
    classes: Sequence[str] | None = None
    class_maps: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    base: Any = None
    normalise: Any = None
    trust_own_code: bool = False
    input_column: str | None = None
    label_column: str | None = None
    command: str = ""

    @property
    def checked(self) -> Checked:
        """What fits, and what does not."""
        return self._looked_at[0]

    @property
    def request(self) -> Request | MergeRequest:
        """All that it needs, if nothing stands in the way."""
        self.checked.require()
        request = self._looked_at[1]
        assert request is not None, "nothing stands in the way"
        return request

    def run(self, out: Path, overwrite: bool = False, progress: Progress = silence) -> FuseResult | MergeResult:
        """Do it, in a folder of its own."""
        request = self.request
        everybody = [*request.members, *([request.base] if request.base is not None else [])]
        with own_folder(out, overwrite, [member.about.origin for member in everybody]) as folder, _enough_memory():
            if isinstance(request, Request):
                return fuse_models(request, folder, progress)
            return merge_models(request, folder, progress)

    @cached_property
    def _looked_at(self) -> tuple[Checked, Request | MergeRequest | None]:
        plan, look = FusePlan.of(self.method, self.plan), Look()
        given = look.at("data", lambda: _in_memory(self.inputs))
        members = self._members(look, given)
        for name, sentence in self._in_vain():
            look.problem(name, sentence)
        common = look.at("classes", lambda: self._classes(members))
        if plan.weights is not None and len(plan.weights) != len(members):
            look.problem(
                "weights", f"there are {len(plan.weights)} weights for {len(members)} models; give one for each"
            )
        if common is None or look.problems:
            return look.checked(members), None
        for warning in common.remarks:
            look.remark("classes", warning)
        base = None if self.base is None else look.at("base", lambda: self._base(members))
        if self.inputs is None and plan.method in MERGES and self.examples is None:
            if plan.as_lora:
                look.at("lora", lambda: base_for(members[0].blueprint, base, len(common.names)))
            merge = None if look.problems else MergeRequest(members, common, plan, base, self.command)
            return look.checked(members), merge
        demand, key = _demand(members, given), Key(plan.seed)
        inputs = look.at("data", lambda: self._inputs(members, common, given, demand, key))
        examples = look.at("examples", lambda: self._labelled(inputs, demand, common))
        blueprint = look.at("student", lambda: self._student(members, inputs, common))
        if plan.as_lora and blueprint is not None:
            look.at("lora", lambda: base_for(blueprint, base, len(common.names)))
        if inputs is None or blueprint is None or look.problems:
            return look.checked(members), None
        if isinstance(inputs, FuseInputs):
            inputs = inputs.part(plan.limit, key.child("limit"))
        request = Request(members, common, inputs, blueprint, plan, examples, self.command, base)
        return look.checked(members), request

    def _in_vain(self) -> Iterator[tuple[str, str]]:
        """What is said, but of nothing that there is."""
        if self.input_column is not None and not (is_table(self.inputs) or is_table(self.examples)):
            yield "data", f"there is no table that could have an input column '{shortened(self.input_column)}'"
        if self.label_column is not None and not is_table(self.examples):
            yield "examples", f"there is no table of examples with a label column '{shortened(self.label_column)}'"
        if self.normalise is not None and self.student is None:
            yield "student", "normalise is how another network than the models' prepares its inputs; say --student"

    def _inputs(
        self, members: Sequence[Member], common: Classes, given: Raw | None, demand: Demand, key: Key
    ) -> FuseInputs | DataFree:
        wish = self.inputs
        if wish is None or (isinstance(wish, str) and wish == SYNTHESISED):
            wish = {"kind": SYNTHESISED}
        if isinstance(wish, Mapping) and wish.get("kind") == SYNTHESISED:
            check_data_free(members, common, demand)
            assert demand.shape is not None, "checked"
            return DataFree(demand.shape, _synthesis({name: wish[name] for name in wish if name != "kind"}))
        return find_inputs(given if given is not None else wish, demand, key.child("inputs"), self.input_column)

    def _classes(self, members: Sequence[Member]) -> Classes | None:
        if not members:
            return None
        return common_classes([member.about for member in members], self.classes, self.class_maps)

    def _members(self, look: Look, given: Raw | None) -> list[Member]:
        named = _named(self.models)
        if not named:
            look.problem("models", "there is no model to fuse")
        for name in (self.about.keys() | self.class_maps.keys()) - named.keys():
            look.problem(name, unknown("model", name, named))
        opened = [look.at(name, partial(self._opened, what, name, given)) for name, what in named.items()]
        members = [member for member in opened if member is not None]
        look.findings += same_kind(members)
        return members

    def _opened(self, what: Any, name: str, given: Raw | None) -> Member:
        """With the base as that of adapters, unless they have another one."""
        about = dict(self.about.get(name, {}))
        if isinstance(self.base, str | Path):
            about.setdefault("base", self.base)
        return _opened(what, name, about, self.trust_own_code, given)

    def _base(self, members: Sequence[Member]) -> Member | None:
        """What all were trained from; the base of adapters need not be a classifier, and they know it themselves."""
        try:
            return open_member(self.base, name="base")
        except DataError:
            if all(isinstance(member, AdapterMember) for member in members):
                return None
            raise

    def _labelled(self, inputs: FuseInputs | DataFree | None, demand: Demand, common: Classes) -> Labelled | None:
        """Labelled examples, with numbers of the common classes."""
        if self.examples is not None and self.labels is not None:
            raise ConfigError("examples bring their own labels, and labels are those of the inputs; give one of both")
        if self.examples is not None:
            told = find_examples(self.examples, demand, self.input_column, self.label_column)
        elif isinstance(inputs, DataFree) and self.labels is not None:
            raise ConfigError("labels are those of the inputs, and there is no data; give examples")
        elif self.labels is not None and isinstance(inputs, FuseInputs):
            told = label_inputs(inputs, self.labels)
        else:
            return None
        return replace(told, labels=numbers_of(told, common.names), class_names=None)

    def _student(
        self, members: Sequence[Member], inputs: FuseInputs | DataFree | None, common: Classes
    ) -> Blueprint | None:
        """One of the same architecture as a model prepares its inputs as that model does."""
        if inputs is None:
            return None
        trainable = {member.about.name: member.blueprint for member in members if member.blueprint is not None}
        wish = self.student
        if wish is None:
            if not trainable:
                raise ConfigError("none of the models can be trained further; say which network the student shall be")
            return next(iter(trainable.values()))
        if isinstance(wish, str) and self.normalise is None:
            for name, blueprint in trainable.items():
                if wish in (name, blueprint.name):
                    return blueprint
        if isinstance(inputs, DataFree):
            empty = torch.zeros(2, *inputs.shape, dtype=torch.uint8)
            return find_blueprint(wish, empty, common.names, self.normalise or "half", self.trust_own_code)
        return find_blueprint(wish, inputs.raw, common.names, self.normalise, self.trust_own_code)


def _listener(progress: Any) -> Progress:
    """Who hears how far it is."""
    if callable(progress):
        return progress  # type: ignore[no-any-return]
    return _print_step if truth("progress", progress) else silence


def _print_step(what: str, done: int, total: int) -> None:
    if done == total:
        print(f"{what}: {total:,}")


class Look:
    """A look at everything: what goes wrong is written down, and the next thing is looked at."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def at(self, name: str, step: Callable[[], Found]) -> Found | None:
        try:
            return step()
        except FedfuseError as error:
            self.problem(name, str(error))
            return None

    def problem(self, name: str, sentence: str) -> None:
        self.findings.append(Finding(name, sentence))

    def remark(self, name: str, sentence: str) -> None:
        self.findings.append(Finding(name, sentence, is_remark=True))

    @property
    def problems(self) -> bool:
        return any(not finding.is_remark for finding in self.findings)

    def checked(self, members: Sequence[Member]) -> Checked:
        return Checked(members, [*self.findings, *remarks(members)])


@contextmanager
def _enough_memory() -> Iterator[None]:
    """One sentence where there is too little."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        raise FedfuseError(
            "there is too little memory for this fusion; what is done is kept, so go on where there is more, or with "
            "fewer inputs (limit), a smaller batch_size or a smaller student"
        ) from None


def _named(models: Models) -> dict[str, Any]:
    """Every model with a name of its own: the caller's, or that of its file, with a number where there are several."""
    if isinstance(models, Mapping):
        return {str(name): what for name, what in models.items()}
    if isinstance(models, str | Path) or not isinstance(models, Sequence):
        models = [models]
    names: dict[str, Any] = {}
    for what in models:
        name = plain = _name_of(what)
        number = 2
        while name in names:
            name, number = f"{plain}-{number}", number + 1
        names[name] = what
    return names


def _name_of(what: Any) -> str:
    if isinstance(what, Member):
        return what.about.name
    if isinstance(what, str | Path):
        path = Path(what)
        return (path.resolve().name if path.is_dir() else path.stem) or str(path)
    return str(getattr(what, "__name__", type(what).__name__))


def _opened(what: Any, name: str, about: Mapping[str, Any], trust_own_code: bool, given: Raw | None) -> Member:
    for key in about:
        if key not in ABOUT:
            raise ConfigError(f"{name}: {unknown('key', key, ABOUT)}")
    options = dict(about)
    in_python = not isinstance(what, str | Path | Member)
    if in_python and given is not None:
        options.setdefault("reads", kind_of_raw(given))
        if isinstance(given, Tensor):
            options.setdefault("shape", tuple(given.shape[1:]))
    return open_member(what, name=name, trust_own_code=trust_own_code, **options)


def _in_memory(inputs: Any) -> Raw | None:
    """Inputs that Python has already."""
    if inputs is None or isinstance(inputs, str | Path | Mapping | SourceSettings):
        return None
    return raw_of(inputs, "inputs")


def _demand(members: Sequence[Member], given: Raw | None) -> Demand:
    reads = members[0].about.reads
    shapes = [member.about.shape for member in members if member.about.shape is not None]
    if isinstance(given, Tensor):
        shapes.append(tuple(given.shape[1:]))
    return Demand(reads, max(shapes, key=math.prod, default=None))


def _synthesis(options: Mapping[str, Any]) -> SynthesisSettings:
    try:
        return SynthesisSettings(**options)
    except ValidationError as error:
        raise ConfigError(f"data: {first_mistake(error)}") from None
