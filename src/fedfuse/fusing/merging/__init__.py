"""Merges of checkpoints as they lie in files, piece by piece, so that they may be larger than the memory."""

from fedfuse.fusing.merging.checkpoint import Checkpoint
from fedfuse.fusing.merging.merge_files import MergedFiles, merge_files

__all__ = ["Checkpoint", "MergedFiles", "merge_files"]
