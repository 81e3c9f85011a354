"""Which Flower the door and the nodes' guard were made for."""

from __future__ import annotations

import flwr

from fedfuse.core.errors import FedfuseError

KNOWN = "1.41"


def check_version(version: str = flwr.__version__) -> None:
    """Raise unless Flower's inner workings are the known ones: rather not start than start unguarded."""
    if version.split(".")[:2] != KNOWN.split("."):
        raise FedfuseError(
            f"this is Flower {version}, but what keeps strangers out was made for Flower {KNOWN}; "
            f"pip install 'flwr~={KNOWN}.0'"
        )
