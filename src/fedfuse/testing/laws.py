"""What every part must keep to, so that runs can be repeated, interrupted, moved and compared.

A law is a function whose name says it; it raises an AssertionError with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import yaml
from torch import Tensor

from fedfuse.core.part import Part, addresses_in
from fedfuse.core.randomness import Key
from fedfuse.engines import LocalEngineSettings
from fedfuse.experiment.assembly import load_examples
from fedfuse.experiment.config import validate
from fedfuse.federation import Snapshot
from fedfuse.federation.events import EventLog
from fedfuse.methods import Method
from fedfuse.models import Mlp
from fedfuse.models.saved import load_model, save_model
from fedfuse.testing.engine import LastFirst
from fedfuse.testing.trial import Played, Trial, difference, opened, tensors_of, through_a_checkpoint

OTHER = Mlp(hidden=(9,))
"""The second architecture of a federation of two."""


@dataclass(frozen=True)
class Case:
    """A part, the experiment that it is tried in, and the same experiment without it."""

    part: Part | Method
    trial: Trial
    without: Trial

    @cached_property
    def straight(self) -> Played:
        """Played from its start to its end, here, one client after another."""
        return self.trial.play()

    def with_another_seed(self) -> Played:
        return self.trial.but(seed=self.trial.config.seed + 1).play()


Law: TypeAlias = Callable[[Case], None]


def is_read_back_from_a_file(case: Case) -> None:
    """What ``config.yaml`` says is the same part again."""
    config = case.trial.config
    again = validate(yaml.safe_load(config.to_yaml()))
    for section in type(config).model_fields:
        _require(getattr(again, section) == getattr(config, section), f"{section} is another one when it is read back")


def is_in_the_identity(case: Case) -> None:
    """A run with it is not taken for one without it, nor for one with other code."""
    recipe_or_part = case.part.recipe if isinstance(case.part, Method) else case.part
    for address in addresses_in(recipe_or_part):
        _require(address in case.trial.config.foreign_code, f"the identity has no hash of the source of {address}")
    _require(
        case.trial.config.sha256() != case.without.config.sha256(),
        "the experiment with it has the identity of the one without it",
    )


def runs(case: Case) -> None:
    """Every update is accepted, every model stays finite, nothing fails."""
    for event in case.straight.told("update_refused"):
        raise AssertionError(f"the server refused an update: {event['reason']}")
    for event in case.straight.told("metric_failed"):
        raise AssertionError(f"the metric failed: {event['reason']}")
    for event in case.straight.told("model_diverged"):
        raise AssertionError(event["reason"])


def keeps_nothing_but_tensors(case: Case) -> None:
    """Memory and state go into a checkpoint."""
    for name, value in tensors_of(case.straight.snapshot).items():
        _require(isinstance(value, Tensor), f"{name} is a {type(value).__name__}, but should be a tensor")
        _require(not value.requires_grad, f"{name} still has its gradient's graph; detach it")
        _require(value.device.type == "cpu", f"{name} is on {value.device}, but should be on the cpu")


def gives_the_same_bits_again(case: Case) -> None:
    """Nothing but the seed decides: no global random numbers, no memory outside the state."""
    _same(case.straight.snapshot, case.trial.play().snapshot, "when it is played again with the same seed")


def gives_other_bits_with_another_seed(case: Case) -> None:
    """The seed does decide."""
    ours, theirs = (played.snapshot.server.weights for played in (case.straight, case.with_another_seed()))
    same = all(weights.equals(theirs[name]) for name, weights in ours.items())
    _require(not same, "no weights differ when the seed is another one")


def goes_on_from_a_checkpoint(case: Case) -> None:
    """Killed after round 1 and resumed, it ends as if it had not been."""
    first = case.trial.play(rounds=1).snapshot
    case.with_another_seed()  # overwrites whatever the part may have kept elsewhere
    with TemporaryDirectory() as folder:
        resumed = case.trial.play(after=through_a_checkpoint(first, Path(folder))).snapshot
        _same(case.straight.snapshot, resumed, "when it is resumed after round 1")


def does_not_depend_on_the_order_of_arrival(case: Case) -> None:
    """Updates may come in any order."""
    _same(case.straight.snapshot, case.trial.but(engine=LastFirst()).play().snapshot, "when updates come last first")


def does_not_change_with_workers(case: Case) -> None:
    """Other processes find the part and compute the same."""
    workers = LocalEngineSettings(workers=2)
    _same(case.straight.snapshot, case.trial.but(engine=workers).play().snapshot, "with two worker processes")


def works_beside_another_architecture(case: Case) -> None:
    """Two models in one federation."""
    played = case.trial.but(models={**case.trial.config.models, "other": OTHER}).play()
    for event in played.told("update_refused"):
        raise AssertionError(f"with two architectures the server refused an update: {event['reason']}")
    weights = played.snapshot.server.weights
    _require(set(weights) == {*case.trial.config.models, "other"}, "with two architectures a model is missing")
    _require(all(one.is_finite() for one in weights.values()), "with two architectures a model is not finite")


def changes_no_model(case: Case) -> None:
    """What only measures or carries leaves the models as they are."""
    ours, theirs = (played.snapshot.server.weights for played in (case.straight, case.without.play()))
    for name, weights in theirs.items():
        _require(weights.equals(ours[name]), f"the weights of model {name} are not those without it")


def gives_no_example_twice(case: Case) -> None:
    """Every client has sorted positions of its own."""
    dataset, splits = load_examples(case.trial.config, EventLog())
    labels, owners = splits.train.labels, splits.train.owners
    positions = case.trial.config.partition.assign(labels, dataset.classes, Key(0), owners)
    everybody = [int(position) for own in positions for position in own]
    _require(len(set(everybody)) == len(everybody), "an example is given twice")
    _require(all(0 <= position < len(labels) for position in everybody), "a position is outside of the examples")
    _require(all(list(own) == sorted(own) for own in positions), "a client's positions are not sorted")


def is_saved_and_loaded(case: Case) -> None:
    """A model's file is enough to make the network again."""
    weights = case.straight.snapshot.server.weights["one"]
    with opened(case.trial.config, EventLog()) as built, TemporaryDirectory() as folder:
        bank, test, path = built.federation.bank, built.federation.test, Path(folder) / "one.safetensors"
        architecture, network = case.trial.config.models["one"], bank.lend("one", weights)
        save_model(path, architecture, bank.input_shape, bank.classes, weights, built.interface, network)
        same = test.score(load_model(path, trust_own_code=True)) == test.score(network)
    _require(same, "a model that was saved and loaded says something else")


def is_the_same_as(other: Trial) -> Law:
    """A limit: the models are those of another experiment, bit for bit.

    Both train clients one after another: a stack of them, which not every part allows, may differ in the last bits.
    """

    def is_the_same_as_its_limit(case: Case) -> None:
        ours, theirs = (trial.one_by_one().play().snapshot.server.weights for trial in (case.trial, other))
        for name, weights in theirs.items():
            _require(weights.equals(ours[name]), f"the weights of model {name} are not those of its limit")

    return is_the_same_as_its_limit


EVERY: tuple[Law, ...] = (
    is_read_back_from_a_file,
    is_in_the_identity,
    runs,
    keeps_nothing_but_tensors,
    gives_the_same_bits_again,
    gives_other_bits_with_another_seed,
    goes_on_from_a_checkpoint,
    does_not_depend_on_the_order_of_arrival,
    works_beside_another_architecture,
    does_not_change_with_workers,
)


def _same(expected: Snapshot, found: Snapshot, when: str) -> None:
    different = difference(expected, found)
    _require(different is None, f"{different} differs {when}")


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)
