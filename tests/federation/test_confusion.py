"""Confusion tables against counts by hand, as files, and at the end of real runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from sklearn.metrics import confusion_matrix

from fedfuse.core.errors import RunFolderError
from fedfuse.experiment.run import Experiment
from fedfuse.federation.confusion import MOST_CLASSES, Confusion, measured, read, write
from tests.helpers import files_of, make_bank, make_evaluator, make_examples, make_weights, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")


def some(classes: int, count: int = 500) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(classes)
    return tuple(torch.randint(classes, (count,), generator=random) for _ in range(2))  # type: ignore[return-value]


def test_it_is_the_matrix_that_scikit_learn_computes() -> None:
    answers, labels = some(5)
    own = Confusion.of(answers, labels, 5)
    assert own.matrix == tuple(map(tuple, confusion_matrix(labels, answers).tolist()))
    assert own.examples == tuple(Counter(labels.tolist())[number] for number in range(5))
    assert own.right == tuple(int(((answers == labels) & (labels == number)).sum()) for number in range(5))


def test_of_many_classes_there_is_no_matrix_and_of_an_absent_class_no_accuracy() -> None:
    answers, labels = some(MOST_CLASSES + 1, 50)
    own = Confusion.of(answers, labels, MOST_CLASSES + 1)
    assert own.matrix is None
    assert sum(own.examples) == 50
    assert None in own.accuracies
    shares = [share * of for share, of in zip(own.accuracies, own.examples, strict=True) if share is not None]
    assert sum(shares) == pytest.approx(float((answers == labels).sum()))


def test_it_is_measured_as_the_accuracy_is() -> None:
    bank, test = make_bank(), make_evaluator(make_examples(40))
    network = bank.lend("mlp", make_weights(bank, "mlp", 1))
    own = measured(test, network, 3)
    assert sum(own.right) / sum(own.examples) == test.score(network).accuracy


@pytest.mark.parametrize("classes", [3, MOST_CLASSES + 1])
def test_what_was_written_is_read(tmp_path: Path, classes: int) -> None:
    tables = {"small": Confusion.of(*some(classes), classes), 'a "name"': Confusion.of(*some(classes, 9), classes)}
    write(tmp_path / "confusion.json", tables)
    assert read(tmp_path / "confusion.json") == tables


def test_a_run_without_one_has_none(tmp_path: Path) -> None:
    assert read(tmp_path / "confusion.json") == {}


def of_one(examples: object, right: object, matrix: object) -> str:
    return json.dumps({"format": 1, "models": {"a": {"examples": examples, "right": right, "matrix": matrix}}})


WRONG = {
    "no JSON": "{",
    "another format": json.dumps({"format": 2, "models": {}}),
    "a list": "[]",
    "more right than there are": of_one([1], [2], None),
    "a text for a number": of_one(["<b>"], [0], None),
    "truth for a number": of_one([True], [0], None),
    "another matrix": of_one([2], [1], [[1]]),
    "another diagonal": of_one([2, 1], [2, 1], [[1, 1], [0, 1]]),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "confusion.json").write_text(text)
    with pytest.raises(RunFolderError, match="is damaged; bring it back, or remove it"):
        read(tmp_path / "confusion.json")


def test_a_file_of_any_length_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "confusion.json").open("wb") as file:
        file.truncate(1 << 31)
    with pytest.raises(RunFolderError, match="longer than"):
        read(tmp_path / "confusion.json")


@pytest.mark.parametrize("batch_norm", ["average", "batch"])
def test_the_diagonal_of_a_finished_run_is_its_accuracy(tmp_path: Path, batch_norm: str) -> None:
    models = {"small": {"arch": "mlp", "hidden": [5]}, "wide": {"arch": "mlp", "hidden": [9]}}
    federation = {"rounds": 2, "batch_norm": batch_norm}
    result = Experiment(tiny_config("feddf", models=models, federation=federation)).run(tmp_path)
    found = read(result.folder.confusion)
    assert {name: sum(own.right) / sum(own.examples) for name, own in found.items()} == result.accuracy
    assert {own.examples for own in found.values()} == {next(iter(found.values())).examples}
    assert sum(found["small"].examples) == result.summary["data"]["test"]


def test_a_method_that_leaves_no_model_on_the_server_has_none(tmp_path: Path) -> None:
    result = Experiment(tiny_config("local-only")).run(tmp_path)
    assert not result.folder.confusion.exists()


def test_a_run_that_ended_before_its_summary_writes_it_again_and_another_run_removes_it(tmp_path: Path) -> None:
    experiment = Experiment(tiny_config("fedavg"))
    experiment.run(tmp_path)
    before, models = (tmp_path / "confusion.json").read_bytes(), files_of(tmp_path)
    (tmp_path / "summary.json").unlink()
    (tmp_path / "confusion.json").write_text("half a fi")
    experiment.run(tmp_path, resume=True)
    assert (tmp_path / "confusion.json").read_bytes() == before
    assert files_of(tmp_path) == models
    Experiment(tiny_config("local-only")).run(tmp_path, overwrite=True)
    assert not (tmp_path / "confusion.json").exists()
