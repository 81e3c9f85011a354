from __future__ import annotations

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse_papers.cells import Cell, cells_of
from fedfuse_papers.entries import load_entry
from fedfuse_papers.entry import Entry
from tests.papers.samples import EXPERIMENT, make_entry


def cells(entry: Entry, scale="paper", wanted=None) -> list[Cell]:
    return cells_of("paper/table", entry, scale, wanted)


def labels(entry: Entry, scale="paper", wanted=None) -> list[tuple[str, ...]]:
    return [tuple(cell.labels.values()) for cell in cells(entry, scale, wanted)]


def test_cells_are_the_product_of_the_axes_and_numbers_become_labels() -> None:
    assert labels(make_entry()) == [("FedAvg", "1"), ("FedAvg", "0.1"), ("FedProx", "1"), ("FedProx", "0.1")]


def test_cells_without_and_cells_kept() -> None:
    entry = make_entry(
        without=[{"method": "FedProx", "alpha": 0.1}],
        scales={"paper": {}, "small": {}, "smoke": {"keep": {"alpha": [1]}}},
    )
    assert labels(entry) == [("FedAvg", "1"), ("FedAvg", "0.1"), ("FedProx", "1")]
    assert labels(entry, "smoke") == [("FedAvg", "1"), ("FedProx", "1")]
    assert labels(entry, "paper", {"method": ["FedAvg"]}) == [("FedAvg", "1"), ("FedAvg", "0.1")]


def test_what_is_laid_over_what() -> None:
    scale = {"changes": {"federation": {"rounds": 5}}, "axes": {"method": {"FedProx": {"federation": {"rounds": 7}}}}}
    entry = make_entry(
        experiment={**EXPERIMENT, "federation": {"rounds": 2, "participation": 0.5}},
        axes={
            "method": {
                "FedAvg": {"method": "fedavg", "federation": {"rounds": 3}},
                "FedProx": {"method": "fedprox", "federation": {"rounds": 4}},
            }
        },
        scales={"paper": {}, "small": scale, "smoke": {}},
    )
    rounds = {
        scale: [cell.experiment(0).config.federation.rounds for cell in cells(entry, scale)]
        for scale in ("paper", "small")
    }
    assert rounds == {"paper": [3, 4], "small": [5, 7]}
    assert {cell.experiment(0).config.federation.participation for cell in cells(entry)} == {0.5}


def test_labels_may_change_something_together() -> None:
    both = {"cells": {"method": "FedProx", "alpha": 0.1}, "changes": {"federation": {"rounds": 9}}}
    scale = {"changes": {"federation": {"rounds": 5}}}
    entry = make_entry(together=[both], scales={"paper": {}, "small": scale, "smoke": {}})
    assert [cell.experiment(0).config.federation.rounds for cell in cells(entry)] == [2, 2, 2, 9]
    assert [cell.experiment(0).config.federation.rounds for cell in cells(entry, "small")] == [5, 5, 5, 5]


def test_another_dataset_or_network_replaces_the_whole_section() -> None:
    change = {"data": {"name": "digits"}, "models": {"model": {"arch": "cnn1"}}}
    entry = make_entry(scales={"paper": {}, "small": {}, "smoke": {"changes": change}})
    config = cells(entry, "smoke")[0].experiment(0).config
    assert config.data.public == 0
    assert config.data.examples is None
    assert config.models["model"].model_dump(exclude_none=True) == {"arch": "cnn1"}


def test_a_label_may_change_what_is_read_and_then_shares_the_run() -> None:
    entry = make_entry(axes={"number": {"last": {}, "best": {"read": {"what": "best"}}}})
    last, best = cells(entry)
    assert (last.reading.what, best.reading.what) == ("last", "best")
    assert last.experiment(3).config.sha256() == best.experiment(3).config.sha256()
    assert last.experiment(3).config.sha256() != last.experiment(4).config.sha256()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"without": [{"metod": "FedAvg"}]}, "entry: without: unknown axis 'metod' (did you mean 'method'?)"),
        ({"without": [{"method": "FedAvgg"}]}, "entry: without: unknown method 'FedAvgg' (did you mean 'FedAvg'?)"),
        (
            {"together": [{"cells": {"method": "FedAvg", "alpha": 2}, "changes": {}}]},
            "entry: together: unknown alpha '2' (known: 0.1, 1)",
        ),
        ({"scales": {"paper": {}, "small": {}}}, "entry: scales has no 'smoke'; an entry has smoke, small, paper"),
        (
            {"picture": {"kind": "lines", "x": "alpah"}},
            "entry: picture.x: unknown axis 'alpah' (did you mean 'alpha'?)",
        ),
        ({"read": {"what": "best", "at": 0.5}}, "entry: read: at names a round, but best is about the whole run"),
        ({"tittle": "x"}, "entry: unknown key 'tittle' (did you mean 'title'?)"),
    ],
)
def test_mistakes_in_an_entry_are_said_in_one_sentence(changes, sentence) -> None:
    with pytest.raises(ConfigError) as error:
        make_entry(**changes)
    assert str(error.value) == sentence


def test_unknown_names_on_the_command_line() -> None:
    with pytest.raises(ConfigError, match="unknown table or figure 'feddf/table22'"):
        load_entry("feddf/table22")
    with pytest.raises(ConfigError, match="--cells: unknown axis 'methods'"):
        cells(make_entry(), wanted={"methods": ["FedAvg"]})
    kept = make_entry(scales={"paper": {}, "small": {}, "smoke": {"keep": {"alpha": [1]}}})
    with pytest.raises(ConfigError, match="has no such cell at scale smoke"):
        cells(kept, "smoke", {"alpha": ["0.1"]})
