"""Every mismatch before any work: a row for each model, with what it is and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedfuse.core.errors import ConfigError
from fedfuse.fusing.members import About, Member
from fedfuse.report.sheet import Sheet


@dataclass(frozen=True)
class Finding:
    """What was found out about one thing that a fusion is given: a model, the data, the student."""

    name: str
    problem: str
    is_remark: bool = False
    """Whether it is only to be known, and stands in nobody's way."""


@dataclass(frozen=True)
class Checked:
    """All findings, and the models that could be opened."""

    members: Sequence[Member]
    findings: Sequence[Finding]

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.is_remark]

    def require(self) -> None:
        """Raise a ConfigError if anything stands in the way."""
        if not self.problems:
            return
        first, *others = self.problems
        more = f" ({len(others)} more: --check shows all)" if others else ""
        raise ConfigError(f"{first.problem}{more}")

    def sheet(self) -> Sheet:
        """The models that could be opened."""
        rows = [((about.name, about.format, about.architecture), _columns(about)) for about in self._abouts]
        headings = ("reads", "shape", "classes", "parameters", "type", "licence")
        return Sheet("models", ("model", "format", "network"), headings, rows)

    def lines(self) -> list[str]:
        """What was found, one sentence each: first what stands in the way."""
        said = [f"problem: {one.problem}" for one in self.problems]
        return said + [f"note: {one.problem}" for one in self.findings if one.is_remark]

    @property
    def _abouts(self) -> list[About]:
        return [member.about for member in self.members]


def remarks(members: Sequence[Member]) -> list[Finding]:
    """What whoever fuses these models should know."""
    found = [Finding(m.about.name, f"{m.about.name}: {note}", True) for m in members for note in m.about.notes]
    seen: dict[str, str] = {}
    for about in (member.about for member in members):
        if about.sha256 in seen:
            text = f"{about.name} is the same model as {seen[about.sha256]}, so that its word counts twice"
            found.append(Finding(about.name, text, True))
        seen.setdefault(about.sha256, about.name)
    licences = {about.licence or "unknown" for about in (member.about for member in members)}
    if len(licences) > 1 or licences == {"unknown"}:
        names = ", ".join(f"{m.about.name}: {m.about.licence or 'unknown'}" for m in members)
        found.append(Finding("licence", f"look at the licences before you share the result ({names})", True))
    return found


def same_kind(members: Sequence[Member]) -> list[Finding]:
    """Models that read something else than the first one."""
    if not members:
        return []
    first = members[0].about
    return [
        Finding(about.name, f"{about.name} reads {about.reads}, but {first.name} reads {first.reads}")
        for about in (member.about for member in members)
        if about.reads != first.reads
    ]


def _columns(about: About) -> tuple[str, ...]:
    shape = "any" if about.shape is None else "x".join(map(str, about.shape))
    return about.reads, shape, str(about.classes), f"{about.parameters:,}", about.dtype, about.licence or "unknown"
