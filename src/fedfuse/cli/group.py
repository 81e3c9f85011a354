"""``fedfuse`` as a group of commands, each imported when it is asked for: ours, and after them other packages'."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from fedfuse.cli import entry_points
from fedfuse.cli.commands import COMMANDS, SECTIONS
from fedfuse.core.errors import ConfigError, FedfuseError, unknown

ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


class Commands(TyperGroup):
    """The commands of ``commands.py``, and those of installed packages under names that ours do not have."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *entry_points.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name].partition(":")
            return _command(cmd_name, getattr(import_module(module), attribute))
        return _from_elsewhere(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            raise ConfigError(unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each is for, in a line, below the heading of its section."""
        sections = {**{title: list(own) for title, own in SECTIONS.items()}, "Other packages": entry_points.names()}
        indent = max(map(len, self.list_commands(ctx)))
        for title, names in sections.items():
            rows = [(name.ljust(indent), _purpose(self.get_command(ctx, name))) for name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _purpose(command: Any) -> str:
    """The first sentence of its help."""
    return str(command.get_short_help_str(200))


def _from_elsewhere(name: str) -> Any:
    """What an entry point names; one that cannot be loaded says so when it is called, and disturbs nobody else."""
    point = entry_points.find(name)
    if point is None:
        return None
    try:
        return _command(name, point.load())
    except Exception as error:
        sentence = f"{name} of {point.value} cannot be loaded: {error}"

        def refuse() -> None:
            raise FedfuseError(sentence)

        return _command(name, refuse, help=sentence, context_settings=ANY_WORDS)


def _command(name: str, found: Any, **options: Any) -> Any:
    """A Typer app is a group of commands, a function is one command."""
    host = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        host.add_typer(found, name=name)
    else:
        host.command(name, **options)(found)
    return typer.main.get_group(host).commands[name]
