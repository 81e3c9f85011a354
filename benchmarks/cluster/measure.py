"""What each piece of a round costs on one core of this machine, by the code that runs it in every experiment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from torch import nn

from benchmarks.cluster.model import Costs
from benchmarks.cluster.workload import PUBLIC, CannedEngine, answer, built
from fedfuse.core.messages import Task
from fedfuse.core.weights import Weights, mean
from fedfuse.data import Examples
from fedfuse.experiment.assembly import Built
from fedfuse.federation import Engine, Federation
from fedfuse.federation.client_states import HeldStates
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, NoFusion
from fedfuse.parts.fuse.batches import batches_from
from fedfuse.parts.fuse.distiller import DistillJob
from fedfuse.parts.teachers import ClientTeachers, Ensemble, RoundModels
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.pool import silence

TIMES = 5


def shortest(action: Callable[[], object], times: int = TIMES) -> float:
    """Seconds of the quickest of several: others are slowed down by what else the machine does."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        found.append(time.perf_counter() - began)
    return min(found)


def fitted(rows: Sequence[tuple[Sequence[float], float]]) -> list[float]:
    """Coefficients, none of them negative, of seconds as a sum of amounts; each row counts by its relative error."""
    table = np.array([amounts for amounts, _ in rows], dtype=float)
    seconds = np.array([value for _, value in rows])
    scale = table.max(axis=0)
    found, _ = nnls(table / scale / seconds[:, None], np.ones(len(seconds)))
    return [float(value) for value in found / scale]


def measure(folder: Path, moved: Mapping[str, tuple[float, float]]) -> Costs:
    """All costs; those of engines are measured where the engines are."""
    whole = built(folder, "feddf")
    client, step, example = _client(whole)
    per_round, server_client, server_weight, merge_weight = _server(whole)
    teacher, teacher_input = _teachers(whole)
    distil_step, distil_input = _distillation(whole)
    model = whole.federation.bank.lend("net", whole.federation.start().server.weights["net"])
    evaluated = shortest(lambda: whole.federation.test.score(model)) / len(whole.federation.test)
    return Costs(
        client, step, example, server_client, server_weight, merge_weight, teacher, teacher_input, distil_step,
        distil_input, evaluated, per_round, _registered(whole), dict(moved),
    )  # fmt: skip


def _client(whole: Built) -> list[float]:
    """A client, its steps and its examples."""
    rows = []
    for examples, batch in ((10, 10), (50, 10), (50, 25), (50, 50), (25, 25)):
        clients = replace(
            whole.clients,
            datasets={0: _first(whole.clients.datasets[0], examples)},
            training=whole.clients.training.model_copy(update={"batch_size": batch}),
        )
        task = Task(1, 0, "net", whole.federation.start().server.weights["net"])
        seconds = shortest(partial(clients.work, task, {}))
        rows.append(((1, -(-examples // batch), examples), seconds))
    return fitted(rows)


def _first(examples: Examples, number: int) -> Examples:
    return Examples(examples.inputs[:number], examples.labels[:number])


def _server(whole: Built) -> tuple[float, float, float, float]:
    """A round in which clients are ready at once: itself, its clients and their weights; and the merge alone."""
    plain = built_server(whole)
    rows: list[tuple[Sequence[float], float]] = []
    for hidden in (16, 256):
        bank = ModelBank({"net": Mlp(hidden=(hidden,))}, (3, 32, 32), 10, plain.bank.compute)
        federation = replace(plain, bank=bank, engine=CannedEngine())
        start = federation.start()
        for clients in (4, 16, 40):
            settings = federation.settings.model_copy(update={"clients_per_round": clients})
            one = replace(federation, settings=settings)
            seconds = shortest(partial(one.advance, start))
            rows.append(((1, clients, clients * start.server.weights["net"].layout.size), seconds))
    fixed, per_client, per_weight = fitted(rows)
    models = [Weights(w.flat + i, w.layout) for i in range(20) for w in (start.server.weights["net"],)]
    merging = shortest(lambda: mean(models, [1.0] * len(models))) / len(models) / models[0].layout.size
    return fixed, per_client, max(per_weight - merging, 0.0), merging


def built_server(whole: Built) -> Federation:
    """The federation with FedAvg's server, ready clients and no evaluation."""
    recipe = whole.config.recipe.model_copy(update={"fuse": NoFusion()})
    evaluation = whole.config.evaluation.model_copy(update={"every": 10**6})
    return replace(whole.federation, engine=CannedEngine(), recipe=recipe, evaluation=evaluation, source=None)


def _registered(whole: Built) -> float:
    """What a round of few clients costs more where very many are registered, for each of them."""
    few, many = 10**3, 10**5
    found = {}
    for number in (few, many):
        one = replace(built_server(whole), clients=number)
        start = one.start()
        found[number] = shortest(partial(one.advance, start))
    return max(found[many] - found[few], 0.0) / (many - few)


def _teachers(whole: Built) -> list[float]:
    """Each teacher, and each input that it answers."""
    federation, source = whole.federation, whole.source
    assert source is not None, "the workload has public inputs"
    weights = federation.start().server.weights["net"]
    updates = [answer(Task(1, client, "net", weights)) for client in range(6)]
    teachers = ClientTeachers().gather(RoundModels(updates, {}, {}, federation.key))
    rows = []
    for number, inputs in ((1, PUBLIC // 4), (1, PUBLIC), (6, PUBLIC // 4), (6, PUBLIC)):
        ensemble = Ensemble(federation.bank, teachers[:number], "mean_logits")
        indices = source.all_indices()[:inputs]
        ask = partial(ensemble.predict, source, indices, silence)
        with federation.bank.compute.at_work():
            seconds = shortest(ask, 3)
        rows.append(((number, number * inputs), seconds))
    return fitted(rows)


def _distillation(whole: Built) -> list[float]:
    """Each step of one student, and each input of a step; what it costs to begin is in the steps."""
    federation, fuse = whole.federation, whole.config.recipe.fuse
    assert isinstance(fuse, EnsembleDistillation), "the workload fuses"
    start = federation.start().server.weights["net"]
    rows = []
    for steps, size in ((5, 10), (20, 10), (5, 50), (20, 50)):
        distiller = fuse.distiller.model_copy(update={"steps": steps, "batch_size": size, "evaluate_every": steps})
        seconds = shortest(partial(_distil, whole, distiller, start), 3)
        rows.append(((steps, steps * size), seconds))
    return fitted(rows)


def _distil(whole: Built, distiller: Distiller, start: Weights) -> None:
    federation, source = whole.federation, whole.source
    assert source is not None, "the workload has public inputs"
    plan = distiller.plan(source, federation.key)
    table = source.inputs(source.all_indices()).new_zeros(len(source), federation.bank.classes).log_softmax(dim=1)
    batches = batches_from(source, table, plan)
    DistillJob(federation.bank, distiller, "net", start, batches, source, None, federation.key)(silence)


def moving(engine: Engine) -> tuple[float, float]:
    """Seconds of each task and each byte on the way to an engine's processes and back; its clients are echoes."""
    rows = []
    for size in (1_000, 1_000_000):
        weights = Weights.of(nn.Linear(size, 1, bias=False))
        for number in (4, 16):
            found = []
            for turn in range(TIMES):
                tasks = [Task(turn + 1, client, "net", weights) for client in range(number)]
                began = time.perf_counter()
                assert len(list(engine.train(tasks, HeldStates()))) == number
                found.append(time.perf_counter() - began)
            rows.append(((number, number * 4 * size), min(found)))
    task, byte = fitted(rows)
    return task, byte
