"""Shadow federations: the run's own recipe on half of every client's examples, to see how absent examples score.

Shadows come in pairs. In one, a client has a random half of its examples, and in the other the rest; so half of all
shadows were trained without any one example. Test examples are in no shadow; each is looked at in half of them as
well, so that what is known of members is known of non-members from as many models. Each shadow has a seed of its own,
and so its own first weights, batches and noise. What shadows said is kept in the run's folder, and not computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.data.partition import Assignment
from fedfuse.experiment.assembly import Built, Loaded, build
from fedfuse.experiment.auditing.left import Examples, Left, Witness, scores_of
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation.events import EventLog

FORMAT = 1
FOLDER = "audit"
MOST = 1024
Tell = Callable[[int, int], None]
"""Told how many shadows are trained, of how many."""


@dataclass(frozen=True)
class Shadows:
    """What all of them said: for each thing that left, a row of scores per shadow; NaN where that shadow has none."""

    inside: NDArray[np.bool_]
    """By shadow and example: whether it is not to be looked at there."""
    scores: dict[str, NDArray[np.float64]]
    """By the key of what left."""


def check_number(shadows: int) -> None:
    if shadows % 2 or not 0 <= shadows <= MOST:
        raise ConfigError(f"shadows come in pairs, at most {MOST:,}; {shadows} is no number of them, 8 would be")


def halves(assignment: Assignment, train: int, tests: int, key: Key, pair: int) -> NDArray[np.bool_]:
    """For both shadows of a pair, which examples are in each: training examples, then test examples."""
    random = key.child("pair", pair).numpy()
    inside = np.zeros((2, train), dtype=bool)
    for client in range(len(assignment)):
        own = random.permutation(assignment[client])
        middle = (len(own) + 1) // 2
        inside[0, own[:middle]] = True
        inside[1, own[middle:] if len(own) > 1 else own] = True  # nobody has nothing
    looked = np.zeros((2, tests), dtype=bool)
    looked[0, random.permutation(tests)[: tests // 2]] = True
    looked[1] = ~looked[0]
    return np.concatenate([inside, looked], axis=1)


def train_shadows(
    built: Built, loaded: Loaded, assignment: Assignment, folder: Path, number: int, tell: Tell | None = None
) -> Shadows:
    """As many as are wanted; those that the folder has are read."""
    key, examples = Key(built.config.seed).child("audit"), Examples(built)
    pairs = [halves(assignment, examples.train, examples.test, key, pair) for pair in range(number // 2)]
    inside = np.concatenate(pairs)
    identity = {"format": FORMAT, "config": built.config.sha256(), "data": built.splits.sha256()}
    said: list[dict[str, NDArray[np.float64]]] = []
    for shadow in range(number):
        if tell is not None:
            tell(shadow, number)
        path, about = folder / FOLDER / f"shadow-{shadow}.safetensors", {**identity, "shadow": shadow}
        found = _read(path, about, len(examples))
        if found is None:
            own = np.flatnonzero(inside[shadow][: examples.train])
            parts = [held[np.isin(held, own)] for held in assignment]
            scores = _train(_config_of(built.config, key, shadow), loaded, Assignment.of(parts))
            found = {left.key: score for left, score in scores.items()}
            path.parent.mkdir(exist_ok=True)
            write_safetensors(path, {name: torch.from_numpy(score) for name, score in found.items()}, about)
        said.append(found)
    nothing = np.full(len(examples), np.nan)
    names = {name for found in said for name in found}
    return Shadows(inside, {name: np.stack([found.get(name, nothing) for found in said]) for name in names})


def _train(config: ExperimentConfig, loaded: Loaded, assignment: Assignment) -> dict[Left, NDArray[np.float64]]:
    built = build(config, EventLog(), loaded=loaded, assignment=assignment)
    witness = Witness(built.federation.bank, built.interface)
    federation = replace(built.federation, keeping=witness)
    try:
        snapshot = federation.start()
        while snapshot.server.round < config.federation.rounds:
            snapshot = federation.advance(snapshot)
    finally:
        federation.engine.close()
    return scores_of(built, Examples(built), snapshot, witness.seen)


def _config_of(config: ExperimentConfig, key: Key, shadow: int) -> ExperimentConfig:
    """Noise is the run's, chosen for more examples; nobody is promised anything about a shadow, so it has no budget."""
    privacy = None if config.privacy is None else config.privacy.model_copy(update={"budget": None})
    seed = key.child("shadow", shadow).number() % 2**31
    return config.model_copy(update={"seed": seed, "privacy": privacy})


def _read(path: Path, about: object, size: int) -> dict[str, NDArray[np.float64]] | None:
    """None if it is not there, not of this run, or not as it was written."""
    try:
        tensors, said = read_safetensors(path)
    except (OSError, DamagedError):
        return None
    fits = all(tensor.shape == (size,) and tensor.dtype == torch.float64 for tensor in tensors.values())
    return {name: tensor.numpy() for name, tensor in tensors.items()} if said == about and fits else None
