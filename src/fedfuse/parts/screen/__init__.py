"""Client filtering, a part of robust aggregation: updates into the updates that are merged and that teach."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.screen.base import Screen, Screened
from fedfuse.parts.screen.drop_worst import DropWorst

AnyScreen = Annotated[Screen, OneOf(DropWorst)]

__all__ = ["AnyScreen", "DropWorst", "Screen", "Screened"]
