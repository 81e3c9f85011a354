"""The smallest members: a matrix each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from fedfuse.fusing.members import About, Member, Voice

FEATURES = 4


class Matrix(Member):
    """Multiplies numbers; counts how often it is asked, takes its time and dies after so many questions if told to."""

    def __init__(self, name: str, names: tuple[str, ...] | None = ("x", "y", "z"), classes: int = 3, seed: int = 0):
        self.matrix = torch.randn(FEATURES, classes, generator=torch.Generator().manual_seed(seed))
        self.questions = 0
        self.dies_after: int | None = None
        self.seconds = 0.0
        self.about = About(
            name=name, origin=name, format="torch module", architecture="matrix", reads="numbers", shape=(FEATURES,),
            classes=classes, class_names=names, parameters=FEATURES * classes, dtype="float32", sha256=f"{name}{seed}",
        )  # fmt: skip

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:  # noqa: ARG002
        yield self.voice

    def voice(self, raw):
        if self.questions == self.dies_after:
            raise KeyboardInterrupt
        self.questions += 1
        time.sleep(self.seconds)
        return raw @ self.matrix
