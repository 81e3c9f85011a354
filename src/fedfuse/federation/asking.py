"""Where to a round's models went in what they say about public inputs (``federation.moves``).

    d_k = z_k - z_sent        z: logits about some public inputs, less their means over the classes and over the inputs

A fusion asks all models about public inputs, whatever their architectures are. So it can compare clients that share no
weights, or too few of a kind to be compared by them: who goes against the others in what its model says, or turns
round, stands out as it would by its weights (directions.py). It has to stand out more in one round, as answers have
fewer ways to go than weights, and less in the mean of several. So does whose model says what the others' say as seldom
as a guess (answers.py).

The mean over the inputs is what a client says whatever it is asked: with few classes it says those more often, and is
at odds with all who have others. What is left is by what it tells inputs apart, in which honest clients agree.
Weights that moved farther than they were long are asked at that length: where to is told by the way, not by its end.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.randomness import Key
from fedfuse.core.slices import spread
from fedfuse.core.weights import Weights
from fedfuse.federation.answers import unlike_the_others
from fedfuse.federation.directions import Courses, Verdict, judged
from fedfuse.federation.sketches import Sketch, Sketcher
from fedfuse.parts.context import ServerView
from fedfuse.runtime.predict import logits_on

MOST_ASKED = 256
"""Public inputs about which models are asked."""
IN_ONE_ROUND, SO_FAR = -0.3, -0.1
"""Below what a cosine is clearly negative, and the mean of several."""
LOUDEST = 1e6
"""Logits of weights that are far off may be infinite."""
JUDGED = "judged"
"""The role of the network that is asked, beside students and teachers."""


class Asked:
    """One round's models, of as many clients."""

    def __init__(self, view: ServerView, clients: int, key: Key) -> None:
        self.bank, self.classes = view.bank, view.bank.classes
        self.inputs = view.public.part(torch.tensor(spread(len(view.public), MOST_ASKED)))
        self.sketches: dict[int, Sketch] = {}
        self.choices: dict[int, Tensor] = {}
        self._sketcher = Sketcher(len(self.inputs) * self.classes, clients, key)
        self._sent: dict[str, tuple[Weights, Tensor]] = {}

    def take(self, update: Update, sent: Weights) -> None:
        """One more of the round's updates."""
        said = self._said(update.prototype, _not_far(update.weights.here, sent))
        moved = _centred(said) - _centred(self._before(update.prototype, sent))
        self.sketches[update.client] = self._sketcher(moved.reshape(-1))
        self.choices[update.client] = said.argmax(dim=1).to(torch.int32)

    def judged(self, clients: Collection[int], courses: Courses) -> Verdict:
        """By their directions, of these clients."""
        own = {client: sketch for client, sketch in self.sketches.items() if client in clients}
        return judged(own, courses, IN_ONE_ROUND, SO_FAR)

    def guessing(self, clients: Collection[int]) -> dict[int, str]:
        """Whose models say nothing that the others' do, and why that is said."""
        return unlike_the_others({c: said for c, said in self.choices.items() if c in clients}, self.classes)

    def _before(self, prototype: str, sent: Weights) -> Tensor:
        """What the weights said that a client was sent; they are mostly the same for all of its prototype."""
        kept = self._sent.get(prototype)
        if kept is None or kept[0] is not sent:
            kept = self._sent[prototype] = (sent, self._said(prototype, sent))
        return kept[1]

    def _said(self, prototype: str, weights: Weights) -> Tensor:
        said = logits_on(self.inputs, self.bank.lend(prototype, weights, JUDGED))
        return said.nan_to_num(0.0, LOUDEST, -LOUDEST).clamp(-LOUDEST, LOUDEST)


def _not_far(brought: Weights, sent: Weights) -> Weights:
    """On the way to what was brought, no farther than what was sent is long; of other widths, as it is."""
    if brought.layout != sent.layout:
        return brought
    moved = brought - sent
    far, length = float(moved.parameters.norm()), float(sent.parameters.norm())
    return brought if far <= length else sent + (length / far) * moved


def _centred(logits: Tensor) -> Tensor:
    by_input = logits - logits.mean(dim=1, keepdim=True)
    return by_input - by_input.mean(dim=0, keepdim=True)
