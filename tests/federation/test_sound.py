"""Records that can be true, and all that cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fedfuse.federation.sound import are_sound
from fedfuse.federation.state import PrototypeRecord, RoundRecord
from tests.helpers import make_federation, played
from tests.report.samples import history

FIRST = history(1)[0]


def test_what_a_federation_records_is_sound_also_after_json() -> None:
    records = list(played(make_federation(source=8), 3).server.history)
    assert are_sound(records)
    assert are_sound([RoundRecord.from_json(json.loads(json.dumps(record.to_json()))) for record in records])
    assert are_sound([])


@pytest.mark.parametrize("numbers", [[2], [0], [1, 3], [1, 1], [2, 1]], ids=str)
def test_rounds_count_from_one_without_a_gap(numbers: list[int]) -> None:
    assert not are_sound([replace(FIRST, round=number) for number in numbers])


WRONG: dict[str, Any] = {
    "round": True,
    "bytes_up": "<script>",
    "bytes_down": -1,
    "seconds": float("nan"),
    "clients": ("a",),
    "refused": (-1,),
    "ensemble_accuracy": 1.5,
    "training_loss": 10**400,
    "client_accuracy": {0: "much"},
    "ensemble_metrics": {"f1": [1]},
    "ensemble_choice": 5,
    "joined": {0: None},
    "prototypes": {"small": PrototypeRecord(accuracy=-0.1), "big": PrototypeRecord()},
}


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_is_seen(name: str, value: Any) -> None:
    assert are_sound([FIRST])
    assert not are_sound([replace(FIRST, **{name: value})])


@pytest.mark.parametrize(
    "wrong",
    [{"accuracy": "1"}, {"accuracy_before_fusion": 2}, {"loss": 1e301}, {"metrics": {"f1": "x"}}, {"untaught": 1}],
    ids=str,
)
def test_of_a_model_too(wrong: dict[str, Any]) -> None:
    models = {name: replace(own, **wrong) for name, own in FIRST.prototypes.items()}
    assert not are_sound([replace(FIRST, prototypes=models)])


def test_models_stay_the_same() -> None:
    other = replace(FIRST, round=2, prototypes={"other": PrototypeRecord()})
    assert not are_sound([FIRST, other])
