"""Which apps a node runs. The code of a run's app comes from whoever starts the run, so a node's owner says which: by
the hash of the app's bundle and of the settings that a run changes in it.

The hash of an app that is run as it is, is that of the bundle which ``flwr build`` makes, on every machine the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import get_fab_metadata
from flwr.common.config import parse_config_args
from flwr.supercore.fab import Fab
from flwr.supercore.run import Run

from fedfuse.core.errors import ConfigError

ANY = "any"
FREE = ("out",)
"""Settings of a run that mean nothing to a node of fedfuse."""


def hash_of(bundle: bytes, settings: Mapping[str, Any]) -> str:
    """What a node's owner accepts: the code, and what the run changes in its settings."""
    code = hashlib.sha256(bundle).hexdigest()
    changed = {key: value for key, value in settings.items() if key not in FREE}
    if not changed:
        return code
    return hashlib.sha256(f"{code} {json.dumps(changed, sort_keys=True)}".encode()).hexdigest()


def hash_of_app(app: Path, run_config: str = "") -> str:
    """The same of an app's folder or of its bundle in a file, and of what ``flwr run --run-config`` is given."""
    try:
        bundle = build_fab_from_disk(app) if app.is_dir() else app.read_bytes()
        return hash_of(bundle, parse_config_args([run_config] if run_config else None))
    except OSError as error:
        raise ConfigError(f"{app}: {error.strerror}; name a hash, the folder of an app, or a bundle") from None
    except (ValueError, click.ClickException) as error:
        raise ConfigError(f"{app} is not a Flower app: {error}") from None


def accepted_hashes(words: Collection[str]) -> list[str]:
    """Hashes as they are, those of apps by their path, and ``any``."""
    return [
        word if word == ANY or re.fullmatch(r"[0-9a-f]{64}", word) else hash_of_app(Path(word).expanduser())
        for word in words
    ]


def reason_to_refuse(fab: Fab, run: Run, accepted: Collection[str]) -> str | None:
    """Why a node does not run this app, for its owner's eyes, or None."""
    if ANY in accepted:
        return None
    mark = hash_of(fab.content, run.override_config)
    if mark not in accepted:
        name = ascii(f"{run.fab_id} {run.fab_version}")[:200]  # a stranger's words, on their way into the log
        return f"the app {name} is not accepted here; look at it, and start this node with --accept {mark}"
    named = (run.fab_id, run.fab_version, fab.hash_str)
    if named != (*get_fab_metadata(fab.content), hashlib.sha256(fab.content).hexdigest()):
        return "the app is not the one that its run names"
    return None
