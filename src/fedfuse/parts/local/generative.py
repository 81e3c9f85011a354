"""Training with generated features: FedGen (Zhu, Hong and Zhou, 2021).

minimise F_k(w) + alpha_t mean_{y~} CE(classifier(G(eps, y~)), y~)
                + beta_t mean_{(x,y)} KL( sigma(classifier(G(eps, y))) || sigma(f(w, x)) )

alpha_t = max(alpha .98^t, 1e-4), and beta_t alike; t is 0 in round 1, which has no generator yet. y~ is uniform over
the labels that the generator has learnt, as many as the batch has examples. No gradient goes to the generator, nor to
the left side of KL.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.models import create
from fedfuse.parts.base import CheckContext, Shapes
from fedfuse.parts.claims import counts_within
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.generator import WEIGHTS, Committee, Generator, GeneratorSettings, Training, label_weights
from fedfuse.parts.local.objective import Batch, Hooks, Objective
from fedfuse.parts.tensor_spec import MOST_EXAMPLES, TensorSpec
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.losses import kl_by_class

COUNTS, KNOWN = "label_counts", "known_labels"


class Generative(Objective):
    """Cross-entropy, also on generated features, plus a pull of the outputs towards those for generated features."""

    kind: Literal["generative"] = "generative"
    stacks: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    classification_weight: float = Field(
        1.0,
        ge=0,
        description="alpha: weight of the cross-entropy on generated features; FedGen took 10, FedGKD .1 or 1",
    )
    distillation_weight: float = Field(
        1.0, ge=0, description="beta: weight of the distillation from generated features; FedGen took 10 or 1, FedGKD 0"
    )
    decay: float = Field(0.98, gt=0, le=1, description="what both weights are multiplied by after each round")
    floor: float = Field(1e-4, ge=0, description="where both weights stop falling")
    generator: GeneratorSettings = Field(default_factory=GeneratorSettings, description="its size and training")

    @property
    def is_on(self) -> bool:
        return self.classification_weight > 0 or self.distillation_weight > 0

    def weight_in(self, number: int, initial: float) -> float:
        """alpha_t or beta_t in round ``number``, from 1; one that starts below the floor stays where it is."""
        return max(initial * self.decay ** (number - 1), min(initial, self.floor))

    def check(self, context: CheckContext) -> None:
        sizes = _feature_sizes(context.bank) if self.is_on else {}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{size} of '{prototype}'" for prototype, size in sizes.items())
            raise ConfigError(
                "method.local generative has one generator of features for all models, but theirs differ in size: "
                f"{listed}; give all models the same projection_head"
            )

    def begin(self, client: ClientContext) -> Hooks:
        return _GenerativeHooks(client, self) if self.is_on else Hooks()

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        if WEIGHTS not in view.memory:
            return {}
        return {client: {name: view.memory[name] for name in (WEIGHTS, KNOWN)} for client in chosen}

    def update_spec(self, bank: ModelBank, prototype: str) -> Shapes:
        return {COUNTS: TensorSpec((bank.classes,), least=0, most=MOST_EXAMPLES)} if self.is_on else {}

    def sensitivity(self) -> float:
        """One example is one of its label."""
        return 1.0

    def in_range(self, extras: Tensors) -> Tensors:
        return {name: counts.clamp_min(0) for name, counts in extras.items()}

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        return counts_within(said, COUNTS, examples)

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        """Train the generator to please the classifiers that came back."""
        if not self.is_on or not updates:
            return view.memory
        committee = _committee(view.bank, updates)
        if not len(committee.labels):
            return view.memory  # nobody says that it has any examples
        training = Training(
            self.generator,
            self._generator(view, updates[0]),
            committee,
            self.generator.learning_rate * self.generator.rate_decay ** (view.round - 1),
        )
        steps = self.generator.steps
        key = view.key.child("train generator")
        trained = training.run(view.memory, key, lambda done: view.progress("generator", done, steps))
        known = torch.zeros(view.bank.classes, dtype=torch.bool)
        known[committee.labels.cpu()] = True
        return {**trained, KNOWN: known | view.memory.get(KNOWN, known)}

    def _generator(self, view: ServerView, update: Update) -> Generator:
        """The one of the last round, or a new one."""
        size = view.bank.lend(update.prototype, update.weights, TEACHER).feature_size
        if WEIGHTS in view.memory:
            return self.generator.load(view.memory[WEIGHTS], view.bank.classes, size, view.bank.compute)
        fresh = self.generator.build(view.bank.classes, size, view.key.child("new generator"))
        return fresh.to(view.bank.compute.device)


def _feature_sizes(bank: ModelBank) -> dict[str, int]:
    key = Key(0, ("feature size",))
    return {
        prototype: create(architecture, bank.input_shape, bank.classes, key).feature_size
        for prototype, architecture in bank.architectures.items()
    }


def _committee(bank: ModelBank, updates: Sequence[Update]) -> Committee:
    counts = label_weights([update.extras[COUNTS] for update in updates])
    return Committee([_classifier(bank, update) for update in updates], counts.to(bank.compute.device))


def _classifier(bank: ModelBank, update: Update) -> nn.Module:
    """A client's last layer by itself: small enough to hold one for every client at a time."""
    model = bank.lend(update.prototype, update.weights, TEACHER)
    return copy.deepcopy(model.classifier).eval().requires_grad_(False)


class _GenerativeHooks(Hooks):
    def __init__(self, client: ClientContext, objective: Generative) -> None:
        self.client = client
        self.teacher = _Teacher(client, objective) if WEIGHTS in client.received else None

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor | None:
        return self.teacher.loss(batch.labels, logits) if self.teacher else None

    def extras(self) -> Tensors:
        return {COUNTS: self.client.examples.label_counts(self.client.bank.classes)}


class _Teacher:
    """The received generator, ready to be asked."""

    def __init__(self, client: ClientContext, objective: Generative) -> None:
        bank, task, settings = client.bank, client.task, objective.generator
        self.settings = settings
        self.generator = settings.load(client.received[WEIGHTS], bank.classes, client.model.feature_size, bank.compute)
        self.generator.eval()
        self.is_known = client.received[KNOWN].to(bank.compute.device)
        self.known = self.is_known.nonzero().squeeze(1)
        self.alpha = objective.weight_in(task.round, objective.classification_weight)
        self.beta = objective.weight_in(task.round, objective.distillation_weight)
        self.classifier = client.model.classifier
        self.random = client.key.child("generator").torch()

    def loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Both terms for one batch of real examples; a term of weight 0 is not computed."""
        terms = []
        if self.alpha:
            terms.append(self.alpha * self.classification(self.draw_labels(len(labels))))
        if self.beta:
            terms.append(self.beta * self.distillation(labels, logits))
        return torch.stack(terms).sum()

    def classification(self, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.classifier(self.generate(labels)), labels)

    def distillation(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Examples of a label that the generator has not learnt cost nothing."""
        with torch.no_grad():
            target = self.classifier(self.generate(labels)).log_softmax(dim=1)
        return (kl_by_class(target, logits).sum(dim=1) * self.is_known[labels]).mean()

    def draw_labels(self, count: int) -> Tensor:
        return self.known[torch.randint(len(self.known), (count,), generator=self.random).to(self.known.device)]

    @torch.no_grad()
    def generate(self, labels: Tensor) -> Tensor:
        noise = self.settings.draw_noise(len(labels), self.random, labels.device)
        features: Tensor = self.generator(noise, labels)
        return features
