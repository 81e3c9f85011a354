"""``fedfuse bench``: tables that fit the terminal, JSON for programs, one sentence for a mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fedfuse
from fedfuse.cli import bench as command
from fedfuse.cli.app import app
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.bench import measure
from fedfuse.experiment.bench.measure import Benchmark, carry_out, pick
from fedfuse.experiment.bench.sheets import markdown
from fedfuse.experiment.bench.turns import Kept, Plan, Progress, Turn

PRIVATE = {"hostname", "path", "user"}


def canned(plan: Plan, kept: Kept, progress: Progress) -> list[Turn]:
    """Everybody has the same numbers, only the last contender fails."""
    assert kept.path.parent == plan.folder
    turns = []
    for workload, number, contender in plan.places():
        numbers = {row.number: 2.0 for row in workload.rows} | {"cpu": 1.0, "wall": 1.0, "fixed_cpu": 3.0}
        failure = "took longer than 1 s" if contender.name == "fedfuse, all cores" else ""
        turn = Turn(workload.code, contender.name, number, numbers, "channels_last yes, workers auto", failure)
        progress.begins(workload, number, contender)
        progress.ends(turn, False)
        turns.append(turn)
    return turns


@pytest.fixture
def canned_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "take_turns", canned)


def invoke(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, ["bench", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("canned_turns")
def test_tables_and_their_meaning(capfd: pytest.CaptureFixture[str]) -> None:
    text = invoke("W1", "W3", "--turns", "2") + capfd.readouterr().out
    assert "W1 turn 1  plain loop" in text
    assert "1.00 [1.00..1.00]" in text
    assert "Says: large batches" in text
    assert "channels_last yes, workers auto" in text.replace("\n", " ")
    assert "No number for fedfuse, all cores: took longer than 1 s." in text
    assert "below 1 is faster" in text


@pytest.mark.usefixtures("canned_turns")
def test_json_for_programs(tmp_path: Path) -> None:
    fedfuse.bench(["W7"], quick=True)
    file = tmp_path / "bench.json"
    invoke("W7", "--quick", "--json", "--out", str(file))
    written = json.loads(file.read_text())
    assert {"machine", "torch", "commit", "date", "cores"} <= written.keys()
    assert not PRIVATE & written.keys()
    assert [table["code"] for table in written["tables"]] == ["W7"]


@pytest.mark.usefixtures("canned_turns")
def test_quick_leaves_out_what_takes_long() -> None:
    assert [table.code for table in fedfuse.bench(quick=True).tables] == ["W1", "W3", "W5", "W7"]
    assert [table.code for table in fedfuse.bench().tables] == ["W1", "W2", "W3", "W4", "W5", "W6", "W7"]


def test_a_workload_that_would_measure_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="W8 has no small version; make bench measures it in full"):
        fedfuse.bench(["w8"])
    with pytest.raises(ConfigError, match="W6 has no quick version; leave out --quick"):
        fedfuse.bench(["W6"], quick=True)


def test_an_unknown_workload_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="unknown workload 'W9'"):
        fedfuse.bench(["W9"])


@pytest.mark.long
def test_a_real_bench_of_a_tiny_workload(tmp_path: Path) -> None:
    (workload,) = pick(["w3"])
    ours = tuple(workload.contender(name) for name in ("plain loop", "fedfuse"))
    plan = Plan([replace(workload, contenders=ours)], "tiny", 1, tmp_path, ("engine.workers=1",))
    done = carry_out(plan, Kept(tmp_path / "turns.jsonl"))
    assert [turn.failure for turn in done.turns] == ["", ""]
    (table,) = done.tables
    assert [line.label for line in table.lines] == ["fedfuse"]
    assert "workers 1" in table.chosen["fedfuse"]
    assert "| fedfuse |" in markdown(done)
    assert isinstance(done, Benchmark)


def test_a_turn_that_was_kept_is_said_to_be(capfd: pytest.CaptureFixture[str]) -> None:
    with command.BenchProgress(command.Console(force_terminal=False)) as progress:
        progress.ends(Turn("W1", "plain loop", 0, {"cpu": 1.0}), True)
    assert capfd.readouterr().out.split() == ["W1", "turn", "1", "plain", "loop", "kept"]
