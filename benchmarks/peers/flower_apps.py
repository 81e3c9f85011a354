"""Flower's two apps, in a module that its actors can import."""

from __future__ import annotations

import os
from functools import cache

import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from benchmarks.peers.task import Task, given
from fedfuse.experiment.bench.clock import Moment

WORDS = "BENCH_TASK"
"""The environment tells actors which work it is."""
client_app, server_app = ClientApp(), ServerApp()
ends: list[Moment] = []
last: dict[str, torch.Tensor] = {}
"""What the model was after the round before."""


@cache
def task() -> Task:
    """Once per process."""
    return given(os.environ[WORDS].split("\n"))


@cache
def network() -> torch.nn.Module:
    return task().network()


@client_app.train()  # type: ignore[untyped-decorator]
def train(message: Message, context: Context) -> Message:
    work, model = task().work, network()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=work.rate, momentum=work.momentum)
    inputs, labels = task().clients[int(context.node_config["partition-id"])]
    for _ in range(work.epochs):
        for where in torch.randperm(len(labels)).split(work.batch):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs[where]), labels[where]).backward()
            optimizer.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(labels)})}
    return Message(content=RecordDict(content), reply_to=message)


@server_app.main()  # type: ignore[untyped-decorator]
def serve(grid: Grid, _context: Context) -> None:
    work = task().work
    strategy = FedAvg(
        fraction_train=work.sampled / work.clients, fraction_evaluate=0.0, min_available_nodes=work.clients
    )
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(network().state_dict()),
        train_config=ConfigRecord(),
        num_rounds=work.rounds,
        evaluate_fn=evaluate,
    )


@torch.inference_mode()
def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
    model, (inputs, labels) = network(), task().test
    model.load_state_dict(arrays.to_torch_state_dict())
    accuracy = float((model.eval()(inputs).argmax(1) == labels).float().mean())
    if number:  # 0: before round 1
        ends.append(Moment.now())
        _check_progress(arrays)
    return MetricRecord({"accuracy": accuracy})


def _check_progress(arrays: ArrayRecord) -> None:
    """Flower goes on when every client failed, and would be very quick then."""
    now = torch.cat([tensor.flatten() for tensor in arrays.to_torch_state_dict().values()])
    assert last.get("weights") is None or not torch.equal(now, last["weights"]), "no client has trained"
    last["weights"] = now
