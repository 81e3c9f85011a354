"""What happens in runs, in words: for listeners that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedfuse.core.plain_json import dumps
from fedfuse.experiment.assembly import cautions
from fedfuse.federation.events import Event, Listener


class Lines:
    """A listener that says what happens line by line; a caution that several runs give is said once."""

    def __init__(self, label: str = "", say: Callable[[str], None] = print) -> None:
        self.label = label
        self.say = say
        self.rounds = 0
        self.told: set[str] = set()

    def __call__(self, event: Event) -> None:
        if event["event"] in ("run_started", "run_resumed"):
            self.rounds = event["rounds"]
        for line in self._lines(event):
            self.say(line)

    def _lines(self, event: Event) -> Iterator[str]:
        label = event.get("run", self.label)
        if event["event"] == "round_finished":
            yield f"{label}: round {event['round']}/{self.rounds} {accuracies(event)}"
        elif event["event"] == "study_run_finished":
            yield f"{label}: finished"
        elif event["event"] in ("run_started", "run_resumed"):
            said = [*cautions(event), *filter(None, [notice(event)])]
            new = [sentence for sentence in said if sentence not in self.told]
            self.told.update(new)
            yield from new
        elif sentence := mishap(event) or notice(event) or event.get("remark"):
            yield sentence


def listeners(progress: bool | Listener, label: str = "") -> tuple[Listener, ...]:
    """Who hears of a run: nobody, one who prints, or whoever is given."""
    if callable(progress):
        return (progress,)
    return (Lines(label),) if progress else ()


def mishap(event: Event) -> str | None:
    """What went otherwise than planned, in a sentence."""
    if event["event"] == "update_refused":
        return f"client {event['client']} was refused: {event['reason']}"
    if event["event"] == "model_diverged":
        return f"model {event['prototype']} diverged: {event['reason']}"
    if event["event"] == "metric_failed":
        return f"metric {event['metric']} has no value: {event['reason']}"
    if event["event"] == "checkpoint_skipped":
        return f"{event['file']} was passed over, and the run goes on from the checkpoint before: {event['reason']}"
    if event["event"] == "version_changed":
        return (
            f"{event['what']} was {event['before']} and is {event['now']} now: the last digits may differ from those "
            "of a run in one go"
        )
    if event["event"] in ("client_retried", "work_retried"):
        what = event["what"] if "what" in event else f"client {event['client']}"
        return f"{what} was retried: {event['reason']}"
    return None


def notice(event: Event) -> str | None:
    """What a run found or decided by itself, in a sentence."""
    if event["event"] == "run_found":
        return "already finished: nothing was run, and this is the result that lies in the folder"
    if event.get("chosen"):
        return f"left to fedfuse: {', '.join(f'{key}={dumps(value)}' for key, value in event['chosen'].items())}"
    if event["event"] == "workers_joined":
        more = "1 more process trains" if event["workers"] == 1 else f"{event['workers']} more processes train"
        return f"{more} clients as soon as started: about {event['seconds_left']:.0f} s of work were left for one"
    return None


def accuracies(event: Event) -> str:
    """What a finished round came to."""
    measured = {name: record["accuracy"] for name, record in event["prototypes"].items()}
    measured["ensemble"] = event["ensemble_accuracy"]
    return ", ".join(f"{name} {100 * value:.1f} %" for name, value in measured.items() if value is not None)
