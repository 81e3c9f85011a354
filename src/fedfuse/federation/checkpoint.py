"""A snapshot on the disk: weights and memories in one safetensors file, written whole or not at all.

What grows lies elsewhere and is not written again: the records of rounds are in the log, of which the file has a mark,
and clients' states in a store, of which it has a tally. A checkpoint is not read if log or states are no longer those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from fedfuse.core.errors import RunFolderError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.events import Mark, finished_rounds
from fedfuse.federation.state import History, RoundRecord, ServerState, Snapshot
from fedfuse.federation.state_store import StateStore, StoredStates, Tally, forget_segments_after

FORMAT = 3
"""1 had states and memories under names that parts shared; 2 had all records and all clients' states in the file."""
KEPT = 2
"""Checkpoints kept: the newest, and one more in case the disk loses it."""


def new_states(folder: Path) -> StoredStates:
    """No states yet, for a run whose checkpoints shall lie in this folder."""
    return StoredStates(StateStore(_states(folder)), 0)


@dataclass(frozen=True)
class Saved:
    """A snapshot, and the place in the log before which the records of its rounds are."""

    snapshot: Snapshot
    log: Mark


def save_checkpoint(folder: Path, saved: Saved, config_sha256: str) -> Path:
    """Write the snapshot, and remove what is no longer needed."""
    server, states = saved.snapshot.server, saved.snapshot.clients
    if not isinstance(states, StoredStates):
        raise TypeError("a checkpoint is of a run whose clients' states are in its folder, which new_states begins")
    tensors = _flatten("weights", {name: {"flat": weights.flat} for name, weights in server.weights.items()})
    tensors |= _flatten("memory", server.memory)
    about = {
        "format": FORMAT,
        "config_sha256": config_sha256,
        "round": server.round,
        "layouts": {name: weights.layout.to_json() for name, weights in server.weights.items()},
        "log": asdict(saved.log),
        "states": states.store.tally._asdict(),
    }
    path = _path(folder, server.round)
    write_safetensors(path, tensors, about)
    rounds = _rounds(folder)
    for old in rounds[:-KEPT]:
        _path(folder, old).unlink()
    states.store.keep(rounds[-KEPT:])
    return path


def load_checkpoint(folder: Path, config_sha256: str, log: Path, before: int | None = None) -> Saved | None:
    """The newest readable snapshot (of a round before this one, if asked), or None if there is none yet."""
    missing = ""
    for path, tensors, about in _readable(folder, before):
        _check(path, about, config_sha256)
        records = finished_rounds(log, Mark(**about["log"]))
        store = StateStore.opened(_states(folder), about["round"], _rounds(folder))
        if records is not None and store.tally == Tally(**about["states"]):
            history = History(map(RoundRecord.from_event, records))
            snapshot = Snapshot(_server(tensors, about, history), StoredStates(store, about["round"]))
            return Saved(snapshot, Mark(**about["log"]))
        missing = missing or (f"{log}" if records is None else f"{_states(folder)}")
    if missing:
        raise RunFolderError(
            f"{missing} is not as the run left it (gone, cut or changed), and the run cannot go on without it; "
            "bring it back, run it anew with --overwrite, or choose another --out"
        )
    return None


def forget_after(folder: Path, number: int) -> None:
    """Remove what is of later rounds than that from which a run goes on."""
    for later in _rounds(folder):
        if later > number:
            _path(folder, later).unlink()
    forget_segments_after(_states(folder), number)


def _readable(folder: Path, before: int | None) -> Iterator[tuple[Path, dict[str, Tensor], dict[str, Any]]]:
    """What the checkpoints hold, the newest first."""
    for number in reversed(_rounds(folder)):
        if before is not None and number >= before:
            continue
        try:
            yield _path(folder, number), *read_safetensors(_path(folder, number))
        except (SafetensorError, OSError, ValueError, KeyError, TypeError):
            continue  # damaged on disk: the one before it leads to the same bits


def _check(path: Path, about: Mapping[str, Any], config_sha256: str) -> None:
    if about["format"] != FORMAT:
        age = "an earlier" if about["format"] < FORMAT else "a later"
        raise RunFolderError(
            f"{path} was written by {age} version of fedfuse, and this one cannot go on from it; run it anew "
            "with --overwrite, or choose another --out"
        )
    if about["config_sha256"] != config_sha256:
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


def _rounds(folder: Path) -> list[int]:
    return sorted(int(path.stem.removeprefix("round-")) for path in folder.glob("round-*.safetensors"))


def _path(folder: Path, number: int) -> Path:
    return folder / f"round-{number:06d}.safetensors"


def _states(folder: Path) -> Path:
    return folder / "clients"
