"""What a finished run came to: everything in its folder that no clock has measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from tests.helpers import events_of, files_of, without_seconds

Evidence = Mapping[str, str]


def evidence(folder: Path) -> Evidence:
    """Hashes by name: every final model, the summary, the partition, each round's record and who took part in it."""
    found = {f"final/{name}": content for name, content in files_of(folder / "final").items()}
    found["partition"] = (folder / "partition.json").read_bytes()
    found["summary"] = _plain(json.loads((folder / "summary.json").read_text()))
    found["rounds"] = _plain(events_of(folder, "round_finished"))
    parts = [(event["round"], event["client"]) for event in events_of(folder, "client_finished")]
    found["clients"] = _plain(sorted(parts))
    found["ends"] = _plain(len(events_of(folder, "run_finished")))
    return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}


def difference(one: Evidence, other: Evidence) -> str:
    """The names of what differs; nothing if nothing does."""
    return ", ".join(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def _plain(value: object) -> bytes:
    return json.dumps(without_seconds(value), sort_keys=True).encode()
