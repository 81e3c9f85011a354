"""The server's side: a Flower ServerApp that plays the rounds of a fedfuse experiment on the connected nodes.

The run folder is that of any other run, and a run that is already there goes on from its last checkpoint: after a
crash, start the app again. The run config has two keys:

    out    the run folder (default: runs/flower)
    set    changes to the experiment file, such as "federation.rounds=20 method=feddf", for server and nodes alike
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedfuse.core.errors import ConfigError
from fedfuse.engines import FlowerEngineSettings
from fedfuse.experiment.config import ExperimentConfig, read_yaml, validate
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.prototypes import prototypes_of
from fedfuse.flower.engine import FlowerEngine
from fedfuse.flower.keys import ending
from fedfuse.flower.orphan import end_with_parent
from fedfuse.flower.parties import Parties
from fedfuse.flower.party import settings_of
from fedfuse.flower.roster import Roster

logger = logging.getLogger("flwr")


def server_app(experiment: str | Path) -> ServerApp:
    """The ServerApp of an experiment file."""
    app = ServerApp()
    app.main()(partial(_main, experiment))
    return app


def _main(experiment: str | Path, grid: Grid, context: Context) -> None:
    end_with_parent()
    parties = Parties.here()
    for sentence in ending(parties.folder) if parties.folder else ():
        logger.warning("fedfuse: %s", sentence)
    config = settings_of(experiment, context.run_config)
    result = run_on(grid, config, Path(str(context.run_config.get("out", "runs/flower"))), parties)
    logger.info("fedfuse: finished, accuracy %s, folder %s", result.accuracy, result.folder.path)


def run_on(grid: Grid, config: ExperimentConfig, out: Path, parties: Parties | None = None) -> RunResult:
    """Run the experiment, or what is left of it, on the nodes of a grid."""
    if config.federation.clock is not None:
        raise ConfigError("federation.clock simulates devices, but these are real; set it to null")
    settings = config.engine if isinstance(config.engine, FlowerEngineSettings) else FlowerEngineSettings()
    clients = _number_of_clients(config)
    roster = Roster(grid, clients, settings, parties)
    roster.wait_for(range(clients))
    logger.info("fedfuse: %s of %s clients are connected", len(roster.seats), clients)
    config = _with_announced(config, roster, RunFolder(out))
    engine = FlowerEngine(roster, config.sha256())

    def tell_the_party(event: Mapping[str, Any]) -> None:
        if event["event"] in ("update_refused", "client_late"):
            engine.refused[event["client"]] = event["reason"]

    return Experiment(config).run(out, resume=True, listeners=(_tell, tell_the_party), engine=engine)


def _number_of_clients(config: ExperimentConfig) -> int:
    if config.recipe.pooled:
        return sum(1 for name in config.models if config.federation.shares.get(name, 1))
    clients = getattr(config.partition, "clients", None)
    if clients is None:
        raise ConfigError(f"partition {config.partition.kind} leaves the number of clients open; give one with clients")
    return int(clients)


def _with_announced(config: ExperimentConfig, roster: Roster, folder: RunFolder) -> ExperimentConfig:
    """The experiment with the models that the nodes run; for absent ones, what a former process of the run knew."""
    if config.recipe.pooled:
        return config
    announced = {client: roster.members[node].prototype for client, node in roster.seats.items()}
    names = tuple(config.models)
    expected = prototypes_of(names, config.federation, roster.clients)
    before = _assigned_before(folder) or expected
    models = [announced[c] if announced.get(c) in names else name for c, name in enumerate(before)]
    if models == list(expected):
        return config
    federation = {**config.federation.model_dump(mode="json"), "shares": {}, "assigned": models}
    return validate({**config.model_dump(mode="json"), "federation": federation})


def _assigned_before(folder: RunFolder) -> tuple[str, ...]:
    return validate(read_yaml(folder.config)).federation.assigned if folder.holds_a_run() else ()


def _tell(event: Mapping[str, Any]) -> None:
    """One line per round in Flower's log; the whole story is in the run folder."""
    if event["event"] == "round_finished":
        accuracy = {name: record["accuracy"] for name, record in event["prototypes"].items()}
        logger.info("fedfuse: round %s, refused %s, accuracy %s", event["round"], event["refused"], accuracy)
    elif event["event"] == "update_refused":
        logger.warning("fedfuse: client %s refused: %s", event["client"], event["reason"])
    elif event["event"] == "model_diverged":
        logger.warning("fedfuse: model %s diverged: %s", event["prototype"], event["reason"])
    elif event["event"] == "metric_failed":
        logger.warning("fedfuse: metric %s has no value: %s", event["metric"], event["reason"])
