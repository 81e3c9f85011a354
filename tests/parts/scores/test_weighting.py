"""w0, w1 and w2 against loops, and what clients say of themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING
from fedfuse.models.autoencoder import autoencoder
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.scores import ByExamples, ByLabels, ByReconstruction, Said
from tests.helpers import (
    AS_IT_IS,
    CLASSES,
    make_bank,
    make_client,
    make_examples,
    make_source,
    make_update,
    make_weights,
)

INPUTS = 7
SIZES = [5, 20, 75]


def updates(**extras):
    rows = []
    for client, size in enumerate(SIZES):
        random = torch.Generator().manual_seed(client)
        own = {"predictions": torch.rand(INPUTS, CLASSES, generator=random)}
        own |= {name: make(client, random) for name, make in extras.items()}
        rows.append(make_update(NOTHING, client=client, examples=size, extras=own))
    return rows


def said(rows):
    return [Said(row, row.extras["predictions"]) for row in rows]


def combined(scores, rows):
    return Predictions().combine([row.extras["predictions"] for row in rows], scores.weights(said(rows))).outputs


def by_loop(rows, weight):
    """zT_jc = sum_k w(k, j, c) z_k(x_j)_c, one number at a time."""
    total = np.zeros((INPUTS, CLASSES))
    for k, row in enumerate(rows):
        for j in range(INPUTS):
            for c in range(CLASSES):
                total[j, c] += weight(k, j, c) * float(row.extras["predictions"][j, c])
    return total


def test_w0():
    rows = updates()
    expected = by_loop(rows, lambda k, _j, _c: SIZES[k] / sum(SIZES))
    assert combined(ByExamples(), rows).numpy() == pytest.approx(expected, rel=1e-5)


def test_w0_of_equal_sizes_is_the_plain_mean():
    rows = [make_update(NOTHING, client=u.client, examples=9, extras=u.extras) for u in updates()]
    mean = torch.stack([u.extras["predictions"] for u in rows]).mean(0)
    torch.testing.assert_close(combined(ByExamples(), rows), mean)


def test_w1_is_by_class_and_not_renormalised():
    counts = torch.tensor([[4.0, 1.0, 0.0], [0.0, 20.0, 0.0], [70.0, 5.0, 0.0]])
    rows = updates(label_counts=lambda k, _: counts[k])
    expected = by_loop(rows, lambda k, _j, c: float(counts[k, c]) / (float(counts[:, c].sum()) + 0.001))
    outputs = combined(ByLabels(), rows).numpy()
    assert outputs == pytest.approx(expected, rel=1e-5)
    assert (outputs[:, 2] == 0).all()  # nobody has the class, so nobody is heard on it


@pytest.mark.parametrize("exponent", [1.0, 6.0])
def test_w2_is_by_input_and_sums_to_one(exponent):
    rows = updates(reconstruction_errors=lambda _k, random: 0.1 + torch.rand(INPUTS, generator=random))
    errors = np.stack([u.extras["reconstruction_errors"].numpy() for u in rows]).astype(float)
    weights = errors**-exponent / (errors**-exponent).sum(0)
    expected = by_loop(rows, lambda k, j, _c: weights[k, j])
    scores = ByReconstruction(exponent=exponent)
    assert combined(scores, rows).numpy() == pytest.approx(expected, rel=1e-4)
    assert torch.stack(scores.weights(said(rows))).sum(0) == pytest.approx(np.ones((INPUTS, 1)), rel=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_w2_does_not_depend_on_the_scale_of_the_errors(scale):
    rows = updates(reconstruction_errors=lambda _k, random: scale * (0.1 + torch.rand(INPUTS, generator=random)))
    plain = updates(reconstruction_errors=lambda _k, random: 0.1 + torch.rand(INPUTS, generator=random))
    same = zip(ByReconstruction().weights(said(rows)), ByReconstruction().weights(said(plain)), strict=True)
    for one, other in same:
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def client_of(examples, source):
    bank = make_bank()
    weights = make_weights(bank, "mlp", 1)
    model = bank.lend("mlp", weights)
    task = Task(1, 0, "mlp", weights)
    return make_client(task, model, examples, bank=bank, source=source, key=Key(3))


def test_label_counts_are_the_clients_own():
    examples = make_examples(40)
    said = ByLabels().say({}, client_of(examples, None), make_source(3))
    assert said["label_counts"].tolist() == [int((examples.labels == c).sum()) for c in range(CLASSES)]


def test_an_autoencoder_knows_what_it_was_trained_on():
    """Inputs like the client's have smaller errors than inputs far away, so they weigh more."""
    examples, near, far = make_examples(60), make_source(30, seed=5), make_source(30, seed=6)
    far = type(far)("far", far.raw * 4 + 8, AS_IT_IS, far.compute)
    scores = ByReconstruction(epochs=40, batch_size=16)
    client = client_of(examples, near)
    learnt = scores.learn(client)
    errors = [scores.say(learnt, client, s)["reconstruction_errors"] for s in (near, far)]
    assert errors[0].shape == (30,)
    assert errors[0].mean() * 5 < errors[1].mean()


def test_what_is_learnt_follows_the_key_alone():
    examples, source = make_examples(20), make_source(6)
    scores = ByReconstruction(epochs=2)
    torch.manual_seed(1)
    one = scores.learn(client_of(examples, source))["autoencoder"]
    torch.manual_seed(2)
    other = scores.learn(client_of(examples, source))["autoencoder"]
    assert torch.equal(one, other)


@pytest.mark.parametrize(("shape", "parameters"), [((1, 28, 28), 87_125), ((3, 32, 32), 499_459)])
def test_the_theses_autoencoders_have_their_sizes(shape, parameters):
    network = autoencoder(shape)
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert network(torch.rand(2, *shape)).shape == (2, *shape)


@pytest.mark.parametrize("shape", [(2,), (1, 8, 8), (5,)])
def test_other_shapes_have_one_too(shape):
    assert autoencoder(shape)(torch.rand(3, *shape)).shape == (3, *shape)
