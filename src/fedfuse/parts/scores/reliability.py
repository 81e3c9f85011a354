"""Iterative weighted majority voting (Li and Yu, 2014): a teacher counts by how often it says what the vote says.

    y(x) = argmax_c  sum_k w_k [a_k(x) = c]                  the vote; a_k(x) is teacher k's first choice
    b_k  = mean over the classes c of the vote of  P(a_k = c | y = c)
    w_k  = max(0, (b_k - 1/K) / (1 - 1/K))                   0 for one that guesses, or always says the same

again and again, from equal weights until the vote stays as it is. Classes count the same (the paper's accuracy counts
inputs), so that nobody gains by saying what is said most. Teachers are judged by all public inputs, and so are known as
liars where a single input would not tell. No labels are needed; but most teachers have to mean what they say, and to
know more than they guess: liars that agree with each other more than honest teachers do are what the vote says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Update
from fedfuse.core.slices import spread
from fedfuse.parts.context import ServerView
from fedfuse.parts.scores.base import Coefficient, Said, Scores
from fedfuse.runtime.bank import TEACHER
from fedfuse.runtime.predict import logits_on

MOST_ASKED = 1000
"""Public inputs by which teachers are judged."""
MOST_VOTES = 50
"""If the vote has not settled by then, it goes to and fro between few inputs."""


class ByReliability(Scores):
    """A teacher counts by how often it says what all of them together say, over all public inputs."""

    kind: Literal["reliability"] = "reliability"
    needs_source: ClassVar[bool] = True

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        found = reliabilities([one.outputs for one in said])
        return [own.view(1, 1) for own in (found / found.sum()).float()]

    def of_models(self, view: ServerView, updates: Sequence[Update]) -> list[Coefficient]:
        some = view.public.part(torch.tensor(spread(len(view.public), MOST_ASKED)))  # not to ask about the others
        models = (view.bank.lend(update.prototype, update.weights, TEACHER) for update in updates)
        weights: list[Coefficient] = list(reliabilities([logits_on(some, model) for model in models]).tolist())
        return weights


def reliabilities(answers: Sequence[Tensor]) -> Tensor:
    """w_k of each teacher's answers, inputs x classes; all the same where nobody knows more than it guesses."""
    rows = torch.tensor(spread(len(answers[0]), MOST_ASKED))
    said = torch.stack([answer[rows].argmax(dim=1).cpu() for answer in answers])
    return of_choices(said, answers[0].shape[1])


def of_choices(said: Tensor, classes: int) -> Tensor:
    """The same of first choices, teachers x inputs."""
    weights, vote = torch.ones(len(said), dtype=torch.float64), torch.empty(0, dtype=torch.long)
    for _ in range(MOST_VOTES):
        before, vote = vote, _vote(said, weights, classes)
        if torch.equal(before, vote):
            break
        weights = _above_chance(said, vote, classes)
    return weights


def _vote(said: Tensor, weights: Tensor, classes: int) -> Tensor:
    votes = torch.zeros(said.shape[1], classes, dtype=torch.float64)
    for answers, weight in zip(said, weights, strict=True):
        votes.scatter_add_(1, answers.unsqueeze(1), weight.expand(len(answers), 1))
    return votes.argmax(dim=1)


def _above_chance(said: Tensor, vote: Tensor, classes: int) -> Tensor:
    """How much more often than a guess each says what the vote says, class by class."""
    sizes = torch.bincount(vote, minlength=classes)
    agreed = torch.stack([torch.bincount(vote[answers == vote], minlength=classes) for answers in said])
    there = sizes > 0
    shares = (agreed[:, there].double() / sizes[there]).mean(dim=1)
    chance = 1 / int(there.sum())
    above = ((shares - chance) / max(1 - chance, 1e-12)).clamp_min(0)
    return above if bool(above.any()) else torch.ones(len(said), dtype=torch.float64)
