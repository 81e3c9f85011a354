"""Initialisation and pre-training: how a prototype's first weights come about, before round 1."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.start.base import Start
from fedfuse.parts.start.contrastive import Contrast
from fedfuse.parts.start.fresh import Fresh
from fedfuse.parts.start.labelled import Labelled
from fedfuse.parts.start.saved import Saved

AnyStart = Annotated[Start, OneOf(Fresh, Saved, Labelled, Contrast)]

__all__ = ["AnyStart", "Contrast", "Fresh", "Labelled", "Saved", "Start"]
