"""Local training settings: rates across rounds, stragglers, clipping, weight decay that spares norm layers."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.federation.client import Clients
from fedfuse.parts.binary import binary_parameters
from fedfuse.parts.local import Hooks
from fedfuse.parts.local.loop import train
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import AS_IT_IS, TinyNorm, make_bank, make_client, make_examples, make_recipe, make_weights


def test_rate_steps_down_once_the_share_of_rounds_has_passed():
    decay = [{"after": 0.3, "factor": 0.1}, {"after": 0.6, "factor": 0.5}]
    training = TrainingSettings.model_validate({"optimizer": {"kind": "sgd", "learning_rate": 2.0}, "decay": decay})
    rates = [training.rate(number, 10) for number in range(1, 11)]
    assert rates == pytest.approx([2.0] * 3 + [0.2] * 3 + [0.1] * 4)


@pytest.mark.parametrize("drawn", ["once", "every_round"])
def test_stragglers_train_any_number_of_epochs_in_range_by_their_key(drawn):
    training = TrainingSettings(epochs=4, fewest_epochs=2, epochs_drawn=drawn)

    def epochs(client, number):
        return training.of(Key(0).child("client", client), Key(0).child("round", number, "client", client)).epochs

    table = [[epochs(client, number) for number in range(1, 9)] for client in range(60)]
    assert table == [[epochs(client, number) for number in range(1, 9)] for client in range(60)]
    assert {row[0] for row in table} == {2, 3, 4}
    assert {len(set(row)) for row in table} <= ({1} if drawn == "once" else {2, 3})


def test_without_stragglers_everybody_trains_all_epochs():
    assert TrainingSettings(epochs=4).of(Key(0), Key(1)).epochs == 4


@pytest.mark.parametrize(("drawn", "differ"), [("once", False), ("every_round", True)])
def test_a_straggler_is_one_in_all_rounds_or_draws_again(drawn, differ):
    """FedBE assigns each client its number of epochs; a new draw in every round is the former behaviour."""
    training = TrainingSettings(epochs=9, fewest_epochs=1, batch_size=4, epochs_drawn=drawn)
    bank, datasets = make_bank(), {client: make_examples(8, seed=client) for client in range(6)}
    clients = Clients(datasets, AS_IT_IS, bank, make_recipe(), None, None, training, 10, Key(5))
    weights = make_weights(bank, "mlp", 1)
    steps = [[clients.work(Task(n, c, "mlp", weights), {})[0].metrics["steps"] for n in (1, 2, 3)] for c in range(6)]
    assert all(count % 2 == 0 for row in steps for count in row), "whole epochs of two batches"
    assert any(len(set(row)) > 1 for row in steps) == differ
    assert len({row[0] for row in steps}) > 1


def test_a_draw_in_every_round_of_nothing_is_refused():
    with pytest.raises(ValidationError, match="epochs_drawn is every_round, but nothing is drawn without fewest_epo"):
        TrainingSettings(epochs=3, epochs_drawn="every_round")


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
    client = make_client(Task(1, 0, "norm", weights), model, make_examples(16), training, 1e-6, {}, bank, Key(0))
    hooks = _Gradients(model)
    train(client, hooks)
    full = 3.0 * weights.layout.parameter_count**0.5
    assert [float(norm) for norm in hooks.before] == pytest.approx([expected or full] * 2, rel=1e-4)


@pytest.mark.parametrize("kind", [Sgd, Adam, AdamW])
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


NORMS = {
    "batch": nn.BatchNorm2d(4),
    "group": nn.GroupNorm(2, 4),
    "layer": nn.LayerNorm(4),
    "root mean square": nn.RMSNorm(4),
    "instance": nn.InstanceNorm2d(4, affine=True),
}


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_every_norm_layer_of_torch_is_one(norm):
    """Spared by weight decay, and never of one bit."""
    model = nn.Sequential(nn.Linear(4, 4), norm)
    spared = AdamW(decay_norms=False).build(model).param_groups[1]["params"]
    assert {id(p) for p in spared} == {id(p) for p in norm.parameters()} != set()
    assert [name for name, _ in binary_parameters(model)] == ["0.weight", "0.bias"]


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_adamw_is_algorithm_2_of_its_paper(decay):
    model, random = nn.Linear(3, 2), torch.Generator().manual_seed(0)
    optimizer = AdamW(learning_rate=0.1, weight_decay=decay).build(model)
    expected, first, second = model.weight.detach().double(), 0.0, 0.0
    for step in range(1, 6):
        gradient = torch.randn(2, 3, generator=random)
        model.weight.grad, model.bias.grad = gradient.clone(), torch.zeros(2)
        optimizer.step()
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        slope, scale = first / (1 - 0.9**step), (second / (1 - 0.999**step)).sqrt() + 1e-8
        expected = expected - 0.1 * (slope / scale + decay * expected)
        assert torch.allclose(model.weight.double(), expected, atol=1e-5)
