"""A ledger as text: the cells of its tables, once for the terminal, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fedfuse import Provenance
from fedfuse.report.intervals import Interval
from fedfuse_papers.claims import Verdict
from fedfuse_papers.entry import in_words
from fedfuse_papers.ledger import Ledger, Row
from fedfuse_papers.numbers import Printed

NEAR = "within 2 std"
NUMBERS = ("printed", "ours", "seeds", "difference")
CLAIM_COLUMNS = ("verdict", "printed", "ours", "95 % interval", "seeds", "claim")
SHORT = 8
Lines = list[tuple[str, ...]]


def header(ledger: Ledger) -> tuple[str, ...]:
    axes = tuple(ledger.rows[0].labels) if ledger.rows else ()
    return (*axes, *NUMBERS, *((NEAR,) if ledger.scale == "paper" else ()))


def lines(ledger: Ledger) -> Lines:
    """One line per cell; whether ours is near the printed one can only be asked of the printed setting."""
    if ledger.scale != "paper":
        return [_line(row) for row in ledger.rows]
    words = {True: "yes", False: "no", None: "-"}
    return [(*_line(row), words[row.is_near]) for row in ledger.rows]


def claim_lines(ledger: Ledger) -> Lines:
    """One line per claim and pair of cells."""
    return [
        (
            verdict.answer,
            _signed(verdict.printed),
            _signed(verdict.ours.mean if verdict.ours else None),
            _interval(verdict.ours),
            str(verdict.ours.seeds if verdict.ours else 0),
            f"{verdict.claim} ({pair(verdict)})",
        )
        for verdict in ledger.verdicts
    ]


def pair(verdict: Verdict) -> str:
    """What both cells have in common, then what sets them apart."""
    lower = verdict.lower
    alike = [in_words(axis, label) for axis, label in verdict.higher.items() if label == lower[axis]]
    apart = [f"{in_words(a, label)} / {lower[a]}" for a, label in verdict.higher.items() if label != lower[a]]
    return ", ".join([*alike, *apart])


def markdown(ledger: Ledger) -> str:
    """Both tables, ready for a report."""
    scale = f"`{ledger.name}` at scale {ledger.scale}; numbers are in {ledger.unit}, mean ± std over seeds."
    cells = [(*line, _runs(row)) for line, row in zip(lines(ledger), ledger.rows, strict=True)]
    parts = [f"## {ledger.title}", scale, markdown_table((*header(ledger), "runs"), cells)]
    if ledger.verdicts:
        parts.append(markdown_table(CLAIM_COLUMNS, claim_lines(ledger)))
    parts += [f"**Caution:** {sentence}." for sentence in ledger.cautions]
    if ledger.notes:
        parts.append(ledger.notes.strip())
    parts += [provenance(ledger)] if ledger.births else []
    return "\n\n".join(parts) + "\n"


def provenance(ledger: Ledger) -> str:
    """The command, and when, with which code and where its runs were made."""
    seeds = ",".join(map(str, ledger.seeds))
    lines = [f"    fedfuse reproduce {ledger.name} --scale {ledger.scale} --seeds {seeds}", ""]
    for (code, torch, machine), days in _grouped(ledger.births).items():
        period = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        lines.append(f"- Run {period} with {code}, torch {torch}, on {machine}.")
    lines.append(f"- `runs`: the first {SHORT} digits of each run's hash, seed by seed; `-`: not run.")
    return "\n".join(lines)


def _grouped(births: Sequence[Provenance]) -> dict[tuple[str, str, str], list[str]]:
    """The days on which runs were made, by code and machine."""
    days: dict[tuple[str, str, str], list[str]] = {}
    for birth in births:
        own = birth.origin
        code = f"fedfuse {own.fedfuse}" + (f" at commit {own.commit[:SHORT]}" if own.commit else "")
        changed = " and changes" if own.commit and own.commit.endswith("+") else ""
        days.setdefault((code + changed, own.torch, own.machine), []).append(birth.day)
    return days


def _runs(row: Row) -> str:
    return " ".join(f"`{name[:SHORT]}`" for name in row.runs.values()) or "-"


def csv_text(ledger: Ledger) -> str:
    """One line per cell with plain numbers; an empty field is not printed or not measured."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    axes = tuple(ledger.rows[0].labels) if ledger.rows else ()
    writer.writerow([*axes, "printed", "printed_std", "ours", "ours_std", "seeds", "difference", "lower_bound", "runs"])
    for row in ledger.rows:
        theirs = (row.printed.value, row.printed.std) if row.printed else (None, None)
        ours = (row.ours.mean, row.ours.std) if row.ours else (None, None)
        numbers = [*_plain(*theirs, *ours), len(row.values), *_plain(row.difference)]
        writer.writerow([*row.labels.values(), *numbers, "yes" if row.is_bound else "no", " ".join(row.runs.values())])
    return buffer.getvalue()


def markdown_table(columns: Sequence[str], rows: Lines) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (columns, *rows)]
    rule = ["---"] * len(columns)
    return "\n".join(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))


def _line(row: Row) -> tuple[str, ...]:
    return (*row.labels.values(), _printed(row.printed), _ours(row), str(len(row.values)), _signed(row.difference))


def _plain(*values: float | None) -> list[str]:
    return ["" if value is None else f"{value:.6g}" for value in values]


def _printed(printed: Printed | None) -> str:
    if printed is None:
        return "-"
    return f"{printed.value:g}" if printed.std is None else f"{printed.value:g} ± {printed.std:g}"


def _ours(row: Row) -> str:
    if row.ours is None:
        return "-"
    deviation = f" ± {row.ours.std:.2f}" if len(row.values) > 1 else ""
    return f"{'≥ ' if row.is_bound else ''}{row.ours.mean:.2f}{deviation}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _interval(interval: Interval | None) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return "-"
    return f"{interval.low:+.2f} to {interval.high:+.2f}"
