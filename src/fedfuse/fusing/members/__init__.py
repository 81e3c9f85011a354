"""Trained models, whatever file they lie in: a reader for each format, and what all of them can do."""

from fedfuse.fusing.members.base import About, Blueprint, Member, Voice

__all__ = ["About", "Blueprint", "Member", "Voice"]
