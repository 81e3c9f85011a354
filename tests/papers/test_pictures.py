"""One entry of every kind of picture, drawn from its runs at scale smoke."""

from __future__ import annotations

import pytest

from fedfuse_papers import pictures
from fedfuse_papers.cells import cells_of
from fedfuse_papers.entries import load_entry
from fedfuse_papers.pictures import DRAWINGS, draw_entry
from fedfuse_papers.store import Store
from tests.report.samples import check_picture

ENTRIES = {
    "curves": "feddf/figure4",
    "lines": "feddf/figure6-steps",
    "partitions": "feddf/figure2-top",
    "boundaries": "feddf/figure1",
    "simplex": "fedbe/figure1",
    "confidence": "fedbe/figure8",
    "features": "fedgkd/figure2",
    "latent": "thesis/figure3.2",
}


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("kind", DRAWINGS)
def test_every_kind_of_picture(kind, tmp_path) -> None:
    name, store = ENTRIES[kind], Store(tmp_path)
    entry = load_entry(name)
    cells = [cell for cell in cells_of(name, entry, "smoke") if cell.labels.get("method") != "FedProx"]
    assert entry.picture.kind == kind
    assert not draw_entry(tmp_path / "picture.png", entry, cells, [0], store)
    for folder, experiment in store.runs(cells, [0]).items():
        experiment.run(folder)
    assert draw_entry(tmp_path / "picture.png", entry, cells, [0, 1], store)
    check_picture(tmp_path / "picture.png", 400, 300)


@pytest.mark.usefixtures("without_pictures")
def test_lines_along_an_axis_with_one_label_become_learning_curves(tmp_path, monkeypatch) -> None:
    name, store, drawn = "feddf/figure5", Store(tmp_path), {}
    monkeypatch.setattr(pictures, "draw_comparison", lambda _path, curves, *_: drawn.update(curves))
    entry = load_entry(name)
    cells = cells_of(name, entry, "smoke", {"source": ["FedAvg", "random noise"]})
    for folder, experiment in store.runs(cells, [0]).items():
        experiment.run(folder)
    assert draw_entry(tmp_path / "picture.png", entry, cells, [0], store)
    assert {label: [len(run) for run in runs] for label, runs in drawn.items()} == {"FedAvg": [2], "random noise": [2]}
