"""Which round is the best, and when to stop waiting: by the records alone, and as anybody would say by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.federation.judging import Judge, Watch
from fedfuse.federation.settings import EvaluationSettings
from fedfuse.federation.state import PrototypeRecord, RoundRecord

Curve = list[float | None]


def record(number: int, **models: PrototypeRecord) -> RoundRecord:
    return RoundRecord(number, (), (), (), 0, 0, None, None, models, 0.0)


def watched(curve: Curve, higher: bool = True, **settings: Any) -> Watch:
    watch = Watch(Judge("accuracy", "test", higher), **settings)
    for number, value in enumerate(curve, start=1):
        if watch.is_out_of_patience:
            break
        watch.add(record(number, m=PrototypeRecord(value)))
    return watch


def by_hand(curve: Curve, patience: int, least_gain: float) -> int:
    """The round after which a run ends."""
    to_beat, since = None, 0
    for number, value in enumerate(curve, start=1):
        if value is None:
            continue
        if to_beat is None or value - to_beat > least_gain:
            to_beat, since = value, number
        elif number - since >= patience:
            return number
    return len(curve)


curves = st.lists(st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20)), min_size=1, max_size=30)


@given(curve=curves, patience=st.integers(1, 6), least_gain=st.sampled_from([0.0, 0.05, 0.2]))
def test_patience_ends_where_a_loop_by_hand_ends(curve: Curve, patience: int, least_gain: float) -> None:
    end = by_hand(curve, patience, least_gain)
    watch = watched(curve, patience=patience, least_gain=least_gain)
    stopped_early = any(
        watched(curve[:n], patience=patience, least_gain=least_gain).is_out_of_patience for n in range(1, end)
    )
    assert not stopped_early
    assert watch.is_out_of_patience or end == len(curve)


@given(curve=curves)
def test_the_best_round_is_the_first_of_the_highest_whenever_one_asks(curve: Curve) -> None:
    watch = watched(curve)
    for number in range(1, len(curve) + 1):
        seen = {place: value for place, value in enumerate(curve[:number], start=1) if value is not None}
        assert watch.best_until(number) == (max(seen, key=lambda place: (seen[place], -place)) if seen else None)


@given(curve=curves, patience=st.integers(1, 6))
def test_lower_is_better_is_the_same_turned_around(curve: Curve, patience: int) -> None:
    turned = [None if value is None else -value for value in curve]
    one, other = watched(curve, patience=patience), watched(turned, higher=False, patience=patience)
    assert [number for number, _ in one.best] == [number for number, _ in other.best]
    assert one.is_out_of_patience == other.is_out_of_patience


def test_a_round_is_judged_by_the_mean_of_its_models_on_the_examples_that_were_declared() -> None:
    both = {
        "a": PrototypeRecord(0.5, validation={"accuracy": 0.1, "loss": 2.0}),
        "b": PrototypeRecord(0.7, validation={"accuracy": 0.3, "loss": 4.0}),
    }
    one = record(1, **both)
    assert Judge("accuracy", "test", True).value(one) == pytest.approx(0.6)
    assert Judge("accuracy", "validation", True).value(one) == pytest.approx(0.2)
    assert Judge("loss", "validation", False).value(one) == 3.0
    assert Judge("macro_f1", "validation", True).value(one) is None
    assert Judge("accuracy", "test", True, ensemble=True).value(one) is None
    assert Judge("accuracy", "test", True).value(record(1, a=both["a"], b=PrototypeRecord(None))) is None


def test_a_run_whose_loss_is_no_number_is_not_waited_for_for_ever() -> None:
    watch = Watch(Judge("loss", "test", False), patience=3)
    ends = []
    for number in range(1, 6):
        watch.add(record(number, m=PrototypeRecord(0.1, None)))
        ends.append(watch.is_out_of_patience)
    assert ends == [False, False, True, True, True]
    assert watch.best == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"best_by": "acuracy"}, "did you mean 'accuracy'"),
        ({"best_by": "macro_f1"}, "go into metrics first"),
        ({"least_gain": 0.1}, "there is no patience"),
        ({"patience": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_judged_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        EvaluationSettings.model_validate(settings)


@pytest.mark.parametrize(
    ("by", "higher"), [("accuracy", True), ("loss", False), ("macro_f1", True), ("calibration_error", False)]
)
def test_which_way_is_better(by: str, higher: bool) -> None:
    metrics = ["macro_f1", {"kind": "calibration_error"}]
    assert EvaluationSettings.model_validate({"best_by": by, "metrics": metrics}).higher_is_better is higher
