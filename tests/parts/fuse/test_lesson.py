"""A distillation that is interrupted anywhere and gone on with ends with the bits of one that was left alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.parts.fuse.distiller import DistillContext, Distiller
from fedfuse.parts.fuse.lesson import Bookmark
from fedfuse.parts.fuse.swa import Swa
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd
from tests.helpers import make_evaluator, make_examples, make_source
from tests.parts.fuse.test_distiller import lessons_of

STEPS = 23


class PulledPlugError(Exception):
    """Somebody pulled the plug."""


class Kept(Bookmark):
    """Keeps every state in a file, and pulls the plug when ``plug`` steps were taken."""

    def __init__(self, path, plug=None):
        self.path, self.plug = path, plug

    def read(self):
        return read_safetensors(self.path)[0] if self.path.exists() else None

    def offer(self, lesson):
        write_safetensors(self.path, lesson.state(), {})
        if lesson.taken == self.plug:
            raise PulledPlugError


def network():
    """BatchNorm has statistics, dropout draws numbers, and one parameter never has a gradient."""
    with Key(1).default_generator():
        layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3))
        layers.register_parameter("idle", nn.Parameter(torch.ones(2)))
        return layers


def distilled(distiller, bookmark, validation):
    student = network()
    context = DistillContext(make_source(20), validation, Key(0), lambda *_: None, bookmark)
    return student, distiller.distil(student, lessons_of(STEPS), context)


WAYS = {
    "adam": {"optimizer": Adam(learning_rate=0.05), "keep": "last"},
    "momentum": {"optimizer": Sgd(learning_rate=0.2, momentum=0.9), "keep": "last", "clip_norm": 1.0},
    "plain": {"optimizer": Sgd(learning_rate=0.2), "keep": "last"},
    "best": {"optimizer": AdamW(learning_rate=0.05), "keep": "best", "patience": 12, "keep_start": True},
    "swa": {"optimizer": Adam(learning_rate=0.05), "keep": "last", "swa": Swa(collect_after=3, cycle=2)},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("plug", [4, 12, 20])
def test_going_on_gives_the_same_bits(way, plug, tmp_path):
    distiller = Distiller(steps=STEPS, evaluate_every=4, **WAYS[way])
    validation = make_evaluator(make_examples(30)) if way == "best" else None
    alone, expected = distilled(distiller, None, validation)
    bookmark = tmp_path / "lesson.safetensors"
    if expected.steps > plug:
        with pytest.raises(PulledPlugError):
            distilled(distiller, Kept(bookmark, plug), validation)
        torch.manual_seed(plug)  # whatever happens in between
        torch.rand(3)
    student, result = distilled(distiller, Kept(bookmark), validation)
    assert result == expected
    for name, tensor in alone.state_dict().items():
        assert torch.equal(tensor, student.state_dict()[name]), name


def test_what_is_kept_is_more_than_the_weights(tmp_path):
    """Going on from the weights alone would end elsewhere, so that the test above can fail."""
    distiller = Distiller(steps=STEPS, evaluate_every=4, **WAYS["adam"])
    alone, _ = distilled(distiller, None, None)
    kept = Kept(tmp_path / "lesson.safetensors", 12)
    with pytest.raises(PulledPlugError):
        distilled(distiller, kept, None)
    state = {name: t for name, t in kept.read().items() if not name.startswith(("optimizer/", "random/"))}
    write_safetensors(kept.path, state, {})
    student, _ = distilled(distiller, Kept(kept.path), None)
    assert not torch.equal(alone[0].weight, student[0].weight)
