"""Curves, standings within budgets and differences from a reference, against sums by hand and scipy."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.looking.budgets import best_of, reached, round_budgets
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.curves import Measured, check_measured, seeds_of, together
from fedfuse.experiment.looking.page.groups import sentence
from fedfuse.experiment.looking.pairing import differences, reference_of
from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two methods and three seeds; the better method sends twice as much."""
    folder = tmp_path_factory.mktemp("four")
    for seed in range(3):
        write_run(folder / f"a{seed}", Made("fedavg", seed, rounds=30, level=0.7, bytes_per_round=100))
        write_run(folder / f"b{seed}", Made("feddf", seed, rounds=30, level=0.9, bytes_per_round=200))
    return fedfuse.load_runs(folder)


def test_what_was_spent_is_the_sum_of_all_rounds_until_then(four: Comparison) -> None:
    line, run = four.lines[0], four.lines[0].runs[0]
    history = run.result.history
    for over, each in (
        ("rounds", [1] * 30),
        ("bytes", [record.bytes_up + record.bytes_down for record in history]),
        ("seconds", [record.seconds for record in history]),
    ):
        (one, *_) = seeds_of(line, over)  # type: ignore[arg-type]
        assert list(one.spent) == pytest.approx(list(accumulate(each)))
        assert list(one.values) == [record.prototypes["mlp"].accuracy for record in history]
    assert seeds_of(line, "simulated") == []


@pytest.mark.usefixtures("without_pictures")
def test_simulated_seconds_are_those_of_the_clock(tmp_path: Path) -> None:
    result = Experiment(tiny_config(federation={"rounds": 2, "clock": {}})).run(tmp_path / "run")
    (line,) = fedfuse.load_runs(tmp_path).lines
    (one,) = seeds_of(line, "simulated")
    assert list(one.spent) == [record.clock.total for record in result.history if record.clock]
    assert len(one.spent) == 2


def test_rounds_that_some_seed_did_not_measure_are_left_out() -> None:
    seeds = [Measured(0, (1, 2, 3), (10.0, 20.0, 30.0), (0.1, 0.2, 0.3)), Measured(1, (1, 3), (11.0, 33.0), (0.3, 0.5))]
    assert list(together(seeds)) == [(1, [10.0, 11.0], [0.1, 0.3]), (3, [30.0, 33.0], [0.3, 0.5])]
    assert list(together([])) == []


def test_a_measure_that_nobody_has_is_refused(four: Comparison) -> None:
    check_measured("ensemble", four.lines)
    with pytest.raises(ConfigError, match="unknown measure 'acuracy' \\(did you mean 'accuracy'\\?\\)"):
        check_measured("acuracy", four.lines)
    with pytest.raises(ConfigError, match="no run has measured 'before_fusion'"):
        check_measured("before_fusion", four.lines[:1])


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 1)), min_size=1, max_size=9), st.floats(0, 40))
def test_within_a_budget_the_last_measured_round_counts(steps: list[tuple[float, float]], budget: float) -> None:
    spent = list(accumulate(step for step, _ in steps))
    one = Measured(0, tuple(range(1, len(steps) + 1)), tuple(spent), tuple(value for _, value in steps))
    inside = [place for place, total in enumerate(spent) if total <= budget]
    found = reached([one], budget)
    if not inside:
        assert found is None
    else:
        assert found is not None
        assert found.interval.mean == steps[inside[-1]][1]
        assert found.rounds == (inside[-1] + 1,)


def test_a_row_counts_once_every_seed_was_measured() -> None:
    early, late = Measured(0, (1,), (5.0,), (0.4,)), Measured(1, (1,), (9.0,), (0.6,))
    assert reached([early, late], 8) is None
    found = reached([early, late], 9)
    assert found is not None
    assert found.interval.mean == 0.5
    assert reached([], 9) is None


def test_a_small_budget_is_won_by_who_sends_little_and_a_large_one_by_who_learns_more(four: Comparison) -> None:
    seeds = [seeds_of(line, "bytes") for line in four.lines]
    small, large = ([reached(own, budget) for own in seeds] for budget in (10 * 1600, 60 * 1600))
    assert best_of(small) == 0  # ten rounds against five
    assert best_of(large) == 1
    assert best_of([None, None]) is None
    said = sentence(["FedAvg", "FedDF"], small, seeds, 10 * 1600)
    assert said.startswith("FedAvg is ahead with ")
    assert "(round 10); FedDF follows with" in said
    own = [one.values[9] - other.values[4] for one, other in zip(*seeds, strict=True)]
    low, high = stats.t.interval(0.95, 2, sum(own) / 3, stats.sem(own))
    assert f", {100 * sum(own) / 3:.1f} [{100 * low:.1f}, {100 * high:.1f}] points behind." in said


def test_budgets_are_round_numbers_between_the_first_and_the_last_round(four: Comparison) -> None:
    budgets = round_budgets(four.lines, "bytes")
    assert budgets == sorted(set(budgets))
    assert 2 <= len(budgets) <= 5
    assert all(1600 <= budget <= 30 * 3200 for budget in budgets)
    assert {f"{budget:e}"[0] for budget in budgets} <= {"1", "2", "5"}
    assert round_budgets([], "bytes") == []


def test_differences_are_taken_seed_by_seed_and_corrected(tmp_path: Path) -> None:
    levels = {"fedavg": 0.70, "fedprox": 0.705, "feddf": 0.9}
    for method, level in levels.items():
        for seed in range(4):
            write_run(tmp_path / f"{method}{seed}", Made(method, seed, rounds=40, level=level))
    found = fedfuse.load_runs(tmp_path)
    last = {row.method: row.accuracy_last.values for row in found.rows if row.accuracy_last}
    apart = dict(zip([row.method for row in found.rows], differences(found.lines, "fedavg"), strict=True))
    assert apart["fedavg"] is None
    raw = {method: stats.ttest_rel(last[method], last["fedavg"]).pvalue for method in ("fedprox", "feddf")}
    smaller, larger = sorted(raw, key=raw.__getitem__)
    assert apart[smaller].p == pytest.approx(min(1, 2 * raw[smaller]))
    assert apart[larger].p == pytest.approx(max(min(1, 2 * raw[smaller]), raw[larger]))
    own = [one - other for one, other in zip(last["feddf"], last["fedavg"], strict=True)]
    low, high = stats.t.interval(0.95, 3, sum(own) / 4, stats.sem(own))
    interval = apart["feddf"].interval
    assert (interval.low, interval.high, interval.seeds) == (pytest.approx(low), pytest.approx(high), 4)
    assert apart["feddf"].verdict == "better"


def test_with_few_seeds_nothing_is_said_and_other_examples_are_no_pair(tmp_path: Path) -> None:
    write_run(tmp_path / "a0", Made("fedavg", 0))
    write_run(tmp_path / "b0", Made("feddf", 0, level=0.9))
    write_run(tmp_path / "c0", Made("fedprox", 0, data_sha256="f" * 64))
    found = fedfuse.load_runs(tmp_path)
    none, few, other = differences(found.lines, reference_of(found.lines))
    assert none is None
    assert other is None
    assert few is not None
    assert (few.verdict, few.interval.low, few.p) == ("too few seeds", None, None)


def test_runs_that_are_alike_are_equal(tmp_path: Path) -> None:
    for seed in range(3):
        folder = write_run(tmp_path / f"a{seed}", Made("fedavg", seed))
        write_run(tmp_path / f"b{seed}", Made("fedprox", seed))
        config = (tmp_path / f"b{seed}" / "config.yaml").read_bytes()
        for file in folder.path.iterdir():
            (tmp_path / f"b{seed}" / file.name).write_bytes(file.read_bytes().replace(b'"fedavg"', b'"fedprox"'))
        (tmp_path / f"b{seed}" / "config.yaml").write_bytes(config)
    found = fedfuse.load_runs(tmp_path)
    (_, same) = differences(found.lines, "fedavg")
    assert same is not None
    assert (same.verdict, same.interval.mean, same.p) == ("equal", 0.0, None)


def test_the_reference_is_fedavg_or_the_first_or_what_was_said(four: Comparison, tmp_path: Path) -> None:
    assert reference_of(four.lines) == "fedavg"
    assert reference_of(four.lines[1:]) is None
    assert reference_of(four.lines[::-1], "FedDF") == "feddf"
    with pytest.raises(ConfigError, match="unknown method 'fedav'"):
        reference_of(four.lines, "fedav")
    for name in ("feddf", "fedbe"):
        write_run(tmp_path / name, Made(name))
    assert reference_of(fedfuse.load_runs(tmp_path).lines) == "fedbe"
