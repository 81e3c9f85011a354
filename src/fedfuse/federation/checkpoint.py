"""A snapshot on the disk: weights and memories in one safetensors file, written whole or not at all.

What grows lies elsewhere and is not written again: the records of rounds are in the log, of which the file has a mark,
and clients' states in a store, of which it has a tally. A checkpoint is not read if log or states are no longer those,
or if it has not the digest that it was written with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from fedfuse.core.errors import RunFolderError
from fedfuse.core.round_files import path_of, rounds_in
from fedfuse.core.tensor_files import DamagedError, read_header, read_safetensors, write_safetensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.events import Mark
from fedfuse.federation.logged_rounds import rounds_until
from fedfuse.federation.state import History, ServerState, Snapshot
from fedfuse.federation.state_store import StateStore, StoredStates, forget_segments_after

FORMAT = 4
"""1 had names that parts shared for states and memories; 2 had all records and states in the file; 3 had no digests."""
SUFFIX = ".safetensors"
DAMAGED = ".damaged"
"""What a file that could not be read is called from then on, so that nothing is lost."""
KEPT = 2
"""Checkpoints kept: the newest, and one more in case the disk loses it."""


def new_states(folder: Path) -> StoredStates:
    """No states yet, for a run whose checkpoints shall lie in this folder."""
    return StoredStates(StateStore(_states(folder)), 0)


class Identity(NamedTuple):
    """What a checkpoint is of: the experiment, and what it has in common with longer and shorter ones.

    ``course`` is the same for any number of rounds; None if the experiment depends on their number.
    """

    whole: str
    course: str | None = None

    @staticmethod
    def of(given: str | Identity) -> Identity:
        return Identity(given) if isinstance(given, str) else given

    def is_of(self, about: Mapping[str, Any]) -> bool:
        """Whether a checkpoint that says this is this one's."""
        if about["config_sha256"] == self.whole:
            return True
        return self.course is not None and about.get("course_sha256") == self.course


class Skipped(NamedTuple):
    """A checkpoint that could not be gone on from."""

    file: str
    reason: str


@dataclass(frozen=True)
class Saved:
    """A snapshot, the place in the log before which the records of its rounds are, and newer ones that were no good."""

    snapshot: Snapshot
    log: Mark
    skipped: tuple[Skipped, ...] = ()


def save_checkpoint(folder: Path, saved: Saved, identity: str | Identity) -> Path:
    """Write the snapshot, and remove what is no longer needed."""
    server, states, identity = saved.snapshot.server, saved.snapshot.clients, Identity.of(identity)
    if not isinstance(states, StoredStates):
        raise TypeError("a checkpoint is of a run whose clients' states are in its folder, which new_states begins")
    tensors = _flatten("weights", {name: {"flat": weights.flat} for name, weights in server.weights.items()})
    tensors |= _flatten("memory", server.memory)
    about = {
        "format": FORMAT,
        "config_sha256": identity.whole,
        **({} if identity.course is None else {"course_sha256": identity.course}),
        "round": server.round,
        "layouts": {name: weights.layout.to_json() for name, weights in server.weights.items()},
        "log": asdict(saved.log),
        "states": states.store.tally._asdict(),
    }
    path = path_of(folder, server.round, SUFFIX)
    write_safetensors(path, tensors, about)
    _remove_older(folder, states)
    return path


def load_checkpoint(folder: Path, identity: str | Identity, log: Path, before: int | None = None) -> Saved | None:
    """The newest snapshot (of a round before this one, if asked), or None if there is no checkpoint yet.

    One that is not as it was written is passed over: the one before it leads to the same bits. If that leaves none, a
    RunFolderError names them all. A file that the disk does not give out is an OSError.
    """
    skipped: list[Skipped] = []
    for number in reversed(rounds_in(folder, SUFFIX)):
        if before is not None and number >= before:
            continue
        try:
            saved = _read(folder, number, Identity.of(identity), log)
        except DamagedError as error:
            skipped.append(Skipped(path_of(folder, number, SUFFIX).name, str(error)))
        else:
            return replace(saved, skipped=tuple(skipped))
    if skipped:
        names = ", ".join(f"{file} ({reason})" for file, reason in skipped)
        raise RunFolderError(
            f"{folder} has no checkpoint that the run can go on from: {names}; bring back what is damaged or missing, "
            "run it anew with --overwrite, or choose another --out"
        )
    return None


def go_on_from(folder: Path, saved: Saved) -> None:
    """Bring the folder to where a snapshot was: later checkpoints, which were no good, are set aside."""
    number, states = saved.snapshot.server.round, saved.snapshot.clients
    for later in rounds_in(folder, SUFFIX):
        if later > number:
            path = path_of(folder, later, SUFFIX)
            path.replace(path.with_name(path.name + DAMAGED))
    forget_segments_after(_states(folder), number)
    if isinstance(states, StoredStates):
        _remove_older(folder, states)


def forget_after(folder: Path, number: int) -> None:
    """Remove the checkpoints of later rounds, which are sound and no longer wanted."""
    for later in rounds_in(folder, SUFFIX):
        if later > number:
            path_of(folder, later, SUFFIX).unlink()


def _remove_older(folder: Path, states: StoredStates) -> None:
    rounds = rounds_in(folder, SUFFIX)
    for old in rounds[:-KEPT]:
        path_of(folder, old, SUFFIX).unlink()
    states.store.keep(rounds[-KEPT:])


def _read(folder: Path, number: int, identity: Identity, log: Path) -> Saved:
    path = path_of(folder, number, SUFFIX)
    tensors, about = read_safetensors(path)
    _check(path, about, identity)
    try:
        return _saved(folder, number, log, tensors, about)
    except DamagedError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedError("it is no checkpoint") from error


def _saved(folder: Path, number: int, log: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Saved:
    if about["round"] != number:
        raise DamagedError("it is of another round")
    mark = Mark(**about["log"])
    records = rounds_until(log, mark)
    if records is None:
        raise DamagedError(f"{log} is not as the run left it: gone, cut or changed")
    store = StateStore.opened(_states(folder), number, rounds_in(folder, SUFFIX))
    if store.tally._asdict() != about["states"]:
        raise DamagedError(f"{_states(folder)} is not as the run left it: gone, cut or changed")
    return Saved(Snapshot(_server(tensors, about, History(records)), StoredStates(store, number)), mark)


def _check(path: Path, about: Any, identity: Identity) -> None:
    """Refuse one that is sound, but of another version or of another experiment."""
    version = about.get("format") if isinstance(about, dict) else None
    if type(version) is not int or "config_sha256" not in about:
        raise DamagedError("it is no checkpoint")
    if version != FORMAT:
        age = "an earlier" if version < FORMAT else "a later"
        raise RunFolderError(
            f"{path} was written by {age} version of fedfuse, and this one cannot go on from it; run it anew "
            "with --overwrite, or choose another --out"
        )
    if read_header(path).sha256 is None:
        raise DamagedError("it has no digest")
    if not identity.is_of(about):
        raise RunFolderError(f"{path} belongs to another experiment; choose another --out")


def _server(tensors: Mapping[str, Tensor], about: Mapping[str, Any], history: History) -> ServerState:
    layouts = {name: Layout.from_json(value) for name, value in about["layouts"].items()}
    weights = _unflatten("weights", tensors)
    return ServerState(
        round=about["round"],
        weights={name: Weights(weights[name]["flat"], layout) for name, layout in layouts.items()},
        memory=_unflatten("memory", tensors),
        history=history,
    )


def _flatten(section: str, groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Two levels of names as one; JSON keeps them apart whatever characters they have."""
    return {json.dumps([section, group, name]): t for group, tensors in groups.items() for name, t in tensors.items()}


def _unflatten(section: str, tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    groups: dict[str, dict[str, Tensor]] = {}
    for address, tensor in tensors.items():
        own_section, group, name = json.loads(address)
        if own_section == section:
            groups.setdefault(group, {})[name] = tensor
    return groups


def _states(folder: Path) -> Path:
    return folder / "clients"
