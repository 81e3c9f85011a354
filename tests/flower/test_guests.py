"""A client written by somebody else, with numpy and Flower and nothing of fedfuse, takes part."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedfuse.experiment.assembly import build
from fedfuse.federation.events import EventLog
from fedfuse.flower.server import run_on
from tests.flower.federation import QUICK, flower_config, grid_for
from tests.flower.grid import InProcessGrid, Node
from tests.helpers import tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")
LINEAR = {"linear": {"arch": "mlp", "hidden": []}}
OPEN_HOUSE = {**QUICK, "guests": True}


def guest(inputs, labels, as_state_dict=True):
    """Multinomial regression by gradient descent, as docs/flower-records.md describes it."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:  # noqa: ARG001
        record = message.content["arrays"]
        weight, bias = (array.numpy() for array in record.values())
        for _ in range(5):
            scores = inputs @ weight.T + bias
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            slope = (odds / odds.sum(axis=1, keepdims=True) - np.eye(len(bias))[labels]) / len(labels)
            weight, bias = weight - 0.5 * slope.T @ inputs, bias - 0.5 * slope.sum(axis=0)
        names = list(record) if as_state_dict else ["0", "1"]
        answer = dict(zip(names, (Array(a.astype(np.float32)) for a in (weight, bias)), strict=True))
        metrics = MetricRecord({"num-examples": len(labels), "train_loss": 1.0})
        return Message(RecordDict({"arrays": ArrayRecord(answer), "metrics": metrics}), reply_to=message)

    return app


def guests_of(config, **options):
    """Everybody's examples in the hands of strangers, normalised as the experiment says."""
    clients = build(config.model_copy(update={"engine": flower_config().engine}), EventLog(), engine=object()).clients
    nodes, data = {}, []
    for client in range(4):
        examples = clients.datasets[client]
        data.append((clients.transform(examples.inputs).numpy(), examples.labels.numpy()))
        nodes[50 + client] = Node(guest(*data[-1], **options), {}, {})
    return InProcessGrid(nodes), data


@pytest.mark.parametrize("as_state_dict", [True, False])
def test_fedavg_of_strangers_is_the_weighted_mean(tmp_path, as_state_dict):
    config = flower_config(models=LINEAR, federation={"rounds": 1}, engine=OPEN_HOUSE)
    grid, data = guests_of(config, as_state_dict=as_state_dict)
    result = run_on(grid, config, tmp_path / "run")
    assert result.history[0].refused == ()
    asked = grid.nodes[50].messages[-1]
    alone = [guest(*one)(asked, None).content["arrays"] for one in data]
    sizes = np.array([len(labels) for _, labels in data], dtype=np.float64)
    for name, tensor in result.model().state_dict().items():
        mean = (
            sum(n * arrays[name].numpy().astype(np.float64) for n, arrays in zip(sizes, alone, strict=True))
            / sizes.sum()
        )
        np.testing.assert_allclose(tensor.numpy(), mean, rtol=1e-6)


def test_feddf_with_strangers_and_friends(tmp_path):
    config = flower_config(tiny_method("feddf"), models=LINEAR, federation={"rounds": 2}, engine=OPEN_HOUSE)
    grid, strangers = grid_for(config, tmp_path), guests_of(config)[0]
    for client in (1, 3):
        del grid.nodes[100 - client]
        grid.nodes[50 + client] = strangers.nodes[50 + client]
    result = run_on(grid, config, tmp_path / "run")
    assert [record.refused for record in result.history] == [(), ()]
    assert result.history[-1].ensemble_accuracy > 0.4


def test_strangers_stay_outside_unless_they_are_invited(tmp_path):
    config = flower_config(models=LINEAR, federation={"rounds": 1})
    grid, strangers = grid_for(config, tmp_path), guests_of(config)[0]
    del grid.nodes[99]
    grid.nodes[51] = strangers.nodes[51]
    result = run_on(grid, config, tmp_path / "run")
    assert result.history[0].absent == (1,)
