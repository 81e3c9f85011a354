"""A run's counts in the text format of Prometheus. Nothing in it is about a single client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fedfuse.report.monitor import BOUNDED, WITHOUT, Counts

Labels = Mapping[str, str]
Sample = tuple[Labels, float | None]
MISHAPS = {
    "models_diverged": (
        "Models and memories that were not used: not finite, or absurd.",
        ("model_diverged", "memory_diverged"),
    ),
    "rounds_without_updates": ("Rounds in which nobody counted.", ("nobody_counted",)),
    "defences_weakened": ("Rounds too small for a defence as it was asked for.", ("defence_weakened",)),
    "seats_claimed": ("Nodes that said they were a client whose seat another node has.", ("seat_claimed",)),
    "retries": ("Clients or work tried anew.", ("client_retried", "work_retried")),
    "resumes": ("How often the run was gone on with.", ("run_resumed",)),
}
"""Events that are counted, each kind from zero, so that an alarm sees the first one."""


@dataclass(frozen=True)
class Family:
    """One metric with all its samples."""

    name: str
    kind: str
    meaning: str
    samples: tuple[Sample, ...]

    def lines(self, common: Labels) -> Iterator[str]:
        """As Prometheus reads it; without samples, nothing."""
        there = [(labels, value) for labels, value in self.samples if value is not None]
        if there:
            yield f"# HELP {self.name} {self.meaning}"
            yield f"# TYPE {self.name} {self.kind}"
        for labels, value in there:
            written = ",".join(f'{key}="{_escaped(text)}"' for key, text in {**common, **labels}.items())
            yield f"{self.name}{{{written}}} {value!r}"


def exposition(counts: Counts, run: str, is_complete: bool) -> str:
    """The metrics of one run, which ``run`` names."""
    return "".join(f"{line}\n" for family in _families(counts, is_complete) for line in family.lines({"run": run}))


def _families(counts: Counts, is_complete: bool) -> Iterable[Family]:
    last, about, events = counts.last, counts.about, counts.events
    models = last.get("prototypes", {})
    heard = counts.drawn - sum(counts.without.values())
    clients = {"counted": heard, **{reason: counts.without[reason] for reason in WITHOUT}}
    yield Family("fedfuse_run", "gauge", "What runs: 1, with the facts as labels.", ((_facts(counts), 1),))
    yield _gauge("run_complete", "1 once the run's summary is written.", int(is_complete))
    yield _gauge("rounds_planned", "Rounds that the experiment asks for.", about.get("rounds"))
    yield _gauge("round", "The latest finished round.", last.get("round", 0))
    yield _gauge("last_round_timestamp_seconds", "When the latest round was finished.", last.get("time"))
    yield _gauge("last_event_timestamp_seconds", "When a run or round last began or ended.", counts.last_time)
    yield _gauge("last_round_seconds", "What the latest round took.", last.get("seconds"))
    yield _counter("seconds_total", "What all finished rounds took.", counts.seconds)
    yield Family("fedfuse_accuracy", "gauge", "On the test inputs, by model.", _measured(models, "accuracy"))
    yield Family("fedfuse_loss", "gauge", "On the test inputs, by model.", _measured(models, "loss"))
    yield _gauge("ensemble_accuracy", "Of all teachers together, on the test inputs.", last.get("ensemble_accuracy"))
    yield _gauge("training_loss", "Mean of what the clients of the latest round report.", last.get("training_loss"))
    privacy = last.get("privacy") or {}
    yield _gauge("epsilon", "What the client gave away that gave most, at the run's delta.", privacy.get("epsilon"))
    yield Family(
        "fedfuse_clients_total", "counter", "Tasks of finished rounds, by what became of them.",
        tuple(({"outcome": outcome}, number) for outcome, number in clients.items()),
    )  # fmt: skip
    yield Family(
        "fedfuse_bounded_total", "counter", "Updates of finished rounds that counted for less, by what was bounded.",
        tuple(({"what": what.partition("_")[0]}, counts.bounded[what]) for what in BOUNDED),
    )  # fmt: skip
    yield Family(
        "fedfuse_bytes_total", "counter", "What travelled in finished rounds.",
        (({"direction": "up"}, counts.bytes_up), ({"direction": "down"}, counts.bytes_down)),
    )  # fmt: skip
    for name, (meaning, kinds) in MISHAPS.items():
        yield _counter(f"{name}_total", meaning, sum(events[kind] for kind in kinds))
    yield _counter("unreadable_events_total", "Lines of the log that are no event.", counts.unreadable)


def _facts(counts: Counts) -> Labels:
    about = counts.about
    facts = {
        "data": about.get("data", {}).get("name", ""),
        "experiment": str(about.get("config_sha256", ""))[:16],
        "version": about.get("origin", {}).get("fedfuse", ""),
    }
    return {key: str(value) for key, value in facts.items()}


def _measured(models: Mapping[str, Mapping[str, float | None]], what: str) -> tuple[Sample, ...]:
    return tuple(({"model": name}, record.get(what)) for name, record in models.items())


def _gauge(name: str, meaning: str, value: float | None) -> Family:
    return Family(f"fedfuse_{name}", "gauge", meaning, (({}, value),))


def _counter(name: str, meaning: str, value: float) -> Family:
    return Family(f"fedfuse_{name}", "counter", meaning, (({}, value),))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
