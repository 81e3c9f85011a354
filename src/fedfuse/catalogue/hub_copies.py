"""Files of the Hugging Face hub that are on this machine already."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fedfuse.catalogue.card import Hub, Layout
from fedfuse.core.files import cache_folder


def local_copies(hub: Hub) -> list[Path]:
    """Folders that may hold the files: the snapshots in the cache of Hugging Face's tools, then our own."""
    snapshots = _hugging_face_cache() / f"datasets--{hub.name.replace('/', '--')}" / "snapshots"
    return [*sorted(snapshots.glob("*")), own_folder(hub)]


def is_complete(folder: Path, files: Layout) -> bool:
    """Whether every part is there with all its files, which are numbered ``...-00000-of-00002``."""
    parts = [list(folder.glob(pattern)) for pattern in files.parts.values()]
    return all(part and len(part) == _announced(part[0].name) for part in parts)


def _announced(name: str) -> int:
    number = re.search(r"-of-(\d+)", name)
    return int(number[1]) if number else 1


def offline() -> bool:
    """Whether the user forbids the network."""
    return bool(os.environ.get("HF_HUB_OFFLINE") or os.environ.get("HF_DATASETS_OFFLINE"))


def _hugging_face_cache() -> Path:
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def own_folder(hub: Hub) -> Path:
    return cache_folder() / "hub" / hub.name.replace("/", "--")
