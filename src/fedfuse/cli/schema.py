"""``fedfuse schema``: what an experiment file may hold, for programs."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON schema of an experiment file."""
    from fedfuse.core.plain_json import dumps
    from fedfuse.experiment.config import json_schema

    sys.stdout.write(dumps(json_schema(), indent=2) + "\n")
