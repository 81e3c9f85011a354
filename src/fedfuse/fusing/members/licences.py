"""What a folder says of the licence of its model, and of the model that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.yaml_text import load_yaml
from fedfuse.fusing.members.files import first_bytes

FENCE = "---"
LONGEST = 200_000
"""Bytes of a page that are looked at."""
PAGES = ("README.md", "readme.md", "Readme.md")
LICENCE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")


class Origins(NamedTuple):
    """Of a model."""

    licence: str | None = None
    base_model: str | None = None


def origins_in(folder: Path) -> Origins:
    """From the lines on top of its page, or else the first line of its licence."""
    lines: dict[str, Any] = next((front_matter(folder / page) for page in PAGES if (folder / page).is_file()), {})
    licence = _words(lines.get("license"))
    if licence in (None, "other"):
        licence = _words(lines.get("license_name")) or licence or _first_line_of_licence(folder)
    return Origins(licence, _words(lines.get("base_model")))


def front_matter(page: Path) -> dict[str, Any]:
    """The YAML between two lines of dashes at the beginning of a page; nothing where it cannot be read."""
    lines = first_bytes(page, LONGEST).decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != FENCE:
        return {}
    end = next((place for place, line in enumerate(lines[1:], 1) if line.strip() == FENCE), None)
    if end is None:
        return {}
    try:
        value = load_yaml("\n".join(lines[1:end]), str(page))
    except ConfigError:
        return {}
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> str | None:
    """One word or several."""
    words = value if isinstance(value, list) else [value]
    return shortened(", ".join(word.strip() for word in words if isinstance(word, str) and word.strip())) or None


def _first_line_of_licence(folder: Path) -> str | None:
    for name in LICENCE_FILES:
        if (folder / name).is_file():
            lines = first_bytes(folder / name, LONGEST).decode("utf-8", "replace").splitlines()
            return next((shortened(line.strip(" #")) for line in lines if line.strip(" #")), None)
    return None
