"""What is left to fedfuse is decided once, written down, and kept by whoever goes on with the run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.core.errors import RunFolderError
from fedfuse.experiment import playing
from fedfuse.experiment.config import read_yaml
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.runtime import layout
from tests.helpers import tiny_config

CPU = torch.device("cpu")
IMAGES = (1, 8, 8)


class Viewing(nn.Module):
    """What many write: it works as long as images lie channels-first."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(256, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.conv(x).view(len(x), -1))


CONVOLVING = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
PLAIN = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


@pytest.mark.parametrize(
    ("networks", "shape", "device", "answer"),
    [
        ([CONVOLVING], IMAGES, "cpu", True),
        ([CONVOLVING, PLAIN], IMAGES, "cpu", True),
        ([PLAIN], IMAGES, "cpu", False),
        ([Viewing()], IMAGES, "cpu", False),
        ([CONVOLVING, Viewing()], IMAGES, "cpu", False),
        ([CONVOLVING], IMAGES, "cuda", False),
        ([PLAIN], (64,), "cpu", False),
    ],
)
def test_where_channels_last_pays(networks, shape, device, answer):
    assert layout.pays(networks, shape, torch.device(device)) is answer
    assert all(p.is_contiguous() for network in networks for p in network.parameters()), "a trial leaves no trace"


def test_a_trial_draws_no_random_number():
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout(), nn.Flatten())
    before = torch.get_rng_state()
    layout.pays([network], IMAGES, CPU)
    assert torch.equal(torch.get_rng_state(), before)


CHOOSING = {"channels_last": "auto"}


def experiment(compute, rounds=2):
    images = {"name": "digits", "public": 100, "train_limit": 200, "test_limit": 50}
    return Experiment(
        tiny_config(data=images, models={"net": {"arch": "cnn1"}}, compute=compute, federation={"rounds": rounds})
    )


@pytest.mark.usefixtures("without_pictures")
class TestARun:
    def test_its_folder_says_what_was_chosen(self, tmp_path):
        left, said = (experiment({"channels_last": value}).run(tmp_path / str(value)) for value in ("auto", True))
        assert read_yaml(left.folder.config)["compute"]["channels_last"] is True
        assert left.summary["prototypes"] == said.summary["prototypes"]

    def test_who_resumes_it_keeps_the_choice(self, tmp_path, monkeypatch):
        monkeypatch.setattr(layout, "pays", lambda *_: False)
        experiment(CHOOSING).run(tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            experiment(CHOOSING).run(tmp_path / "cut", listeners=(_stop_after(1),))
        monkeypatch.setattr(layout, "pays", lambda *_: True)
        resumed = experiment(CHOOSING).run(tmp_path / "cut", resume=True)
        assert read_yaml(resumed.folder.config)["compute"]["channels_last"] is False
        assert resumed.summary["prototypes"] == RunFolder(tmp_path / "whole").read_summary()["prototypes"]

    def test_another_choice_is_another_experiment(self, tmp_path):
        experiment(CHOOSING).run(tmp_path / "run")
        with pytest.raises(RunFolderError, match=r"compute\.channels_last is True there and False here"):
            experiment({"channels_last": False}).run(tmp_path / "run", resume=True)
        assert experiment(CHOOSING).run(tmp_path / "run", resume=True).is_finished
        assert Experiment.load(tmp_path / "run").run(tmp_path / "run", resume=True).is_finished


def _stop_after(number):
    def listener(event):
        if event["event"] == "round_started" and event["round"] > number:
            raise KeyboardInterrupt

    return listener


def test_pictures_only_where_they_are_wanted(tmp_path):
    with_pictures, without = (tiny_config(evaluation={"pictures": wanted}) for wanted in (True, False))
    assert with_pictures.sha256() == without.sha256(), "whether a run is drawn is no part of what it is"
    assert not Experiment(without).run(tmp_path / "run").folder.pictures.exists()


@pytest.mark.usefixtures("without_pictures")
def test_short_rounds_share_a_checkpoint_and_lose_nothing(tmp_path, monkeypatch):
    saved, save = [], playing.save_checkpoint
    monkeypatch.setattr(
        playing, "save_checkpoint", lambda *given: saved.append(given[1].snapshot.server.round) or save(*given)
    )
    rounds = {"federation": {"rounds": 4, "checkpoint_every": "auto"}}
    whole = Experiment(tiny_config(**rounds)).run(tmp_path / "whole")
    assert saved == [1, 4]
    monkeypatch.setattr(playing, "LEAST_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        Experiment(tiny_config(**rounds)).run(tmp_path / "cut", listeners=(_stop_after(2),))
    assert saved[2:] == [1, 2]
    again = Experiment(tiny_config(**rounds)).run(tmp_path / "cut", resume=True)
    assert again.summary["prototypes"] == whole.summary["prototypes"]
