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
        ({"event": "metric_failed", "metric": "top", "reason": "it slept"}, "metric top has no value: it slept"),
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


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def shown(clock, **options):
    return RunProgress(Console(file=io.StringIO(), force_terminal=True, width=80, get_time=clock), **options)


def play(progress, clock, rounds, seconds):
    for number in rounds:
        progress({"event": "round_started", "round": number, "clients": []})
        clock.now += seconds
        progress({"event": "round_finished", "round": number, "prototypes": {}, "ensemble_accuracy": None})


def remaining(progress, description):
    (task,) = [task for task in progress.bars.tasks if task.description.strip() == description]
    return task.time_remaining


@pytest.mark.parametrize("seconds", [1, 60, 7200])
def test_what_is_left_is_known_after_one_round_however_long_it_took(clock, seconds):
    progress = shown(clock)
    progress.begin("a run", rounds=5)
    clock.now += 3  # data is loaded
    play(progress, clock, [1], seconds)
    assert remaining(progress, "rounds") == 4 * seconds
    play(progress, clock, [2, 3], seconds)
    assert remaining(progress, "rounds") == 2 * seconds


def test_rounds_of_a_former_process_do_not_count_as_quick_ones(clock):
    progress = shown(clock)
    progress.begin("a run", rounds=20)
    play(progress, clock, [11, 12], 60)
    assert remaining(progress, "rounds") == 8 * 60


def test_what_is_left_of_several_runs_is_told_by_those_that_were_run(clock):
    progress = shown(clock, runs=6, finished=3)
    with progress:
        progress.begin("a run", rounds=2)
        play(progress, clock, [1, 2], 300)
        progress.end()
        assert remaining(progress, "runs") == 2 * 600


def test_a_step_is_not_judged_by_the_one_before(clock):
    progress = shown(clock)
    progress.begin("a run", rounds=2)
    for what, seconds in (("clients", 100), ("teachers", 1)):
        for done in range(3):
            progress({"event": "tick", "what": what, "done": done, "total": 4})
            clock.now += seconds
    assert remaining(progress, "teachers predict") == 2
