"""From measured costs to the seconds of a round, term by term.

While clients work, the server hands out tasks and takes in updates: what takes longest of these hides the others. What
follows (merge, teachers, distillation, evaluation) does not begin before the last update is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Seconds, measured on one core."""

    client: float
    """Of each client, whatever it has."""
    step: float
    example: float
    server_client: float
    """On the server: each client's task and update, without its weights."""
    server_weight: float
    """The same for each of its weights: inspected, but not yet merged."""
    merge_weight: float
    teacher: float
    teacher_input: float
    distil_step: float
    distil_input: float
    evaluated_input: float
    round: float
    registered: float
    """On the server and in every round: each client that there is."""
    moved: dict[str, tuple[float, float]]
    """By engine: seconds of each task and of each byte on its way to a client's process and back."""


@dataclass(frozen=True)
class Work:
    """A round."""

    registered: int
    clients: int
    examples: int
    batch: int
    weights: int
    inputs: int = 0
    """Public inputs that teachers answer; 0: no fusion."""
    steps: int = 0
    step_inputs: int = 0
    evaluated: int = 0

    @property
    def bytes(self) -> int:
        return 4 * self.weights


@dataclass(frozen=True)
class Cluster:
    """Where clients run: processes, beside the server's or on machines of their own."""

    engine: str
    processes: int
    shared_cores: int = 0
    """Cores that the server shares with them; 0: the server has a machine of its own."""
    bandwidth: float = 0.0
    """Bytes per second into the server; 0: nothing leaves the machine."""


def terms(costs: Costs, work: Work, cluster: Cluster) -> dict[str, float]:
    """The parts of a round's seconds. Of those before the merge only the longest counts (``seconds``)."""
    in_process = cluster.engine == "process"
    task, byte = costs.moved.get(cluster.engine, (0.0, 0.0))
    train = costs.client + costs.step * -(-work.examples // work.batch) + costs.example * work.examples
    taken_in = costs.server_client + costs.server_weight * work.weights
    move = 0.0 if in_process else task + byte * work.bytes
    waves = work.clients * train / cluster.processes
    asked = costs.teacher + costs.teacher_input * work.inputs if work.inputs else 0.0
    result = {
        "clients": waves + (work.clients * taken_in if in_process else 0.0),
        "server's messages": work.clients * (taken_in + move),
        "network": work.clients * work.bytes / cluster.bandwidth if cluster.bandwidth else 0.0,
        "cores": work.clients * (train + taken_in + move) / cluster.shared_cores if cluster.shared_cores else 0.0,
        "merge": work.clients * work.weights * costs.merge_weight,
        "teachers": work.clients * max(asked / cluster.processes, move if asked else 0.0),
        "distillation": work.steps * (costs.distil_step + costs.distil_input * work.step_inputs),
        "rest": costs.round + costs.registered * work.registered + costs.evaluated_input * work.evaluated,
    }
    return {name: seconds for name, seconds in result.items() if seconds or name in ("clients", "merge")}


SIDE_BY_SIDE = ("clients", "server's messages", "network", "cores")


def seconds(costs: Costs, work: Work, cluster: Cluster) -> float:
    """How long a round takes."""
    parts = terms(costs, work, cluster)
    longest = max(parts.get(name, 0.0) for name in SIDE_BY_SIDE)
    return longest + sum(value for name, value in parts.items() if name not in SIDE_BY_SIDE)


def limit(costs: Costs, work: Work, cluster: Cluster) -> str:
    """The term that takes longest."""
    parts = terms(costs, work, cluster)
    return max(parts, key=lambda name: parts[name])


def costs_from_json(value: dict[str, Any]) -> Costs:
    return Costs(**{**value, "moved": {engine: tuple(pair) for engine, pair in value["moved"].items()}})
