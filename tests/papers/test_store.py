"""Runs by their content: made once, found again, taken up where they stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse import RoundRecord, load_run
from fedfuse.federation.state import PrototypeRecord
from fedfuse_papers.cells import cells_of
from fedfuse_papers.entry import Reading
from fedfuse_papers.ledger import ledger
from fedfuse_papers.store import Measured, Store, is_finished, read
from tests.helpers import events_of, files_of
from tests.papers.samples import make_entry

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "reproduction")


def finish(store: Store, cells, seeds) -> int:
    """How many runs were not there yet."""
    runs = {folder: run for folder, run in store.runs(cells, seeds).items() if not is_finished(folder)}
    for folder, experiment in runs.items():
        experiment.run(folder, resume=True)
    return len(runs)


def test_a_finished_cell_is_never_run_again_when_a_table_grows(store: Store) -> None:
    entry = make_entry()
    cells = cells_of("p/t", entry, "paper")
    assert finish(store, cells[:1], [0]) == 1
    before = files_of(store.path)
    assert finish(store, cells, [0]) == 3
    assert finish(store, cells, [0, 1]) == 4
    assert finish(store, cells, [0, 1]) == 0
    assert before.items() <= files_of(store.path).items()


def test_entries_with_the_same_content_share_a_run_whatever_they_are_called(store: Store) -> None:
    one = cells_of("feddf/table1", make_entry(), "paper")[0]
    other = cells_of("thesis/figure9", make_entry(title="Another"), "small")[0]
    assert one.experiment(0).config.name != other.experiment(0).config.name
    assert store.folder(one.experiment(0)) == store.folder(other.experiment(0))


def test_an_interrupted_run_goes_on_where_it_stopped(store: Store, tmp_path: Path) -> None:
    (cell,) = cells_of("p/t", make_entry(), "paper", {"method": ["FedAvg"], "alpha": ["1"]})
    ((folder, experiment),) = store.runs([cell], [0]).items()

    def stop(event) -> None:
        if event["event"] == "round_started" and event["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(folder, resume=True, listeners=(stop,))
    assert store.measure(cell, 0) is None
    assert finish(store, [cell], [0]) == 1
    assert len(events_of(folder, "run_resumed")) == 1
    straight = cell.experiment(0).run(tmp_path / "straight")
    assert store.measure(cell, 0) == Measured(100 * straight.accuracy["model"])


def test_the_ledger_shows_what_is_finished(store: Store) -> None:
    entry = make_entry()
    cells = cells_of("feddf/t", entry, "paper")
    finish(store, cells[:2], [0, 1])
    result = ledger("feddf/t", entry, (), cells, "paper", [0, 1], store)
    assert [len(row.values) for row in result.rows] == [2, 2, 0, 0]
    assert result.finished == 2
    summaries = [load_run(store.folder(cells[0].experiment(seed))).summary for seed in (0, 1)]
    accuracies = [100 * summary["prototypes"]["model"]["accuracy_last"] for summary in summaries]
    assert result.rows[0].ours.mean == pytest.approx(sum(accuracies) / 2)


def record(number: int, accuracy: float, before: float, ensemble: float) -> RoundRecord:
    prototypes = {"a": PrototypeRecord(0.01, 0, 0.01), "b": PrototypeRecord(accuracy, 0, before)}
    return RoundRecord(number, (), (), (), 0, 0, None, ensemble, prototypes, 0, {0: 0.2, 1: 0.4})


ROUNDS = [record(1, 0.3, 0.2, 0.5), record(2, 0.7, 0.6, 0.8), record(3, 0.6, 0.4, 0.9), record(4, 0.5, 0.1, 0.6)]
SUMMARY = {
    "rounds": 4,
    "prototypes": {
        "a": {"accuracy_best": 0.01, "rounds_to_target": None},
        "b": {"accuracy_best": 0.7, "rounds_to_target": 2},
    },
}


@pytest.mark.parametrize(
    ("reading", "value"),
    [
        ({}, 50),
        ({"model": "a"}, 1),
        ({"what": "best"}, 70),
        ({"what": "before_fusion"}, 10),
        ({"what": "ensemble"}, 60),
        ({"what": "clients"}, 30),
        ({"at": 0.5}, 70),
        ({"at": 0.01}, 30),
        ({"at": 0.75, "what": "ensemble"}, 90),
        ({"what": "rounds_to_target"}, 2),
    ],
)
def test_readings(reading, value) -> None:
    assert read(Reading(**reading), SUMMARY, ROUNDS) == Measured(pytest.approx(value))


def test_clients_count_with_their_latest_models_up_to_the_round() -> None:
    def asked(number: int, accuracy: dict[int, float]) -> RoundRecord:
        models = {"a": PrototypeRecord(0.5), "b": PrototypeRecord(0.5)}
        return RoundRecord(number, (), (), (), 0, 0, None, None, models, 0, client_accuracy=accuracy)

    rounds = [asked(1, {0: 0.2, 1: 0.4}), asked(2, {1: 0.6}), asked(3, {2: 0.9})]
    assert read(Reading(what="clients"), SUMMARY, rounds) == Measured(pytest.approx(100 * (0.2 + 0.6 + 0.9) / 3))
    assert read(Reading(what="clients", at=0.66), SUMMARY, rounds) == Measured(pytest.approx(100 * (0.2 + 0.6) / 2))


def test_a_round_that_was_not_measured_gives_way_to_the_next_one() -> None:
    unmeasured = RoundRecord(2, (), (), (), 0, 0, None, None, {"a": PrototypeRecord(), "b": PrototypeRecord()}, 0)
    rounds = [ROUNDS[0], unmeasured, *ROUNDS[2:]]
    assert read(Reading(at=0.5), SUMMARY, rounds) == Measured(pytest.approx(60))


def test_a_target_that_was_not_reached_counts_with_the_rounds_as_a_lower_bound() -> None:
    assert read(Reading(what="rounds_to_target", model="a"), SUMMARY, ROUNDS) == Measured(4, is_bound=True)
