"""The tutorial's code: its files, its commands, its sections of experiment files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "own-method.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Blocks that begin with the name of a file."""
    named = [re.fullmatch(r"# (\w+\.py)\n(.*)", block, flags=re.DOTALL) for block in blocks("python")]
    return {match[1]: match[2] for match in named if match}


def scripts() -> list[str]:
    return [block for block in blocks("python") if not block.startswith("# ")]


def commands() -> list[str]:
    return [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines() if line[:2] == "$ "]
