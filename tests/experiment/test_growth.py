"""A late round costs what an early one does, counted in calls and in bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedfuse.experiment.run import Experiment
from fedfuse.federation.sketches import SHORTEST
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")
EARLY, LATE = 20, 60
"""By both, each of the four clients has been heard: of those heard last, the server remembers where they went."""
CLIENTS = 4
COUNTED_BY_THE_SYSTEM = Path("/proc/self/io")


class Meter:
    """Calls and written bytes so far, read when rounds begin; what they cost is the difference."""

    def __init__(self):
        self.calls, self.readings = 0, {}

    def profile(self, _frame, event, _argument):
        self.calls += event == "call"

    def __call__(self, event):
        if event["event"] == "round_started":
            sys.setprofile(self.profile if event["round"] in (EARLY, LATE) else None)
            self.readings[event["round"]] = self.calls, _bytes_written()

    def cost(self, number):
        return [after - before for before, after in zip(self.readings[number], self.readings[number + 1], strict=True)]


def _bytes_written():
    if not COUNTED_BY_THE_SYSTEM.exists():
        return 0
    return int(COUNTED_BY_THE_SYSTEM.read_text().split("wchar:")[1].split()[0])


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "local-only"])
def test_nothing_grows_with_the_rounds(tmp_path, monkeypatch, method):
    monkeypatch.setattr("os.fsync", lambda _: None)  # it neither calls nor writes, but takes its time
    meter, before = Meter(), sys.getprofile()
    try:
        config = tiny_config(method, federation={"rounds": LATE + 1, "clients_per_round": 1})
        result = Experiment(config).run(tmp_path / "run", listeners=(meter,))
    finally:
        sys.setprofile(before)
    assert {client for record in result.history[: EARLY - 1] for client in record.clients} == set(range(CLIENTS))
    (early_calls, early_bytes), (late_calls, late_bytes) = meter.cost(EARLY), meter.cost(LATE)
    assert abs(late_calls - early_calls) <= 0.05 * early_calls, "another client has another number of steps"
    assert abs(late_bytes - early_bytes) <= 200, "numbers have a few digits more or fewer"
    if method == "fedavg":
        parameters = result.summary["prototypes"]["mlp"]["parameters"]
        remembered = CLIENTS * 8 * (5 + min(parameters, SHORTEST))
        assert late_bytes <= 1.1 * 4 * parameters + remembered + 2000 + 300 * len(result.history[-1].clients)
