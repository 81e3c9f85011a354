"""What is not the file of a model gets a sentence that helps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_a_run_folder_is_not_a_model_but_has_one(tmp_path: Path) -> None:
    result = Experiment(tiny_config("fedavg")).run(tmp_path / "run")
    model = tmp_path / "run" / "final" / "mlp.safetensors"
    for folder in (tmp_path / "run", model.parent):
        sentence = f"{folder} is a folder; give the file of a model, for example {model}"
        with pytest.raises(DataError, match=re.escape(sentence)):
            fedfuse.load_model(folder)
    fedfuse.load_model(model)
    with pytest.raises(ConfigError, match=r"unknown model 'nlp' \(did you mean 'mlp'\?\)"):
        result.model("nlp")


def test_other_places(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist$"):
        fedfuse.load_model(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"is a folder; give the file of a model$"):
        fedfuse.load_model(tmp_path)
    (tmp_path / "text").write_text("no tensors here")
    with pytest.raises(DataError, match="text is not a model saved by fedfuse"):
        fedfuse.load_model(tmp_path / "text")


def test_the_package_names_what_it_offers() -> None:
    assert dir(fedfuse) == sorted(fedfuse.__all__)
    assert all(hasattr(fedfuse, name) for name in fedfuse.__all__)
