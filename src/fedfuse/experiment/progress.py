"""What happens in runs, in words: for listeners that show it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from fedfuse.core.plain_json import dumps
from fedfuse.experiment.assembly import cautions, notes
from fedfuse.experiment.sheets import size
from fedfuse.federation.events import Event

SAID = 20
"""Sentences of one kind that are shown of a run."""
STEPS = {
    "load data": "loading data",
    "clients": "clients train",
    "synthesise": "making inputs",
    "teachers": "teachers predict",
    "distil": "distilling",
    "evaluate": "evaluating",
}
"""What a tick tells of, in words."""


class Lines:
    """A listener that says what happens line by line; a caution that several runs give is said once."""

    def __init__(self, label: str = "", say: Callable[[str], None] = print) -> None:
        self.label = label
        self.say = say
        self.rounds = 0
        self.told: set[str] = set()
        self.mishaps = Mishaps()

    def __call__(self, event: Event) -> None:
        if event["event"] in ("run_started", "run_resumed"):
            self.rounds, self.mishaps = event["rounds"], Mishaps()
        for line in self._lines(event):
            self.say(line)

    def _lines(self, event: Event) -> Iterator[str]:
        label = event.get("run", self.label)
        if event["event"] == "run_resumed":
            yield f"{label}: goes on with what is there"
        if event["event"] == "round_finished":
            yield f"{label}: round {event['round']}/{self.rounds} {accuracies(event)}"
        elif event["event"] == "study_run_finished":
            yield f"{label}: finished"
        elif event["event"] in ("run_started", "run_resumed"):
            said = [*notes(event), *cautions(event), *filter(None, [notice(event)])]
            new = [sentence for sentence in said if sentence not in self.told]
            self.told.update(new)
            yield from new
        elif sentence := self.mishaps(event) or notice(event) or event.get("remark"):
            yield sentence


class Kept:
    """A listener for programs, which says nothing but that a run was there already and not begun."""

    def __init__(self, label: str = "", say: Callable[[str], None] | None = None) -> None:
        self.label = label
        self.say = say or partial(print, file=sys.stderr)

    def __call__(self, event: Event) -> None:
        if event["event"] in ("run_found", "run_resumed"):
            self.say(f"{event.get('run', self.label)}: {notice(event) or 'goes on with what is there'}")


class Mishaps:
    """What went otherwise than planned in one run; of each kind the first few, because it may happen to all clients."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()

    def __call__(self, event: Event) -> str | None:
        sentence = mishap(event)
        if sentence is None:
            return None
        self.said[event["event"]] += 1
        if self.said[event["event"]] > SAID:
            return None
        last = self.said[event["event"]] == SAID
        return f"{sentence} (more of this kind: see events.jsonl)" if last else sentence


MISHAPS = {
    "update_refused": "client {client} was refused: {reason}",
    "model_diverged": "model {prototype} diverged: {reason}",
    "memory_diverged": "what {part} would remember was not taken over: {reason}",
    "nobody_counted": "round {round}: nobody counted ({reason}); the models stay as they are",
    "mostly_refused": "round {round}: {refused} of {answers} updates were refused; can clients train from this model?",
    "client_spent": "client {client} has no privacy budget for another round after round {round}",
    "sum_withheld": "round {round}: nothing is made of what clients sent: {reason}",
    "metric_failed": "metric {metric} has no value: {reason}",
    "client_retried": "client {client} was retried: {reason}",
    "work_retried": "{what} was retried: {reason}",
    "checkpoint_skipped": "{file} was passed over, and the run goes on from the checkpoint before: {reason}",
    "tracker_failed": "{tracker} keeps no more of this run, which goes on: {reason}",
    "version_changed": (
        "{what} was {before} and is {now} now: the last digits may differ from those of a run in one go"
    ),
}
"""Sentences about events."""


def mishap(event: Event) -> str | None:
    """What went otherwise than planned, in a sentence."""
    if event["event"] in MISHAPS:
        return MISHAPS[event["event"]].format_map(event)
    return "; ".join(event.get("doubts", ())) or None


def notice(event: Event) -> str | None:
    """What a run found or decided by itself, in a sentence."""
    if event["event"] == "run_found":
        return "already finished: nothing was run, and this is the result that lies in the folder"
    if event["event"] == "rounds_changed":
        return f"the run was to have {event['before']} rounds, and goes on to {event['now']}"
    if event["event"] in ("run_started", "run_resumed"):
        return "; ".join(_beginnings(event)) or None
    if event["event"] == "client_joined":
        return f"client {event['client']} takes part with model {event['prototype']} from round {event['round']} on"
    if event["event"] == "seat_claimed":
        holder = "is nobody's" if event["holder"] is None else f"is node {event['holder']}'s"
        return f"node {event['node']} says that it is client {event['client']}, whose seat {holder}"
    if event["event"] == "workers_joined":
        more = "1 more process trains" if event["workers"] == 1 else f"{event['workers']} more processes train"
        return f"{more} clients as soon as started: about {event['seconds_left']:.0f} s of work were left for one"
    return None


def _beginnings(event: Event) -> Iterator[str]:
    """What a run says of itself when it begins."""
    if event.get("chosen"):
        yield f"left to fedfuse: {', '.join(f'{key}={dumps(value)}' for key, value in event['chosen'].items())}"
    if event.get("kept_clients"):
        yield f"every client's model of every round is kept in clients/, about {size(event['kept_clients'])} together"


def missing(event: Event) -> str | None:
    """Who is not in a round, in a sentence."""
    if event["event"] in ("client_absent", "client_late"):
        word = event["event"].removeprefix("client_")
        return f"round {event['round']}: client {event['client']} is {word}: {event['reason']}"
    return None


def accuracies(event: Event) -> str:
    """What a finished round came to."""
    measured = {name: record["accuracy"] for name, record in event["prototypes"].items()}
    measured["ensemble"] = event["ensemble_accuracy"]
    said = [f"{name} {100 * value:.1f} %" for name, value in measured.items() if value is not None]
    if privacy := event.get("privacy"):
        epsilon = privacy["epsilon"]
        said.append("no bound on epsilon" if epsilon is None else f"epsilon {epsilon:.3g}")
    return ", ".join(said)
