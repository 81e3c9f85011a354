"""What may stand at the end of a command line that is still being written."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.completing_values import KINDS, Candidate, Found, Unfinished
from fedfuse.cli.surface import Parameter, Surface


def candidates(line: str) -> list[Candidate]:
    """All that may follow; ``line`` is what was written, from the program's name to the cursor."""
    _, *words = split(line)
    *before, word = words or [""]
    if not before:
        return _beginning(word, _commands())
    surface = _surface(before[0])
    if surface is None:
        return []
    rest = before[1:]
    if surface.commands:
        if not rest:
            return _beginning(word, (Candidate(one.name, one.purpose) for one in surface.commands))
        surface, rest = surface.command(rest[0]), rest[1:]
    return [] if surface is None else _beginning(word, _parameter(surface, rest, word))


def split(line: str) -> list[str]:
    """The words of a line, the last of which may be empty or have a quotation mark that is still open."""
    end = open_quote(line)
    if end is None:
        return line.split()
    words = shlex.split(line + end)
    return [*words, ""] if not line or (not end and line[-1].isspace() and not line.endswith("\\ ")) else words


def open_quote(line: str) -> str | None:
    """The quotation mark that a line has still to close, if any; None if the line makes no sense either way."""
    for end in ("", "'", '"'):
        try:
            shlex.split(line + end)
        except ValueError:
            continue
        return end
    return None


def _beginning(word: str, found: Iterator[Candidate]) -> list[Candidate]:
    """Those that go on from the word; a file whose name would break a line is not offered."""
    return [one for one in found if one.word.startswith(word) and one.word.isprintable()]


def _commands() -> Found:
    from fedfuse.cli import entry_points
    from fedfuse.cli.group import load
    from fedfuse.cli.surface import purpose_of

    for name in (*COMMANDS, *entry_points.names()):
        yield Candidate(name, purpose_of(load(name)))


def _surface(name: str) -> Surface | None:
    from fedfuse.cli.group import load
    from fedfuse.cli.surface import read

    found = load(name)
    return None if found is None else read(name, found)


def _parameter(surface: Surface, before: Sequence[str], word: str) -> Found:
    """Values of the option that was begun, names of options, or values of the next argument."""
    pending, given = _read(surface, before)
    if pending is not None:
        yield from values(pending, Unfinished(given, word))
    elif word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        if (option := surface.option(name)) is not None:
            found = _beginning(value, values(option, Unfinished(given, value)))
            yield from (Candidate(f"{name}={one.word}", one.help) for one in found)
    elif word.startswith("-"):
        for option in surface.options:
            if option.several or not set(option.names) & set(before):
                yield Candidate(next(name for name in option.names if name.startswith("--")), option.help)
        yield Candidate("--help", "what it does and takes")
    elif surface.arguments:
        at = min(len(given), len(surface.arguments) - 1)
        if at == len(given) or surface.arguments[at].several:
            yield from values(surface.arguments[at], Unfinished(given, word))


def _read(surface: Surface, before: Sequence[str]) -> tuple[Parameter | None, list[str]]:
    """The option whose value comes next, if any, and the arguments that were given."""
    pending: Parameter | None = None
    given: list[str] = []
    for word in before:
        if pending is not None:
            pending = None
        elif word.startswith("-"):
            option = surface.option(word)
            pending = option if option is not None and not option.is_switch else None
        else:
            given.append(word)
    return pending, given


def values(parameter: Parameter, unfinished: Unfinished) -> Found:
    """What a parameter may be, as far as there is something to offer."""
    if parameter.choices:
        yield from map(Candidate, parameter.choices)
    elif complete := KINDS.get(parameter.metavar):
        yield from complete(unfinished)
