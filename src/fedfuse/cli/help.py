"""The text that ``-h`` prints, the same with every version of Typer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence

from fedfuse.cli.columns import in_columns, wrapped
from fedfuse.cli.surface import Parameter, Surface

WIDEST, NARROWEST = 100, 40
HELP = ("-h, --help", "show this text")
OPTIONS = [
    ("-h, --help", "after a command: what it does and takes"),
    ("--traceback", "after a command: where in the code a mistake was found; also FEDFUSE_TRACEBACK=1"),
    ("--version", "print the version"),
]
READ_ON = [
    ("fedfuse init mine.yaml", "a commented experiment to start from"),
    ("fedfuse help WORD", "whatever has to do with a word: a key, a part, a method, a term"),
    ("fedfuse doctor", "what is installed, found and missing here"),
    ("import fedfuse", "the same as functions: help(fedfuse.run)"),
]
ASIDE = 30
"""An option that is written longer than this has its meaning below it."""


def width() -> int:
    """Of a help text: as wide as the terminal, but no line that is hard to follow."""
    return max(min(shutil.get_terminal_size().columns, WIDEST), NARROWEST)


def front_text(path: str, purpose: str, sections: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """What ``fedfuse -h`` says: all commands by section, and where to read on."""
    columns = width()
    names = max(len(name) for rows in sections.values() for name, _ in rows)
    lines = [f"Usage: {path} COMMAND ...", "", *wrapped(purpose, columns, "  ")]
    for title, rows in sections.items():
        aligned = [(name.ljust(names), text) for name, text in rows]
        lines += ["", f"{title}:", *in_columns(aligned, columns, indent="  ")] if rows else []
    lines += ["", "Options:", *in_columns(OPTIONS, columns, indent="  ")]
    return "\n".join([*lines, "", "Read on:", *in_columns(READ_ON, columns, indent="  ")]) + "\n"


def help_text(path: str, surface: Surface, extra: Sequence[str] = ()) -> str:
    """All about one command; ``path`` is how it is called, ``extra`` are lines at its end."""
    return "\n".join([*_lines(path, surface, width()), *extra]) + "\n"


def _lines(path: str, surface: Surface, columns: int) -> Iterator[str]:
    yield from wrapped(usage(path, surface), columns)
    yield ""
    yield from wrapped(surface.help, columns, "  ")
    if surface.commands:
        yield from ("", "Commands:")
        yield from in_columns([(one.name, one.purpose) for one in surface.commands], columns, indent="  ")
    if surface.arguments:
        yield from ("", "Arguments:")
        yield from _parameters(surface.arguments, columns)
    yield from ("", "Options:")
    yield from _parameters(surface.options, columns, HELP)


def usage(path: str, surface: Surface) -> str:
    """How it is called, in a line."""
    if surface.commands:
        return f"Usage: {path} COMMAND ..."
    required = [f"{one.names[0]} {one.metavar}" for one in surface.options if one.required]
    return " ".join([f"Usage: {path}", *required, "[OPTIONS]", *map(_argument, surface.arguments)])


def _argument(one: Parameter) -> str:
    plain = one.metavar.strip("[]").removesuffix("...")
    several = f"{plain}..." if one.several else plain
    return several if one.required else f"[{several}]"


def _parameters(parameters: Sequence[Parameter], columns: int, *more: tuple[str, str]) -> list[str]:
    rows = [*((one.shown if one.is_option else _argument(one), one.text) for one in parameters), *more]
    aside = max((len(name) for name, _ in rows if len(name) <= ASIDE), default=ASIDE)
    lines: list[str] = []
    for name, text in rows:
        if len(name) > aside:
            lines.append(f"  {name}")
        lines += in_columns([((name if len(name) <= aside else "").ljust(aside), text)], columns, indent="  ")
    return lines
