"""``fedfuse models``: what architectures there are."""

from __future__ import annotations


def models() -> None:
    """List the architectures."""
    from fedfuse.cli.lists import list_models

    list_models()
