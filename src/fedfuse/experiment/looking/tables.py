"""A comparison as a table: for the terminal, for README files, papers and programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.plain_json import dumps
from fedfuse.core.views import FORMATS, WIDTHS, Format, Width
from fedfuse.experiment.looking.columns import SAID, Column, Look, Shown, chosen, columns, telling
from fedfuse.experiment.looking.grouping import Line, examples_of
from fedfuse.experiment.looking.pairing import Difference, called, differences, label_of, reference_of
from fedfuse.experiment.looking.rows import Row
from fedfuse.report.sheet import Names, Sheet

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison

SPENT = ("bytes_up", "bytes_down", "seconds")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


def comparison_sheet(
    comparison: Comparison,
    width: Width = "std",
    names: Sequence[str] = (),
    digits: int | None = None,
    reference: str | None = None,
    titles: bool = False,
) -> Sheet:
    """Methods side by side; unless columns are named, the usual ones, without those that say nothing.

    The best of the rows about the same examples are marked. ``titles`` are the methods' names in papers.
    """
    _check(width, digits)
    rows, lines = comparison.rows, comparison.lines
    against = reference_of(lines, reference) if "difference" in names else None
    if "difference" in names and against is None:
        raise ConfigError("the column 'difference' is of several rows, and here is only one")
    apart = differences(lines, against)
    known, keys, look = columns(rows, comparison.target), names_shown(rows), Look(width, digits)
    shown = chosen(names, known) if names else telling(rows, known)
    cells = [column.cells(rows, apart, look) for column in shown]
    numbers = zip(*([cell.text for cell in own] for own in cells), strict=True)
    return Sheet(
        _title(rows, width, _differences_from(lines, apart, against)),
        keys,
        tuple(column.heading for column in shown),
        [(names_of(row, keys, titles), own) for row, own in zip(rows, numbers, strict=True)],
        _best(shown, cells, lines),
    )


def _check(width: str, digits: int | None) -> None:
    if width not in WIDTHS:
        raise ConfigError(unknown("interval", width, WIDTHS))
    if digits is not None and not 0 <= digits <= 10:
        raise ConfigError(f"{digits} digits after the point cannot be; give 0 to 10")


def _title(rows: Sequence[Row], width: Width, more: str) -> str:
    return "; ".join(filter(None, [_over_seeds({len(row.seeds) for row in rows}, width), more]))


def _differences_from(lines: Sequence[Line], apart: Sequence[Difference | None], reference: str | None) -> str:
    """Nothing where there are none."""
    if reference is None:
        return ""
    said = called(lines, apart, reference) or f"{reference} of the same setting, or the first {reference}"
    return f"differences from {said}, seed by seed, with 95 % intervals; better or worse after Holm's correction"


def difference_sheet(comparison: Comparison, reference: str | None = None) -> Sheet | None:
    """Every row against its reference, in percentage points of the last accuracy; None if no row has any."""
    lines, against = comparison.lines, reference_of(comparison.lines, reference)
    if against is None:
        return None
    apart = differences(lines, against)
    said, keys = called(lines, apart, against), names_shown(comparison.rows)
    rows = [
        (names_of(row, keys), (*_signed(own), own.verdict, *[label_of(lines, own.against)] * (said is None)))
        for row, own in zip(comparison.rows, apart, strict=True)
        if own is not None
    ]
    title = f"last accuracy against {said or 'another row'}, seed by seed, in percentage points"
    headings = ("difference", "95 % interval", "p\n(Holm)", "seeds", "verdict", *["against"] * (said is None))
    return Sheet(title, keys, headings, rows) if rows else None


def _signed(own: Difference) -> tuple[str, str, str, str]:
    interval, low, high = own.interval, own.interval.low, own.interval.high
    ends = "-" if low is None or high is None else f"{100 * low:+.2f} to {100 * high:+.2f}"
    p = "-" if own.p is None else "< 0.001" if own.p < 0.001 else f"{own.p:.3f}"
    return f"{100 * interval.mean:+.2f}", ends, p, str(interval.seeds)


def _over_seeds(counts: Collection[int], width: Width) -> str:
    if set(counts) == {1}:
        return "1 seed"
    said = SAID[width]
    return f"{said} over seeds" if len(counts) > 1 else f"{next(iter(counts))} seeds, {said}"


def _best(shown: Sequence[Column], cells: Sequence[Sequence[Shown]], lines: Sequence[Line]) -> set[tuple[int, int]]:
    return {
        (row, place)
        for place, column in enumerate(shown)
        for among in same_examples(lines)
        for row in column.best(cells[place], among)
    }


def same_examples(lines: Sequence[Line]) -> list[list[int]]:
    """Places of lines whose runs had the same examples, divided in the same way: only these are compared."""
    found: dict[Any, list[int]] = {}
    for place, line in enumerate(lines):
        by_seed = {run.seed: examples_of(run) for run in line.runs}
        fits = (key for key, own in found.items() if _share(by_seed, lines[own[0]]))
        found.setdefault(next(fits, place), []).append(place)
    return list(found.values())


def _share(by_seed: Mapping[int, Any], line: Line) -> bool:
    return any(by_seed.get(run.seed) == examples_of(run) for run in line.runs)


def names_shown(rows: Sequence[Row]) -> Names:
    """The keys of a comparison's rows that tell them apart, and the method."""
    shown = {
        "experiment": len({row.experiment for row in rows}) > 1,
        "method": True,
        "variant": any(row.variant for row in rows),
        "model": len({row.prototype for row in rows}) > 1,
    }
    return tuple(key for key, is_shown in shown.items() if is_shown)


def names_of(row: Row, keys: Names, titles: bool = False) -> Names:
    method = row.title or row.method if titles else row.method
    names = {"experiment": row.experiment, "method": method, "variant": row.variant, "model": row.prototype}
    return tuple(names[key] for key in keys)


def comparison_facts(comparison: Comparison) -> dict[str, object]:
    """What is missing in the table, and where the rest is."""
    facts: dict[str, object] = {"folder": comparison.folder}
    if comparison.picture.exists():
        facts["picture"] = comparison.picture
    if not comparison.unfinished:
        return facts
    return {"missing": f"{len(comparison.unfinished)} of {comparison.planned} runs, which are not finished", **facts}


def written(
    comparison: Comparison,
    format: Format = "text",
    width: Width | None = None,
    names: Sequence[str] = (),
    digits: int | None = None,
    reference: str | None = None,
    curves: bool = False,
) -> str:
    """The table as a text that ends with a line. What would change nothing in it is refused."""
    if format not in FORMATS:
        raise ConfigError(unknown("format", format, FORMATS))
    if curves and format not in ("csv", "json"):
        raise ConfigError(f"curves are for programs: give csv or json, not {format}")
    if format in ("csv", "json"):
        _check_for_programs(format, {"--columns": names or None, "--digits": digits, "--interval": width})
    if format == "csv":
        _check_for_programs(format, {"--reference": reference})
        return csv_text(comparison.curve_records() if curves else comparison.records())
    if format == "json":
        return dumps(_for_programs(comparison, reference, curves), indent=2) + "\n"
    if reference is not None and "difference" not in names:
        raise ConfigError("--reference is what the column 'difference' is from; name it among --columns")
    sheet = comparison_sheet(comparison, width or "95", names, digits, reference, titles=format != "text")
    if format == "md":
        return f"{sheet.markdown()}\n\n{sheet.title}\n"
    return f"{sheet.latex()}\n" if format == "latex" else f"{sheet.text()}\n"


def _check_for_programs(format: Format, given: Mapping[str, Any]) -> None:
    """What is for people only."""
    for option, value in given.items():
        if value is not None:
            raise ConfigError(f"{option} changes nothing in {format}, which has every number in full; leave it out")


def _for_programs(comparison: Comparison, reference: str | None, curves: bool) -> dict[str, Any]:
    against = reference_of(comparison.lines, reference)
    apart = differences(comparison.lines, against)
    rows = [{**asdict(row), "difference": _plain(own)} for row, own in zip(comparison.rows, apart, strict=True)]
    more = {"curves": comparison.curve_records()} if curves else {}
    remarks = [*comparison.remarks, *comparison.unreadable]
    return {"target_accuracy": comparison.target, "reference": against, "remarks": remarks, "rows": rows, **more}


def _plain(own: Difference | None) -> dict[str, Any] | None:
    return None if own is None else asdict(own)


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per record, with a column for every key that some record has; an empty field was not measured."""
    buffer = io.StringIO()
    keys = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_field, keys))
    for record in records:
        writer.writerow(_field(record.get(key)) for key in keys)
    return buffer.getvalue()


def _field(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe, which it then does not show."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def curve_records(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Round by round what every run measured and spent; sums are of all rounds so far."""
    for line in lines:
        names = {"experiment": line.experiment, "method": line.method, "variant": line.variant}
        for run in line.runs:
            for model in [line.prototype] if line.prototype else run.summary["prototypes"]:
                own = [record for record in run.result.records() if record["model"] == model]
                sums = [list(accumulate(record[what] for record in own)) for what in SPENT]
                for record, spent in zip(own, zip(*sums, strict=True), strict=True):
                    so_far = {f"{what}_sum": number for what, number in zip(SPENT, spent, strict=True)}
                    yield {**names, "model": model, "seed": run.seed, **record, **so_far}
