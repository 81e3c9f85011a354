"""Merges, scores and screens in a stock strategy, beside computations of their own."""

from __future__ import annotations

import logging
from typing import get_args

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping

from fedfuse.core.choice import OneOf
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.weights import Weights
from fedfuse.flower import FedBE, FedDF, FedFuse
from fedfuse.parts.fuse import Distiller, EnsembleOnly, Swa
from fedfuse.parts.merge import AnyMerge, Matched, Merge, Merged, Momentum
from fedfuse.parts.scores import ByOutputs
from fedfuse.parts.screen import Screen, Screened
from tests.flower.strategies.apps import INPUTS, TEST, accuracy, client, grid_of, network, run, small

OFF = {"fraction_evaluate": 0.0}
QUICK = Distiller(steps=4, batch_size=16)


def answers(grid, make, number):
    """The floats of every node's answer to its message of a round, and how much each node counts."""
    replies = [node.app([m for m in node.messages if m.metadata.message_type == "train"][number], None)
               for node in grid.nodes.values()]  # fmt: skip
    states = [reply.content["arrays"].to_torch_state_dict() for reply in replies]
    shares = np.array([reply.content["metrics"]["num-examples"] for reply in replies], dtype=float)
    names = [name for name, _ in make().named_parameters()]
    flat = [np.concatenate([state[name].double().numpy().reshape(-1) for name in names]) for state in states]
    return np.stack(flat), shares / shares.sum()


def floats(state, make):
    return np.concatenate([state[name].double().numpy().reshape(-1) for name, _ in make().named_parameters()])


def three(make=small):
    return grid_of(*(client(number, make) for number in range(3)))


@pytest.mark.parametrize("form", ["plain", "damped"])
def test_momentum_as_written(form):
    """v <- beta v + share (x - avg), x <- x - v, with the answers that clients gave."""
    initial = small().state_dict()
    grid, ended = run(FedFuse(small, merge=Momentum(beta=0.4, form=form), **OFF), initial, 3, three())
    x, velocity, share = floats(initial, small), 0.0, 1.0 if form == "plain" else 0.6
    for number in range(3):
        models, shares = answers(grid, small, number)
        velocity = 0.4 * velocity + share * (x - shares @ models)
        x = x - velocity
    np.testing.assert_allclose(floats(ended, small), x, rtol=1e-4, atol=1e-6)


EVERY_MERGE = [kind for part in get_args(AnyMerge) if isinstance(part, OneOf) for kind in part.known]


@pytest.mark.parametrize("merge", EVERY_MERGE, ids=lambda merge: merge.__name__)
def test_every_merge_in_an_ordinary_app(merge):
    """Also those that will be written later."""
    strategy = FedFuse(small, INPUTS, merge=merge(), fuse="none", validation=(TEST.inputs, TEST.labels), **OFF)
    initial, grid = strategy.initial_arrays().to_torch_state_dict(), three()
    _, first = run(strategy, initial, 2, grid)
    assert all(bool(tensor.isfinite().all()) for tensor in first.values())
    assert any(first[name].shape != initial[name].shape or not first[name].equal(initial[name]) for name in initial)


class Median(Merge):
    """A merge from outside of fedfuse."""

    def merge(self, view, prototype, updates):  # noqa: ARG002
        flat = torch.stack([update.weights.flat for update in updates]).median(dim=0).values
        return Merged(Weights(flat, updates[0].weights.layout))


class Biggest(Screen):
    """Only the client with the most examples counts."""

    def screen(self, view, updates):  # noqa: ARG002
        best = max(updates.counted, key=lambda update: update.examples)
        others = {u.client: "it has fewer examples" for u in updates.counted if u is not best}
        return Screened([best], [best], others)


class ByMargin(ByOutputs):
    """A teacher counts by how far its first choice is ahead of its second."""

    def of(self, probabilities):
        first, second = probabilities.topk(2, dim=1).values.T
        return first - second


def test_a_merge_of_ones_own():
    grid, ended = run(FedFuse(small, merge=Median(), **OFF), small().state_dict(), 1, three())
    models, _ = answers(grid, small, 0)
    np.testing.assert_array_equal(floats(ended, small).astype("f"), np.median(models, axis=0).astype("f"))


def test_a_screen_of_ones_own(caplog):
    with caplog.at_level(logging.INFO, "flwr"):
        grid, ended = run(FedDF(small, INPUTS, QUICK, screen=[Biggest()], **OFF), small().state_dict(), 1, three())
    models, shares = answers(grid, small, 0)
    np.testing.assert_array_equal(floats(ended, small).astype("f"), models[shares.argmax()].astype("f"))
    assert caplog.text.count("is left out: it has fewer examples") == 2


def target_of(probabilities, logits, kind, shares):
    """The ensemble's answer, in numpy."""
    scale = {
        "uniform": np.ones(probabilities.shape[:2]),
        "examples": np.repeat(shares[:, None], probabilities.shape[1], axis=1),
        "confidence": probabilities.max(axis=2),
        "entropy": np.exp((probabilities * np.log(probabilities)).sum(axis=2)),
        "variance": probabilities.var(axis=2),
        "margin": np.sort(probabilities, axis=2)[:, :, -1] - np.sort(probabilities, axis=2)[:, :, -2],
    }[kind]
    mean = ((scale / scale.sum(axis=0))[:, :, None] * logits).sum(axis=0)
    powers = np.exp(mean - mean.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["uniform", "examples", "confidence", "entropy", "variance", "margin"])
def test_teachers_count_as_they_should(kind):
    """The distance from the ensemble to the student that the round reports, beside one in numpy."""
    scores = ByMargin() if kind == "margin" else kind
    strategy = FedDF(small, INPUTS, QUICK, scores=scores, **OFF)
    grid = three()
    result = strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=1)
    logits = []
    for state in [
        node.app(node.messages[-1], None).content["arrays"].to_torch_state_dict() for node in grid.nodes.values()
    ]:
        model = small()
        model.load_state_dict(state)
        logits.append(model(INPUTS).detach().double().numpy())
    logits = np.stack(logits)
    probabilities = torch.from_numpy(logits).softmax(dim=2).numpy()
    target = target_of(probabilities, logits, kind, answers(grid, small, 0)[1])
    student = small()
    student.load_state_dict(result.arrays.to_torch_state_dict())
    said = student(INPUTS).detach().double().log_softmax(dim=1).numpy()
    expected = (target * (np.log(target) - said)).sum(axis=1).mean()
    assert result.train_metrics_clientapp[1]["distillation-loss"] == pytest.approx(expected, rel=1e-4)


def test_fedbe_in_an_ordinary_app():
    short = Distiller(epochs=10, batch_size=16, keep="last", swa=Swa(collect_after=30, cycle=10))
    strategy = FedBE(network, INPUTS, distiller=short, **OFF)
    grid = grid_of(*map(client, range(3)))
    result = strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=2)
    said = result.train_metrics_clientapp[2]
    assert (said["teachers"], said["distillation-steps"]) == (3, 80)
    assert said["distillation-collected"] > 1
    assert accuracy(network(), result.arrays.to_torch_state_dict()) > 0.6


def test_matched_networks_grow_and_clients_get_their_own_widths():
    """A prior under which neurons are kept apart: the server's layer is wider than any client's."""
    strategy = FedFuse(small, merge=Matched(sigma=0.05, gamma=50.0), fraction_evaluate=1.0)
    grid = three()
    result = strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=3)
    wide = result.arrays.to_torch_state_dict()
    assert len(wide["0.weight"]) == wide["2.weight"].shape[1] > 6
    assert all(len(m.content["arrays"]["0.weight"].numpy()) == 6 for n in grid.nodes.values() for m in n.messages)
    assert result.evaluate_metrics_clientapp[3]["accuracy"] > 0.5


def test_matched_undoes_a_permutation():
    """Two clients with the same network, the neurons of one in another order."""
    torch.manual_seed(0)
    strategy = FedFuse(small, merge=Matched(sigma=0.1, sigma0=1e4, gamma=1e-6), **OFF)
    state = small().state_dict()
    order = torch.randperm(6)
    other = {"0.weight": state["0.weight"][order], "0.bias": state["0.bias"][order],
             "2.weight": state["2.weight"][:, order], "2.bias": state["2.bias"]}  # fmt: skip
    grid = three()
    for node, answer in zip(list(grid.nodes.values()), (state, other, state), strict=True):
        node.bend = lambda reply, answer=answer: reply.content.update(arrays=ArrayRecord(answer)) or [reply]
    _, merged = run(strategy, state, 1, grid)
    model, expected = small(), small()
    model.load_state_dict(merged)
    expected.load_state_dict(state)
    torch.testing.assert_close(model(INPUTS), expected(INPUTS), rtol=1e-4, atol=1e-5)


def test_an_absurd_reply_is_left_out(caplog):
    """Finite, of the right shape, and a million times as large as it was sent."""
    grid = three()

    def bend(reply):
        arrays = {name: 1e6 * tensor for name, tensor in reply.content["arrays"].to_torch_state_dict().items()}
        reply.content["arrays"] = ArrayRecord(arrays)
        return [reply]

    grid.nodes[12].bend = bend
    with caplog.at_level(logging.INFO, "flwr"):
        _, ended = run(FedDF(small, INPUTS, QUICK, **OFF), small().state_dict(), 1, grid)
    assert "node 12 is left out: weights: " in caplog.text
    assert max(float(tensor.abs().max()) for tensor in ended.values()) < 100


def test_a_student_that_diverges_leaves_the_average(caplog):
    initial = small().state_dict()
    wild = Distiller(steps=20, batch_size=16, optimizer={"kind": "sgd", "learning_rate": 1e30})
    with caplog.at_level(logging.INFO, "flwr"):
        grid, ended = run(FedDF(small, INPUTS, wild, **OFF), initial, 1, three())
    models, shares = answers(grid, small, 0)
    np.testing.assert_allclose(floats(ended, small), shares @ models, rtol=1e-6, atol=1e-9)
    assert "the model: weights were not finite" in caplog.text


def test_flowers_wrappers_change_what_clients_begin_with():
    """Differential privacy of Flower's own around a strategy: its noise is in the arrays of the next round."""
    strategy = FedDF(small, INPUTS, QUICK, **OFF)
    private = DifferentialPrivacyServerSideFixedClipping(strategy, 0.01, 5.0, 3)
    grid = three()
    result = private.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=3)
    assert all(tensor.isfinite().all() for tensor in result.arrays.to_torch_state_dict().values())
    assert len(result.train_metrics_clientapp) == 3


def test_a_bad_round_is_followed_by_a_good_one():
    grid, rounds = three(), []
    for node in grid.nodes.values():

        def bend(reply, node=node):
            rounds.append(node)
            return [] if len(rounds) <= 3 else [reply]

        node.bend = bend
    strategy = FedDF(small, INPUTS, QUICK, merge="momentum", **OFF)
    result = strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=2)
    assert list(result.train_metrics_clientapp) == [2]
    assert result.arrays


class TestSentences:
    """What cannot work is refused before anything is sent."""

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"merge": "medain"}, "FedFuse: merge: unknown kind 'medain'"),
            ({"merge": {"kind": "momentum", "beta": 2}}, "FedFuse: merge.beta is 2"),
            ({"merge": {"kind": "momentum", "bta": 2}}, "merge: unknown key 'bta'"),
            ({"merge": 7}, "FedFuse: merge is 7"),
            ({"merge": Momentum}, r"FedFuse: merge is a class; give an object of it, Momentum\(\)"),
            ({"merge": "matched", "model": network}, "merge matched goes from layer to layer"),
            ({"fuse": "ensemble_distillation", "inputs": None}, "ensemble_distillation reads unlabelled inputs"),
            ({"fuse": "prediction_distillation"}, "reads predictions, but protocol weights sends none"),
            ({"fuse": "true_labels"}, "true_labels reads the true labels"),
            ({"scores": "labels"}, "scores labels ask clients about their data"),
            ({"scores": "validation"}, "scores validation judges teachers on validation examples; set validation"),
            ({"scores": "entropy", "fuse": "none"}, "but this method asks none"),
            ({"screen": ["drop_worst"]}, "screen drop_worst judges clients on validation examples; set validation"),
            ({"screen": "drop_worst"}, "FedFuse: screen is "),
            ({"device": "tpu9"}, "device is 'tpu9', which this machine does not have"),
            ({"validation": (TEST.inputs, TEST.labels + 1)}, "labels of validation must be from 0 to 2"),
            ({"validation": (TEST.inputs, TEST.labels[:3])}, "validation must be a pair of inputs and labels"),
            ({"validation": TEST.inputs}, "validation must be a pair of inputs and labels"),
            ({"validation": 3}, "validation must be a pair of inputs and labels"),
            ({"validation": [(TEST.inputs[0],)]}, "validation must be a pair of inputs and labels"),
        ],
    )
    def test_parts(self, options, reason):
        with pytest.raises((ConfigError, DataError), match=reason) as caught:
            FedFuse(**{"model": small, "inputs": INPUTS, **options})
        assert "\n" not in str(caught.value)

    def test_fedbe_with_few_inputs(self):
        with pytest.raises(ConfigError, match="swa would collect no student: 120 inputs make 20 steps"):
            FedBE(small, INPUTS)

    def test_a_dataset_of_pairs_is_validation(self):
        strategy = FedFuse(small, INPUTS, scores="validation",
                           validation=torch.utils.data.TensorDataset(TEST.inputs, TEST.labels))  # fmt: skip
        assert len(strategy.rounds.validation) == len(TEST)

    def test_an_ensemble_that_is_only_measured_teaches_nobody(self):
        _, ended = run(FedFuse(small, INPUTS, fuse=EnsembleOnly(), **OFF), small().state_dict(), 1, three())
        assert ended
