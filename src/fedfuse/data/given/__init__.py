"""Data that Python hands over: arrays and tables in memory, known by the hash of what they hold.

An experiment names them by that hash, so that other data is never taken for them. They are written nowhere: who goes on
with such a run in another process gives them again.
"""

from fedfuse.data.given.memory import GIVEN, handed_over, read_given
from fedfuse.data.given.sorting import data_section

__all__ = ["GIVEN", "data_section", "handed_over", "read_given"]
