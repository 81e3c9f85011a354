"""The tutorial's code: its files, its commands, its sections of experiment files."""

from __future__ import annotations

import re

from tests.docs.blocks import ROOT, blocks_of, texts_of
from tests.docs.blocks import commands as commands_of

PAGE = "docs/own-method.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return texts_of(PAGE, language)


def files() -> dict[str, str]:
    """Blocks that begin with the name of a file."""
    named = [re.fullmatch(r"# (\w+\.py)\n(.*)", block, flags=re.DOTALL) for block in blocks("python")]
    return {match[1]: match[2] for match in named if match}


def scripts() -> list[str]:
    return [block for block in blocks("python") if not block.startswith("# ")]


def commands() -> list[str]:
    consoles = [block for block in blocks_of(PAGE) if block.language == "console"]
    return [command for block in consoles for command, _ in commands_of(block)]
