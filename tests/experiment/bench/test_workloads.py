"""Workloads: what the page says of them, and that every contender of ours does its work."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fedfuse.experiment.bench import loop, networks
from fedfuse.experiment.bench.clock import Moment, forget_peak, median_round, peak_bytes, written_bytes
from fedfuse.experiment.bench.work import Tricks, file_of, read_examples, write_examples
from fedfuse.experiment.bench.workloads import WORKLOADS, fusion, many_rounds, memory, rounds, scale
from fedfuse.experiment.bench.workloads.base import Contender, Outcome, Setup, Workload

PAGE = Path(__file__).parents[3] / "docs" / "performance.md"
TINY = [
    (workload.code, contender.name)
    for workload in WORKLOADS.values()
    for contender in workload.contenders
    if "tiny" in contender.sizes and workload.code in ("W1", "W2", "W3", "W4", "W5", "W7")
]
pytestmark = pytest.mark.usefixtures("without_pictures", "threads_as_before")


@pytest.fixture
def threads_as_before() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.code)
def test_rows_name_contenders_and_these_have_names_of_their_own(workload: Workload) -> None:
    names = [contender.name for contender in workload.contenders]
    assert len(set(names)) == len(names)
    assert {row.contender for row in workload.rows} | {row.base for row in workload.rows} <= {*names, None}
    assert f"| {workload.code} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("code", "name"), TINY, ids=lambda word: str(word))
def test_our_contenders_give_the_numbers_of_their_rows(code: str, name: str, folder: Path) -> None:
    workload = WORKLOADS[code]
    outcome = played(workload.contender(name), folder)
    wanted = {row.number for row in workload.rows if row.contender == name}
    wanted |= {row.base_number or row.number for row in workload.rows if row.base == name}
    assert wanted <= outcome.numbers.keys()
    assert all(math.isfinite(number) for number in outcome.numbers.values())


def played(contender: Contender, folder: Path) -> Outcome:
    assert contender.play is not None
    return contender.play(Setup("tiny", folder, ("engine.workers=1",)))


def test_memory_is_told_in_models(folder: Path) -> None:
    outcome = memory.by_fedfuse("fedavg", 5, Setup("tiny", folder, ("engine.workers=1",)))
    assert outcome.numbers["models"] > 0


def test_the_networks_have_the_parameters_that_the_page_names() -> None:
    sizes = [sum(p.numel() for p in make().parameters()) for make in (networks.convnet, networks.small_convnet)]
    assert sizes == [878_538, 11_274]
    assert all(f"{size:,}" in PAGE.read_text(encoding="utf-8") for size in sizes)


def test_the_loop_takes_the_steps_of_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = rounds.W2["tiny"]
    steps = counted(monkeypatch, torch.optim.SGD, "step")
    path = file_of(work, folder / "steps")
    write_examples(work, path)
    ends = loop.play(work, read_examples(path))
    assert len(ends) == work.rounds
    assert len(steps) == work.rounds * work.sampled * work.epochs * math.ceil(work.examples / work.batch)


def test_tricks_change_no_result_by_much(folder: Path) -> None:
    work = rounds.W1["tiny"]
    path = file_of(work, folder / "tricks")
    write_examples(work, path)
    results = []
    for tricks in (Tricks(), Tricks(channels_last=True, fused=True)):
        torch.manual_seed(0)
        trained = loop._Loop(work, read_examples(path), tricks)
        torch.manual_seed(1)
        trained.round()
        results.append(trained.weights)
    for plain, quick in zip(results[0].values(), results[1].values(), strict=True):
        torch.testing.assert_close(plain, quick, atol=1e-5, rtol=1e-4)


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[None]:
    calls: list[None] = []
    original: Callable[..., object] = getattr(owner, name)

    def call(*arguments: object, **named: object) -> object:
        calls.append(None)
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_rounds_before_the_first_end_do_not_count() -> None:
    ends = [Moment(100, 100, 100), Moment(101, 103, 110), Moment(103, 105, 112)]
    assert median_round(ends) == {"cpu": 1.5, "wall": 2.5, "written": 6}


def test_a_process_knows_its_memory_and_what_it_wrote(tmp_path: Path) -> None:
    before, written = forget_peak(), written_bytes()
    held = bytearray(50_000_000)
    (tmp_path / "file").write_bytes(bytes(1000))
    assert peak_bytes() >= before
    assert written_bytes() - written >= (1000 if written else 0)
    del held


def test_sizes_are_those_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    full = fusion.FUSIONS["full"]
    assert f"{full.fixed} steps and {fusion.FURTHER:,}" in text
    assert f"{full.by_hand} are timed" in text
    assert f"of {scale.FEW}, {scale.SOME:,} and {scale.MANY:,} registered" in text
    assert f"{many_rounds.ROUNDS['full']:,} rounds" in text
