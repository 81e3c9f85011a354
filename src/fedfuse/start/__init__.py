"""How a prototype's first weights come about, before round 1."""

from typing import Annotated

from pydantic import Field

from fedfuse.start.base import Start
from fedfuse.start.contrastive import Contrast
from fedfuse.start.fresh import Fresh
from fedfuse.start.labelled import Labelled
from fedfuse.start.saved import Saved

AnyStart = Annotated[Fresh | Saved | Labelled | Contrast, Field(discriminator="kind")]

__all__ = ["AnyStart", "Contrast", "Fresh", "Labelled", "Saved", "Start"]
