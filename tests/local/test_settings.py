"""Local training settings: rates across rounds, stragglers, clipping, weight decay that spares norm layers."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.local import Hooks, TrainingSettings, Visit
from fedfuse.local.loop import train
from fedfuse.runtime.optimizers import Adam, Sgd
from tests.helpers import AS_IT_IS, CPU, TinyNorm, make_bank, make_examples, make_weights


def test_rate_steps_down_once_the_share_of_rounds_has_passed():
    decay = [{"after": 0.3, "factor": 0.1}, {"after": 0.6, "factor": 0.5}]
    training = TrainingSettings.model_validate({"optimizer": {"kind": "sgd", "learning_rate": 2.0}, "decay": decay})
    rates = [training.rate(number, 10) for number in range(1, 11)]
    assert rates == pytest.approx([2.0] * 3 + [0.2] * 3 + [0.1] * 4)


def test_stragglers_train_any_number_of_epochs_in_range_by_their_key():
    training = TrainingSettings(epochs=4, fewest_epochs=2)
    drawn = [training.epochs_of(Key(0).child("client", c)) for c in range(60)]
    assert set(drawn) == {2, 3, 4}
    assert drawn == [training.epochs_of(Key(0).child("client", c)) for c in range(60)]
    assert TrainingSettings(epochs=4).epochs_of(Key(0)) == 4


def test_more_fewest_than_epochs_is_refused():
    with pytest.raises(ValidationError, match="fewest_epochs is 3, but epochs is 2"):
        TrainingSettings(epochs=2, fewest_epochs=3)


class _Gradients(Hooks):
    """Makes every gradient large, and sees what the optimiser saw."""

    def __init__(self, model):
        self.model = model
        self.before = []

    def on_gradient(self):
        for p in self.model.parameters():
            p.grad.fill_(3.0)

    def on_step_end(self):
        self.before.append(torch.sqrt(sum((p.grad**2).sum() for p in self.model.parameters())))


@pytest.mark.parametrize(("clip", "expected"), [(None, None), (0.5, 0.5)])
def test_clipping_bounds_what_the_optimiser_sees(clip, expected):
    bank = make_bank(norm=TinyNorm())
    weights = make_weights(bank, "norm", 1)
    model = bank.lend("norm", weights)
    training = TrainingSettings(batch_size=8, clip_norm=clip, optimizer=Sgd(learning_rate=1e-6))
    visit = Visit(Task(1, 0, "norm", weights), model, make_examples(16), training, 1e-6, {}, bank, Key(0))
    hooks = _Gradients(model)
    train(visit, hooks, AS_IT_IS, CPU)
    full = 3.0 * weights.layout.parameter_count**0.5
    assert [float(norm) for norm in hooks.before] == pytest.approx([expected or full] * 2, rel=1e-4)


@pytest.mark.parametrize("kind", [Sgd, Adam])
@pytest.mark.parametrize("decay_norms", [True, False])
@pytest.mark.parametrize("decay_biases", [True, False])
def test_weight_decay_can_spare_norm_layers_and_biases(kind, decay_norms, decay_biases):
    model = make_bank(norm=TinyNorm()).lend("norm", make_weights(make_bank(norm=TinyNorm()), "norm", 3))
    for p in model.parameters():
        torch.nn.init.ones_(p)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    spares = {"decay_norms": decay_norms, "decay_biases": decay_biases}
    optimizer = kind(learning_rate=0.1, weight_decay=0.5, **spares).build(model)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    norms = {f"layers.2.{name}" for name in ("weight", "bias")}
    biases = {name for name in before if name.endswith(".bias")}
    assert norms <= before.keys()
    assert len(biases - norms) >= 2
    assert changed == before.keys() - (set() if decay_norms else norms) - (set() if decay_biases else biases)
