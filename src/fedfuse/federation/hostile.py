"""Clients of which some attack: what they send is what their attacks make of an honest client's work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.data import Examples
from fedfuse.federation.attack import Attack, Situation
from fedfuse.federation.client import Clients
from fedfuse.federation.recipe import PROTOCOL, UPLOAD
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.local.steps import LoopStats
from fedfuse.parts.protocol.base import PREDICTIONS, ClientResult

MOST_KNOWN = 20
"""Honest clients whose work an attack that knows the others looks at, at most: they are trained for it."""


@dataclass(frozen=True)
class HostileClients(Clients):
    """As the clients that they are made of, but for those who attack."""

    attacks: tuple[Attack, ...] = ()
    parties: int = 0
    """How many clients the whole federation has."""

    @staticmethod
    def of(clients: Clients, attacks: Sequence[Attack]) -> HostileClients:
        """Some of these clients attack; what cannot be is refused in one sentence."""
        for attack in attacks:
            attack.check(clients.recipe)
            _check_clients(attack, len(clients.datasets))
        own = {field.name: getattr(clients, field.name) for field in fields(Clients)}
        return HostileClients(**own, attacks=tuple(attacks), parties=len(clients.datasets))

    @cached_property
    def hostile(self) -> frozenset[int]:
        """Everybody who attacks."""
        return frozenset().union(*(self._by(attack) for attack in self.attacks))

    def _by(self, attack: Attack) -> frozenset[int]:
        return attack.hostile(self.parties, self.key.child("hostile"))

    def attacks_of(self, task: Task) -> Iterator[Attack]:
        """What a client does with a task, attack after attack."""
        return (attack for attack in self.attacks if attack.is_on(task.round) and task.client in self._by(attack))

    def examples_of(self, task: Task) -> int:
        claimed = super().examples_of(task)
        for attack in self.attacks_of(task):
            claimed = attack.claimed(claimed)
        return claimed

    def examples(self, task: Task) -> Examples:
        own, key = super().examples(task), self.key.child("hostile", task.client)
        for attack in self.attacks_of(task):
            own = attack.examples(own, self.bank.classes, key)
        return own

    def work_together(self, tasks: Sequence[Task], states: Mapping[int, Tensors]) -> list[tuple[Update, Tensors]]:
        for task in tasks:  # before anybody's network is in use
            if any(attack.knows_others for attack in self.attacks_of(task)):
                self._others(task)
        return super().work_together(tasks, states)

    def _result(self, client: ClientContext, trained: Weights) -> ClientResult:
        result = super()._result(client, trained)
        for attack in self.attacks_of(client.task):
            situation = self._situation(client, attack, result)
            if result.weights:
                result = replace(result, weights=attack.weights(result.weights, situation))
            if result.predictions is not None:
                result = replace(result, predictions=attack.predictions(result.predictions, situation))
        return result

    def _answer(self, client: ClientContext, hooks: Hooks, done: LoopStats, trained: Weights) -> tuple[Update, Tensors]:
        update, state = super()._answer(client, hooks, done, trained)
        for attack in self.attacks_of(client.task):
            beside = {name: tensor for name, tensor in update.extras.items() if not _is_payload(name)}
            said = attack.extras(beside, self._situation(client, attack, ClientResult()))
            update = replace(update, examples=attack.claimed(update.examples), extras={**update.extras, **said})
        if client.task.client in self.hostile:  # how good a liar's own model is, is no result
            update = replace(update, test_outputs={})
        return update, state

    def _situation(self, client: ClientContext, attack: Attack, result: ClientResult) -> Situation:
        task, number = client.task, len(self._by(attack))
        return Situation(
            task=task,
            sent=_part(client.start, result.weights) if result.weights else client.start,
            classes=self.bank.classes,
            key=client.key.child("attack"),
            common=self.key.child("hostile"),
            others=self._others(task) if attack.knows_others else (),
            clients=self.together,
            hostile=min(self.together, max(1, round(number * self.together / self.parties))),
        )

    def _others(self, task: Task) -> Sequence[Weights]:
        """What honest clients would send in answer to this task, in the order of their numbers."""
        asked = (task.round, task.prototype)
        if asked not in self._known:
            self._known.clear()
            self._known[asked] = self._trained_in_their_name(task)
        return self._known[asked]

    @cached_property
    def _known(self) -> dict[tuple[int, str], Sequence[Weights]]:
        """The last that was asked for."""
        return {}

    def _trained_in_their_name(self, task: Task) -> list[Weights]:
        honest = [client for client in self.datasets if client not in self.hostile]
        if not honest:
            raise ConfigError("an attack looks at what honest clients would send, and finds nobody here")
        order = self.key.child("hostile", "known", task.round).numpy().permutation(len(honest))
        known = sorted(honest[int(place)] for place in order[:MOST_KNOWN])
        tasks = [replace(task, client=client) for client in known]
        plain = {field.name: getattr(self, field.name) for field in fields(Clients)}
        clients = Clients(**{**plain, "recipe": self.recipe.model_copy(update={"upload": ()}), "sums": None})
        updates = [update for group in clients.groups(tasks) for update, _ in clients.work_together(group, {})]
        return [update.weights for update in sorted(updates, key=lambda update: update.client)]


def _check_clients(attack: Attack, number: int) -> None:
    """Those who shall attack are there."""
    most = max(attack.clients) + 1 if isinstance(attack.clients, tuple) else attack.clients
    if most > number:
        raise ConfigError(
            f"attack.clients of {attack.kind} is {attack.clients}, but there are {number} clients, counted from 0"
        )


def _is_payload(name: str) -> bool:
    return name.startswith(f"{UPLOAD}/") or name == f"{PROTOCOL}/{PREDICTIONS}"


def _part(whole: Weights, like: Weights) -> Weights:
    """Of a client's first weights, those that it sends: all, or one layer."""
    if whole.layout == like.layout:
        return whole
    return Weights(torch.cat([whole[name].reshape(-1) for name in like]), like.layout)
