"""Merges where there is nothing but weights: from file to file where that can be, else in the memory."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.core.version import __version__
from fedfuse.core.weights import Weights
from fedfuse.federation.shelf import Shelf
from fedfuse.fusing.adapters.as_lora import student_as_lora, write_merged
from fedfuse.fusing.adapters.loss import Loss
from fedfuse.fusing.adapters.member import AdapterMember
from fedfuse.fusing.adapters.merging import merged_adapters
from fedfuse.fusing.card import members_sheet, write_card
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.members import Member
from fedfuse.fusing.merged import Alike, merge_of
from fedfuse.fusing.merging import merge_files
from fedfuse.fusing.plan import FusePlan
from fedfuse.fusing.result_folder import FACTS, ResultFolder
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


def merge_models(request: MergeRequest, folder: ResultFolder, progress: Progress) -> MergeResult:
    """Merge them, in a folder in which nobody else works."""
    facts, lost, how = _facts(request), None, "in memory"
    if _in_files(request):
        how = "from file to file, a piece at a time"
        made = _file_by_file(request, folder, progress)
    elif adapters := _adapters(request):
        how, made = "each being its base plus its change, and not factor by factor", folder.staging()
        lost = _of_adapters(adapters, request, made, facts)
    else:
        made = folder.staging()
        lost = _in_memory(request, made, Shelf(folder.work), facts)
    why = f"{request.plan.start} of the weights of {len(request.members)} models, {how}; nobody was asked anything"
    reasons = (why,) if lost is None else (why, str(lost))
    abouts = [member.about for member in request.members]
    sections: dict[str, str | Sheet] = {
        "How it was made": "\n".join(f"- {reason}" for reason in reasons),
        "Models that it was made from": members_sheet(abouts),
    }
    base = None if lost is None else lost.base
    write_card(made, folder.path.resolve().name, abouts, sections, request.command, base)
    folder.publish(made, {**facts, "lora": None if lost is None else vars(lost)})
    return MergeResult(folder.path, reasons)


def _file_by_file(request: MergeRequest, folder: ResultFolder, progress: Progress) -> Path:
    """A folder with the merged files, and with what lies beside the first model's; one that is there is finished."""
    folders = [Path(member.about.origin) for member in request.members]
    base = None if request.base is None else request.base.about.origin
    about = {**_facts(request), "command": None, "seed": request.plan.seed}
    digest = hashlib.sha256(dumps(about).encode()).hexdigest()
    made = folder.work / f"merged-{digest[:16]}"
    if not made.exists():
        merge_files(folders, made, request.merge, base=base, seed=request.plan.seed, progress=progress)
    _copy_beside(folders[0], made)
    return made


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
    for file in sorted({file for pattern in BESIDE for file in folder.glob(pattern)}):
        if not file.is_file() or file.name.endswith(".index.json") or file.name == FACTS:
            continue
        if not _is_inside(file, folder):
            raise DataError(f"{file} is a link that leads out of its folder; put the file itself there")
        if file.stat().st_size <= LARGEST_BESIDE:
            shutil.copyfile(file, out / file.name)


def _is_inside(file: Path, folder: Path) -> bool:
    """Or where the cache of the Hugging Face hub has it; any other file would be given away with the result."""
    place, home = file.resolve(), folder.resolve()
    return place.is_relative_to(home) or place.parent == home.parent.parent / "blobs"


def _in_memory(request: MergeRequest, out: Path, shelf: Shelf, facts: dict[str, object]) -> Loss | None:
    blueprint = request.members[0].blueprint
    if blueprint is None:
        raise ConfigError(f"{request.members[0].about.name} can be asked, but its weights are not known")
    key, names = Key(request.plan.seed), request.classes.names
    network = blueprint.build(len(names), key)
    models = as_students(blueprint, request.members, request.classes, network, key, shelf)
    if left := [member.about.name for member in request.members if member.about.name not in models]:
        first = request.members[0].about.name
        raise ConfigError(f"{left[0]} is of another architecture than {first}; with data they can be distilled")
    base: Weights | None = None
    if request.base is not None:
        base = as_base(blueprint, request.base, request.classes, network, key, shelf)
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
