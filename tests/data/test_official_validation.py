"""A dataset's own validation split: read only for those who ask, and then every training example is a client's."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, Splits, load, split
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment

SIZES = {"train": 40, "test": 10, "validation": 15}


@pytest.fixture(autouse=True)
def no_shared_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)


def rows(part: str) -> dict[str, list[object]]:
    size = SIZES[part]
    return {"text": [f"{part} sentence {number}" for number in range(size)], "label": [n % 5 for n in range(size)]}


@pytest.fixture
def sst5(tmp_path: Path) -> Path:
    """A small SST-5 with its three files."""
    for part in SIZES:
        pq.write_table(pa.table(rows(part)), tmp_path / f"sst5-{part}.parquet")
    return tmp_path


def divided(**values: object) -> Splits:
    settings = DataSettings(name="sst5", **values)
    return split(load(settings, Key(0)), settings, Key(1))


def test_all_training_examples_stay_with_the_clients(sst5: Path) -> None:
    whole = load(DataSettings(name="sst5", path=str(sst5)), Key(0))
    asked = load(DataSettings(name="sst5", path=str(sst5), validation="official"), Key(0))
    assert whole.validation is None
    assert asked.validation is not None
    splits = divided(path=str(sst5), validation="official", public=8)
    assert [len(part) for part in (splits.train, splits.validation, splits.public, splits.test)] == [32, 15, 8, 10]
    assert splits.validation.inputs.equal(asked.validation.inputs)
    assert splits.indices.validation is None
    assert sorted([*splits.indices.train, *splits.indices.public]) == list(range(40))


def test_a_share_is_taken_from_the_training_examples_as_before(sst5: Path) -> None:
    with_file = divided(path=str(sst5), validation=0.1)
    (sst5 / "sst5-validation.parquet").unlink()
    without = divided(path=str(sst5), validation=0.1)
    assert len(with_file.validation) == 4
    assert with_file.sha256() == without.sha256()


def test_a_missing_file_is_named(sst5: Path) -> None:
    (sst5 / "sst5-validation.parquet").unlink()
    with pytest.raises(DataError, match=r"but no sst5-validation\*\.parquet; put the validation file beside it"):
        divided(path=str(sst5), validation="official")


def test_labels_of_the_validation_split_are_checked(sst5: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "b"], "label": [0, 5]}), sst5 / "sst5-validation.parquet")
    with pytest.raises(DataError, match=r"\(validation examples\), row 1: label 5 is out of range"):
        divided(path=str(sst5), validation="official")


def test_the_hubs_copy_counts_without_it_only_for_those_who_do_not_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "datasets--SetFit--sst5" / "snapshots" / "main"
    folder.mkdir(parents=True)

    def write(part: str, name: str) -> None:
        lines = zip(*rows(part).values(), strict=True)
        text = "\n".join(json.dumps({"text": text, "label": label}) for text, label in lines)
        (folder / f"{name}.jsonl").write_text(text)

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    write("train", "train")
    write("test", "test")
    assert len(divided(validation=0.1).validation) == 4
    with pytest.raises(DataError, match="SST-5"):
        divided(validation="official")
    write("validation", "dev")
    assert len(divided(validation="official").validation) == 15


def test_a_folder_in_the_layout_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for part in ("train", "test"):
        (tmp_path / "set").mkdir(exist_ok=True)
        pq.write_table(pa.table(rows(part)), tmp_path / "set" / f"{part}-00000-of-00001.parquet")
    settings = DataSettings(name=f"hf:{tmp_path / 'set'}", validation="official")
    with pytest.raises(DataError, match="has no split 'validation'; its splits are: train, test"):
        load(settings, Key(0))
    pq.write_table(pa.table(rows("validation")), tmp_path / "set" / "validation-00000-of-00001.parquet")
    dataset = load(settings, Key(0))
    assert dataset.validation is not None
    assert len(dataset.validation) == 15


@pytest.mark.parametrize("values", [{"name": "ag_news"}, {"name": "digits"}, {"name": "parquet", "path": "x"}])
def test_sets_without_one_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="has no validation split of its own; give a share such as"):
        DataSettings(validation="official", **values)


def test_another_word_is_refused() -> None:
    with pytest.raises(ValidationError, match="'offical' is not a number"):
        DataSettings(name="sst5", validation="offical")


def test_cards_that_have_one_say_how_large_it_is() -> None:
    for name, card in CATALOGUE.items():
        files = [*card.layouts, *([card.hub.files] if card.hub else [])]
        assert {layout.validation is not None for layout in files} <= {card.validation_size is not None}, name


def test_a_vote_is_taken_on_it(sst5: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedfuse.experiment.run.draw_run", lambda *_args, **_options: None)
    config = validate(
        {
            "data": {"name": "sst5", "path": str(sst5), "validation": "official"},
            "partition": {"kind": "iid", "clients": 2},
            "models": {"net": {"arch": "text_cnn", "embedding": 4, "channels": 4}},
            "federation": {"rounds": 2},
            "method": "fedgkd-vote",
        }
    )
    data = Experiment(config).run(sst5 / "run").summary["data"]
    assert (data["train"], data["validation"], data["public"], data["test"]) == (40, 15, 0, 10)
