"""FedDF as a Flower strategy, driven by Flower's own loop."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from torch import nn

from fedfuse.core.errors import DataError
from fedfuse.flower import FedDF
from fedfuse.parts.fuse import Distiller
from tests.flower.grid import InProcessGrid, Node
from tests.flower.strategies.apps import INPUTS, client, network, run
from tests.flower.test_npy import HOSTILE


@pytest.fixture
def initial():
    torch.manual_seed(0)
    return network().state_dict()


def distance(state, grid):
    """Mean KL from the clients' ensemble to a model, on the unlabelled inputs."""
    teachers = []
    model = network().eval()
    for node in grid.nodes.values():
        reply = node.app(node.messages[-1], None)
        model.load_state_dict(reply.content["arrays"].to_torch_state_dict())
        teachers.append(model(INPUTS).detach())
    target = torch.stack(teachers).mean(0).softmax(1)
    model.load_state_dict(state)
    return float(F.kl_div(model(INPUTS).detach().log_softmax(1), target, reduction="batchmean"))


def test_no_steps_is_the_average(initial):
    """Of the clients' numbers, weighted by their examples, as numpy computes it."""
    grid, averaged = run(FedDF(network, INPUTS, Distiller(steps=0), fraction_evaluate=0.0), initial)
    replies = [node.app(node.messages[-1], None) for node in grid.nodes.values()]
    states = [reply.content["arrays"].to_torch_state_dict() for reply in replies]
    shares = np.array([reply.content["metrics"]["num-examples"] for reply in replies], dtype=float)
    for name, tensor in initial.items():
        if tensor.is_floating_point():
            expected = np.average([state[name].double().numpy() for state in states], axis=0, weights=shares)
            np.testing.assert_allclose(averaged[name].numpy(), expected, rtol=1e-6, atol=1e-9)
        assert averaged[name].dtype == tensor.dtype


def test_the_student_comes_nearer_to_the_ensemble(initial):
    grid, averaged = run(FedAvg(fraction_evaluate=0.0), initial)
    grid, fused = run(FedDF(network, INPUTS, Distiller(steps=150, batch_size=32), fraction_evaluate=0.0), initial)
    assert distance(fused, grid) < 0.5 * distance(averaged, grid)


def test_same_seed_same_bits(initial):
    def fused(seed):
        strategy = FedDF(network, INPUTS, Distiller(steps=20, batch_size=16), seed=seed, fraction_evaluate=0.0)
        return run(strategy, initial, rounds=2)[1]

    one, again, other = fused(1), fused(1), fused(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_client_that_fails_is_left_out(initial):
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}
    nodes[11].app = ClientApp()
    strategy = FedDF(network, INPUTS, Distiller(steps=5, batch_size=16), fraction_evaluate=0.0)
    result = strategy.start(grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=1)
    assert result.arrays.keys() == initial.keys()


def left_out(bend, initial, caplog, rounds=2):
    """A run in which one of three nodes' replies are bent; it is that of the other two, bit for bit."""
    quick = {"distiller": Distiller(steps=5, batch_size=16), "fraction_evaluate": 0.0}
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}
    nodes[11].bend = bend
    with caplog.at_level(logging.INFO, "flwr"):
        bent = FedDF(network, INPUTS, **quick).start(
            grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=rounds
        )
    nodes = {10 + number: Node(client(number), {}, {}) for number in (0, 2)}
    alone = FedDF(network, INPUTS, **quick).start(
        grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=rounds
    )
    bent, alone = bent.arrays.to_torch_state_dict(), alone.arrays.to_torch_state_dict()
    assert all(torch.equal(bent[name], alone[name]) for name in alone)
    assert all(bool(tensor.isfinite().all()) for tensor in bent.values())


def with_array(name, change):
    def bend(reply):
        values = reply.content["arrays"][name].numpy()
        reply.content["arrays"][name] = Array(np.asarray(change(values.copy())))
        return [reply]

    return bend


def with_value(value):
    def bend(reply):
        reply.content["metrics"]["num-examples"] = value
        return [reply]

    return bend


def without(record):
    def bend(reply):
        del reply.content[record]
        return [reply]

    return bend


def with_bytes(data):
    def bend(reply):
        reply.content["arrays"]["0.weight"] = Array("float32", (16, 4), "numpy.ndarray", data)
        return [reply]

    return bend


def with_more(reply):
    reply.content["arrays"]["more"] = Array(np.zeros(3, "f"))
    return [reply]


BENT = {
    "NaN": with_array("0.weight", lambda a: a * np.nan),
    "inf": with_array("3.bias", lambda a: a + np.inf),
    "1e30": with_array("0.weight", lambda a: a * 0 + np.float32(1e30)),
    "float64": with_array("0.weight", lambda a: a.astype("d")),
    "another shape": with_array("0.weight", lambda a: a.T),
    "negative variance": with_array("1.running_var", lambda a: -a - 1),
    "4 TB": with_bytes(HOSTILE["4 TB"]),
    "zip": with_bytes(HOSTILE["zip"]),
    "one array more": with_more,
    "no arrays": without("arrays"),
    "no metrics": without("metrics"),
    "no examples": with_value(0),
    "too many examples": with_value(10**13),
    "NaN examples": with_value(float("nan")),
    "a list of examples": with_value([1, 2]),
    "half an example": with_value(0.5),
}


@pytest.mark.parametrize("name", BENT)
def test_a_bad_reply_is_left_out_and_logged(initial, caplog, name):
    left_out(BENT[name], initial, caplog)
    assert caplog.text.count("node 11 is left out: ") == 2


def test_the_text_of_an_error_is_not_logged(initial, caplog):
    secret = "ours/patients.csv"

    def bend(_reply):
        return [Message(Error(2, secret), reply_to=reply_to[0])]

    reply_to = []
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}
    answer = nodes[11].answer
    nodes[11].answer = lambda message: reply_to.append(message) or answer(message)
    nodes[11].bend = bend
    strategy = FedDF(network, INPUTS, Distiller(steps=2, batch_size=16), fraction_evaluate=0.0)
    with caplog.at_level(logging.INFO, "flwr"):
        strategy.start(grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=1)
    assert "node 11 is left out: its app ended with an error" in caplog.text
    assert secret not in caplog.text


def test_metrics_that_only_one_has_are_left_out(initial):
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}

    def bend(reply):
        reply.content["metrics"]["strange"] = float("nan")
        return [reply]

    nodes[11].bend = bend
    strategy = FedDF(network, INPUTS, Distiller(steps=2, batch_size=16), fraction_evaluate=0.0)
    result = strategy.start(grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=1)
    assert "strange" not in result.train_metrics_clientapp[1]


def test_it_says_what_the_distillation_did(initial, caplog):
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}
    strategy = FedDF(network, INPUTS, Distiller(steps=7, batch_size=32), fraction_evaluate=0.0)
    grid = InProcessGrid(nodes)
    with caplog.at_level(logging.INFO, "flwr"):
        result = strategy.start(grid=grid, initial_arrays=ArrayRecord(initial), num_rounds=1)
    metrics = result.train_metrics_clientapp[1]
    assert (metrics["teachers"], metrics["distillation-steps"]) == (3, 7)
    assert metrics["distillation-loss"] == pytest.approx(distance(result.arrays.to_torch_state_dict(), grid), rel=1e-3)
    assert "fedfuse: round 1, distillation " in caplog.text


class Tupled(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.layers, self.wrap = network(), wrap

    def forward(self, x):
        return self.wrap(self.layers(x))


def renamed(state):
    return {f"layers.{name}": tensor for name, tensor in state.items()}


def fused_by(strategy, initial):
    """What one round makes of two made-up clients."""
    replies = []
    for number in range(2):
        state = {name: t + 0.1 * (number + 1) if t.is_floating_point() else t for name, t in initial.items()}
        content = RecordDict({"arrays": ArrayRecord(state), "metrics": MetricRecord({"num-examples": 5 + number})})
        asked = Message(RecordDict(), dst_node_id=number, message_type="train")
        replies.append(Message(content, reply_to=asked))
    arrays, _ = strategy.aggregate_train(1, replies)
    return list(arrays.to_torch_state_dict().values())


class TestForms:
    """A network and inputs in the forms that people have them are the same to the strategy."""

    def plain(self, initial):
        return fused_by(FedDF(network, INPUTS, Distiller(steps=5, batch_size=16)), initial)

    def assert_same(self, strategy, initial, plain):
        assert all(torch.equal(one, other) for one, other in zip(fused_by(strategy, initial), plain, strict=True))

    @pytest.mark.parametrize(
        "inputs",
        [
            INPUTS.numpy(),
            INPUTS.double().numpy(),
            torch.utils.data.TensorDataset(INPUTS),
            torch.utils.data.TensorDataset(INPUTS, torch.zeros(len(INPUTS))),
            list(INPUTS),
            [row.numpy() for row in INPUTS],
        ],
        ids=["numpy", "float64", "dataset", "labelled dataset", "list", "list of arrays"],
    )
    def test_inputs(self, initial, inputs):
        strategy = FedDF(network, inputs, Distiller(steps=5, batch_size=16))
        self.assert_same(strategy, initial, self.plain(initial))

    def test_a_network_that_is_there(self, initial):
        strategy = FedDF(network(), INPUTS, Distiller(steps=5, batch_size=16))
        self.assert_same(strategy, initial, self.plain(initial))

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda logits: (logits, "features"),
            lambda logits: [logits],
            lambda logits: {"logits": logits},
            lambda logits: SimpleNamespace(logits=logits),
        ],
        ids=["tuple", "list", "dict", "object"],
    )
    def test_wrapped_logits(self, initial, wrap):
        strategy = FedDF(lambda: Tupled(wrap), INPUTS, Distiller(steps=5, batch_size=16))
        self.assert_same(strategy, renamed(initial), self.plain(initial))

    def test_tokens(self):
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.classifier = nn.Embedding(20, 6), nn.Linear(6, 3)

            def forward(self, tokens):
                return self.classifier(self.words(tokens).mean(dim=1))

        tokens = torch.randint(0, 20, (40, 7), generator=torch.Generator().manual_seed(0))
        initial = Reader().state_dict()
        results = [
            fused_by(FedDF(Reader, inputs, Distiller(steps=5, batch_size=16)), initial)
            for inputs in (tokens, tokens.int().numpy())
        ]
        assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))

    def test_the_callers_random_numbers_stay_as_they_are(self, initial):
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        fused_by(FedDF(network, INPUTS, Distiller(steps=2, batch_size=16)), initial)
        assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    ("model", "inputs", "reason"),
    [
        (network, torch.zeros(0, 4), "inputs must be a batch"),
        (network, torch.zeros(4), "inputs must be a batch"),
        (network, [torch.zeros(4), torch.zeros(5)], "inputs must be a batch"),
        (network, ["a text"], "inputs must be a batch"),
        (network, {"input_ids": INPUTS}, "inputs must be a batch"),
        (network, np.array(["a", "b"]), "inputs must be a batch"),
        (network, torch.zeros(3, 4, dtype=torch.uint8), "float32 or tokens in int64, not torch.uint8"),
        (network, torch.zeros(3, 5), r"the model fails on inputs of shape \(5,\): RuntimeError"),
        ("resnet", INPUTS, "model is a str; give a network, its class or a function"),
        (lambda: "resnet", INPUTS, "model makes a str, not a torch module"),
        (lambda: Tupled(lambda logits: logits.mean()), INPUTS, "one row of logits for each"),
        (lambda: Tupled(lambda _: {"loss": 1}), INPUTS, "one row of logits for each"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(model, inputs, reason):
    with pytest.raises(DataError, match=reason) as caught:
        FedDF(model, inputs)
    assert "\n" not in str(caught.value)
