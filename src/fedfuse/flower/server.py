"""The server's side: a Flower ServerApp that plays the rounds of a fedfuse experiment on the connected nodes.

The run folder is that of any other run, and a run that is already there goes on from its last checkpoint: after a
crash, start the app again. The run config has two keys:

    out    the run folder (default: runs/flower)
    set    changes to the experiment file, such as "federation.rounds=20 method=feddf", for server and nodes alike
"""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedfuse.core.asked import asked_by_command_line
from fedfuse.core.errors import ConfigError
from fedfuse.engines import FlowerEngineSettings
from fedfuse.experiment.config import ExperimentConfig, read_yaml, validate
from fedfuse.experiment.earlier import as_long_as_begun
from fedfuse.experiment.progress import mishap, missing, notice
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import Event
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.prototypes import prototypes_of
from fedfuse.flower.engine import FlowerEngine, Summed
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
    with asked_by_command_line():
        _run(experiment, grid, context)


def _run(experiment: str | Path, grid: Grid, context: Context) -> None:
    end_with_parent()
    parties = Parties.here()
    for sentence in ending(parties.folder) if parties.folder else ():
        logger.warning("fedfuse: %s", sentence)
    config = settings_of(experiment, context.run_config)
    out = Path(str(context.run_config.get("out", "runs/flower")))
    result = run_on(grid, config, out, parties, context.run_id)
    logger.info("fedfuse: finished, accuracy %s, folder %s", result.accuracy, result.folder.path.resolve())


def run_on(
    grid: Grid, config: ExperimentConfig, out: Path, parties: Parties | None = None, run: int | None = None
) -> RunResult:
    """Run the experiment, or what is left of it, on the nodes of a grid; ``run`` is Flower's number, for the log."""
    if config.federation.clock is not None:
        raise ConfigError("federation.clock simulates devices, but these are real; set it to null")
    _check_privacy(config)
    _check_sums(config)
    if config.federation.keep_clients and config.recipe.protocol.carries != "weights":
        raise ConfigError("federation.keep_clients keeps what parties send, but these send no models; set it to false")
    settings = config.engine if isinstance(config.engine, FlowerEngineSettings) else FlowerEngineSettings()
    clients = _number_of_clients(config)
    roster = Roster(grid, clients, settings, parties)
    logger.info("fedfuse: waits for %s clients, up to %g s", clients, settings.wait)
    roster.wait_for(range(clients))
    logger.info("fedfuse: %s of %s clients are connected", len(roster.seats), clients)
    config = _with_announced(config, roster, RunFolder(out))
    engine = FlowerEngine(roster, as_long_as_begun(config, RunFolder(out)).sha256(), _summed(config), run)

    def tell_the_party(event: Event) -> None:
        if event["event"] in ("update_refused", "client_late"):
            engine.refused[event["client"]] = event["reason"]

    return Experiment(config).run(out, resume=True, listeners=(_tell, tell_the_party), engine=engine)


def _check_privacy(config: ExperimentConfig) -> None:
    """What a simulation may do, and real parties who were promised privacy would not take part in."""
    if config.privacy is None:
        return
    if isinstance(config.engine, FlowerEngineSettings) and config.engine.guests:
        raise ConfigError("privacy is promised, but nobody knows what guests add noise to; set engine.guests to false")
    covered = config.privacy.unit == "example" and config.training.privacy is not None
    if config.evaluation.clients is True and not covered:
        raise ConfigError(
            "evaluation.clients asks what clients' own models say about the test inputs, which no noise protects; "
            "real parties do not answer it: set it to null"
        )


def _check_sums(config: ExperimentConfig) -> None:
    """What a simulation of secure sums may do, and real parties would not."""
    if config.federation.secure_sums is None:
        return
    if isinstance(config.engine, FlowerEngineSettings) and config.engine.guests:
        raise ConfigError(
            "federation.secure_sums needs nodes that agree on masks, which guests do not; set engine.guests to false"
        )
    if config.evaluation.clients is True:
        raise ConfigError(
            "evaluation.clients asks what clients' own models say about the test inputs, but federation.secure_sums "
            "lets nobody see a single client: set it to null"
        )


def _summed(config: ExperimentConfig) -> Summed | None:
    sums = config.federation.secure_sums
    return None if sums is None else Summed(sums, config.recipe.protocol.carries == "predictions")


def _number_of_clients(config: ExperimentConfig) -> int:
    if config.recipe.pooled:
        return sum(1 for name in config.models if config.federation.shares.get(name, 1))
    clients = getattr(config.partition, "clients", None)
    if clients is None:
        raise ConfigError(f"partition {config.partition.kind} leaves the number of clients open; give one with clients")
    return int(clients)


def _with_announced(config: ExperimentConfig, roster: Roster, folder: RunFolder) -> ExperimentConfig:
    """The experiment with the models that the nodes run when it begins; who comes later may still choose, too."""
    if config.recipe.pooled:
        return config
    names = tuple(config.models)
    expected = list(prototypes_of(names, config.federation, roster.clients))
    models = _assigned_before(folder) or expected
    if not folder.holds_a_run():
        announced = {client: roster.members[node].prototype for client, node in roster.seats.items()}
        models = [announced.get(client) or name for client, name in enumerate(expected)]
        models = [model if model in names else name for model, name in zip(models, expected, strict=True)]
    if models == expected:
        return config
    federation = {**config.federation.model_dump(mode="json"), "shares": {}, "assigned": models}
    return validate({**config.model_dump(mode="json"), "federation": federation})


def _assigned_before(folder: RunFolder) -> list[str]:
    """What a former process of the run began with."""
    return list(validate(read_yaml(folder.config)).federation.assigned) if folder.holds_a_run() else []


def _tell(event: Event) -> None:
    """One line per round in Flower's log; the whole story is in the run folder."""
    if event["event"] == "round_finished":
        accuracy = {name: record["accuracy"] for name, record in event["prototypes"].items()}
        logger.info("fedfuse: round %s, %saccuracy %s", event["round"], _not_counted(event), accuracy)
    elif sentence := mishap(event) or missing(event):
        logger.warning("fedfuse: %s", sentence)
    elif event["event"] in ("client_joined", "seat_claimed"):
        logger.info("fedfuse: %s", notice(event))


def _not_counted(event: Event) -> str:
    """Who does not count in a round, each under the one word that fits."""
    words = ("absent", "late", "refused", "screened")
    return "".join(f"{word} {event[word]}, " for word in words if event.get(word))
