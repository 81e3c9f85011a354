"""What tests of parts need, of those in the package and of anybody's."""

from fedfuse.testing.check import check_part
from fedfuse.testing.pairwise import pairwise

__all__ = ["check_part", "pairwise"]
