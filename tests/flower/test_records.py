"""Records bring back what was put into them, bit for bit, and refuse what does not fit in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING, Layout, Weights
from fedfuse.flower.records import (
    Order,
    Report,
    order_from_records,
    order_to_records,
    report_from_records,
    report_to_records,
)
from tests.flower.grid import travelled

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]
names = st.text(min_size=1, max_size=8)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    random = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    values = torch.randint(-100, 100, shape, generator=random)
    tensor = (values / 7 if dtype.is_floating_point else values).to(dtype)
    return tensor.transpose(0, 1) if len(shape) == 2 and draw(st.booleans()) else tensor


groups = st.dictionaries(names, tensors(), max_size=3)


@st.composite
def weights(draw):
    if draw(st.booleans()):
        return NOTHING
    shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    entries = list(draw(st.dictionaries(names, shapes, max_size=4)).items())
    cut = draw(st.integers(0, len(entries)))
    layout = Layout(tuple(entries[:cut]), tuple(entries[cut:]))
    return Weights(torch.randn(layout.size, generator=torch.Generator().manual_seed(1)), layout)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        assert tensor.shape == other[name].shape
        assert torch.equal(tensor, other[name])


@settings(deadline=None)
@given(weights(), groups, st.lists(names, max_size=2), st.integers(0, 5))
def test_a_task_arrives_as_it_was_sent(sent_weights, extras, asks, goes_on_from):
    task = Task(3, 7, "mlp", sent_weights, extras, tuple(asks))
    order = order_from_records(travelled(order_to_records(Order(task, "e", goes_on_from))))
    arrived = order.task
    assert (order.experiment, order.goes_on_from) == ("e", goes_on_from)
    assert (arrived.round, arrived.client, arrived.prototype, arrived.asks) == (3, 7, "mlp", tuple(asks))
    assert arrived.weights.equals(sent_weights)
    assert_same(arrived.extras, extras)
    assert arrived.nbytes == task.nbytes


@settings(deadline=None)
@given(weights(), groups, groups, st.floats(allow_nan=False), st.booleans())
def test_an_update_arrives_as_it_was_sent(sent_weights, extras, test_outputs, loss, keeps):
    task = Task(3, 7, "mlp", NOTHING)
    update = Update(3, 7, "mlp", sent_weights, 12, extras, {"loss": loss, "steps": 4}, test_outputs)
    report = report_from_records(travelled(report_to_records(Report(update, keeps))), task)
    arrived = report.update
    assert report.keeps_state == keeps
    assert (arrived.round, arrived.client, arrived.prototype, arrived.examples) == (3, 7, "mlp", 12)
    assert arrived.metrics == update.metrics
    assert arrived.weights.equals(sent_weights)
    assert_same(arrived.extras, extras)
    assert_same(arrived.test_outputs, test_outputs)


LAYOUT = Layout((("a", (2, 1)), ("b", (3,))), (("mean", (1,)),))
TASK = Task(1, 2, "mlp", Weights(torch.arange(6.0), LAYOUT))
ARRAYS = {"a": np.ones((2, 1), "f"), "b": np.full(3, 2, "f"), "mean": np.full(1, 3, "f")}


def guest_answer(arrays, **metrics):
    record = ArrayRecord({name: a if isinstance(a, Array) else Array(a) for name, a in arrays.items()})
    return RecordDict({"arrays": record, "metrics": MetricRecord({"num-examples": 5, **metrics})})


@pytest.mark.parametrize(
    "arrays",
    [
        ARRAYS,
        {name: ARRAYS[name] for name in ("mean", "b", "a")},
        {**ARRAYS, "num_batches_tracked": np.array(7)},
        dict(zip("012", ARRAYS.values(), strict=True)),
    ],
    ids=["by name", "in another order", "with integer buffers", "by position"],
)
def test_a_guest_answers_by_flowers_habits(arrays):
    update = report_from_records(travelled(guest_answer(arrays, loss=0.5)), TASK).update
    assert (update.round, update.client, update.prototype, update.examples) == (1, 2, "mlp", 5)
    assert update.weights.layout == LAYOUT
    assert update.weights.flat.tolist() == [1, 1, 2, 2, 2, 3]
    assert update.metrics == {"loss": 0.5}


JUNK, PICKLE = (Array("float32", (3,), stype, b"junk") for stype in ("numpy.ndarray", "torch.pickle"))
ABOUT = {"server-round": 1, "client": 2, "prototype": "mlp", "parameters": ["a"], "buffers": []}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (RecordDict(), "'metrics' is missing"),
        (RecordDict({**guest_answer(ARRAYS), "metrics": MetricRecord({"loss": 1.0})}), "'num-examples' is missing"),
        (guest_answer({"a": ARRAYS["a"]}), "'b' is missing"),
        (guest_answer({**ARRAYS, "b": JUNK}), "does not begin as numpy's own format does"),
        (guest_answer({**ARRAYS, "b": PICKLE}), "not in numpy's own format"),
        (guest_answer({**ARRAYS, "b": np.ones(3, "d")}), "of several types"),
        (RecordDict({**guest_answer(ARRAYS), "config": ConfigRecord(ABOUT)}), "not those that its config names"),
        (RecordDict({**guest_answer(ARRAYS), "config": MetricRecord({"client": 1})}), "'config' is no ConfigRecord"),
        (RecordDict({**guest_answer(ARRAYS), "arrays": ConfigRecord({"a": 1})}), "'arrays' is no ArrayRecord"),
        (RecordDict({**guest_answer(ARRAYS), "extras": ConfigRecord({"a": 1})}), "'extras' is no ArrayRecord"),
        (RecordDict({**guest_answer(ARRAYS), "metrics": ArrayRecord()}), "'metrics' is no MetricRecord"),
        (guest_answer(ARRAYS, **{"num-examples": float("inf")}), "'num-examples' is no whole number"),
        (guest_answer(ARRAYS, **{"num-examples": 5.0}), "'num-examples' is no whole number"),
        (guest_answer(ARRAYS, **{"num-examples": -1}), "'num-examples' is no whole number"),
        (guest_answer(ARRAYS, **{f"m{number}": 1 for number in range(30_000)}), "too many or too long names"),
        (guest_answer({**ARRAYS, "x" * 10**5: ARRAYS["a"]}), "too many or too long names"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(content, reason):
    with pytest.raises(DataError, match=f"this answer do not fit .*{reason}") as caught:
        report_from_records(content, TASK)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"server-round": float("inf")}, "'server-round' is no whole number"),
        ({"client": True}, "'client' is no whole number"),
        ({"client": "2"}, "'client' is no whole number"),
        ({"client": 2**62}, "'client' is no whole number"),
        ({"prototype": "a\nb"}, "'prototype' is no name"),
        ({"prototype": "x" * 10**6}, "'prototype' is no name"),
        ({"prototype": 5}, "'prototype' is no name"),
        ({"parameters": [1]}, "'parameters' is no list of names"),
        ({"parameters": "a"}, "'parameters' is no list of names"),
        ({"parameters": ["a", "a"]}, "not those that its config names"),
        ({"keeps-state": "yes"}, "'keeps-state' is neither true nor false"),
        ({"bfloat16-extras": ["c"]}, "bfloat16 that is none"),
        ({"bfloat16-extras": ["nobody"]}, "bfloat16 that is none"),
    ],
)
def test_what_a_node_says_about_its_answer(about, reason):
    config = ConfigRecord({**ABOUT, "keeps-state": False, **about})
    records = {
        "arrays": ArrayRecord({"a": Array(ARRAYS["a"])}),
        "extras": ArrayRecord({"c": Array(np.ones(3, "f"))}),
        "metrics": MetricRecord({"num-examples": 5}),
    }
    report_from_records(RecordDict({**records, "config": ConfigRecord({**ABOUT, "keeps-state": False})}), TASK)
    with pytest.raises(DataError, match=reason):
        report_from_records(travelled(RecordDict({**records, "config": config})), TASK)


def test_what_nobody_has_thought_of_is_a_refusal_too():
    class Odd(RecordDict):
        def __contains__(self, name):
            raise ZeroDivisionError("a party's own words")

    with pytest.raises(DataError, match=r"they cannot be read \(ZeroDivisionError\)$"):
        report_from_records(Odd(guest_answer(ARRAYS)), TASK)
