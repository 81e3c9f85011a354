"""Pictures before the end of a run: when they are drawn, what of, and that the end is as without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fedfuse.experiment import sketching
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sketching import FIRST, SHARE, WORTH, Sketches
from fedfuse.federation import RoundRecord
from fedfuse.federation.state import PrototypeRecord
from tests.experiment.test_resume import StopAt
from tests.helpers import tiny_config


class Drawing:
    """Time that passes when it is told to, and drawings that take some."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now, self.seconds = 1000.0, seconds
        self.drawn: list[int] = []
        self.sketches = Sketches(self._draw, lambda: self.now)

    def _draw(self, history: Sequence[RoundRecord]) -> None:
        self.now += self.seconds
        self.drawn.append(len(history))

    def play(self, rounds: int, seconds: float, accuracy: float | None = 0.5) -> None:
        for number in range(1, rounds + 1):
            self.now += seconds
            self.sketches.look([a_round(accuracy)] * number)


def a_round(accuracy: float | None) -> RoundRecord:
    own = {"mlp": PrototypeRecord(accuracy, None, None)}
    return RoundRecord(
        round=1, clients=(0,), refused=(), screened=(), bytes_up=1, bytes_down=1, training_loss=1.0,
        ensemble_accuracy=None, prototypes=own, seconds=1.0,
    )  # fmt: skip


def test_a_short_run_is_not_drawn_before_its_end():
    drawing = Drawing()
    drawing.play(rounds=10, seconds=FIRST / 20)
    assert drawing.drawn == []


def test_a_long_round_is_drawn_as_soon_as_it_is_over():
    drawing = Drawing()
    drawing.play(rounds=3, seconds=3600)
    assert drawing.drawn == [1, 2, 3]


def test_drawing_takes_no_more_than_its_share():
    drawing = Drawing(seconds=2.0)
    drawing.play(rounds=2000, seconds=1.0)
    assert 2.0 * len(drawing.drawn) <= SHARE * (drawing.now - 1000.0) + 2.0
    assert len(drawing.drawn) > 5


def test_nothing_is_drawn_before_something_was_measured():
    drawing = Drawing()
    drawing.play(rounds=3, seconds=3600, accuracy=None)
    drawing.sketches.end()
    assert drawing.drawn == []


def test_an_interrupted_run_is_drawn_once_if_it_was_worth_it():
    drawing = Drawing()
    drawing.play(rounds=2, seconds=WORTH / 8)
    drawing.sketches.end()
    assert drawing.drawn == []
    drawing.now += WORTH
    drawing.sketches.end()
    drawing.sketches.end()
    assert drawing.drawn == [2]


def test_a_disk_that_is_full_ends_no_run():
    tried = []

    def fail(history: Sequence[RoundRecord]) -> None:
        tried.append(history)
        raise OSError(28, "No space left on device")

    now = 0.0
    sketches = Sketches(fail, lambda: now)
    now = FIRST
    sketches.look([a_round(0.5)])
    assert tried


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketching, "FIRST", 0.0)
    monkeypatch.setattr(sketching, "WORTH", 0.0)
    monkeypatch.setattr(sketching, "SHARE", 1e9)


@pytest.mark.usefixtures("at_once")
def test_after_ctrl_c_there_is_a_picture_and_the_end_draws_the_one_of_a_run_in_one_go(tmp_path: Path):
    config = tiny_config("fedavg", federation={"rounds": 3}, evaluation={"pictures": True})
    Experiment(config).run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(tmp_path / "other", listeners=(StopAt("round_started", 3),))
    pictures = tmp_path / "other" / "pictures"
    assert {path.name for path in pictures.iterdir()} == {"accuracy.png", "partition.png"}
    whole = (tmp_path / "whole" / "pictures" / "accuracy.png").read_bytes()
    assert (pictures / "accuracy.png").read_bytes() != whole
    Experiment(config).run(tmp_path / "other", resume=True)
    assert (pictures / "accuracy.png").read_bytes() == whole


@pytest.mark.usefixtures("at_once")
def test_whoever_wants_no_pictures_gets_none(tmp_path: Path):
    config = tiny_config("fedavg", federation={"rounds": 2}, evaluation={"pictures": False})
    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(tmp_path / "run", listeners=(StopAt("round_started", 2),))
    Experiment(config).run(tmp_path / "run", resume=True)
    assert not (tmp_path / "run" / "pictures").exists()
