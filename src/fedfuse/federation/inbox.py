"""Where updates arrive: what each must bring, whether it does, and what it stands for once it is unpacked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedfuse.core.messages import TEST_OUTPUTS, Task, Tensors, Update, of_part, within
from fedfuse.core.plain_text import one_line
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.inspection import ExpectedUpdate, reason_to_refuse
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, UPLOAD, Recipe
from fedfuse.federation.sums.summation import SUMMAND, Summation
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import PREDICTIONS, WEIGHTS, Expected
from fedfuse.runtime.bank import ModelBank


@dataclass(frozen=True)
class Inbox:
    """One round's; ``protocol`` and ``scores`` are what these parts see."""

    recipe: Recipe
    bank: ModelBank
    test_inputs: int
    protocol: ServerView
    scores: ServerView
    sums: Summation | None = None

    def opened(self, update: Update, task: Task) -> Update | str:
        """The update with all that it stands for, or why it is refused."""
        expected = self.recipe.protocol.expects(self.protocol, task)
        plain = self.expected(expected, task)
        if self.sums is not None:
            summand = {SUMMAND: self.sums.spec(expected, task, self.bank)}
            return reason_to_refuse(update, task, replace(plain, layout=NOTHING.layout, extras=summand)) or update
        if not self.recipe.upload:
            reason = reason_to_refuse(update, task, plain)
            return reason or self.recipe.asking.recalled(self.scores, update)
        if reason := reason_to_refuse(update, task, self.as_packed(plain, expected, task)):
            return reason
        bank, chain = self.bank, self.recipe.chain
        aside = chain.aside_spec()
        packed = {name: tensor for name, tensor in of_part(UPLOAD, update.extras).items() if name not in aside}
        try:
            came = chain.unpack(packed, expected.payload, task, bank)
            update = with_payload(update, expected, packed, came)
        except ValueError as error:
            return one_line(str(error))
        return reason_to_refuse(update, task, plain) or self.recipe.asking.recalled(self.scores, update)

    def expected(self, protocol: Expected, task: Task) -> ExpectedUpdate:
        """What the update must bring, unless links pack it."""
        bank, chain = self.bank, self.recipe.chain
        payload = {name: spec for name, spec in chain.arrives(protocol.payload).items() if name != WEIGHTS}
        extras = {
            **within(PROTOCOL, {**protocol.extras, **payload}),
            **within(UPLOAD, chain.aside_spec()),
            **within(SCORES, self.recipe.asking.expects(self.protocol, task)),
            **within(LOCAL, self.recipe.local.update_spec(bank, task.prototype)),
        }
        return ExpectedUpdate(protocol.layout, extras, self.expected_on_test(task))

    def expected_on_test(self, task: Task) -> Shapes:
        """What a client says about the test inputs that was asked."""
        inputs, classes = self.test_inputs, self.bank.classes
        if TEST_OUTPUTS not in task.asks:
            return {}
        sends = self.recipe.protocol.carries == "predictions"
        scores = within(SCORES, self.recipe.scores.spec(inputs, classes)) if sends else {}
        return {PREDICTIONS: (inputs, classes), **scores}

    def as_packed(self, plain: ExpectedUpdate, protocol: Expected, task: Task) -> ExpectedUpdate:
        """The same as it travels, with its payload through the links of the upload."""
        packed = self.recipe.chain.specs(protocol.payload, task.prototype, self.bank)[-1]
        unpacked = within(PROTOCOL, protocol.payload)
        rest = {name: shape for name, shape in plain.extras.items() if name not in unpacked}
        return replace(plain, layout=NOTHING.layout, extras={**rest, **within(UPLOAD, packed)})


def with_payload(update: Update, expected: Expected, packed: Tensors, came: Tensors) -> Update:
    """The update with what was unpacked in the place of what was packed."""
    gone = within(UPLOAD, packed)
    extras = {name: tensor for name, tensor in update.extras.items() if name not in gone}
    if WEIGHTS in came:
        return replace(update, weights=Weights(came[WEIGHTS], expected.layout), extras=extras)
    return replace(update, extras={**extras, **within(PROTOCOL, came)})
