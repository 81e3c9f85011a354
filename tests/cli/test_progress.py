"""What is said while a run goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedfuse.cli.batch import batch_progress
from fedfuse.cli.progress import RunProgress, left_of


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


def test_after_the_last_round_it_is_finishing_and_not_at_the_step_before():
    progress = RunProgress(Console(file=io.StringIO(), force_terminal=True, width=80))
    with progress:
        progress.begin("digits fedavg seed 0", rounds=2)
        model = {"accuracy": 0.875, "accuracy_before_fusion": None}
        steps = []
        for number in (1, 2):
            progress({"event": "tick", "what": "evaluate", "done": 0, "total": 1})
            steps.append(progress.bars.tasks[-1].description)
            record = {"round": number, "prototypes": {"model": model}, "ensemble_accuracy": None}
            progress({"event": "round_finished", **record})
    assert [step.strip() for step in steps] == ["evaluating", "evaluating"]
    assert progress.bars.tasks[-1].description.strip() == "finishing"


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
    return left_of(task)


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


def test_a_slow_first_round_does_not_frighten_anybody_for_long(clock):
    progress = shown(clock)
    progress.begin("a run", rounds=10)
    play(progress, clock, [1], 500)
    play(progress, clock, [2, 3], 10)
    assert remaining(progress, "rounds") == 7 * 10


def test_time_goes_on_inside_a_round_and_stands_still_when_it_takes_too_long(clock):
    progress = shown(clock)
    progress.begin("a run", rounds=4)
    play(progress, clock, [1, 2], 100)
    progress({"event": "round_started", "round": 3, "clients": []})
    clock.now += 40
    assert remaining(progress, "rounds") == 160
    clock.now += 500
    assert remaining(progress, "rounds") == 100


def test_what_is_left_of_several_runs_is_known_in_the_first_one(clock):
    progress = shown(clock, runs=3)
    with progress:
        progress.begin("a run", rounds=4)
        play(progress, clock, [1, 2], 100)
        assert remaining(progress, "runs") == 2 * 100 + 2 * 400


def rendered(bars, width=80):
    console = Console(file=io.StringIO(), width=width)
    bars.console.width = width
    console.print(bars.get_renderable())
    return console.file.getvalue().rstrip().splitlines()


def measured(number, accuracy):
    model = {"accuracy": accuracy, "accuracy_before_fusion": None}
    return {"event": "round_finished", "round": number, "prototypes": {"m": model}, "ensemble_accuracy": None}


def test_a_curve_where_there_is_room_and_none_where_there_is_not(clock):
    progress = RunProgress(Console(file=io.StringIO(), force_terminal=True, width=80, get_time=clock))
    progress.begin("digits feddf seed 0", rounds=5)
    for number, accuracy in enumerate((0.1, 0.5, 0.8), start=1):
        progress({"event": "round_started", "round": number, "clients": []})
        progress(measured(number, accuracy))
    with_ascii = progress.course.title(80, ascii_only=True)
    assert progress.course.title(80, ascii_only=False) == "digits feddf seed 0: m 80.0 % ▁▅█"
    assert with_ascii.isascii()
    assert progress.course.title(30, ascii_only=False) == "digits feddf seed 0: m 80.0 %"
    for width in (80, 40, 200):
        assert all(len(line) <= width for line in rendered(progress.bars, width))


def test_a_run_that_may_end_earlier_has_at_most_so_much_left(clock):
    progress = shown(clock)
    progress.begin("a run", rounds=3, at_most=True)
    play(progress, clock, [1], 60)
    assert "<0:02:00" in rendered(progress.bars)[1]


@pytest.fixture
def side_by_side(clock):
    def make(**options):
        console = Console(file=io.StringIO(), width=80, get_time=clock, **options)
        listener = batch_progress(console, jobs=2)
        listener({"event": "study_started", "runs": 5, "finished": 1})
        for run in ("one", "two"):
            listener({"event": "study_run_started", "run": run, "rounds": 4, "done": 0})
        return listener

    return make


def advance(listener, run, number, accuracy, seconds):
    latest = {**measured(number, accuracy), "seconds": seconds}
    listener({"event": "study_run_advanced", "run": run, "done": number, "latest": latest})


def test_runs_in_processes_of_their_own_say_what_they_measure(side_by_side):
    with side_by_side(force_terminal=True) as listener:
        for number in (1, 2):
            advance(listener, "one", number, 0.3 * number, 10.0)
        lines = rendered(listener.bars)
        assert remaining(side_by_side(force_terminal=True), "runs") is None
        assert "one: m 60.0 % ▁█" in lines
        assert "two" in lines
        assert remaining(listener, "runs") == (2 * 10 + 40 + 2 * 40) / 2, "two is taken for one like the other"
        advance(listener, "two", 1, 0.5, 20.0)
        assert remaining(listener, "runs") == (2 * 10 + 3 * 20 + 2 * (40 + 80) / 2) / 2


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_where_bars_cannot_move_there_is_a_line_for_each_round(side_by_side, options):
    with side_by_side(**options) as listener:
        for _ in range(3):  # asked again before the next round is over
            advance(listener, "one", 1, 0.3, 10.0)
        advance(listener, "one", 2, 0.6, 10.0)
        listener({"event": "study_run_finished", "run": "one", "summary": {"data": {}, "source": None}})
    assert listener.console.file.getvalue().splitlines() == [
        "one: round 1/4 m 30.0 %",
        "one: round 2/4 m 60.0 %",
        "one: finished",
    ]
