"""A party's side: a Flower ClientApp that plays one client of a fedfuse experiment.

A node says by its node config which client it is, and what it wants to differ in:

    client         its number, from 0 (in Flower's simulation its partition-id)
    prototype      the model it trains, one of the experiment's models; without it the server decides
    data, loader   its own examples (own_data.py)
    set            what this machine has otherwise, such as "data.path=/srv/common.csv" (party.py)
    state          the folder for its client's state, receipts and status (default: fedfuse/ in Flower's own folder)
    budget         epsilon that the party itself allows, where privacy is promised (private.py)

Whatever leaves is written into the receipts before. An error leaves as one of a few fixed sentences; what happened
stays in the party's own log.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from fedfuse.core.errors import ConfigError, DataError, FedfuseError, unknown
from fedfuse.core.messages import Task
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.promise import Promise
from fedfuse.federation.client import Clients
from fedfuse.flower.failures import failure
from fedfuse.flower.logbook import Logbook
from fedfuse.flower.masking.messages import KEYS, OPENING, SHARES, attempt_of, config_of
from fedfuse.flower.masking.party import Held, PartyMasks
from fedfuse.flower.memory import Memory
from fedfuse.flower.party import LoadData, NodeConfig, clients_of, everything, settings_of
from fedfuse.flower.private import BOOKS, KeptAnswers, PartyPrivacy, digest_of
from fedfuse.flower.reading import number_of, word_of
from fedfuse.flower.records import (
    CLIENT,
    CONFIG,
    EXAMPLES,
    PROTOTYPE,
    REFUSED,
    ROUND,
    Report,
    order_from_records,
    report_from_records,
    report_to_records,
)
from fedfuse.flower.status import default_state, file_of
from fedfuse.flower.versions import FORMAT, OURS, foreign
from fedfuse.parts.upload import Noise

logger = logging.getLogger("flwr")


def client_app(experiment: str | Path, load_data: LoadData | None = None) -> ClientApp:
    """The ClientApp of an experiment file. A party's examples are those that its node names, or ``load_data`` gives."""
    node = _Node(experiment, load_data)
    app = ClientApp()
    app.query()(lambda message, context: node.answer(message, context, _introduce))
    app.train()(lambda message, context: node.answer(message, context, _train))
    for step, work in ((KEYS, _send_keys), (SHARES, _send_shares), (OPENING, _help_to_open)):
        app.query(step)(partial(_answered, node, work))
    return app


@dataclass(frozen=True)
class _Seat:
    """A party's place in one run."""

    config: ExperimentConfig
    client: int
    node_config: NodeConfig
    load_data: LoadData | None
    logbook: Logbook
    held: RecordDict
    """What Flower keeps for the node in memory."""

    def clients(self) -> Clients:
        clients = clients_of(self.config, self.client, self.node_config, self.load_data)
        if clients.sums is None:
            return clients
        return replace(clients, silence=replace(clients.silence, answers_tests=False))

    @property
    def masks(self) -> PartyMasks:
        """This party's side of secure sums, where there are some."""
        if self.config.federation.secure_sums is None:
            raise ConfigError("the server asks for masks, but the experiment has no federation.secure_sums")
        return PartyMasks(self.config.federation.secure_sums, self.client, self.held)

    @property
    def promise(self) -> Promise | None:
        """What the experiment promises about privacy."""
        return everything(self.config).promise

    def privacy(self, examples: int) -> PartyPrivacy | None:
        """This party's side of it."""
        if self.promise is None:
            return None
        books = file_of(_state(self.node_config), BOOKS, self.config.name, self.client)
        return PartyPrivacy(self.promise, books, self.client, examples, _budget(self.node_config))


Work = Callable[[_Seat, RecordDict], tuple[str, int, RecordDict]]
"""What a node does with a message: the purpose of its answer, the round that it belongs to, and the answer."""


@dataclass(frozen=True)
class _Node:
    """Answers messages, whatever happens."""

    experiment: str | Path
    load_data: LoadData | None

    def answer(self, message: Message, context: Context, work: Work) -> Message:
        seat = None
        try:
            seat = self._seat(context)
            purpose, number, content = work(seat, message.content)
            seat.logbook.sends(purpose, number, content)
        except Exception as error:
            return Message(_told(error, seat), reply_to=message)
        return Message(content, reply_to=message)

    def _seat(self, context: Context) -> _Seat:
        told = context.node_config
        config, client = settings_of(self.experiment, context.run_config, told), _client(told)
        logbook = Logbook(_state(told), config, client, context.run_id)
        return _Seat(config, client, told, self.load_data, logbook, context.state)


def _answered(node: _Node, work: Work, message: Message, context: Context) -> Message:
    return node.answer(message, context, work)


def _introduce(seat: _Seat, content: RecordDict) -> tuple[str, int, RecordDict]:
    """Who this is; a server that cannot read it is for the party to know, and for the server to refuse."""
    _check_promised(seat)
    if reason := foreign(content.get(CONFIG)):
        logger.warning("fedfuse: the server will not let this node take part: %s", reason)
    prototype, models = seat.node_config.get("prototype"), seat.config.models
    if prototype is not None and prototype not in models:
        raise ConfigError(f"node config: {unknown('prototype', str(prototype), models)}")
    examples = len(seat.clients().datasets[seat.client])
    seat.logbook.note(examples=examples, prototype=prototype, doing="waiting for a task", trouble=None)
    model = prototype or "as the server chooses"
    seat.logbook.say(f"{examples:,} examples, model {model}; to leave, stop this node")
    is_told = seat.promise is None or seat.promise.silence().tells_examples
    told = examples if is_told and seat.config.federation.secure_sums is None else 1
    about: dict[str, Any] = {FORMAT: OURS, CLIENT: seat.client, EXAMPLES: told}
    _say_whose_noise(seat)
    if prototype is not None:
        about[PROTOTYPE] = str(prototype)
    return "description", 0, RecordDict({CONFIG: ConfigRecord(about)})


def _check_promised(seat: _Seat) -> None:
    """A party that allows so much and no more answers nobody who counts nothing."""
    if seat.promise is None and (budget := _budget(seat.node_config)) is not None:
        raise ConfigError(
            f"this node has a budget of {budget:g}, but the experiment promises no privacy, so that nobody could say "
            "what its answers give away; take part in one with a section privacy, or start the node without --budget"
        )


def _say_whose_noise(seat: _Seat) -> None:
    """Whether it could be computed by others."""
    if seat.promise is not None:
        unit = seat.promise.claim.settings.unit
        seat.logbook.say(f"privacy of every {unit} is promised, by noise from secrets of this machine")
    elif any(isinstance(link, Noise) for link in seat.config.recipe.upload):
        logger.warning(
            "fedfuse: the noise of this experiment comes from its seed, so that the server can compute it and take it "
            "away; it protects nothing unless the experiment has a section privacy"
        )


def _train(seat: _Seat, content: RecordDict) -> tuple[str, int, RecordDict]:
    """A round's work."""
    _check_promised(seat)
    summed = seat.config.federation.secure_sums is not None
    digest = digest_of(content) if seat.promise or summed else ""
    order, logbook = order_from_records(content), seat.logbook
    task = order.task
    if task.client != seat.client:
        raise ConfigError(f"this node is client {seat.client}, but the task is for client {task.client}")
    if task.prototype not in seat.config.models:
        raise DataError("the task is for a model that the experiment does not have")
    logbook.was_refused(content[CONFIG].get(REFUSED))
    held = seat.masks.asked_to(content) if summed else None
    if held is not None and (held.experiment, held.round) != (order.experiment, task.round):
        raise DataError("masks were agreed on for another round or experiment than the task is of")
    clients = seat.clients()
    examples, started = len(clients.datasets[seat.client]), time.perf_counter()
    where = f"round {task.round} of {seat.config.federation.rounds}"
    logbook.note(round=task.round, prototype=task.prototype, examples=examples, doing="training", trouble=None)
    logbook.say(f"{where}, trains {task.prototype} on {examples:,} examples")
    every = seat.config.federation.checkpoint_every
    every = 1 if every == "auto" else every  # the server of nodes saves every round
    folder = _memory_folder(seat.node_config, order.experiment, seat.client)
    memory, answers, privacy = Memory(folder, every), KeptAnswers(folder / "answers", every), seat.privacy(examples)
    if privacy is not None:
        privacy.hidden_among = len(held.members) if held else None
        if (again := answers.recall(task.round, digest, privacy.noise(task))) is not None:
            logbook.say(f"{where}, was asked the same before, and gives the same answer")
            logbook.gave_away(privacy.numbers())
            logbook.note(doing="waiting for a task")
            return "update", task.round, _masked(seat, again, task, held, digest)
        privacy.check_budget(task)
        clients = privacy.secretive(clients)
    update, state = clients.work(task, memory.recall(order.goes_on_from))
    if state:
        memory.store(task.round, order.goes_on_from, state)
    answer = report_to_records(Report(update, keeps_state=bool(state)))
    if privacy is not None:
        privacy.enter(task)
        answers.keep(task.round, digest, privacy.noise(task), answer)
        logbook.gave_away(privacy.numbers())
    logbook.note(doing="waiting for a task")
    logbook.say(f"{where}, done in {time.perf_counter() - started:.1f} s")
    return "update", task.round, _masked(seat, answer, task, held, digest)


def _masked(seat: _Seat, answer: RecordDict, task: Task, held: Held | None, digest: str) -> RecordDict:
    """The answer as it leaves, where sums are all that may be seen."""
    if held is None:
        return answer
    seat.logbook.is_masked = True
    report = report_from_records(answer, task)
    masked = seat.masks.masked(report.update, held, digest)
    among = len(held.members)
    seat.logbook.note(masked=among)
    seat.logbook.say(f"the update is masked: it can be seen in the sum of {among} clients alone, or of most of them")
    return report_to_records(replace(report, update=masked))


def _send_keys(seat: _Seat, content: RecordDict) -> tuple[str, int, RecordDict]:
    """New keys for a round whose answers are added up."""
    config = config_of(content)
    if number_of(config, CLIENT) != seat.client:
        raise ConfigError(f"this node is client {seat.client}, but keys are asked of another one")
    number, experiment = number_of(config, ROUND), word_of(config, "experiment")
    return KEYS, number, seat.masks.keys(attempt_of(config), number, experiment)


def _send_shares(seat: _Seat, content: RecordDict) -> tuple[str, int, RecordDict]:
    """Shares of this party's secrets, for others to help with if it drops out."""
    return SHARES, *seat.masks.shares(content)


def _help_to_open(seat: _Seat, content: RecordDict) -> tuple[str, int, RecordDict]:
    """Shares with which a sum is seen, of which this party is a part."""
    return OPENING, *seat.masks.opening(content, lambda name: _memory_folder(seat.node_config, name, seat.client))


def _told(error: Exception, seat: _Seat | None) -> Error:
    """What the server gets to know of an error, after the party got to know all of it."""
    if isinstance(error, FedfuseError):
        sentence = str(error)
        logger.error("fedfuse: %s", sentence)
    else:
        sentence = f"failed with {type(error).__name__}; the log has the traceback"
        logger.error("fedfuse: this node failed", exc_info=error)
    told = failure(error)
    if seat is not None:
        seat.logbook.has_trouble(sentence)
        try:
            seat.logbook.sends("trouble", 0, told)
        except FedfuseError as unwritten:  # of a sentence that says nothing about the party, no receipt must be kept
            logger.error("fedfuse: %s", unwritten)
    return told


def _budget(node_config: NodeConfig) -> float | None:
    budget = node_config.get("budget")
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < math.inf:
        raise ConfigError("node config: budget is an epsilon, a number above 0")
    return float(budget)


def _client(node_config: NodeConfig) -> int:
    number = node_config.get("client", node_config.get("partition-id"))
    if not isinstance(number, int) or number < 0:
        raise ConfigError("say which client this node is, for example --node-config 'client=0'")
    return number


def _state(node_config: NodeConfig) -> Path:
    return Path(str(node_config.get("state", default_state()))).expanduser()


def _memory_folder(node_config: NodeConfig, experiment: str, client: int) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", experiment):
        raise DataError("the task does not name its experiment")
    return _state(node_config) / experiment[:16] / f"client-{client}"
