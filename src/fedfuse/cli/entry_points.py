"""Commands of other packages: entry points of the group ``fedfuse.commands``, found when they are asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from fedfuse.core.errors import FedfuseError

GROUP = "fedfuse.commands"
ELSEWHERE = {"reproduce": "fedfuse-papers"}
"""Commands that have a package of their own."""
ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


class OpenGroup(TyperGroup):
    """Our own commands, and after them those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in sorted(entry_points(group=GROUP).names) if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or _from_elsewhere(cmd_name)


def _from_elsewhere(name: str) -> Any:
    found = entry_points(group=GROUP, name=name)
    if found:
        return _loaded(next(iter(found)))
    if name in ELSEWHERE:
        raise FedfuseError(f"{name} is a command of {ELSEWHERE[name]}; install it: pip install {ELSEWHERE[name]}")
    return None


def _loaded(point: EntryPoint) -> Any:
    """What the entry point names; one that cannot be loaded says so when it is called, and disturbs nobody else."""
    try:
        return _command(point.name, point.load())
    except Exception as error:
        sentence = f"{point.name} of {point.value} cannot be loaded: {error}"

        def refuse() -> None:
            raise FedfuseError(sentence)

        return _command(point.name, refuse, help=sentence, context_settings=ANY_WORDS)


def _command(name: str, found: Any, **options: Any) -> Any:
    """A Typer app is a group of commands, a function is one command."""
    host = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        host.add_typer(found, name=name)
    else:
        host.command(name, **options)(found)
    return typer.main.get_group(host).commands[name]
