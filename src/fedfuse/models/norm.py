"""Normalisation of feature maps, with the size of a group stated in one of the two ways the papers use."""

from __future__ import annotations

from typing import Literal

from torch import nn

NormKind = Literal["batch", "group", "none"]

FEDGKD_CHANNELS_PER_GROUP = 16
"""FedGKD's flag counts channels per group; FedDF's counts groups and its value was never printed."""


def norm(kind: NormKind, channels: int, groups: int | None, channels_per_group: int | None) -> nn.Module:
    """The layer for ``channels`` feature maps."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(group_count(channels, groups, channels_per_group), channels)
    return nn.Identity()


def group_count(channels: int, groups: int | None, channels_per_group: int | None) -> int:
    """Into how many groups the channels fall; a ValueError says why they cannot."""
    if groups is not None:
        if channels % groups:
            raise ValueError(f"{channels} channels cannot be split into {groups} equal groups")
        return groups
    size = channels_per_group or FEDGKD_CHANNELS_PER_GROUP
    if channels % size:
        default = "" if channels_per_group else " (the default; set groups or channels_per_group)"
        raise ValueError(f"{channels} channels cannot be split into groups of {size} channels{default}")
    return channels // size
