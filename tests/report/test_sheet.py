"""Names beside numbers: nothing is lost in any terminal, and 80 columns are kept where they can be."""

from __future__ import annotations

import io
from itertools import product

import pytest
from rich.console import Console

from fedfuse.report.sheet import Sheet

NUMBERS = ("57.52 ± 12.41", "100.00 ± 0.00", "11.3 (2 of 3)", "1234.56", "1234.56", "12345.6", "17")
HEADINGS = ("accuracy\nlast, %", "accuracy\nbest, %", "rounds to\n80 %", "up\nMB", "down\nMB", "time\ns", "refused")
NAMES = {
    "method": (("fedavg",), ("feddf",)),
    "longest method": (("feddistill-plus-as-coded",), ("1-ensemble",)),
    "experiments": tuple(product(("alpha-0.1", "alpha-1"), ("fedavg", "feddf"))),
    "mixed": tuple(product(("fedavg", "feddf"), ("small", "mobilenetv2_with_a_head"))),
    "all": tuple(product(("a-study-of-many-words-0.1", "b"), ("fedavg", "fedgkd-plus"), ("small", "模型"))),
}
KEYS = ("experiment", "method", "model")


def sheet(names: tuple[tuple[str, ...], ...], numbers: int = len(NUMBERS)) -> Sheet:
    keys = KEYS[-len(names[0]) :]
    return Sheet("3 seeds", keys, HEADINGS[:numbers], [(own, NUMBERS[:numbers]) for own in names])


def printed(of: Sheet, width: int) -> list[str]:
    console = Console(file=(file := io.StringIO()), width=width)
    for line in of.lines(width):
        console.print(line, soft_wrap=True)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("width", [*range(20, 140, 7), 80, 200])
def test_every_name_and_number_is_there_whole_and_in_its_row(names: tuple[tuple[str, ...], ...], width: int) -> None:
    lines = printed(sheet(names), width)
    assert "…" not in "".join(lines)
    rows = [number for number, line in enumerate(lines) if all(value in line for value in NUMBERS)]
    assert len(rows) == len(names)
    for own, row in zip(names, rows, strict=True):
        above = [line.split() for line in lines[: row + 1]]
        # The last line up to this row that says anything of this key says this name.
        for place, name in enumerate(own):
            known = {other[place] for other in names}
            said = [word for words in above for word in words if word in known]
            assert said[-1] == name


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("numbers", range(1, len(NUMBERS)))
@pytest.mark.parametrize("width", [80, 100, 132])
def test_lines_fit_the_terminal(names: tuple[tuple[str, ...], ...], numbers: int, width: int) -> None:
    console = Console(width=width)
    assert max(console.measure(line).maximum for line in sheet(names, numbers).lines(width)) <= width


def test_without_rows_there_are_headings() -> None:
    assert Sheet("nothing", ("method",), ("accuracy",), []).text().split() == [
        "nothing",
        "method",
        "accuracy",
        "─" * 17,
    ]


def test_a_wide_terminal_shows_one_row_per_line() -> None:
    lines = printed(sheet(NAMES["all"], 2), 200)
    assert [line.split()[:3] for line in lines[-9:-1]] == [list(own) for own in NAMES["all"]]


def test_a_narrow_one_says_shared_names_once() -> None:
    lines = printed(sheet(NAMES["experiments"], 4), 70)
    assert [line.strip() for line in lines].count("alpha-0.1") == 1
    assert sum("fedavg" in line for line in lines) == 2
