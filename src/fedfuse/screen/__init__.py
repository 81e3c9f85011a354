"""Who counts: updates into the updates that are merged and that teach."""

from fedfuse.screen.base import Screen, Screened
from fedfuse.screen.drop_worst import DropWorst

AnyScreen = DropWorst

__all__ = ["AnyScreen", "DropWorst", "Screen", "Screened"]
