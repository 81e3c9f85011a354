"""Whatever a client sends, in any tensor of any method: the run goes on, and no model of the server leaves the finite
numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
import torch

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.federation import EvaluationSettings
from fedfuse.federation.round import Round
from fedfuse.methods import METHODS
from tests.helpers import Recorder, TinyNorm, make_bank, make_federation, make_recipe, played, tiny_config, tiny_method

UPLOADS = {
    "half": {"kind": "half"},
    "bfloat16": {"kind": "half", "type": "bfloat16"},
    "one_bit": {"kind": "one_bit"},
    "top_k": {"kind": "top_k"},
    "partial": {"kind": "partial", "names": "classifier"},
    "clip": {"kind": "clip", "norm": 1.0},
}
RECIPES = [*sorted(METHODS), *UPLOADS, "batch_norm"]
MEASURED = EvaluationSettings(clients=True)
LARGEST = 9e14


@cache
def setting(name):
    if name == "batch_norm":
        return make_recipe(), make_bank(mlp=TinyNorm())
    method = tiny_method("fedavg", upload=[UPLOADS[name]]) if name in UPLOADS else name
    config = tiny_config(method)
    return config.recipe, make_bank(**config.models)


def federation(name, **more):
    recipe, bank = setting(name)
    return make_federation(bank, recipe, source=30, validation=12, labelled=True, target=MEASURED, **more)


def tensors_of(update):
    """Everything that an update brings, by where it is."""
    groups = {"extras": update.extras, "test_outputs": update.test_outputs}
    weights = {("weights", ""): update.weights.flat} if update.weights else {}
    return weights | {(group, name): tensor for group, brought in groups.items() for name, tensor in brought.items()}


def exchanged(update, place, tensor):
    group, name = place
    if group != "weights":
        return replace(update, **{group: {**getattr(update, group), name: tensor}})
    weights = Weights(update.weights.flat, update.weights.layout)
    weights.flat = tensor  # past the check of its shape
    return replace(update, weights=weights)


def filled(value, dtype=torch.float32):
    return lambda t: torch.full(t.shape, value, dtype=dtype)


DAMAGE = {
    "NaN": filled(torch.nan),
    "inf": filled(torch.inf),
    "-inf": filled(-torch.inf),
    "1e30": filled(1e30),
    "-3e38": filled(-3e38),
    "float64": lambda t: t.double(),
    "float64 1e300": filled(1e300, torch.float64),
    "float16": lambda t: t.half() if t.dtype != torch.float16 else t.bfloat16(),
    "bfloat16 NaN": filled(torch.nan, torch.bfloat16),
    "complex": lambda t: torch.complex(t.float(), t.float()),
    "complex NaN": filled(complex(torch.nan, 1), torch.complex64),
    "bool": lambda t: t.bool(),
    "int64": lambda t: t.long(),
    "int8": lambda t: t.to(torch.int8),
    "flat": lambda t: t.reshape(-1).unsqueeze(0).unsqueeze(0),
    "longer": lambda t: torch.cat([t.reshape(-1), t.reshape(-1)]),
    "empty": lambda t: t.new_empty(0),
    "one number": lambda t: t.new_zeros(()),
}


def is_like(tensor, honest):
    """Whether a tensor could be an honest one, for all that is said about all of them."""
    if (tensor.dtype, tensor.shape) != (honest.dtype, honest.shape):
        return False
    return not tensor.is_floating_point() or bool((tensor.abs() <= 1e15).all())


@pytest.mark.parametrize("name", RECIPES)
def test_every_tensor_is_inspected(name):
    refused = 0
    here = federation(name)
    snapshot = here.start()
    for _ in range(2):
        playing = Round(here, snapshot)
        tasks = {task.client: task for task in playing.tasks()}
        for update, _ in list(here.engine.train(list(tasks.values()), snapshot.clients))[:2]:
            assert isinstance(playing.inbox.opened(update, tasks[update.client]), Update)
            for place, honest in tensors_of(update).items():
                for what, damage in DAMAGE.items():
                    if not honest.numel():
                        continue
                    damaged = damage(honest)
                    opened = playing.inbox.opened(exchanged(update, place, damaged), tasks[update.client])
                    if isinstance(opened, str):
                        assert len(opened) <= 200
                        assert opened.isprintable()
                        refused += 1
                    else:
                        assert is_like(damaged, honest), f"{what} in {place}"
        snapshot = here.advance(snapshot)
    assert refused or not tensors_of(update)


def zeros(tensor):
    return torch.zeros_like(tensor)


def negative(tensor):
    return -tensor if tensor.is_floating_point() else ~tensor


def huge(tensor):
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor)
    most = min(LARGEST, torch.finfo(tensor.dtype).max)
    signs = torch.ones(tensor.shape).reshape(-1)
    signs[::2] = -1
    return (signs.reshape(tensor.shape) * most).to(tensor.dtype)


def tiny(tensor):
    return torch.full_like(tensor, 1e-40) if tensor.is_floating_point() else torch.full_like(tensor, 1)


@pytest.mark.parametrize("change", [zeros, negative, huge, tiny])
@pytest.mark.parametrize("name", RECIPES)
def test_what_could_be_honest_ends_no_run(name, change):
    """Client 0 changes all that it sends, tensor by tensor as far as it is not refused; zeros are everybody's."""

    def bend(pairs):
        for update, state in pairs:
            if update.client == 0 or change is zeros:
                for place, tensor in tensors_of(update).items():
                    update = exchanged(update, place, change(tensor))
            yield update, state

    heard = Recorder()
    after = played(federation(name, bend=bend, listener=heard), 2)
    assert all(weights.is_finite() for weights in after.server.weights.values())
    for record in after.server.history:
        json.dumps(record.to_json(), allow_nan=False, default=float)
    assert len(heard.of("round_finished")) == 2


@pytest.mark.parametrize("name", RECIPES)
def test_one_tensor_at_a_time(name):
    """A tensor that is refused hides what the others would do."""
    recipe, _ = setting(name)
    here = federation(name)
    first, _ = next(iter(here.engine.train(Round(here, here.start()).tasks(), {})))
    for place in tensors_of(first):
        if place[0] == "weights" and not recipe.upload:
            continue

        def bend(pairs, place=place):
            for update, state in pairs:
                if update.client == 0 and place in tensors_of(update):
                    update = exchanged(update, place, huge(tensors_of(update)[place]).abs())
                yield update, state

        after = played(federation(name, bend=bend), 2)
        assert all(weights.is_finite() for weights in after.server.weights.values())


NUMBERS = {
    "round": [7, -1, 10**400, "1", None, 1.5],
    "client": [1, 99, "0", [0], None, 10**400],
    "prototype": ["other", "x" * 10**7, "a\nb\x1b[2J", None, 3],
    "examples": [0, -5, 10**18, "many", None, 1.5, float("nan"), float("inf"), True, 10**400, [1]],
}


@pytest.mark.parametrize(("what", "value"), [(what, value) for what in NUMBERS for value in NUMBERS[what]], ids=str)
def test_numbers_that_are_none(what, value):
    heard = Recorder()

    def bend(pairs):
        return [(replace(u, **{what: value}) if u.client == 0 else u, state) for u, state in pairs]

    after = played(make_federation(bend=bend, listener=heard), 2)
    for record in after.server.history:
        assert {*record.refused, *getattr(record, "late", ())} == {0}
    assert all(len(event["reason"]) <= 200 and event["reason"].isprintable() for event in heard.of("update_refused"))
    assert len(json.dumps(heard.of("update_refused"))) < 2000


METRICS = [
    {"loss": float("nan")},
    {"loss": float("inf")},
    {"loss": 1e308},
    {"loss": "low"},
    {"loss": 10**400},
    {"loss": torch.ones(3)},
    {"loss": None},
    {"note": "x" * 10**6},
    {"x" * 10**6: 1.0},
    {f"m{number}": 1.0 for number in range(10**5)},
    {"a\nb": 1.0},
    {3: 1.0},
    7,
    None,
]


@pytest.mark.parametrize("metrics", METRICS, ids=lambda metrics: str(metrics)[:30])
def test_metrics_that_no_log_wants(metrics):
    """The update counts, and the log and the mean loss are as if it had brought none."""
    heard = Recorder()

    def bend(pairs):
        return [(replace(u, metrics=metrics), state) for u, state in pairs]

    after = played(make_federation(bend=bend, listener=heard), 1)
    (record,) = after.server.history
    assert record.refused == ()
    assert record.training_loss is None
    assert len(json.dumps(heard.of("client_finished"), allow_nan=False)) < 8000
    assert after.server.weights["mlp"].equals(played(make_federation(), 1).server.weights["mlp"])


def test_reasons_have_no_word_of_the_party():
    secret = "patient 7"
    heard = Recorder()

    def bend(pairs):
        for update, state in pairs:
            bent = {
                0: replace(update, prototype=secret),
                1: replace(update, extras={f"{secret} {n}": torch.ones(1) for n in range(10**4)}),
                2: replace(update, metrics={secret: 1.0}),
                3: replace(update, test_outputs={secret: torch.ones(1)}),
            }
            yield bent[update.client], state

    played(make_federation(bend=bend, listener=heard), 1)
    told = heard.of("update_refused") + heard.of("client_finished")
    assert {event["client"] for event in told} == {0, 1, 2, 3}
    assert secret not in json.dumps(told)
    assert len(json.dumps(told)) < 2000


def test_answers_that_nobody_waits_for_are_logged_once_a_round():
    heard = Recorder()

    def bend(pairs):
        return [*pairs, *(pairs[:1] * 500)]

    played(make_federation(bend=bend, listener=heard), 2)
    assert [(event["round"], event["client"]) for event in heard.of("update_refused")] == [(1, 0), (2, 0)]


def test_a_variance_below_zero_is_refused():
    heard = Recorder()
    bank = make_bank(mlp=TinyNorm())

    def bend(pairs):
        for update, state in pairs:
            if update.client == 0:
                buffers = update.weights.buffers.clone()
                buffers[-1] = -1.0
                update = replace(update, weights=update.weights.with_buffers(buffers))
            yield update, state

    played(make_federation(bank, bend=bend, listener=heard), 1)
    (event,) = heard.of("update_refused")
    assert event["reason"] == "weights have a negative variance"
