"""Bytes that are said before a run are those that the run counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedfuse.experiment.assembly import build
from fedfuse.experiment.estimate.traffic import Traffic, traffic
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from tests.helpers import tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")

HALF = {"rounds": 7, "participation": 0.5}
TELLING = ("fedavg", "scaffold", "fedgkd-vote", "fedgen", "feded-w2", "fedmd", "cfd", "fd")
"""Methods whose traffic changes from round to round, or with clients that come late."""
NINE = {"kind": "iid", "clients": 9}
TWO = {"a": {"arch": "mlp", "hidden": [6]}, "b": {"arch": "mlp", "hidden": [9, 3]}}


def both(folder: Path, method: Any, **sections: Any) -> tuple[Traffic, tuple[int, int]]:
    config = tiny_config(method, **{"federation": HALF, **sections})
    summary = Experiment(config).run(folder).summary
    return traffic(build(config, EventLog())), (summary["bytes_up"], summary["bytes_down"])


@pytest.mark.parametrize(
    "method", [name if name in TELLING else pytest.param(name, marks=pytest.mark.long) for name in METHODS]
)
def test_of_every_method(tmp_path: Path, method: str) -> None:
    said, true = both(tmp_path / "run", method)
    if method == "fedma":  # its layers grow as the data will have it
        assert not said.is_exact
        assert 0.5 < said.up / true[0] < 2
        return
    assert (said.up, said.down) == true
    assert said.is_exact == (not METHODS[method].recipe.scores.asks_clients)


@pytest.mark.parametrize(
    ("method", "sections"),
    [
        ("feddf", {"models": TWO, "partition": NINE, "federation": {**HALF, "shares": {"a": 2, "b": 1}}}),
        ({**tiny_method("fedavg"), "upload": [{"kind": "top_k", "share": 0.3}, {"kind": "half"}]}, {}),
        ({**tiny_method("ds-fl"), "upload": [{"kind": "soft_labels", "bits": 3}]}, {}),
        ({**tiny_method("ds-fl"), "protocol": {**tiny_method("ds-fl")["protocol"], "inputs": 17}}, {}),
        ("feddf", {"source": {"kind": "uniform_noise", "size": 30, "fresh": True}}),
    ],
)  # fmt: skip
def test_of_combinations(tmp_path: Path, method: Any, sections: dict[str, Any]) -> None:
    said, true = both(tmp_path / "run", method, **sections)
    assert (said.up, said.down) == true
    assert said.is_exact


def test_what_depends_on_who_is_there_is_not_called_exact(tmp_path: Path) -> None:
    clock = {"devices": {"present": 0.5}}
    said, true = both(tmp_path / "run", "fedavg", federation={**HALF, "clock": clock})
    assert not said.is_exact
    assert 0.3 < said.up / max(1, true[0]) < 4
