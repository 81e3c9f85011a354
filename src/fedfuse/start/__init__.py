"""How a prototype's first weights come about, before round 1."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.start.base import Start
from fedfuse.start.contrastive import Contrast
from fedfuse.start.fresh import Fresh
from fedfuse.start.labelled import Labelled
from fedfuse.start.saved import Saved

AnyStart = Annotated[Start, OneOf(Fresh, Saved, Labelled, Contrast)]

__all__ = ["AnyStart", "Contrast", "Fresh", "Labelled", "Saved", "Start"]
