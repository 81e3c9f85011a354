"""The ledger counts 4 (P + B) bytes for float32 weights, plus the extras."""

from __future__ import annotations

import torch

from fedfuse.core.messages import Task, nbytes_of
from fedfuse.core.randomness import Key
from fedfuse.models import Mlp
from tests.helpers import TinyNorm, make_bank, make_update


def test_weights_cost_four_bytes_per_parameter_and_buffer():
    bank = make_bank(mlp=Mlp(hidden=(5,)), norm=TinyNorm())
    for prototype, buffers in (("mlp", 0), ("norm", 12)):
        layout = bank.layout(prototype)
        weights = bank.initial(prototype, Key(0))
        assert layout.size - layout.parameter_count == buffers
        assert Task(1, 0, prototype, weights).nbytes == 4 * (layout.parameter_count + buffers)
        assert make_update(weights, prototype=prototype).nbytes == 4 * (layout.parameter_count + buffers)


def test_extras_are_counted_and_metrics_are_not():
    weights = make_bank().initial("mlp", Key(0))
    extras = {"c": torch.zeros(3, 2), "bits": torch.zeros(5, dtype=torch.uint8), "n": torch.tensor(1.0)}
    assert nbytes_of(extras) == 24 + 5 + 4
    assert Task(1, 0, "mlp", weights, extras).nbytes == weights.nbytes + 33
    update = make_update(weights, extras=extras, metrics={"loss": 1.0})
    assert update.nbytes == weights.nbytes + 33
