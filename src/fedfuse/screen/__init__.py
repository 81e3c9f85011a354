"""Who counts: updates into the updates that are merged and that teach."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.screen.base import Screen, Screened
from fedfuse.screen.drop_worst import DropWorst

AnyScreen = Annotated[Screen, OneOf(DropWorst)]

__all__ = ["AnyScreen", "DropWorst", "Screen", "Screened"]
