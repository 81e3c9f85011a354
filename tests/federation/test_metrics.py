"""Metrics never end a run: one that fails has no value, and the log says once why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from fedfuse.federation.events import EventLog
from fedfuse.federation.metrics import Metrics
from fedfuse.parts.metrics import Accuracy, Auroc, CalibrationError, Loss, MacroF1, Metric
from tests.helpers import Recorder

LOGITS, LABELS, NAMES = torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0]), ("cat", "dog")


class Returns(Metric):
    """Whatever it is told to."""

    what: str

    def compute(self, predictions):
        return eval(self.what, {"np": np, "predictions": predictions})


OWN_LINE = f"(tests/federation/test_metrics.py, line {Returns.compute.__code__.co_firstlineno + 1})"


def measured(*metrics):
    recorder = Recorder()
    measure = Metrics(metrics, NAMES, EventLog(listeners=(recorder,)))
    first = measure(LOGITS, LABELS)
    assert measure(LOGITS, LABELS) == first
    return first, [(entry["metric"], entry["reason"]) for entry in recorder.of("metric_failed")]


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("0.5", {"Returns": 0.5}),
        ("1", {"Returns": 1.0}),
        ("np.float32(0.5)", {"Returns": 0.5}),
        ("(predictions.predicted == predictions.labels).mean()", {"Returns": 0.5}),
        ("None", {"Returns": None}),
        ("{'a': 0.5, 'b': None}", {"Returns.a": 0.5, "Returns.b": None}),
        ("{}", {}),
        ("dict(zip(predictions.class_names, predictions.logits[0]))", {"Returns.cat": 2.0, "Returns.dog": 1.0}),
    ],
)
def test_a_number_several_or_none(what, values):
    assert measured(Returns(what=what)) == (values, [])


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("1 / 0", f"ZeroDivisionError: division by zero {OWN_LINE}"),
        ("np.nan", "ValueError: compute gave nan, which is not finite; give None where it is not defined"),
        ("float('inf')", "ValueError: compute gave inf, which is not finite; give None where it is not defined"),
        ("{'a': np.nan}", "ValueError: compute gave nan, which is not finite; give None where it is not defined"),
        ("'0.5'", "TypeError: compute gave str, but should give a number, a mapping of numbers or None"),
        ("np.zeros(2)", "TypeError: compute gave ndarray, but should give a number, a mapping of numbers or None"),
        ("predictions.labels.fill(1)", f"ValueError: assignment destination is read-only {OWN_LINE}"),
        ("predictions.logits.sort()", f"ValueError: sort array is read-only {OWN_LINE}"),
    ],
)
def test_what_fails_is_null_and_said_once_and_the_others_are_measured(what, reason):
    values, said = measured(Returns(what=what), Accuracy(), MacroF1())
    assert values == {"Returns": None, "accuracy": 0.5, "macro_f1": pytest.approx(1 / 3)}
    assert said == [("Returns", reason)]
    assert LABELS.tolist() == [0, 0]


def test_each_that_fails_is_said():
    broken = [Returns(what="1 / 0"), Returns(what="None.x", label="other")]
    values, said = measured(*broken)
    assert values == {"Returns": None, "other": None}
    assert [name for name, _ in said] == ["Returns", "other"]


def test_a_model_that_says_infinity_has_no_value_where_that_matters():
    infinite = torch.tensor([[torch.inf, 0.0], [0.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Metrics([Accuracy(), Loss(), Auroc(), CalibrationError()], NAMES, EventLog())(infinite, LABELS)
        two = Metrics([Auroc()], NAMES, EventLog())(infinite, torch.tensor([0, 1]))
    assert values == {"accuracy": 0.5, "loss": None, "auroc": None, "calibration_error": None}
    assert two == {"auroc": None}
