"""What stands in fences on the pages: commands, Python, experiments, and what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {"docs/api.md", "docs/commands.md", "docs/keys.md"}
"""Written from the code, and compared with it; the examples of the API are doctests."""
TRIED_ELSEWHERE = {"docs/own-method.md"}
"""``tests/outside`` runs it: its files are needed there."""

FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n+)?^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|toml))\b[^\n]*\n")


@dataclass(frozen=True)
class Block:
    """One fence of a page; ``reason``: why nobody runs it here, from a comment above it."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that a reader would write it to, which is its first line."""
        named = FILE.match(self.text)
        return named[1] if named else None


def pages() -> list[str]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("papers/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("docs/**/*.md")]
    names = {str(page.relative_to(ROOT)) for page in found}
    return sorted(name for name in names - GENERATED - TRIED_ELSEWHERE if blocks_of(name))


def blocks_of(page: str) -> list[Block]:
    """In the order of the page."""
    return list(_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def texts_of(page: str, language: str) -> list[str]:
    """What stands in the fences of one language."""
    return [block.text for block in blocks_of(page) if block.language == language]


def _blocks(page: str, text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        line = text[: match.start("language")].count("\n") + 1
        inner = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        yield Block(page, line, match["language"], inner, match["reason"])


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with what the page shows of its output."""
    shown: list[tuple[str, str]] = []
    for line in re.sub(r" *\\\n *", " ", block.text).splitlines():
        if line.startswith("$ "):
            shown.append((line.removeprefix("$ "), ""))
        elif shown:
            shown[-1] = (shown[-1][0], f"{shown[-1][1]}{line}\n")
    return shown
