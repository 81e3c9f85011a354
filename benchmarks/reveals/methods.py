"""What each published method sends: names and bytes of the tensors in one client's update, in two rounds on digits; and
what is left of that for the server to see with secure sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedfuse import ConfigError, Experiment
from fedfuse.core.messages import Update
from fedfuse.experiment.assembly import build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.replay import RecordingEngine
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS

QUICK = ["training.epochs=1", "federation.rounds=2", "federation.participation=1.0"]
"""Sizes do not depend on how well anybody learns. All clients are there in both rounds."""
SUMS = ["federation.secure_sums={}", "federation.claims=taken", "federation.moves=taken"]
TRIES: tuple[list[str], ...] = (["method.fuse.distiller={steps: 2}"], [], ["models.mlp.projection_head=64"])
"""What is tried in turn: a short distillation where there is one, the method as it is, with a projection head."""


def table(_: Path) -> str:
    """As markdown."""
    lines = [
        "| method | travels up, and its bytes | bytes, round 1 | bytes, round 2 | with secure sums |",
        "|---|---|---|---|---|",
    ]
    for name in METHODS:
        if METHODS[name].recipe.pooled:
            lines.append(f"| {name} | everybody's examples, before round 1: no federation | | | no |")
        else:
            first, second, head = _of(name)
            named = [f"{what} {size:,}" for what, size in kinds(first).items()]
            later = {what: size for what, size in kinds(second).items() if what not in kinds(first)}
            parts = ", ".join([*named, *(f"in round 2 {what} {size:,}" for what, size in later.items())]) or "nothing"
            called = f"{name}, with a projection head" if head else name
            lines.append(f"| {called} | {parts} | {first.nbytes:,} | {second.nbytes:,} | {_summed(name)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _of(method: str, more: Sequence[str] = ()) -> tuple[Update, Update, bool]:
    """One client's updates in both rounds, and whether the model had to have a projection head."""
    for changes in TRIES:
        try:
            config = Experiment.load("digits", [f"method.name={method}", *changes, *QUICK, *more]).config
            first, second = sent(config)
        except ConfigError as error:
            refused = error
        else:
            return _largest(first), _largest(second), changes == TRIES[-1]
    raise refused


def _summed(method: str) -> str:
    """What a client sends masked, of which the server sees the sum."""
    try:
        first, _, _ = _of(method, SUMS)
    except ConfigError:
        return "no"
    return f"masked, {first.nbytes:,}"


def sent(config: ExperimentConfig) -> list[list[Update]]:
    """The updates of two rounds, as they travel."""
    built = build(config, EventLog())
    engine = RecordingEngine(built.federation.engine)
    federation = replace(built.federation, engine=engine)
    rounds: list[list[Update]] = []
    try:
        snapshot = federation.start()
        for _ in range(2):
            snapshot = federation.advance(snapshot)
            rounds.append(list(engine.updates))
    finally:
        engine.close()
    return rounds


def kinds(update: Update) -> dict[str, int]:
    """What is in an update, by name, and its bytes."""
    weights = {"weights": update.weights.nbytes} if update.weights else {}
    return weights | {f"`{name}`": one.numel() * one.element_size() for name, one in sorted(update.extras.items())}


def _largest(updates: list[Update]) -> Update:
    """Clients whose models are alike send as much; of different ones, the one that sends most."""
    return max(updates, key=lambda update: update.nbytes)
