"""What trials came to, in a file: a program that was ended goes on where it was, as long as the code is the same."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".reliability"


class Kept:
    """Outcomes by name, a line each."""

    def __init__(self, program: str, *identity: object, fresh: bool = False) -> None:
        name = hashlib.sha256("\n".join([_code(), *map(str, identity)]).encode()).hexdigest()[:12]
        self.path = FOLDER / f"{program}-{name}.jsonl"
        self.path.parent.mkdir(exist_ok=True)
        if fresh:
            self.path.unlink(missing_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.outcomes: dict[str, Any] = dict(json.loads(line) for line in lines if line.endswith("]"))

    def add(self, name: str, outcome: Any) -> None:
        self.outcomes[name] = outcome
        with self.path.open("a") as file:
            file.write(json.dumps([name, outcome]) + "\n")


def _code() -> str:
    """What would make outcomes another's: what is committed, and what is not."""
    places = ("src", "tests/reliability")
    return _git("rev-parse", *(f"HEAD:{place}" for place in places)) + _git("diff", "HEAD", "--", *places)


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout
