"""Experiment files that come with the package."""

from __future__ import annotations

from importlib.resources import files


def names() -> list[str]:
    """The presets, in alphabetical order."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in files(__name__).iterdir() if entry.name.endswith(".yaml")
    )


def text(name: str) -> str:
    """The preset's file, comments included."""
    return (files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def description(name: str) -> str:
    """The preset's first comment line."""
    return text(name).splitlines()[0].lstrip("# ").strip()
