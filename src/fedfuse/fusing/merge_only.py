"""Merges where there is nothing but weights: from file to file where that can be, else in the memory."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.version import __version__
from fedfuse.core.weights import Weights
from fedfuse.fusing.adapters.as_lora import student_as_lora, write_merged
from fedfuse.fusing.adapters.loss import Loss
from fedfuse.fusing.adapters.member import AdapterMember
from fedfuse.fusing.adapters.merging import merged_adapters
from fedfuse.fusing.adapters.writing import ADAPTER, forget
from fedfuse.fusing.card import members_sheet, write_card
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.members import Member
from fedfuse.fusing.merged import Alike, merge_of
from fedfuse.fusing.merging import merge_files
from fedfuse.fusing.plan import FusePlan
from fedfuse.fusing.starting import as_base, as_students
from fedfuse.parts.merge import Merge, PiecewiseMerge, Soup
from fedfuse.report.sheet import Sheet
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.pool import Progress

BESIDE = ("*.json", "*.txt", "*.model", "*.jinja")
"""What lies beside the weights of a Hugging Face folder and is needed to use them."""
LARGEST_BESIDE = 100_000_000


@dataclass(frozen=True)
class MergeRequest:
    """Models of one architecture, and how their weights become one."""

    members: Sequence[Member]
    classes: Classes
    plan: FusePlan
    base: Member | None = None
    command: str = ""

    @property
    def merge(self) -> Merge:
        return merge_of(self.plan.start, self.plan.merge)


@dataclass(frozen=True)
class MergeResult:
    """What was written, and why so."""

    folder: Path
    reasons: tuple[str, ...]


def merge_models(request: MergeRequest, out: Path, progress: Progress) -> MergeResult:
    """Merge them; ``out`` is there and nobody else works in it."""
    facts, lost = _facts(request), None
    by_files = _in_files(request)
    if adapters := _adapters(request):
        lost = _of_adapters(adapters, request, out, facts)
    elif by_files:
        folders = [Path(member.about.origin) for member in request.members]
        base = None if request.base is None else request.base.about.origin
        merge_files(folders, out / "merged", request.merge, base=base, seed=request.plan.seed, progress=progress)
        for file in sorted((out / "merged").iterdir()):
            file.replace(out / file.name)
        (out / "merged").rmdir()
        _copy_beside(folders[0], out)
    else:
        lost = _in_memory(request, out, facts)
    how = "from file to file, a piece at a time" if by_files else "in memory"
    if adapters:
        how = "each being its base plus its change, and not factor by factor"
    why = f"{request.plan.start} of the weights of {len(request.members)} models, {how}; nobody was asked anything"
    reasons = (why,) if lost is None else (why, str(lost))
    abouts = [member.about for member in request.members]
    sections: dict[str, str | Sheet] = {
        "How it was made": "\n".join(f"- {reason}" for reason in reasons),
        "Models that it was made from": members_sheet(abouts),
    }
    if lost is None:
        forget(out, ADAPTER)
    facts["lora"] = None if lost is None else vars(lost)
    write_card(out, abouts, sections, facts, request.command, None if lost is None else lost.base)
    return MergeResult(out, reasons)


def _adapters(request: MergeRequest) -> list[AdapterMember]:
    """All models, if they are adapters and the merge asks for nothing but numbers."""
    found = [member for member in request.members if isinstance(member, AdapterMember)]
    return found if len(found) == len(request.members) and _is_number_by_number(request.merge) else []


def _of_adapters(
    adapters: Sequence[AdapterMember], request: MergeRequest, out: Path, facts: dict[str, object]
) -> Loss | None:
    """One adapter, or its base with it; what was lost in the first case."""
    merge, plan, names = request.merge, request.plan, request.classes.names
    assert isinstance(merge, PiecewiseMerge), "looked at before"
    for adapter, own in zip(adapters, request.classes.members, strict=True):
        if own != names:
            raise ConfigError(f"{adapter.about.name} has other classes than the rest; with data they can be distilled")
    merged = merged_adapters(adapters, merge, Key(plan.seed).child("merge"))
    blueprint = adapters[0].blueprint
    with Compute(torch.device("cpu"), plan.threads, channels_last=False).at_work():
        if plan.as_lora:
            lost = write_merged(merged, plan.rank, out)
            blueprint.write_preparation(out)
            return lost
        network = blueprint.build(len(names), Key(plan.seed))
        blueprint.load(network, merged)
        blueprint.write(out, network.eval(), names, facts)
        return None


def _in_files(request: MergeRequest) -> bool:
    """Whether nothing has to be known but the files: folders of transformers, and a merge number by number."""
    if request.plan.as_lora or not _is_number_by_number(request.merge):
        return False
    everybody = [*request.members, *([request.base] if request.base is not None else [])]
    return all(member.about.format == "Hugging Face" for member in everybody)


def _is_number_by_number(merge: Merge) -> bool:
    return isinstance(merge, PiecewiseMerge) and not (isinstance(merge, Soup) and merge.form == "greedy")


def _copy_beside(folder: Path, out: Path) -> None:
    """Configuration, tokenizer and preprocessing of the first model; its index of files is another's now."""
    for pattern in BESIDE:
        for file in sorted(folder.glob(pattern)):
            taken = file.name.endswith(".index.json") or (out / file.name).exists()
            if file.is_file() and not taken and file.stat().st_size <= LARGEST_BESIDE:
                shutil.copyfile(file, out / file.name)


def _in_memory(request: MergeRequest, out: Path, facts: dict[str, object]) -> Loss | None:
    blueprint = request.members[0].blueprint
    if blueprint is None:
        raise ConfigError(f"{request.members[0].about.name} can be asked, but its weights are not known")
    key, names = Key(request.plan.seed), request.classes.names
    network = blueprint.build(len(names), key)
    models = as_students(blueprint, request.members, request.classes, network, key)
    if left := [member.about.name for member in request.members if member.about.name not in models]:
        first = request.members[0].about.name
        raise ConfigError(f"{left[0]} is of another architecture than {first}; with data they can be distilled")
    base: Weights | None = None
    if request.base is not None:
        base = as_base(blueprint, request.base, request.classes, network, key)
    alike = Alike(models, base, network, None, None, key.child("merge"))
    alike.merged(request.plan.start, request.merge).load_into(network)
    if request.plan.as_lora:
        return student_as_lora(blueprint, network.eval(), request.base, len(names), request.plan.rank, out)
    blueprint.write(out, network.eval(), names, facts)
    return None


def _facts(request: MergeRequest) -> dict[str, object]:
    return {
        "fedfuse": __version__,
        "command": request.command,
        "merge": request.merge.model_dump(mode="json"),
        "models": [vars(member.about) for member in request.members],
        "base": None if request.base is None else vars(request.base.about),
        "classes": list(request.classes.names),
    }
