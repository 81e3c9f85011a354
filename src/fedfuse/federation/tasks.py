"""What a round sends: to each client a task, with weights and with what the parts want it to know."""

from __future__ import annotations

from collections.abc import Mapping

from fedfuse.core.messages import Task, Tensors, within
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.recipe import LOCAL, MERGE, PROTOCOL, SCORES, Recipe
from fedfuse.federation.views import Views
from fedfuse.parts.context import ServerView
from fedfuse.parts.upload.chain import name_of


def joining(planned: Mapping[int, str], announced: Mapping[int, str], view: ServerView) -> dict[int, str]:
    """Parties that were never heard and say that they run another model than was planned for them."""
    return {
        client: announced[client]
        for client, prototype in planned.items()
        if announced.get(client, prototype) != prototype
        and announced[client] in view.bank.prototypes
        and not view.visits[client]
    }


def tasks_for(chosen: Mapping[int, str], recipe: Recipe, views: Views, asked: tuple[str, ...]) -> list[Task]:
    """One for each client that takes part, by the prototype it runs; ``asked`` is what answers shall bring besides."""
    extras = _broadcast(chosen, recipe, views)
    return [
        Task(
            views.whole.round,
            client,
            prototype,
            _offer(client, prototype, recipe, views),
            extras[client],
            recipe.asking.asks(views.protocol, client) + asked,
        )
        for client, prototype in chosen.items()
    ]


def _broadcast(chosen: Mapping[int, str], recipe: Recipe, views: Views) -> dict[int, Tensors]:
    """What the parts send beside weights, by client, each under the name of its slot."""
    parts = [
        (PROTOCOL, recipe.protocol.broadcast(views.protocol, chosen)),
        (SCORES, recipe.asking.broadcast(views.of(SCORES), chosen)),
        (LOCAL, recipe.local.broadcast(views.of(LOCAL), chosen)),
    ]
    for place, link in enumerate(recipe.upload):
        parts.append((name_of(place), link.broadcast(views.of(name_of(place)), chosen)))
    for prototype in views.whole.bank.prototypes:
        own = [client for client, name in chosen.items() if name == prototype]
        parts.append((MERGE, recipe.merge.broadcast(views.of(f"{MERGE}/{prototype}"), prototype, own)))
    return {c: {n: t for part, sent in parts for n, t in within(part, sent.get(c, {})).items()} for c in chosen}


def _offer(client: int, prototype: str, recipe: Recipe, views: Views) -> Weights:
    """The weights that a client begins with; nothing for one that goes on with its own."""
    if recipe.protocol.sends_weights(views.protocol, client):
        return recipe.merge.offer(views.of(f"{MERGE}/{prototype}"), prototype, client)
    return NOTHING
