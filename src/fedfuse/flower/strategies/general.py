"""Any merge and any fusion of fedfuse as a Flower strategy, for a Flower app that has nothing else of fedfuse.

Flower's loop samples nodes, carries messages and evaluates, as its ``FedAvg`` does; what becomes of a round's replies
is what fedfuse's own server makes of them, with the same bits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.federation.settings import Trust
from fedfuse.flower.strategies.fitting import check, recipe_of
from fedfuse.flower.strategies.inputs import compute_of, evaluator_of, source_of
from fedfuse.flower.strategies.members import MODEL, Members
from fedfuse.flower.strategies.network import Model
from fedfuse.flower.strategies.networks import Networks
from fedfuse.flower.strategies.replies import Inspector, Reply
from fedfuse.flower.strategies.report import report_of
from fedfuse.flower.strategies.rounds import Rounds
from fedfuse.parts.fuse import Fuse
from fedfuse.parts.merge import Merge
from fedfuse.parts.scores import Scores
from fedfuse.parts.screen import Screen

logger = logging.getLogger("flwr")

Section = str | Mapping[str, Any]
"""A part as an experiment file has it: its kind, or a mapping of its kind and options."""


class FedFuse(FedAvg):  # type: ignore[misc]  # Flower's types are not read
    """Merge the clients' models, then fuse them by distillation; either may be any part of fedfuse.

        strategy = FedFuse(model=Net, merge=Momentum(beta=0.3))
        strategy = FedFuse(model=Net, inputs=images, merge="momentum", scores="entropy")
        strategy = FedFuse(model={"small": Small, "large": Large}, inputs=images)
        result = strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=10)

    ``model`` is the network that clients train, its class or a function that makes it, or several of them by name;
    ``inputs`` are unlabelled inputs as the network sees them: a tensor, an array or a dataset. ``merge``, ``fuse``,
    ``scores`` and ``screen`` are parts of fedfuse, or what an experiment file says in their place. Unless said, the
    mean of the clients' models is taken, and taught by their ensemble if there are inputs. ``validation`` are labelled
    examples, for parts that judge by them. ``claims`` and ``moves`` are bounded by what a round's other nodes say and
    do, or ``taken`` as they come. The remaining arguments are those of Flower's ``FedAvg``.

    With several models each client runs one. It is asked which before its first task, by a message of type ``query``,
    and answers with ``{"model": name}``; a node that is silent for ``ask_timeout`` seconds misses the round. Replies
    that are malformed, not finite or of other shapes are left out. Same replies, same bits: ``seed`` decides the rest.
    """

    _arrays: ArrayRecord
    """What Flower's loop has of the server's weights."""

    def __init__(
        self,
        model: Model | Mapping[str, Model],
        inputs: Any = None,
        *,
        merge: Merge | Section = "mean",
        fuse: Fuse | Section | None = None,
        scores: Scores | Section = "uniform",
        screen: Sequence[Screen | Section] = (),
        validation: Any = None,
        claims: Trust = "bounded",
        moves: Trust = "bounded",
        seed: int = 0,
        device: str = "cpu",
        ask_timeout: float = 300.0,
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        if fuse is None:
            fuse = "none" if inputs is None else "ensemble_distillation"
        name, compute = type(self).__name__, compute_of(device)
        self.recipe = recipe_of(name, {"merge": merge, "fuse": fuse, "scores": scores, "screen": screen})
        source = None if inputs is None else source_of(inputs, compute)
        judge = None if validation is None else evaluator_of(validation, compute)
        self.networks = Networks(model, source, compute, Key(seed))
        check(name, self.recipe, self.networks.bank, source, judge)
        self.rounds = Rounds(self.recipe, self.networks, source, judge, seed, claims, moves)
        self.members = Members(list(self.networks), self.networks.are_several, self.configrecord_key, ask_timeout)
        self.inspector = Inspector(self.networks, self.members.model_of, self.arrayrecord_key, self.weighted_by_key)
        self._begin(self.initial_arrays())

    def initial_arrays(self) -> ArrayRecord:
        """All models before the first round; ``seed`` decides what they are, unless networks themselves were given."""
        return self.networks.record({name: network.first for name, network in self.networks.items()})

    def arrays_of(self, arrays: ArrayRecord, model: str) -> ArrayRecord:
        """Of ``result.arrays``, or of the arrays that an ``evaluate_fn`` is given, those of one of several models."""
        if model not in self.networks:
            raise ConfigError(unknown("model", model, self.networks))
        return self.networks.part(arrays, model)

    def summary(self) -> None:
        """Log what the strategy is made of."""
        super().summary()
        parts = (*self.recipe.screen, self.recipe.merge, self.recipe.fuse)
        logger.info("\t└──> fedfuse: %s; scores %s", ", ".join(p.kind for p in parts), self.recipe.scores.kind)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg, but each node gets what it begins with."""
        if server_round == 1:
            self._begin(arrays)
        self._go_on(server_round, arrays)
        return self._addressed(server_round, super().configure_train(server_round, arrays, config, grid), grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Screen, merge and fuse what the sound replies bring."""
        replies = list(replies)
        sound = self.inspector.sound(server_round, replies)
        self.members.forget({reply.metadata.src_node_id for reply in replies}.difference(one.node for one in sound))
        if not sound:
            return None, None
        self._go_on(server_round, self._arrays)
        updates = [self._update(server_round, reply) for reply in sound]
        metrics = self._play(updates, sound)
        self._arrays = self.networks.record(self.rounds.weights)
        return self._arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As FedAvg, but each node gets the model that it runs."""
        self._go_on(server_round + 1, arrays)
        return self._addressed(server_round, super().configure_evaluate(server_round, arrays, config, grid), grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """As FedAvg, of the sound replies."""
        sound = self.inspector.sound(server_round, replies, with_arrays=False)
        measured: MetricRecord | None = super().aggregate_evaluate(server_round, [reply.message for reply in sound])
        return measured

    def _begin(self, arrays: ArrayRecord) -> None:
        self.rounds.begin(self.networks.read(arrays))
        self._arrays = arrays

    def _go_on(self, server_round: int, arrays: ArrayRecord) -> None:
        """To this round, with other weights if somebody has put other arrays in the place of ours."""
        weights = self.rounds.weights if arrays is self._arrays else self.networks.read(arrays)
        self._arrays = arrays
        self.rounds.go_on(server_round, weights)

    def _addressed(self, server_round: int, messages: Iterable[Message], grid: Grid) -> list[Message]:
        """FedAvg's messages, each with what its node begins with; none for nodes that do not say what they run."""
        sent = {message.metadata.dst_node_id: message for message in messages}
        models = self.members.models_of(server_round, sorted(sent), grid)
        offers = self.rounds.offers(models)
        ours = {model: self.networks.part(self._arrays, model) for model in set(models.values())}
        addressed = []
        for node, model in models.items():
            is_ours = offers[node] is self.rounds.weights[model]
            arrays = ours[model] if is_ours else self.networks[model].record(offers[node])
            config = sent[node].content[self.configrecord_key]
            own = ConfigRecord({**config, MODEL: model}) if self.networks.are_several else config
            content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: own})
            kind = sent[node].metadata.message_type
            addressed.append(Message(content, message_type=kind, dst_node_id=node))
        return addressed

    def _update(self, server_round: int, reply: Reply) -> Update:
        client = self.rounds.client(reply.node, reply.model)
        weights = self.networks[reply.model].weights(reply.tensors)
        return Update(server_round, client, reply.model, weights, int(reply.examples))

    def _play(self, updates: Sequence[Update], replies: Sequence[Reply]) -> MetricRecord:
        """The round; what it returns are the metrics of the clients that were heard, and what the fusion did."""
        view = self.rounds.view("fuse")
        record = self.rounds.play(updates)
        heard = [update for update in updates if update.client in record.heard]
        contents = [one.message.content for one, u in zip(replies, updates, strict=True) if u.client in record.heard]
        metrics = dict(self.train_metrics_aggr_fn(contents, self.weighted_by_key)) if contents else {}
        teachers = [update for update in heard if update.client not in record.screened]
        report = report_of(record, view, self.recipe.fuse, self.rounds.weights, teachers)
        if report:
            metrics["teachers"] = len(teachers)
            logger.info("fedfuse: round %s, distillation by %s teachers: %s", record.round, len(teachers), report)
        for model, own in report.items():
            prefix = f"{self.networks.prefix(model)}distillation-"
            metrics |= {f"{prefix}{name}": value for name, value in own.items()}
        return MetricRecord(metrics)
