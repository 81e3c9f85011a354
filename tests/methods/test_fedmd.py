"""FedMD against a hand-written loop of its four steps."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fedfuse.core.weights import Weights
from fedfuse.federation import Recipe
from fedfuse.runtime.batches import epoch_batches
from tests.helpers import make_federation, played, tiny_method

INPUTS, NUMBER = 30, 12


def federation_of():
    method = tiny_method("fedmd")
    method["protocol"]["inputs"] = NUMBER
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    return make_federation(recipe=recipe, source=INPUTS, labelled=True)


def test_the_consensus_is_the_mean_of_the_logits_on_the_rounds_inputs():
    federation = federation_of()
    after = played(federation, 1)
    public = federation.recipe.protocol.public(federation.source, federation.key, 1)
    models = [Weights(s["protocol/model"], federation.bank.layout("mlp")) for s in after.clients.values()]
    with torch.no_grad():
        logits = [federation.bank.lend("mlp", w).eval()(public.inputs(public.all_indices())) for w in models]
    torch.testing.assert_close(after.server.memory["protocol"]["consensus"], torch.stack(logits).mean(0))


def test_a_second_round_distils_then_revisits():
    """One client's second visit, step by step: Adam on the mean absolute error, then SGD on its own examples."""
    federation = federation_of()
    first = played(federation, 1)
    second = played(federation, 1, first)
    client, training = 2, federation.engine.clients.training
    key = federation.key.child("round", 2, "client", client)
    distillation = federation.recipe.protocol.distillation
    public = federation.recipe.protocol.public(federation.source, federation.key, 1)
    consensus = first.server.memory["protocol"]["consensus"]
    model = federation.bank.lend(
        "mlp", Weights(first.clients[client]["protocol/model"], federation.bank.layout("mlp")), role="by hand"
    )
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(distillation.epochs):
        for where in epoch_batches(NUMBER, distillation.batch_size, key.child("digest", "batches", epoch)):
            adam.zero_grad()
            (model(public.inputs(where)) - consensus[where]).abs().mean().backward()
            adam.step()
    sgd = torch.optim.SGD(model.parameters(), lr=training.optimizer.learning_rate)
    examples = federation.engine.clients.datasets[client]
    for where in epoch_batches(len(examples), training.batch_size, key.child("batches", 0)):
        sgd.zero_grad()
        F.cross_entropy(model(examples.inputs[where]), examples.labels[where]).backward()
        sgd.step()
    torch.testing.assert_close(Weights.of(model).flat, second.clients[client]["protocol/model"], rtol=1e-5, atol=1e-6)


def test_the_start_has_learnt_the_public_labels_and_the_server_learns_no_more():
    federation = federation_of()
    start, end = federation.start().server.weights["mlp"], played(federation, 2).server.weights["mlp"]
    assert start.equals(end)
    assert not start.equals(federation.bank.initial("mlp", federation.key.child("initialise", "mlp")))
