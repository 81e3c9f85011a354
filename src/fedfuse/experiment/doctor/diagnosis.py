"""What an examination found."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "note", "missing", "broken"]
"""Missing is what one can do without; broken is what fedfuse needs."""
MARKS: dict[State, str] = {"ok": "", "note": "note", "missing": "-", "broken": "BROKEN"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    text: str
    remedy: str = ""
    """What to do about it: a command, or a sentence."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, by section."""

    sections: dict[str, tuple[Finding, ...]]

    @property
    def broken(self) -> tuple[Finding, ...]:
        """What is needed and does not work."""
        return tuple(one for findings in self.sections.values() for one in findings if one.state == "broken")

    @property
    def works(self) -> bool:
        return not self.broken

    def to_json(self) -> dict[str, Any]:
        sections = {title: [asdict(one) for one in findings] for title, findings in self.sections.items()}
        return {"works": self.works, "sections": sections}

    def lines(self, width: int = 80) -> list[str]:
        """A line for each finding, and one for what would mend it."""
        found = [one for findings in self.sections.values() for one in findings]
        names, marks = max(len(one.name) for one in found), max(len(MARKS[one.state]) for one in found)
        lines: list[str] = []
        for title, findings in self.sections.items():
            lines.append(title)
            for one in findings:
                head = f"  {one.name:{names}}  {MARKS[one.state]:{marks}}  "
                text = f"{one.text}: {one.remedy}" if one.remedy else one.text
                lines += _hanging(head, text, width)
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _hanging(head: str, text: str, width: int) -> list[str]:
    room = max(width - len(head), 20)
    first, *rest = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{head}{first}".rstrip(), *(f"{' ' * len(head)}{line}" for line in rest)]
