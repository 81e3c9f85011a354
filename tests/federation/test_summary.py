"""The summary, field by field, from a history made by hand."""

from __future__ import annotations

from dataclasses import replace

from fedfuse.federation import RoundRecord, ServerState
from fedfuse.federation.state import History, PrototypeRecord
from fedfuse.federation.summary import summarise
from fedfuse.parts.metrics import CalibrationError, MacroF1, PerClassAccuracy
from tests.helpers import TinyNorm, make_bank, make_weights

BANK = make_bank(net=TinyNorm())
WEIGHTS = make_weights(BANK, "net", 1)


def record(number, accuracy, before=None, ensemble=None, refused=()):
    entry = PrototypeRecord(accuracy, None if accuracy is None else 2.0 - accuracy, before)
    return RoundRecord(number, (0, 1), refused, (), 100 * number, 10 * number, 0.5, ensemble, {"net": entry}, 0.25)


HISTORY = (
    record(1, 0.25, 0.2, 0.3),
    record(2, 0.75, 0.5, 0.8, refused=(1,)),
    record(3, None),
    record(4, 0.75, 0.7),
    record(5, 0.5, 0.6, refused=(0, 1)),
)


def summary(target=None, history=HISTORY):
    return summarise(ServerState(len(history), {"net": WEIGHTS}, {}, History(history)), {"seed": 3}, target)


def test_every_field():
    result = summary(0.6)
    assert result["seed"] == 3
    assert result["rounds"] == 5
    assert result["target_accuracy"] == 0.6
    assert (result["bytes_up"], result["bytes_down"]) == (1500, 150)
    assert result["updates_refused"] == 3
    assert result["seconds"] == 1.25
    assert result["prototypes"]["net"] == {
        "accuracy_last": 0.5,
        "accuracy_best": 0.75,
        "round_of_best": 2,
        "accuracy_before_fusion": 0.6,
        "accuracy_after_fusion": 0.5,
        "ensemble_accuracy": None,
        "rounds_to_target": 2,
        "rounds_to_target_earliest": 2,
        "loss_last": 1.5,
        "parameters": BANK.layout("net").parameter_count,
        "weights_sha256": WEIGHTS.sha256(),
        "metrics": {},
        "metrics_before_fusion": {},
    }


def test_rounds_to_target():
    assert summary()["prototypes"]["net"]["rounds_to_target"] is None
    assert summary(0.25)["prototypes"]["net"]["rounds_to_target"] == 1
    assert summary(0.9)["prototypes"]["net"]["rounds_to_target"] is None


def test_where_not_every_round_is_evaluated_the_target_may_have_been_reached_before():
    history = (record(1, None), record(2, 0.2), record(3, None), record(4, None), record(5, 0.8))
    for target, expected in ((0.1, (2, 1)), (0.5, (5, 3)), (0.9, (None, None))):
        values = summary(target, history)["prototypes"]["net"]
        assert (values["rounds_to_target"], values["rounds_to_target_earliest"]) == expected


def test_the_ensemble_is_the_last_measured_rounds():
    """Not that of an earlier round, if there was nobody to ask in the last one."""
    for last in (0.8, None):
        history = (record(1, 0.25, 0.2, 0.3), record(2, 0.5, 0.4, last), record(3, None))
        assert summary(history=history)["prototypes"]["net"]["ensemble_accuracy"] == last


def test_an_accuracy_of_zero_is_an_accuracy():
    result = summary(history=(record(1, 0.0, 0.0),))["prototypes"]["net"]
    assert (result["accuracy_last"], result["accuracy_best"], result["round_of_best"]) == (0.0, 0.0, 1)


def test_before_any_measurement():
    result = summary(0.5, history=(record(1, None),))["prototypes"]["net"]
    assert result["accuracy_last"] is result["accuracy_best"] is result["round_of_best"] is None
    assert result["rounds_to_target"] is None


def test_all_reached_asks_every_prototype_in_any_round():
    two = [
        RoundRecord(number, (), (), (), 0, 0, None, None, {"a": PrototypeRecord(a), "b": PrototypeRecord(b)}, 0)
        for number, a, b in ((1, 0.9, 0.1), (2, None, None), (3, 0.2, 0.8))
    ]
    assert History(two).all_reached(0.8)
    assert not History(two[:2]).all_reached(0.8)
    assert not History(two).all_reached(0.85)
    assert not History().all_reached(0.1)


def test_of_every_metric_the_last_and_the_best_by_its_own_direction():
    measured = [
        {"macro_f1": 0.2, "calibration_error": 0.3, "per_class_accuracy.a": None},
        {},
        {"macro_f1": 0.6, "calibration_error": 0.1, "per_class_accuracy.a": 0.5},
        {"macro_f1": 0.6, "calibration_error": None, "per_class_accuracy.a": None},
    ]
    history = tuple(
        replace(record(n, 0.5), prototypes={"net": PrototypeRecord(0.5, metrics=own)}, ensemble_metrics=own)
        for n, own in enumerate(measured, start=1)
    )
    metrics = (MacroF1(), CalibrationError(), PerClassAccuracy())
    result = summarise(ServerState(4, {"net": WEIGHTS}, {}, History(history)), {}, None, metrics=metrics)
    found = result["prototypes"]["net"]["metrics"]
    assert found == result["ensemble_metrics"]
    assert {name: (own["last"], own["best"], own["round_of_best"]) for name, own in found.items()} == {
        "macro_f1": (0.6, 0.6, 3),
        "calibration_error": (None, 0.1, 3),
        "per_class_accuracy.a": (None, 0.5, 3),
    }
