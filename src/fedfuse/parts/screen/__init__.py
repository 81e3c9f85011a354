"""Client filtering, a part of robust aggregation: updates into the updates that are merged and that teach."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.screen.base import Screen, Screened
from fedfuse.parts.screen.drop_worst import DropWorst
from fedfuse.parts.screen.krum import Krum, MultiKrum
from fedfuse.parts.screen.norm_bound import NormBound
from fedfuse.parts.screen.norm_clip import NormClip

AnyScreen = Annotated[Screen, OneOf(DropWorst, NormBound, NormClip, Krum, MultiKrum)]

__all__ = ["AnyScreen", "DropWorst", "Krum", "MultiKrum", "NormBound", "NormClip", "Screen", "Screened"]
