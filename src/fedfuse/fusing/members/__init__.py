"""Trained models, whatever file they lie in: a reader for each format, and what all of them can do."""

from fedfuse.fusing.members.base import About, Blueprint, Member, Voice
from fedfuse.fusing.members.blueprints import find_blueprint
from fedfuse.fusing.members.find import open_member

__all__ = ["About", "Blueprint", "Member", "Voice", "find_blueprint", "open_member"]
