"""Writes docs/commands.md and docs/keys.md from the code: ``make docs``.

Nothing on the pages depends on the machine, so that a test can compare them with what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fedfuse.catalogue.details import EXPERIMENT, KeyRow, PartRow, sections, slots
from fedfuse.cli.commands import SECTIONS
from fedfuse.cli.help import usage
from fedfuse.cli.shown import value_text
from fedfuse.cli.surface import Parameter, Surface, surface_of

DOCS = Path(__file__).parent

COMMANDS = """# Commands

What `fedfuse COMMAND -h` says, in one place. Written by `make docs` from the commands themselves.

Every command takes `-h` (what it does and takes) and `--traceback` (the way through the code to a mistake; also
`FEDFUSE_TRACEBACK=1`). A mistake ends with one sentence and exit code 2, a run that taught nothing with 3. A name means
the same everywhere: `--set KEY=VALUE` changes a [key](keys.md), `--jobs` is how many runs there are at a time,
`--workers` how many processes one run has, `--out` what is written, `--quiet` (`-q`) prints nothing but errors and
`--verbose` (`-v`) every event. Packages add commands of their own: `fedfuse-papers` adds
[`reproduce`](reproduction.md).

`fedfuse help WORD` finds what has to do with a word. For TAB to complete commands, options, names and keys, put
`eval "$(fedfuse completion bash)"` into `~/.bashrc`, the same with `zsh` into `~/.zshrc` after `compinit`, or run
`fedfuse completion fish > ~/.config/fish/completions/fedfuse.fish`.
"""

KEYS = """# Every key

All keys of an [experiment file](experiment-file.md), with what each is unless the file says otherwise. Written by
`make docs` from the code; `fedfuse keys` prints the same, `fedfuse keys alpha` the keys with that word in their name,
and `fedfuse schema` a JSON schema for editors.

Where a part stands, the key `kind` (of models, `arch`) says which: [below](#parts) are all kinds of every slot, and a
class of your own fills a slot by its [address](own-method.md).
"""


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    return {"commands.md": "\n".join(commands_page()) + "\n", "keys.md": "\n".join(keys_page()) + "\n"}


def commands_page() -> Iterator[str]:
    yield COMMANDS
    for title, names in SECTIONS.items():
        yield f"## {title}\n"
        for name in names:
            yield from _command(f"fedfuse {name}", surface_of(name), "###")


def _command(path: str, surface: Surface, level: str) -> Iterator[str]:
    yield f"{level} {path}\n"
    yield f"{_escaped(surface.help)}\n"
    for inner in surface.commands:
        yield from _command(f"{path} {inner.name}", inner, f"{level}#")
    if not surface.commands:
        yield f"```\n{usage(path, surface).removeprefix('Usage: ')}\n```\n"
        shown = (*surface.arguments, *surface.options)
        if shown:
            yield from _table(("", "meaning"), [(_named(one), one.text) for one in shown])


def _named(one: Parameter) -> str:
    others = [name for name in one.names[1:] if name.startswith("--")]
    also = f" (also {', '.join(f'`{name}`' for name in others)})" if others else ""
    return f"`{one.shown}`{also}"


def keys_page() -> Iterator[str]:
    yield KEYS
    yield "## The file\n"
    yield from _keys(sections()[EXPERIMENT])
    for name, key in sections()[EXPERIMENT].items():
        if key.section:
            yield f"## {name}\n"
            yield f"{_sentence(key.meaning)}\n"
            yield from _section(sections()[key.section], name)
    yield "## Parts\n"
    for slot, row in slots().items():
        yield f"### {slot}\n"
        places = ", ".join(f"`{place}`" for place in row.places)
        yield f"{_sentence(row.meaning)} Key: {places}{', a list' if row.several else ''}.\n"
        for kind, part in row.kinds.items():
            yield from _part(row.chooser, kind, part)
    yield "## Inside parts\n"
    for name in inside_parts():
        yield f"### {name}\n"
        yield from _keys(sections()[name])


def inside_parts() -> list[str]:
    """Sections that only parts have, or other sections of parts."""
    above = {EXPERIMENT}
    for _ in range(len(sections())):
        above |= {key.section for name in above for key in sections()[name].values() if key.section}
    return [name for name in sections() if name not in above]


def _section(keys: Mapping[str, KeyRow], at: str) -> Iterator[str]:
    yield from _keys(keys)
    for name, key in keys.items():
        if key.section:
            yield f"`{at}.{name}`: {_escaped(key.meaning)}.\n"
            yield from _section(sections()[key.section], f"{at}.{name}")


def _part(chooser: str, kind: str, part: PartRow) -> Iterator[str]:
    methods = f" In {', '.join(part.methods)}." if part.methods else ""
    page = part.page.removeprefix("docs/")
    more = f" [More]({page})." if page else ""
    yield f"**`{{{chooser}: {kind}}}`** {_sentence(part.meaning)}{methods}{more}\n"
    if part.keys:
        yield from _keys(part.keys)


def _keys(keys: Mapping[str, KeyRow]) -> Iterator[str]:
    rows = [(f"`{name}`", _default(key), _allowed(key), key.meaning) for name, key in keys.items()]
    return _table(("key", "unless said", "may be", "meaning"), rows)


def _default(key: KeyRow) -> str:
    if key.section and key.default is not None:
        return "see below"
    return "(required)" if key.required else f"`{value_text(key.default)}`"


def _allowed(key: KeyRow) -> str:
    if key.slot:
        return f"{'list of ' if key.several else ''}[{key.slot}](#{key.slot})"
    if key.section in inside_parts():
        return f"{key.allowed}: [{key.section}](#{key.section.lower()})"
    return key.allowed


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    yield from (f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows)
    yield ""


def _sentence(text: str) -> str:
    return f"{_escaped(text[:1].upper() + text[1:])}."


def _escaped(text: str) -> str:
    """What Markdown would take for a table, a link or HTML; text inside of backquotes stays."""
    pieces = text.split("`")
    plain = [
        piece.replace("<", "&lt;").replace("*", "\\*") if number % 2 == 0 else piece
        for number, piece in enumerate(pieces)
    ]
    return "`".join(plain).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
