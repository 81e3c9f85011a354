"""``fedfuse`` as a group of commands, each imported when it is asked for: ours, and after them other packages'."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fedfuse.cli import entry_points
from fedfuse.cli.commands import COMMANDS, SECTIONS
from fedfuse.cli.help import front_text, help_text
from fedfuse.cli.surface import Surface, purpose_of, read
from fedfuse.core.errors import ConfigError, FedfuseError, unknown

ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


class Command(TyperCommand):
    """One command, with a help text of our own."""

    surface: Surface

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(ctx.command_path, self.surface))


class Group(TyperGroup):
    """Several commands under one name."""

    surface: Surface

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(ctx.command_path, self.surface))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            inside = "" if ctx.parent is None else f"{ctx.command_path.rpartition(' ')[2]}: "
            raise ConfigError(f"{inside}{unknown('command', args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class Commands(Group):
    """The commands of ``commands.py``, and those of installed packages under names that ours do not have."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *entry_points.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name, found) if (found := load(cmd_name)) is not None else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        sections = {**{title: list(own) for title, own in SECTIONS.items()}, "Other packages": entry_points.names()}
        purposes = {title: [(name, purpose_of(load(name))) for name in names] for title, names in sections.items()}
        formatter.write(front_text(ctx.command_path, str(self.help), purposes))


def load(name: str) -> Any:
    """The function or Typer app behind a command's name; one of another package that cannot be loaded says so."""
    if name in COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        return getattr(import_module(module), attribute)
    point = entry_points.find(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:
        sentence = f"{name} of {point.value} cannot be loaded: {error}"

        def refuse() -> None:
            raise FedfuseError(sentence)

        refuse.__doc__ = sentence
        return refuse


def _command(name: str, found: Any) -> Any:
    """A Typer app is a group of commands, a function is one command."""
    host = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        _dress(found)
        host.add_typer(found, name=name, cls=Group)
    else:
        host.command(name, cls=Command, context_settings=ANY_WORDS if found.__name__ == "refuse" else None)(found)
    return _described(typer.main.get_group(host).commands[name], read(name, found))


def _dress(app: typer.Typer) -> None:
    """Give commands and groups that have no class of their own ours."""
    for info in app.registered_commands:
        info.cls = Command if info.cls in (None, TyperCommand) else info.cls
    for group in app.registered_groups:
        group.cls = Group if getattr(group.cls, "value", group.cls) in (None, TyperGroup) else group.cls
        if group.typer_instance is not None:
            _dress(group.typer_instance)


def _described(command: Any, surface: Surface) -> Any:
    command.surface = surface
    for inner in surface.commands:
        _described(command.commands[inner.name], inner)
    return command
