"""Task and Update as Flower records, and back: named arrays and plain values, never pickle.

    record        of a task                                     of an update
    arrays        weights, a named array each                   the same
    extras        what the method sends beside weights          the same
    test-outputs                                                what the client says about the test inputs
    config        server-round, client, prototype, names, ...   the same
    metrics                                                     num-examples, loss, ...

``arrays``, ``config`` with ``server-round`` and ``metrics`` with ``num-examples`` are the habit of Flower's own
strategies, so that a client without fedfuse understands a task and is understood (docs/flower-records.md).
numpy has no bfloat16: such a tensor travels as the int16 of the same bits, and ``config`` lists its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Layout, Weights
from fedfuse.flower.versions import FORMAT, OURS, check_format

ARRAYS, EXTRAS, TEST_OUTPUTS, CONFIG, METRICS = "arrays", "extras", "test-outputs", "config", "metrics"
ROUND, CLIENT, PROTOTYPE, EXAMPLES = "server-round", "client", "prototype", "num-examples"
REFUSED = "refused"
"""Under which a task says why the client's last answer was not taken."""
BFLOAT16 = "bfloat16-"


@dataclass(frozen=True)
class Order:
    """A task on its way to a node.

    ``experiment`` names the run's experiment, and ``goes_on_from`` the round after which the client's state is the one
    to start from: that of its last answer that the server counted, or 0 for none.
    """

    task: Task
    experiment: str
    goes_on_from: int


@dataclass(frozen=True)
class Report:
    """An update on its way to the server, and whether the node keeps a state for the client's next visit."""

    update: Update
    keeps_state: bool


def order_to_records(order: Order) -> RecordDict:
    task = order.task
    config = {
        ROUND: task.round,
        CLIENT: task.client,
        PROTOTYPE: task.prototype,
        "asks": list(task.asks),
        "experiment": order.experiment,
        "goes-on-from": order.goes_on_from,
    }
    return _pack(config, task.weights, {EXTRAS: task.extras})


def order_from_records(content: RecordDict) -> Order:
    with _understood("task"):
        config = content[CONFIG]
        check_format(config)
        task = Task(
            round=int(config[ROUND]),
            client=int(config[CLIENT]),
            prototype=str(config[PROTOTYPE]),
            weights=_weights(content),
            extras=_tensors(content, EXTRAS),
            asks=tuple(str(name) for name in config["asks"]),
        )
        return Order(task, str(config["experiment"]), int(config["goes-on-from"]))


def report_to_records(report: Report) -> RecordDict:
    update = report.update
    config = {
        ROUND: update.round,
        CLIENT: update.client,
        PROTOTYPE: update.prototype,
        "keeps-state": report.keeps_state,
    }
    content = _pack(config, update.weights, {EXTRAS: update.extras, TEST_OUTPUTS: update.test_outputs})
    content[METRICS] = MetricRecord({**update.metrics, EXAMPLES: update.examples})
    return content


def report_from_records(content: RecordDict, task: Task) -> Report:
    """The answer to ``task``; one without ``config`` is from a client that knows Flower's habits only."""
    with _understood("answer"):
        metrics = content[METRICS]
        is_guest = CONFIG not in content
        own = {ROUND: task.round, CLIENT: task.client, PROTOTYPE: task.prototype}
        config: Mapping[str, Any] = own if is_guest else content[CONFIG]
        check_format(config)
        update = Update(
            round=int(config[ROUND]),
            client=int(config[CLIENT]),
            prototype=str(config[PROTOTYPE]),
            weights=_guest_weights(content[ARRAYS], task.weights.layout) if is_guest else _weights(content),
            examples=int(metrics[EXAMPLES]),
            extras=_tensors(content, EXTRAS),
            metrics={n: v for n, v in metrics.items() if n != EXAMPLES and isinstance(v, int | float)},
            test_outputs=_tensors(content, TEST_OUTPUTS),
        )
        return Report(update, bool(config.get("keeps-state", False)))


def _pack(config: Mapping[str, Any], weights: Weights, groups: Mapping[str, Tensors]) -> RecordDict:
    """``config`` also says what arrays cannot: their order, which are buffers, which are bfloat16."""
    about = {FORMAT: OURS, **config}
    for part in ("parameters", "buffers"):
        about[part] = [name for name, _ in getattr(weights.layout, part)]
    records: dict[str, Any] = {ARRAYS: ArrayRecord({name: _array(tensor) for name, tensor in weights.items()})}
    for group, tensors in groups.items():
        records[group] = ArrayRecord({name: _array(tensor) for name, tensor in tensors.items()})
        about[BFLOAT16 + group] = [name for name, tensor in tensors.items() if tensor.dtype == torch.bfloat16]
    return RecordDict({**records, CONFIG: ConfigRecord(about)})


def _weights(content: RecordDict) -> Weights:
    tensors = {name: _tensor(array) for name, array in content[ARRAYS].items()}
    names = content[CONFIG]["parameters"], content[CONFIG]["buffers"]
    if set(tensors) != {*names[0], *names[1]}:
        raise ValueError("its arrays are not those that its config names")
    return _joined(tensors, *names)


def _guest_weights(arrays: ArrayRecord, layout: Layout) -> Weights:
    """By name, or by position where names are mere numbers; a state dict's integer buffers stay out."""
    names = [entry.name for entry in layout.entries]
    if list(arrays) == [str(number) for number in range(len(names))]:
        tensors = {name: _tensor(array) for name, array in zip(names, arrays.values(), strict=True)}
    else:
        tensors = {name: _tensor(arrays[name]) for name in names}
    return _joined(tensors, [name for name, _ in layout.parameters], [name for name, _ in layout.buffers])


def _joined(tensors: Tensors, parameters: Sequence[str], buffers: Sequence[str]) -> Weights:
    rows = [[(name, tuple(tensors[name].shape)) for name in names] for names in (parameters, buffers)]
    flat = [tensors[name].reshape(-1) for name in (*parameters, *buffers)]
    return Weights(torch.cat(flat) if flat else torch.empty(0), Layout(tuple(rows[0]), tuple(rows[1])))


def _tensors(content: RecordDict, group: str) -> dict[str, Tensor]:
    if group not in content:
        return {}
    short = content[CONFIG][BFLOAT16 + group] if CONFIG in content else ()
    tensors = {name: _tensor(array) for name, array in content[group].items()}
    return {name: t.view(torch.bfloat16) if name in short else t for name, t in tensors.items()}


def _array(tensor: Tensor) -> Array:
    plain = tensor.detach().cpu()
    return Array((plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy())


def _tensor(array: Array) -> Tensor:
    values = array.numpy()
    if not isinstance(values, np.ndarray):
        raise ValueError("an array is not one array")
    return torch.from_numpy(values)


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """Whatever is missing or malformed in a message from elsewhere becomes one sentence."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, EOFError, OSError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error}".partition("\n")[0]
        raise DataError(f"the records of this {what} do not fit docs/flower-records.md: {reason}") from error
