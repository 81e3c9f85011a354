"""A run in one record: what other tools read from ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.federation.state import ServerState

FORMAT = 1


def summarise(
    state: ServerState, about: Mapping[str, Any], target: float | None, server_models: bool = True
) -> dict[str, Any]:
    """Last, best, before and after fusion, rounds to target, bytes and seconds. ``about`` opens the record.

    Without models on the server, a prototype's accuracy is the mean of the clients' own models.
    """
    clients = {client: accuracy for record in state.history for client, accuracy in record.client_accuracy.items()}
    return {
        "format": FORMAT,
        **about,
        "rounds": state.round,
        "target_accuracy": target,
        "server_models": server_models,
        "prototypes": {name: _prototype(state, name, target, server_models) for name in state.weights},
        "client_accuracy": {str(client): clients[client] for client in sorted(clients)},
        "bytes_up": sum(record.bytes_up for record in state.history),
        "bytes_down": sum(record.bytes_down for record in state.history),
        "updates_refused": sum(len(record.refused) for record in state.history),
        "seconds": round(sum(record.seconds for record in state.history), 3),
    }


def _prototype(state: ServerState, name: str, target: float | None, server_models: bool) -> dict[str, Any]:
    measured = [record for record in state.history if record.prototypes[name].accuracy is not None]
    accuracy = {record.round: record.prototypes[name].accuracy or 0.0 for record in measured}
    best = max(accuracy, key=lambda number: (accuracy[number], -number), default=None)
    last = measured[-1].prototypes[name] if measured else None
    reached, earliest = rounds_to(accuracy, target)
    return {
        "accuracy_last": last.accuracy if last else None,
        "accuracy_best": accuracy[best] if best else None,
        "round_of_best": best,
        "accuracy_before_fusion": last.accuracy_before_fusion if last else None,
        "accuracy_after_fusion": last.accuracy if last else None,
        "ensemble_accuracy": measured[-1].ensemble_accuracy if measured else None,
        "rounds_to_target": reached,
        "rounds_to_target_earliest": earliest,
        "loss_last": last.loss if last else None,
        "parameters": state.weights[name].layout.parameter_count,
        "weights_sha256": state.weights[name].sha256() if server_models else None,
    }


def rounds_to(accuracy: Mapping[int, float], target: float | None) -> tuple[int | None, int | None]:
    """The first evaluated round at or above the target, and the first in which it may have been reached unseen.

    They differ where not every round is evaluated. None without a target or if it was never reached.
    """
    before = 0
    for number, value in accuracy.items():
        if target is not None and value >= target:
            return number, before + 1
        before = number
    return None, None
