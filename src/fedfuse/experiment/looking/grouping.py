"""Which runs form a row: those that agree in everything but the seed. What else differs becomes part of its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedfuse.core.plain_json import dumps
from fedfuse.experiment.looking import variation
from fedfuse.experiment.looking.stored_run import StoredRun

NUMERICS = ("device", "threads", "channels_last", "stack", "fold")
"""Keys of ``compute`` that change last digits only: seeds that ran on other machines are still of one experiment."""
SHORT = 8
"""Digits of a hash."""


@dataclass(frozen=True)
class Line:
    """The runs behind one row. Without a prototype it is about the ensemble, which is then the method's answer."""

    experiment: str
    method: str
    title: str
    """What papers call the method."""
    variant: str
    """What tells it from other rows of this experiment and method; empty if nothing needs to."""
    prototype: str | None
    runs: tuple[StoredRun, ...]
    setting: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What all its runs have in common."""

    @property
    def is_finished(self) -> bool:
        return all(run.result.is_finished for run in self.runs)


@dataclass(frozen=True)
class Grouped:
    """Lines, and what a reader of them should know."""

    lines: tuple[Line, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Group:
    """Runs that differ in their seeds only."""

    experiment: str
    method: str
    title: str
    setting: Mapping[str, Any]
    runs: list[StoredRun]


def grouped(runs: Sequence[StoredRun]) -> Grouped:
    """All runs in lines, in the order in which the first of each experiment, and then of each line, was found."""
    remarks: list[str] = []
    groups = []
    for group in _groups(runs):
        counted = _that_count(_each_seed_once(group.runs, remarks), remarks)
        if counted:
            groups.append((group, counted))
    remarks += _other_data([counted for _, counted in groups])
    variants = _variants([group for group, _ in groups])
    lines = (
        Line(group.experiment, group.method, group.title, variant, prototype, tuple(counted), group.setting)
        for (group, counted), variant in zip(groups, variants, strict=True)
        for prototype in ([None] if counted[0].answers_as_ensemble else counted[0].summary["prototypes"])
    )
    return Grouped(tuple(lines), tuple(remarks))


def setting_of(run: StoredRun) -> dict[str, Any]:
    """All that makes two runs with different seeds runs of the same thing."""
    raw = {key: value for key, value in run.config.raw.items() if key not in ("name", "seed", "engine", "methods")}
    raw["method"] = _without(run.config.method, "label")
    raw["compute"] = _without(raw.get("compute"), *NUMERICS)
    raw["federation"] = _without(raw.get("federation"), "checkpoint_every")
    raw["evaluation"] = _without(raw.get("evaluation"), "pictures", "metrics")
    data, code = run.summary["data"], run.summary.get("code")
    parts = [data.get(part, 0) for part in ("train", "validation", "public", "test")]
    raw["data"] = {**_without(raw.get("data")), "examples in all": sum(part for part in parts if type(part) is int)}
    return {**raw, **({"code": {key: str(value)[:SHORT] for key, value in code.items()}} if code else {})}


def _without(section: Any, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in keys} if isinstance(section, Mapping) else {}


def _groups(runs: Sequence[StoredRun]) -> list[_Group]:
    groups: dict[tuple[str, ...], _Group] = {}
    for run in runs:
        about, setting = run.summary, setting_of(run)
        label = str(run.config.method.get("label") or "")
        key = (about["name"], label, dumps(setting), dumps(list(about["prototypes"])), str(run.answers_as_ensemble))
        new = _Group(about["name"], about["method"], run.config.title or about["method"], setting, [])
        groups.setdefault(key, new).runs.append(run)
    order = list(dict.fromkeys(group.experiment for group in groups.values()))
    return sorted(groups.values(), key=lambda group: order.index(group.experiment))


def _each_seed_once(runs: Sequence[StoredRun], remarks: list[str]) -> list[StoredRun]:
    """Of several folders with the same run, the one that is finished, or that came furthest."""
    kept: dict[int, StoredRun] = {}
    for run in runs:
        other = kept.setdefault(run.seed, run)
        if other is run:
            continue
        better, worse = (run, other) if _worth(run) > _worth(other) else (other, run)
        same = "" if _numbers(better) == _numbers(worse) else ", with other numbers"
        remarks.append(f"{worse.folder.path} is the same run as {better.folder.path}{same}: only the latter counts")
        kept[run.seed] = better
    return [kept[seed] for seed in sorted(kept)]


def _worth(run: StoredRun) -> tuple[bool, int]:
    return run.result.is_finished, run.rounds


def _numbers(run: StoredRun) -> list[Any]:
    return [(record.prototypes, record.bytes_up, record.bytes_down) for record in run.result.history]


def _that_count(runs: Sequence[StoredRun], remarks: list[str]) -> list[StoredRun]:
    """The finished ones; if there is none, all of them as far as all of them are."""
    finished = [run for run in runs if run.result.is_finished]
    if finished:
        remarks += [f"{run.label} is {how_far(run)} and not counted" for run in runs if run not in finished]
        return finished
    begun = [run for run in runs if run.rounds]
    remarks += [f"{run.label} has no finished round yet" for run in runs if not run.rounds]
    together = min((run.rounds for run in begun), default=0)
    remarks += [f"{run.label} is {how_far(run)}: its numbers are those so far" for run in begun]
    return [run.until(together) for run in begun]


def how_far(run: StoredRun) -> str:
    """Of a run that is not finished."""
    return f"{'still running' if run.is_running else 'not finished'} (round {run.rounds} of {run.planned})"


def _variants(groups: Sequence[_Group]) -> list[str]:
    """By its name and method alone a row may be taken for another; so each gets the keys that differ.

    Settings beside the method count among all rows of an experiment, those of the method among those of the same name.
    """
    found: dict[int, str] = {}
    for experiment in dict.fromkeys(group.experiment for group in groups):
        places = [place for place, group in enumerate(groups) if group.experiment == experiment]
        everything = [groups[place].setting for place in places]
        around = variation.varying([_without(setting, "method") for setting in everything])
        for method in dict.fromkeys(groups[place].method for place in places):
            own = [place for place in places if groups[place].method == method]
            settings = [groups[place].setting for place in own]
            inside = variation.varying([{"method": setting["method"]} for setting in settings])
            told = _distinct(variation.names(settings, [*around, *inside], everything))
            found |= dict(zip(own, told, strict=True))
    return [found[place] for place in range(len(groups))]


def _distinct(words: Sequence[str]) -> list[str]:
    """Names that are cut short may be alike; then they are numbered."""
    return [
        f"{word} ({list(words[: place + 1]).count(word)})" if list(words).count(word) > 1 else word
        for place, word in enumerate(words)
    ]


def _other_data(groups: Sequence[Sequence[StoredRun]]) -> Iterator[str]:
    """Runs that should have had the same examples, by their configs and seeds, and had not."""
    first: dict[str, StoredRun] = {}
    for run in (run for runs in groups for run in runs):
        asked = dumps([run.config.raw.get("data"), run.config.raw.get("partition"), run.seed])
        other = first.setdefault(asked, run)
        if examples_of(other) != examples_of(run):
            yield f"{run.label} had other examples than {other.label}, though both name the same; do not compare them"


def examples_of(run: StoredRun) -> tuple[Any, Any]:
    """Which examples it divided, and how."""
    return run.summary["data"].get("sha256"), run.summary.get("partition_sha256")
