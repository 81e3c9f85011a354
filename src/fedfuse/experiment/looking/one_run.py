"""One run in full: its numbers and curve, each class, who was missing and why, where it came from, how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fedfuse.core.plain_text import one_line
from fedfuse.data.given import GIVEN
from fedfuse.experiment.assembly import cautions
from fedfuse.experiment.lessons import doubts
from fedfuse.experiment.looking.curves import curve
from fedfuse.experiment.looking.grouping import how_far
from fedfuse.experiment.looking.metric_sheets import metric_sheets
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.experiment.provenance import data_called
from fedfuse.experiment.sheets import percent, seconds, size, summary_sheet
from fedfuse.federation.confusion import Confusion
from fedfuse.federation.events import events_that_begin
from fedfuse.report.blocks import Block, Facts, Lines
from fedfuse.report.sheet import Sheet
from fedfuse.report.terminal import chart

MOST_CLASSES = 20
"""That are shown; of more, the worst."""
MOST_REASONS = 3
"""That are told of each way to be missing."""
MOST_CURVES = 3
STARTS = (b'{"event": "run_started"', b'{"event": "run_resumed"')
COMMANDS = ("again", "go on")
"""Facts that somebody may copy."""
LATEST = 1e11
"""Seconds since 1970 that a date is made of."""
WIDEST = 100
"""Columns of a curve, however wide the terminal is."""


def describe(run: StoredRun) -> Iterator[Block]:
    """All there is to see of a run."""
    yield summary_sheet(run.summary)
    yield from metric_sheets(run.summary)
    yield from _curves(run)
    for model, own in run.confusions.items():
        yield class_sheet(model, own, run.class_names(len(own.examples)))
    yield Facts({name: value for name, value in facts_of_run(run).items() if value}, COMMANDS)


def _curves(run: StoredRun) -> Iterator[Lines]:
    models = [None] if run.answers_as_ensemble else list(run.summary["prototypes"])
    for model in models[:MOST_CURVES]:
        points = [(record.round, value) for record, value in curve(run, model)]
        if len(points) > 1:
            yield Lines(f"test accuracy of {model or 'the ensemble'}", _chart(points))


def _chart(points: Sequence[tuple[float, float]]) -> Any:
    return lambda width, ascii_only: chart(points, min(width, WIDEST), ascii_only=ascii_only)


def class_sheet(model: str, own: Confusion, names: Sequence[str]) -> Sheet:
    """How often each class was recognised, and what it was taken for most of the time otherwise."""
    shown = [place for place, count in enumerate(own.examples) if count]
    cut = len(shown) > MOST_CLASSES
    if cut:
        shown = sorted(sorted(shown, key=lambda place: (own.accuracies[place] or 0, place))[:MOST_CLASSES])
    rows = [((one_line(names[place]),), _class_cells(own, place, names)) for place in shown]
    which = f"the worst {MOST_CLASSES} of {len(own.examples)} classes" if cut else "classes"
    headings = ("test\nexamples", "recognised", "else mostly\ntaken for")
    return Sheet(f"{which}, {model}", ("class",), headings, rows)


def _class_cells(own: Confusion, place: int, names: Sequence[str]) -> tuple[str, ...]:
    return str(own.examples[place]), percent(own.accuracies[place]), mistaken(own, place, names)


def mistaken(own: Confusion, place: int, names: Sequence[str]) -> str:
    """What most of the examples of a class that were not recognised were taken for."""
    if own.matrix is None or own.right[place] == own.examples[place]:
        return "-"
    others = {other: count for other, count in enumerate(own.matrix[place]) if other != place}
    most = max(others, key=lambda other: (others[other], -other))
    return f"{one_line(names[most])} ({others[most]})"


def facts_of_run(run: StoredRun) -> dict[str, str | list[str]]:
    """By name, what there is to say; some values are empty."""
    return {
        "run": f"{run.label}, {_state(run)}",
        "data": _data(run),
        "clients": run.partition.in_words() if run.partition is not None else "",
        "traffic": _traffic(run.summary),
        **_missing(run),
        "caution": [*cautions(run.summary), *doubts(run.summary)],
        "result": "the accuracy of the ensemble; the answer of this method is no single model's"
        if run.answers_as_ensemble
        else "",
        "made": list(_made(run)),
        "folder": str(run.folder.path),
        "picture": _pictures(run),
        **_commands(run),
    }


def _state(run: StoredRun) -> str:
    if run.result.is_finished:
        return f"finished, {run.rounds} rounds"
    latest = f", last event {moment(run.last_time)}" if run.last_time is not None else ""
    return f"{how_far(run)}{latest}"


def moment(time: Any) -> str:
    """In the zone of this machine; nothing for what is no time."""
    sound = isinstance(time, int | float) and 0 <= time < LATEST
    return f"{datetime.fromtimestamp(time):%Y-%m-%d %H:%M:%S}" if sound else ""


def _data(run: StoredRun) -> str:
    facts = run.summary["data"]
    counts = {word: facts.get(part) for part, word in PARTS.items()}
    parts = [f"{count:,} {word}" for word, count in counts.items() if isinstance(count, int) and count]
    classes = run.partition.classes if run.partition is not None else None
    return f"{data_called(run.summary)}: {', '.join(parts)} examples" + (f" of {classes} classes" if classes else "")


PARTS = {"train": "training", "validation": "validation", "public": "public", "test": "test"}


def _traffic(summary: Mapping[str, Any]) -> str:
    simulated = summary.get("simulated_seconds")
    clock = f", {seconds(simulated)} simulated s" if simulated is not None else ""
    return f"{size(summary['bytes_up'])} up, {size(summary['bytes_down'])} down, {summary['seconds']:.1f} s{clock}"


def _missing(run: StoredRun) -> dict[str, str | list[str]]:
    """Who was asked and did not count, with the reasons that were given most often."""
    asked = sum(len(record.clients) for record in run.result.history)
    found: dict[str, str | list[str]] = {"asked": f"{asked:,} updates, {run.summary['updates_counted']:,} counted"}
    for event, reasons in run.reasons.items():
        said = [f"{count:,} times: {reason}" for reason, count in reasons.most_common(MOST_REASONS)]
        rest = len(reasons) - MOST_REASONS
        found[event.rpartition("_")[2]] = [*said, *([f"and for {rest} other reasons"] if rest > 0 else [])]
    return found


def _made(run: StoredRun) -> Iterator[str]:
    """When, with which code and where it was begun, and gone on with."""
    for event in events_that_begin(run.folder.events, STARTS):
        origin = event.get("origin")
        said = {key: one_line(str(value)) for key, value in origin.items()} if isinstance(origin, Mapping) else {}
        code = said.get("fedfuse", "?") + (f" at {said['commit'][:8]}" if said.get("commit", "None") != "None" else "")
        how = "gone on with" if event["event"] == "run_resumed" else "begun"
        around = f"torch {said.get('torch', '?')}, Python {said.get('python', '?')}, on {said.get('machine', '?')}"
        yield f"{how} {moment(event.get('time'))} by fedfuse {code}, {around}"


def _pictures(run: StoredRun) -> str:
    drawn = (run.folder.pictures / f"{name}.png" for name in ("accuracy", "partition", "metrics"))
    return " ".join(str(path) for path in drawn if path.exists())


def _commands(run: StoredRun) -> dict[str, str]:
    """How to go on with it, or to do it again."""
    folder = shlex.quote(str(run.folder.path))
    data = run.config.raw.get("data")
    if isinstance(data, Mapping) and data.get("name") in GIVEN:
        return {"again": f"its data came from Python: fedfuse.run({str(run.folder.path)!r}, data=..., out=...)"}
    code = run.config.code()
    needs = f"  # needs {one_line(code)}" if code else ""
    if run.result.is_finished:
        return {"again": f"fedfuse run {folder} --out {shlex.quote(str(run.folder.path) + '-again')}{needs}"}
    return {"go on": f"fedfuse run {folder} --resume{needs}"} if not run.is_running else {}
