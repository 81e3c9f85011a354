"""Every entry of the package: it expands, its numbers and claims are the papers', and it runs at scale smoke."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.data import CATALOGUE
from fedfuse.models import ARCHITECTURES
from fedfuse_papers.cells import Cell, cells_of
from fedfuse_papers.entries import PAPERS, claims_of, load_entry, names
from fedfuse_papers.entry import SCALES
from fedfuse_papers.ledger import ledger
from fedfuse_papers.numbers import matching
from fedfuse_papers.store import Store

TEXT_DATA, TEXT_MODELS = {"ag_news", "sst2", "sst5"}, {"distilbert", "text_cnn"}


def is_buildable(cell: Cell) -> bool:
    """Whether this version has the data and networks that a cell names; only those for text may be missing."""
    data = {cell.raw["data"]["name"], cell.raw.get("source", {}).get("data", {}).get("name", "digits")}
    networks = {model["arch"] for model in cell.raw["models"].values()}
    missing = (data - CATALOGUE.keys()) | (networks - ARCHITECTURES.keys())
    assert missing <= TEXT_DATA | TEXT_MODELS
    return not missing


def test_all_papers_have_their_tables() -> None:
    listed = set(names())
    assert {f"feddf/table{number}" for number in range(1, 9)} <= listed
    assert {f"fedbe/table{number}" for number in range(1, 9)} <= listed
    assert {f"fedgkd/table{number}" for number in range(3, 10)} <= listed
    assert {f"thesis/table4.{number}" for number in (1, 2, 3)} <= listed
    assert {name.split("/")[0] for name in listed} == set(PAPERS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", names())
def test_every_cell_is_a_valid_experiment(name: str, scale) -> None:
    for cell in cells_of(name, load_entry(name), scale):
        if is_buildable(cell):
            cell.experiment(0)


@pytest.mark.parametrize("name", names())
def test_cells_that_differ_at_paper_differ_at_small(name: str) -> None:
    """Whatever `small` changes for all cells, it must not undo what tells two of them apart."""
    entry = load_entry(name)
    cells = [cell for cell in cells_of(name, entry, "small") if is_buildable(cell)]
    printed = {tuple(cell.labels.values()): cell for cell in cells_of(name, entry, "paper")}
    experiments: dict[str, str] = {}
    for cell in cells:
        full = printed.get(tuple(cell.labels.values()))
        if full is None or not is_buildable(full):
            continue
        small, large = (each.experiment(0).config.sha256() for each in (cell, full))
        assert experiments.setdefault(small, large) == large, f"{cell.title} is the same experiment as another cell"


@pytest.mark.parametrize("name", names())
def test_smoke_needs_no_files(name: str) -> None:
    for cell in cells_of(name, load_entry(name), "smoke"):
        config = cell.experiment(0).config
        assert not CATALOGUE[config.data.name].layouts
        assert config.source.kind != "dataset" or not CATALOGUE[config.source.data.name].layouts


@pytest.mark.parametrize("name", [name for name in names() if load_entry(name).printed])
def test_every_printed_number_has_one_cell(name: str) -> None:
    entry = load_entry(name)
    paper = name.split("/")[0]
    everything = matching(paper, entry.printed, {})
    found = [row for labels in entry.combinations("paper") for row in matching(paper, entry.printed, labels)]
    assert len(found) == len(entry.combinations("paper"))
    assert {id(row) for row in found} == {id(row) for row in everything}


@pytest.mark.parametrize("name", [name for name in names() if load_entry(name).printed])
def test_scale_paper_has_the_setting_that_is_printed_beside_each_number(name: str) -> None:
    entry = load_entry(name)
    for cell in cells_of(name, entry, "paper"):
        if cell.labels.get("method") == "FedMA" or not is_buildable(cell):
            continue  # one of FedMA's printed rounds is nine of ours, five epochs each
        config = cell.experiment(0).config
        ours = {
            "n_clients": config.partition.clients,
            "C": config.federation.participation,
            "clients_per_round": config.federation.clients_per_round,
            "local_epochs": config.training.epochs,
            "rounds": config.federation.rounds,
            "batch": config.training.batch_size,
            "alpha": getattr(config.partition, "alpha", None),
        }
        (row,) = matching(name.split("/")[0], entry.printed, cell.labels)
        assert {key: value for key, value in row.items() if key in ours} == {k: v for k, v in ours.items() if k in row}


@pytest.mark.parametrize("name", names())
def test_claims_are_true_in_print(name: str, tmp_path: Path) -> None:
    entry, claims = load_entry(name), claims_of(name)
    cells = cells_of(name, entry, "paper")
    verdicts = ledger(name, entry, claims, cells, "paper", [], Store(tmp_path)).verdicts
    assert {verdict.claim for verdict in verdicts} == {claim.says for claim in claims}
    for verdict in verdicts:
        assert verdict.printed is None or verdict.printed > 0, verdict


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One for all entries, since many share runs."""
    return Store(tmp_path_factory.mktemp("reproduction"))


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", names())
def test_every_entry_runs_at_scale_smoke(name: str, store: Store) -> None:
    entry = load_entry(name)
    cells = cells_of(name, entry, "smoke")
    for folder, experiment in store.runs(cells, [0]).items():
        experiment.run(folder, resume=True)
    rows = ledger(name, entry, claims_of(name), cells, "smoke", [0], store).rows
    assert [row.labels for row in rows] == [cell.labels for cell in cells]
    assert all(row.ours is not None and 0 <= row.ours.mean <= 100 for row in rows)
