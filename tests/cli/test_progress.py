"""What is said while a run goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedfuse.cli.progress import RunProgress


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"event": "client_retried", "client": 3, "reason": "it slept"}, "client 3 was retried: it slept"),
        ({"event": "work_retried", "what": "teacher 1", "reason": "it slept"}, "teacher 1 was retried: it slept"),
        ({"event": "update_refused", "client": 3, "reason": "NaN"}, "client 3 was refused: NaN"),
    ],
)
def test_what_went_wrong_is_said(event, line):
    RunProgress(Console(file=(file := io.StringIO())))({"round": 1, **event})
    assert file.getvalue().strip() == line


def test_a_long_name_cuts_neither_bars_nor_times_in_80_columns():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    progress = RunProgress(console, runs=3)
    with progress:
        progress.begin("feddf-table8-FedAvg-SGD-proximal-1 fedavg seed 0", rounds=100)
        model = {"accuracy": 0.875, "accuracy_before_fusion": None}
        progress({"event": "tick", "what": "teachers", "done": 10, "total": 20})
        progress({"event": "round_finished", "round": 7, "prototypes": {"model": model}, "ensemble_accuracy": 0.9})
        shown = Console(file=io.StringIO(), width=80)
        shown.print(progress.bars.get_renderable())
    runs, name, rounds, step = shown.file.getvalue().rstrip().splitlines()
    assert name == "feddf-table8-FedAvg-SGD-proximal-1 fedavg seed 0: model 87.5 %, ensemble 90.0 %"
    for line, what, done in ((runs, "runs", "0/3"), (rounds, "rounds", "7/100"), (step, "teachers predict", "10/20")):
        assert line.strip().startswith(f"{what} ")
        assert done in line.replace(" ", "")
        assert len(line) <= 80
        assert "…" not in line


def test_in_a_file_every_round_is_one_line():
    console = Console(file=io.StringIO(), width=80)
    progress = RunProgress(console)
    with progress:
        progress.begin("feddf-table8-FedAvg-SGD-proximal-1 fedavg seed 0", rounds=100)
        model = {"accuracy": 0.875, "accuracy_before_fusion": None}
        progress({"event": "round_finished", "round": 7, "prototypes": {"model": model}, "ensemble_accuracy": 0.9})
    assert console.file.getvalue() == (
        "feddf-table8-FedAvg-SGD-proximal-1 fedavg seed 0: round 7/100 model 87.5 %, ensemble 90.0 %\n"
    )
