"""Clients with different networks in one ordinary Flower app: each says which one it runs, each learns from all."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.flower import FedDF, FedFuse
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from tests.flower.strategies.apps import INPUTS, TEST, Large, accuracy, client, examples_of, grid_of, network, small

MODELS = {"small": small, "large": Large}
QUICK = Distiller(steps=60, batch_size=32, optimizer={"kind": "adam", "learning_rate": 0.02})


def strategy_of(**options):
    return FedDF(MODELS, INPUTS, **{"distiller": QUICK, "fraction_evaluate": 0.0, "ask_timeout": 5.0, **options})


def mixed():
    return grid_of(client(0, small, "small"), client(1, Large, "large"), client(2, small, "small"))


def start(strategy, grid, rounds=1, **more):
    return strategy.start(grid=grid, initial_arrays=strategy.initial_arrays(), num_rounds=rounds, **more)


def state(strategy, arrays, model):
    return strategy.arrays_of(arrays, model).to_torch_state_dict()


def test_each_learns_what_only_others_have_seen():
    """The only client with the large network has never seen class 1, of which others have examples."""
    fuse = EnsembleDistillation(target="mean_probabilities", distiller=QUICK)
    strategy = FedFuse(MODELS, INPUTS, fuse=fuse, fraction_evaluate=0.0)
    alone = FedFuse(MODELS, fraction_evaluate=0.0)
    apps = [client(1, Large, "large"), *(client(number, small, "small") for number in (0, 2, 3, 5))]
    fused = state(strategy, start(strategy, grid_of(*apps)).arrays, "large")
    apart = state(alone, start(alone, grid_of(*apps)).arrays, "large")
    unseen = TEST.select((TEST.labels == 1).nonzero().squeeze(1))
    assert accuracy(Large(), apart, unseen) == 0
    assert accuracy(Large(), fused, unseen) > 0.3


def test_the_ensemble_is_of_all_networks():
    strategy, grid = strategy_of(), mixed()
    result = start(strategy, grid)
    logits = []
    for node, make in zip(grid.nodes.values(), (small, Large, small), strict=True):
        answer = node.app(node.messages[-1], None).content["arrays"].to_torch_state_dict()
        model = make().eval()
        model.load_state_dict(answer)
        logits.append(model(INPUTS).detach())
    target = torch.stack(logits).mean(0).softmax(1)
    for name, make in MODELS.items():
        student = make().eval()
        student.load_state_dict(state(strategy, result.arrays, name))
        loss = F.kl_div(student(INPUTS).detach().log_softmax(1), target, reduction="batchmean")
        said = result.train_metrics_clientapp[1]
        assert said[f"{name}/distillation-loss"] == pytest.approx(float(loss), rel=1e-3)
        assert said[f"{name}/distillation-steps"] == 60
        assert said["teachers"] == 3


def test_nodes_are_asked_once_and_sent_their_own_network():
    strategy, grid = strategy_of(distiller=Distiller(steps=2), fraction_evaluate=1.0), mixed()
    start(strategy, grid, rounds=2)
    for node, name in zip(grid.nodes.values(), ("small", "large", "small"), strict=True):
        kinds = [message.metadata.message_type for message in node.messages]
        assert kinds == ["query", "train", "evaluate", "train", "evaluate"]
        assert node.messages[0].content["config"]["models"] == ["small", "large"]
        for message in node.messages[1:]:
            assert message.content["config"]["model"] == name
            assert message.content["arrays"].keys() == MODELS[name]().state_dict().keys()


def test_clients_evaluate_their_own_student():
    strategy = strategy_of(fraction_evaluate=1.0)
    result = start(strategy, mixed())
    right, examples = 0.0, 0
    for number, name in enumerate(("small", "large", "small")):
        mine = examples_of(number)
        right += len(mine) * accuracy(MODELS[name](), state(strategy, result.arrays, name), mine)
        examples += len(mine)
    assert result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx(right / examples, abs=1e-6)


def test_the_server_evaluates_each():
    def evaluate(server_round, arrays):
        students = {name: accuracy(make(), state(strategy, arrays, name)) for name, make in MODELS.items()}
        return MetricRecord({**students, "round": server_round})

    strategy = strategy_of()
    result = start(strategy, mixed(), evaluate_fn=evaluate)
    before, after = (result.evaluate_metrics_serverapp[number] for number in (0, 1))
    assert all(after[name] > before[name] for name in MODELS)


def test_same_seed_same_bits():
    def fused(seed):
        strategy = strategy_of(seed=seed, scores="entropy")
        return start(strategy, mixed(), rounds=2).arrays.to_torch_state_dict()

    one, again, other = fused(1), fused(1), fused(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_second_start_begins_anew():
    strategy = FedFuse(MODELS, merge="momentum", fraction_evaluate=0.0)
    first, second = (start(strategy, mixed(), rounds=3).arrays.to_torch_state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_model_that_no_client_runs_is_taught_by_the_others():
    strategy = strategy_of()
    result = start(strategy, grid_of(*(client(number, small, "small") for number in range(3))))
    assert accuracy(Large(), state(strategy, result.arrays, "large")) > 0.8


def test_a_model_that_nobody_teaches_stays_and_is_named(caplog):
    strategy = FedFuse(MODELS, fraction_evaluate=0.0)
    with caplog.at_level(logging.INFO, "flwr"):
        result = start(strategy, grid_of(*(client(number, small, "small") for number in range(3))))
    before, after = strategy.initial_arrays().to_torch_state_dict(), result.arrays.to_torch_state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before if name.startswith("large/"))
    assert "nobody taught model 'large'" in caplog.text
    assert "nobody taught model 'small'" not in caplog.text


def unknown_name(reply):
    reply.content["config"]["model"] = "resnet\n152"
    return [reply]


def no_word(reply):
    reply.content["config"]["model"] = 7
    return [reply]


def nothing(reply):
    del reply.content["config"]
    return [reply]


def silent(_reply):
    return []


@pytest.mark.parametrize(
    ("bend", "reason"),
    [
        (unknown_name, "'model' is no name"),
        (lambda reply: reply.content["config"].update(model="resnet") or [reply], "is none of this strategy's"),
        (no_word, "'model' is no name"),
        (nothing, "'config' is missing"),
        (silent, "did not answer"),
    ],
    ids=["two lines", "unknown", "number", "nothing", "silent"],
)
def test_who_does_not_say_what_it_runs_misses_the_round(caplog, bend, reason):
    grid = mixed()
    grid.nodes[11].bend = bend
    with caplog.at_level(logging.INFO, "flwr"):
        bent = start(strategy_of(distiller=Distiller(steps=4)), grid).arrays.to_torch_state_dict()
    kinds = [message.metadata.message_type for message in grid.nodes[11].messages]
    assert kinds == ["query"]
    assert "round 1, node 11 is left out: " in caplog.text
    assert reason in caplog.text
    assert "resnet" not in caplog.text
    alone = grid_of(client(0, small, "small"), client(2, small, "small"))
    expected = start(strategy_of(distiller=Distiller(steps=4)), alone).arrays.to_torch_state_dict()
    assert all(torch.equal(bent[name], expected[name]) for name in expected)


def test_a_client_without_a_query_handler_is_left_out(caplog):
    grid = grid_of(client(0, small, "small"), client(1, Large))
    with caplog.at_level(logging.INFO, "flwr"):
        start(strategy_of(distiller=Distiller(steps=2), min_train_nodes=2), grid)
    assert "node 11 is left out: it was asked which model it runs, and its app" in caplog.text


def test_arrays_of_another_model_are_left_out(caplog):
    grid = mixed()

    def bend(reply):
        if "arrays" in reply.content:
            reply.content["arrays"] = ArrayRecord(network().state_dict())
        return [reply]

    grid.nodes[11].bend = bend
    with caplog.at_level(logging.INFO, "flwr"):
        start(strategy_of(distiller=Distiller(steps=2)), grid)
    assert "node 11 is left out: its arrays are not those of the network" in caplog.text


def test_a_node_that_runs_another_network_by_now_is_asked_again(caplog):
    grid, strategy = mixed(), strategy_of(distiller=Distiller(steps=2))
    first, later = grid.nodes[10], client(0, Large, "large")
    first.bend = lambda reply: setattr(first, "app", later) or [reply]
    with caplog.at_level(logging.INFO, "flwr"):
        result = start(strategy, grid, rounds=3)
    kinds = [message.metadata.message_type for message in first.messages]
    assert kinds == ["query", "train", "query", "train", "train"]
    assert [m.content["config"]["model"] for m in first.messages if "arrays" in m.content] == ["small", *["large"] * 2]
    assert caplog.text.count("node 10 is left out") == 1
    assert [result.train_metrics_clientapp[number]["teachers"] for number in (1, 2, 3)] == [2, 3, 3]


def test_nobody_answers():
    grid = mixed()
    for node in grid.nodes.values():
        node.bend = silent
    result = start(strategy_of(), grid, rounds=2)
    assert not result.arrays
    assert not result.train_metrics_clientapp


def test_tied_layers_and_unsaved_buffers_travel():
    strategy = FedFuse({"large": Large}, fraction_evaluate=0.0)
    grid = grid_of(client(0, Large, "large"), client(1, Large, "large"))
    result = state(strategy, start(strategy, grid).arrays, "large")
    answers = [node.app(node.messages[-1], None) for node in grid.nodes.values()]
    states = [answer.content["arrays"].to_torch_state_dict() for answer in answers]
    shares = [answer.content["metrics"]["num-examples"] for answer in answers]
    assert result.keys() == Large().state_dict().keys()
    for name, tensor in result.items():
        if tensor.is_floating_point():
            expected = np.average([one[name].double().numpy() for one in states], axis=0, weights=shares)
            np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        ({}, "model must be a network, or networks by names"),
        ({"a/b": small}, "model must be a network, or networks by names"),
        ({7: small}, "model must be a network, or networks by names"),
        ({"a" * 101: small}, "model must be a network, or networks by names"),
        ({"a": small, "b": lambda: torch.nn.Linear(4, 5)}, "their numbers differ: 'a' 3, 'b' 5"),
        ({"a": small, "b": torch.nn.LSTMCell}, "model 'b' cannot be made: TypeError"),
        ({"a": small, "b": lambda: small().double()}, "model 'b' "),
        ({"a": small, "b": torch.nn.Linear(7, 3)}, r"model 'b' fails on inputs of shape \(4,\)"),
    ],
)
def test_models_that_cannot_be_used(models, reason):
    with pytest.raises((ConfigError, DataError), match=reason) as caught:
        FedDF(models, INPUTS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bend", "reason"),
    [
        (lambda arrays: arrays.pop("large/last.bias"), "do not fit model 'large': its arrays are not those"),
        (lambda arrays: arrays.update(more=Array(np.zeros(3, "f"))), "belong to none of the models"),
        (lambda arrays: arrays.update({"small/0.bias": Array(np.full(6, np.nan, "f"))}), "'0.bias' is not finite"),
        (lambda arrays: arrays.update({"small/0.bias": Array(np.zeros(7, "f"))}), "of another shape"),
        (lambda arrays: arrays.clear(), "do not fit model 'small'"),
    ],
)
def test_arrays_to_begin_with_that_do_not_fit(bend, reason):
    strategy = strategy_of()
    arrays = dict(strategy.initial_arrays())
    bend(arrays)
    with pytest.raises(DataError, match=reason) as caught:
        strategy.start(grid=mixed(), initial_arrays=ArrayRecord(arrays), num_rounds=1)
    assert "\n" not in str(caught.value)


def test_a_model_that_is_not_there():
    strategy = strategy_of()
    with pytest.raises(ConfigError, match="unknown model 'smal' \\(did you mean 'small'"):
        strategy.arrays_of(strategy.initial_arrays(), "smal")


def test_settings_of_the_caller_are_left_alone():
    strategy, settings = strategy_of(distiller=Distiller(steps=2)), ConfigRecord({"rate": 0.5})
    grid = mixed()
    start(strategy, grid, train_config=settings)
    assert "model" not in settings
    assert grid.nodes[10].messages[-1].content["config"]["rate"] == 0.5
