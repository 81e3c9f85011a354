"""Bytes per client and round of every method, against the formulas of the papers; a method without one fails.

P parameters, B floating buffers, K classes, N public inputs; numbers are per client, in rounds 1, 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedfuse.federation import Recipe
from fedfuse.methods import METHODS
from tests.helpers import CLASSES as K
from tests.helpers import FEATURES, TinyNorm, make_bank, make_federation, played, tiny_method

N, CLIENTS = 40, 4
WIDTH = 6
P = WIDTH * (FEATURES + 1) + 2 * WIDTH + K * (WIDTH + 1)
B = 2 * WIDTH
WEIGHTS = 4 * (P + B)
NORMS = 2 * WIDTH
GENERATOR = 256 * (32 + K + 1) + 2 * 256 + WIDTH * (256 + 1)
ONE_BIT = math.ceil((P - NORMS) / 8) + 8 * 4 + 4 * (NORMS + B)  # two numbers for each of the four binary tensors
PLAIN = [(WEIGHTS, WEIGHTS)] * 3
SOFT = 4 * N * K

TRAFFIC = {
    "fedavg": PLAIN,
    "fedprox": PLAIN,
    "fedavgm": PLAIN,
    "fedavgm-as-coded": PLAIN,
    "moon": PLAIN,
    "feddf": PLAIN,
    "feddf-as-coded": PLAIN,
    "fedbe": PLAIN,
    "fedbe-as-coded": PLAIN,
    "v-distillation": PLAIN,
    "1-ensemble": PLAIN,
    "true-labels": PLAIN,
    "scaffold": [(WEIGHTS + 4 * P, WEIGHTS + 4 * P)] * 3,
    "fedgkd": [(WEIGHTS, WEIGHTS), (WEIGHTS, WEIGHTS), (2 * WEIGHTS, WEIGHTS)],
    "fedgkd-plus": [(WEIGHTS, WEIGHTS), (WEIGHTS, WEIGHTS), (2 * WEIGHTS, WEIGHTS)],
    "fedgkd-vote": [(WEIGHTS, WEIGHTS), (WEIGHTS + 4, WEIGHTS), (2 * WEIGHTS + 4 * 2, WEIGHTS)],
    "feddistill-plus": [(WEIGHTS, WEIGHTS + 4 * (K * K + K))] + [(WEIGHTS + 4 * K * K, WEIGHTS + 4 * (K * K + K))] * 2,
    "feddistill-plus-as-coded": [(WEIGHTS, WEIGHTS + 4 * (K * K + K))]
    + [(WEIGHTS + 4 * K * K, WEIGHTS + 4 * (K * K + K))] * 2,
    "fedgen": [(WEIGHTS, WEIGHTS + 4 * K)] + [(WEIGHTS + 4 * (GENERATOR + 2 * 256) + K, WEIGHTS + 4 * K)] * 2,
    "fedgen-as-printed": [(WEIGHTS, WEIGHTS + 4 * K)]
    + [(WEIGHTS + 4 * (GENERATOR + 2 * 256) + K, WEIGHTS + 4 * K)] * 2,
    "feddf-one-bit": [(WEIGHTS, ONE_BIT)] * 3,
    "feded-w0": [(WEIGHTS, SOFT), (0, SOFT), (0, SOFT)],
    "feded-w1": [(WEIGHTS, SOFT + 4 * K), (0, SOFT), (0, SOFT)],
    "feded-w2": [(WEIGHTS, SOFT + 4 * N), (0, SOFT), (0, SOFT)],
    "fedaux": [(WEIGHTS, WEIGHTS + 4 * (N - N // 5))] + [(WEIGHTS, WEIGHTS)] * 2,
    "fd": [(WEIGHTS, 4 * (K * K + K))] + [(4 * K * K, 4 * (K * K + K))] * 2,
    "fedmd": [(WEIGHTS, SOFT), (SOFT, SOFT), (SOFT, SOFT)],
    "ds-fl": [(WEIGHTS, SOFT), (SOFT, SOFT), (SOFT, SOFT)],
    "cronus": [(WEIGHTS, SOFT), (SOFT, SOFT), (SOFT, SOFT)],
    "cfd": [(WEIGHTS, N * 2 // 8), (N * K, N * 2 // 8), (N * K, N * 2 // 8)],
    "local-only": [(WEIGHTS, 0), (0, 0), (0, 0)],
    "centralised": [(0, 0)] * 3,
}
ELSEWHERE = {"fedma": "widths change, see test_fedma.py"}


def test_every_method_has_its_formula():
    assert set(TRAFFIC) | set(ELSEWHERE) == set(METHODS)


@pytest.mark.parametrize("name", list(TRAFFIC))
def test_bytes(name):
    parts = {key: part for key, part in tiny_method(name).items() if key != "name"}
    parts["local"].pop("needs_projection_head", None)
    recipe = Recipe.model_validate(parts)
    bank = make_bank(net=TinyNorm(width=WIDTH))
    parties = 1 if recipe.pooled else CLIENTS
    federation = make_federation(bank=bank, recipe=recipe, source=N, validation=10, clients=parties, labelled=True)
    federation = replace(federation, has_wire=not recipe.pooled)
    assert bank.layout("net").parameter_count == P
    history = played(federation, 3).server.history
    assert [r.refused for r in history] == [()] * 3
    got = [(r.bytes_down / parties, r.bytes_up / parties) for r in history]
    assert got == TRAFFIC[name]
