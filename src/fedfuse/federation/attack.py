"""What a hostile client is: an experiment's ``attack`` says what some clients do instead of what they are asked.

The kinds lie in ``fedfuse.testing.attacks``; whoever names none never loads them. What an honest client would do is
done first and shown to the attack: its examples before it trains, the weights or predictions that it would send, all
that it would say beside. No other part knows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from torch import Tensor

from fedfuse.core.choice import OneIn
from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples
from fedfuse.federation.recipe import Recipe


@dataclass(frozen=True)
class Situation:
    """A hostile client at its task: what it was sent, and what it knows of the others.

    ``key`` is this client's in this round; ``common`` is the same for all who attack, in all rounds. ``others`` are the
    weights that honest clients would send in this round, for an attack that ``knows_others``; ``clients`` is how many
    take part in a round, ``hostile`` how many of them attack if all are there.
    """

    task: Task
    sent: Weights
    classes: int
    key: Key
    common: Key
    others: Sequence[Weights]
    clients: int
    hostile: int


class Attack(Part):
    """The base of attacks: each method is shown what an honest client would do, and says what is done instead.

    Weights of the other sign, in a file of one's own, as ``attack: {kind: "my_file:Negative", clients: 0.2}``:

    >>> class Negative(fedfuse.Attack):
    ...     def weights(self, honest, situation):
    ...         return -1.0 * honest
    """

    kind: str
    clients: (
        Annotated[int, Field(ge=1)]
        | Annotated[float, Field(gt=0, lt=1)]
        | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    ) = Field(
        0.1, description="who attacks: so many (2) or such a share (0.2) of all, drawn by the seed; or these ([0, 7])"
    )
    begins: int = Field(1, ge=1, description="the round in which it begins; until then its clients are honest")
    every: int = Field(1, ge=1, description="from then on in every so many rounds, and honest in between")

    knows_others: ClassVar[bool] = False
    """Whether it looks at what honest clients would send, for which they are trained once more."""
    bends: ClassVar[str] = "anything"
    """What of a protocol it works on: weights, predictions, or anything."""

    def check(self, recipe: Recipe) -> None:
        """Raise a ConfigError with the reason if there is nothing that it could do."""
        carries = recipe.protocol.carries
        if self.bends == "weights" and carries not in ("weights", "layer"):
            raise ConfigError(f"attack {self.kind} is about weights, but protocol {recipe.protocol.kind} sends none")
        if self.bends == "predictions" and carries != "predictions":
            raise ConfigError(
                f"attack {self.kind} is about predictions, but protocol {recipe.protocol.kind} sends none"
            )
        if self.knows_others and carries != "weights":
            raise ConfigError(
                f"attack {self.kind} looks at the weights that others would send, but protocol {recipe.protocol.kind} "
                "sends no whole models"
            )

    def is_on(self, number: int) -> bool:
        """Whether its clients attack in this round."""
        return number >= self.begins and (number - self.begins) % self.every == 0

    def hostile(self, clients: int, key: Key) -> frozenset[int]:
        """The numbers of those who attack, of so many clients."""
        if isinstance(self.clients, tuple):
            return frozenset(self.clients)
        number = self.clients if isinstance(self.clients, int) else max(1, round(self.clients * clients))
        return frozenset(int(client) for client in key.numpy().permutation(clients)[:number])

    def examples(self, own: Examples, classes: int, key: Key) -> Examples:
        """What the client trains on; ``key`` is its own in all rounds."""
        return own

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        """The weights that it sends, where weights are what clients send."""
        return honest

    def predictions(self, honest: Tensor, situation: Situation) -> Tensor:
        """What it says about the public inputs, where that is what clients send."""
        return honest

    def claimed(self, examples: int) -> int:
        """How many examples it says it has."""
        return examples

    def extras(self, honest: Tensors, situation: Situation) -> Tensors:
        """All that it sends beside weights and predictions, under the names of the parts' slots."""
        return honest


def _as_list(value: Any) -> Any:
    """One attack is short for a list of it, and its kind for an attack with all its defaults."""
    several = value if isinstance(value, list | tuple) else () if value is None else (value,)
    return [{"kind": one} if isinstance(one, str) else one for one in several]


AnyAttack = Annotated[Attack, OneIn("fedfuse.testing.attacks")]
Attacks = Annotated[tuple[AnyAttack, ...], BeforeValidator(_as_list)]
