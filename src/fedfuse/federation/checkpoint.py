"""A snapshot as one safetensors file: tensors plus one JSON value, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from fedfuse.core.errors import RunFolderError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.state import RoundRecord, ServerState, Snapshot

FORMAT = 2
"""1 had states and memories under names that parts shared; no part would find its own there."""
KEPT = 2
"""Checkpoints kept: the newest, and one more in case the disk loses it."""


def save_checkpoint(folder: Path, snapshot: Snapshot, config_sha256: str) -> Path:
    """Write the snapshot and remove checkpoints that are no longer needed."""
    server = snapshot.server
    tensors = _flatten("weights", {name: {"flat": weights.flat} for name, weights in server.weights.items()})
    tensors |= _flatten("memory", server.memory)
    tensors |= _flatten("clients", {str(client): state for client, state in snapshot.clients.items()})
    about = {
        "format": FORMAT,
        "config_sha256": config_sha256,
        "round": server.round,
        "layouts": {name: weights.layout.to_json() for name, weights in server.weights.items()},
        "history": [record.to_json() for record in server.history],
    }
    path = folder / f"round-{server.round:06d}.safetensors"
    write_safetensors(path, tensors, about)
    for old in _checkpoints(folder)[:-KEPT]:
        old.unlink()
    return path


def load_checkpoint(folder: Path, config_sha256: str, before: int | None = None) -> Snapshot | None:
    """The newest readable snapshot (of a round before this one, if asked), or None if there is none yet."""
    for path in reversed(_checkpoints(folder)):
        if before is not None and int(path.stem.removeprefix("round-")) >= before:
            continue
        try:
            tensors, about = read_safetensors(path)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError):
            continue  # damaged on disk: the one before it leads to the same bits
        if about["format"] != FORMAT:
            age = "an earlier" if about["format"] < FORMAT else "a later"
            raise RunFolderError(
                f"{path} was written by {age} version of fedfuse, and this one cannot go on from it; run it anew "
                "with --overwrite, or choose another --out"
            )
        if about["config_sha256"] != config_sha256:
            raise RunFolderError(f"{path} belongs to another experiment; choose another --out")
        return _snapshot(tensors, about)
    return None


def _snapshot(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Snapshot:
    layouts = {name: Layout.from_json(value) for name, value in about["layouts"].items()}
    weights = _unflatten("weights", tensors)
    server = ServerState(
        round=about["round"],
        weights={name: Weights(weights[name]["flat"], layout) for name, layout in layouts.items()},
        memory=_unflatten("memory", tensors),
        history=tuple(RoundRecord.from_json(record) for record in about["history"]),
    )
    return Snapshot(server, {int(client): state for client, state in _unflatten("clients", tensors).items()})


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


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("round-*.safetensors"))
