"""``fedfuse flower check``: a party tries its data, its model and its keys against an experiment, before the day."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.data import Examples
from fedfuse.experiment.assembly import Built
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation import Engine
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.silence import SPEAKS
from fedfuse.flower.keys import CA
from fedfuse.flower.party import NodeConfig, clients_of, everything
from fedfuse.flower.receipts import describe
from fedfuse.flower.records import Report, report_to_records
from fedfuse.privacy.planning import Plan

PATIENCE = 10.0
"""Seconds for a SuperLink to answer."""


@dataclass(frozen=True)
class Rehearsal:
    """What a party would take part with, and what it would send in a round."""

    examples: Examples
    extent: str
    """Between which numbers its inputs are, beside those of the experiment: another scale is easily overlooked."""
    counts: Mapping[str, int]
    """Examples of each class."""
    prototype: str
    parameters: int
    batch: int
    loss: float
    """Of one step with so many examples, which the party alone gets to know."""
    records: Mapping[str, Any]
    privacy: str = ""
    """What is promised about it, and what that would come to with its own number of examples."""
    hidden: str = ""
    """In what its updates are hidden, where the server sees sums alone."""


def experiment_of(given: str) -> str:
    """The experiment file of an app's folder; anything else is an experiment already."""
    folder = Path(given)
    if not (folder / "pyproject.toml").is_file():
        return given
    files = sorted(folder.glob("*/experiment.yaml"))
    if len(files) != 1:
        raise ConfigError(f"{folder} is an app with {len(files)} files */experiment.yaml; name the file that is meant")
    return str(files[0])


def rehearse(config: ExperimentConfig, client: int, node_config: NodeConfig) -> Rehearsal:
    """Do what the node would do in round 1, but for a single step of training."""
    built = everything(config)
    examples = clients_of(config, client, node_config).datasets[client]
    task = _first_task(built, client, node_config.get("prototype"))
    few = examples.select(range(min(len(examples), config.training.batch_size)))
    training = built.config.training.model_copy(update={"epochs": 1, "fewest_epochs": None})
    clients = replace(built.clients, datasets={client: few}, training=training)
    update, state = clients.work(task, {})
    loss = _loss(clients, task)
    if not np.isfinite(loss) or not bool(update.weights.flat.isfinite().all()):
        raise DataError(f"model '{task.prototype}' has loss {loss} after one step; look for wild values in the data")
    counts = examples.label_counts(built.dataset.classes).int().tolist()
    return Rehearsal(
        examples,
        f"{_extent(examples)}; the experiment's {_extent(built.dataset.train)}",
        dict(zip(built.dataset.class_names, counts, strict=True)),
        task.prototype,
        sum(int(np.prod(shape)) for _, shape in built.clients.bank.layout(task.prototype).parameters),
        len(few),
        loss,
        describe(report_to_records(Report(update, keeps_state=bool(state)))),
        _privacy(built, client, len(examples)),
        _hidden(config),
    )


def _loss(clients: Clients, task: Task) -> float:
    """Of a step without any promise."""
    plain = clients.training.model_copy(update={"privacy": None})
    update, _ = replace(clients, training=plain, silence=SPEAKS, sums=None).work(task, {})
    return float(update.metrics["loss"])


def _hidden(config: ExperimentConfig) -> str:
    sums = config.federation.secure_sums
    if sums is None:
        return ""
    least, share = sums.least, f"{sums.share:.0%}"
    return f"masked; what is seen of updates are sums of {least} clients or more, and of {share} of a round's at least"


def _privacy(built: Built, client: int, examples: int) -> str:
    promise = built.promise
    if promise is None:
        return ""
    rounds = built.config.federation.rounds
    planned = promise.around.plan(built.config, rounds).visits.get(client, 0)
    settings = promise.claim.settings
    epsilon = Plan({client: planned}, lambda _client: examples).epsilons(promise.claim)[client]
    against = promise.claim.against[0]
    return (
        f"epsilon {epsilon:.4g} against {against}, at delta {settings.delta:g}, of every {settings.unit}, after "
        f"{planned} of {rounds} rounds; noise from secrets of this machine"
    )


def _extent(examples: Examples) -> str:
    inputs = examples.inputs
    return f"{inputs.min():.4g} to {inputs.max():.4g}, mean {inputs.double().mean():.4g}"


def reach(superlink: str, keys: Path) -> None:
    """Raise with the reason why this machine cannot talk to the SuperLink at ``host:port``."""
    host, _, port = superlink.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--superlink {superlink}: write HOST:PORT")
    context = ssl.create_default_context(cafile=str(keys / CA))
    connection = HTTPSConnection(host.strip("[]"), int(port), timeout=PATIENCE, context=context)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(f"{superlink} is not the SuperLink of {keys / CA}: {error.verify_message}") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        raise ConfigError(
            f"{superlink} cannot be reached ({reason}); is it up, and does the firewall let you out?"
        ) from None
    finally:
        connection.close()
    if status != 200:
        raise ConfigError(f"{superlink} answers with status {status}; it may not be a SuperLink")


def _first_task(built: Built, client: int, prototype: str | None) -> Task:
    """What the server would send to this client in round 1, if everybody was there."""
    federation = built.federation
    if client not in range(federation.clients):
        raise ConfigError(f"this is client {client}, but the experiment has {federation.clients}, counted from 0")
    assigned = list(federation.prototypes)
    if prototype is not None:
        if prototype not in built.config.models:
            raise ConfigError(f"--prototype: {unknown('model', prototype, built.config.models)}")
        assigned[client] = prototype
    everybody: dict[str, Any] = {
        "participation": 1.0,
        "clients_per_round": None,
        "shares": {},
        "assigned": tuple(assigned),
    }
    settings = federation.settings.model_copy(update=everybody)
    try:
        asking = replace(federation, settings=settings, engine=_Tasks())
        asking.advance(asking.start())
    except _TasksError as made:
        return next((task for task in made.tasks if task.client == client), replace(made.tasks[0], client=client))
    raise ConfigError("this experiment has no task for a client in its first round")


class _TasksError(Exception):
    """The tasks of a round are made, and that is all that was wanted."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks


class _Tasks(Engine):
    """Nobody trains."""

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        raise _TasksError(tasks)

    def close(self) -> None:
        pass
