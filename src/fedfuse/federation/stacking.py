"""Which clients are trained together: what is stacked and what is not, and why.

A task is stacked if all of this holds, which depends on the experiment and the client's own number of examples alone:

- ``compute.stack`` is auto, and ``compute.precision`` float32 (autocast looks at layers' types);
- inputs are no texts, whose batches have lengths of their own;
- steps are plain ones: those of DP-SGD see every example by itself;
- the optimiser is one of ours, which treat every number by itself; another one might look at whole tensors;
- the objective says that its hooks may have neighbours (``Objective.stacks``): they draw nothing from torch's default
  generator, which all would share;
- the protocol lets training alone: it holds no layer still and adds no loss (``Protocol.trains_freely``);
- the weights have the architecture's own widths;
- the network has a twin, and a step is small enough to gain by it (runtime/twins.py). Networks with dropout, batch
  statistics or parameters outside of known layers have none.

Everything else is trained one by one, with the very same result but for the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedfuse.core.messages import Task
from fedfuse.core.weights import NOTHING
from fedfuse.federation.recipe import Recipe
from fedfuse.parts.base import speaks_for
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd
from fedfuse.runtime.training import TrainingSettings
from fedfuse.runtime.twins import Stack, filled_length


@dataclass(frozen=True)
class Stacking:
    """The tasks of a round in groups; ``together`` says how many clients a round has."""

    examples_of: Callable[[Task], int]
    bank: ModelBank
    recipe: Recipe
    training: TrainingSettings
    together: int

    def groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Those that are trained together: clients with about as many steps, so that few places idle."""
        if not self.is_possible:
            return [[task] for task in tasks]
        kinds: dict[object, tuple[int, list[Task]]] = {}
        for task in sorted(tasks, key=lambda task: self._steps(task)):
            stack = self.stack(task)
            key = (task.prototype, stack and stack.length, self._steps(task) if self._has_schedule else 0)
            kinds.setdefault(key, (stack.twin.size if stack else 1, []))[1].append(task)
        return [own[at : at + size] for size, own in kinds.values() for at in range(0, len(own), size)]

    def stack(self, task: Task) -> Stack | None:
        """What a task is trained on, alone or in company; None: the plain network."""
        if not self.is_possible or task.weights.layout not in (self.bank.layout(task.prototype), NOTHING.layout):
            return None
        length = filled_length(self.examples_of(task), self.training.batch_size)
        return self.bank.twins.stack(task.prototype, length, -(-self.together // len(self.bank.prototypes)))

    @cached_property
    def is_possible(self) -> bool:
        """Whether anybody can be stacked, before networks are looked at."""
        compute, recipe = self.bank.compute, self.recipe
        return (
            compute.stack
            and not compute.bf16
            and not self.bank.reads_texts
            and type(self.training.optimizer) in (Sgd, Adam, AdamW)
            and self.training.privacy is None
            and recipe.local.stacks
            and speaks_for(recipe.local, "stacks", "begin")
            and recipe.protocol.trains_freely
            and speaks_for(recipe.protocol, "trains_freely", "training")
        )

    @property
    def _has_schedule(self) -> bool:
        """Whether the rate of a step depends on how many there are."""
        return self.training.schedule != "constant" or bool(self.training.decay_inside)

    def _steps(self, task: Task) -> int:
        return self.training.steps(self.examples_of(task))
