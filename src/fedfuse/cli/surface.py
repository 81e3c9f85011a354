"""What a command takes, read off its function: the same for help, completion, guesses and the page of all commands.

Typer says this too, but in words that change with its version, and older versions lose the descriptions of arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from fedfuse.cli.commands import COMMANDS

NUMBERS = {int: "whole number", float: "number"}
VALUES = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
"""What stands for a value of a type, unless the parameter says it."""


@dataclass(frozen=True)
class Parameter:
    """An argument, which has no names, or an option."""

    names: tuple[str, ...]
    """The first is the one to use; the others are older or longer ones that are understood, too."""
    metavar: str
    """What its value is called, which also says how it is completed; nothing for a switch."""
    help: str
    default: Any
    required: bool
    several: bool
    choices: tuple[str, ...]
    bounds: tuple[float | None, float | None]
    hidden: bool
    kind: str = ""
    """Number or whole number, if it is one."""

    @property
    def is_option(self) -> bool:
        return bool(self.names)

    @property
    def is_switch(self) -> bool:
        return self.is_option and not self.metavar

    @property
    def shown(self) -> str:
        """How it is written on a command line."""
        if not self.is_option:
            return self.metavar
        short = [name for name in self.names if not name.startswith("--")]
        named = ", ".join([*short, next((name for name in self.names if name.startswith("--")), "")])
        return f"{named} {self.metavar}".strip()

    @property
    def text(self) -> str:
        """What it means, with its bounds and what it is unless said."""
        extra = [bounds.strip()] if (bounds := _range(self.bounds)) else []
        if self.default not in (None, False, "", (), []) and "default" not in self.help:
            extra.append(f"default: {self.default.value if isinstance(self.default, Enum) else self.default}")
        if self.required and self.is_option:
            extra.append("required")
        return f"{self.help} [{'; '.join(extra)}]" if extra else self.help

    @property
    def wanted(self) -> str:
        """What its value should be, where that is a number or one of a few words."""
        if self.choices:
            return " or ".join(filter(None, (", ".join(self.choices[:-1]), self.choices[-1])))
        return f"a {self.kind}{_range(self.bounds)}" if self.kind else ""


@dataclass(frozen=True)
class Surface:
    """A command, or a group of them."""

    name: str
    help: str
    parameters: tuple[Parameter, ...] = ()
    commands: tuple[Surface, ...] = ()

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if not one.is_option)

    @property
    def options(self) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if one.is_option and not one.hidden)

    @property
    def purpose(self) -> str:
        return _first_sentence(self.help)

    def option(self, name: str) -> Parameter | None:
        """The option of this name, also one that is not shown."""
        return next((one for one in self.parameters if name in one.names), None)

    def command(self, name: str) -> Surface | None:
        return next((one for one in self.commands if one.name == name), None)


def _range(bounds: tuple[float | None, float | None]) -> str:
    return "".join(
        f" {word} {bound:g}" for word, bound in zip(("from", "to"), bounds, strict=True) if bound is not None
    )


def purpose_of(found: Any) -> str:
    """What a command is for, in a sentence."""
    return _first_sentence(_help_of(found) if isinstance(found, typer.Typer) else _text(found))


def surface_of(name: str) -> Surface:
    """One of our commands."""
    module, _, attribute = COMMANDS[name].partition(":")
    return read(name, getattr(import_module(module), attribute))


def read(name: str, found: Any) -> Surface:
    """A function for Typer, or a Typer app with several."""
    if not isinstance(found, typer.Typer):
        return Surface(name, _text(found), tuple(parameters_of(found)))
    commands = [
        read(info.name or str(getattr(info.callback, "__name__", "")).replace("_", "-"), info.callback)
        for info in found.registered_commands
        if not info.hidden
    ]
    groups = [read(str(group.name), group.typer_instance) for group in found.registered_groups if group.typer_instance]
    return Surface(name, _help_of(found), commands=(*commands, *groups))


def parameters_of(function: Callable[..., Any]) -> Iterator[Parameter]:
    """In the order in which they are declared."""
    hints = get_type_hints(function, include_extras=True)
    for name, one in inspect.signature(function).parameters.items():
        hint = hints.get(name, str)
        info = next((info for info in (*getattr(hint, "__metadata__", ()), one.default) if _is_info(info)), None)
        default = None if one.default is inspect.Parameter.empty or _is_info(one.default) else one.default
        required = one.default is inspect.Parameter.empty
        if info is None:
            info = typer.Argument() if required else typer.Option(None)
        yield _parameter(name, get_args(hint)[0] if get_origin(hint) is Annotated else hint, info, default, required)


def _parameter(name: str, hint: Any, info: Any, default: Any, required: bool) -> Parameter:
    kind, several, choices = _type_of(hint)
    is_option = isinstance(info, OptionInfo)
    declared = [word for word in (info.default, *(info.param_decls or ())) if isinstance(word, str)]
    names = tuple(word for word in declared if word.startswith("-")) or (f"--{name.replace('_', '-')}",)
    is_switch = is_option and kind is bool
    metavar = "" if is_switch else info.metavar or "|".join(choices) or VALUES.get(kind, "TEXT")
    if not is_option and not info.metavar:
        metavar = name.upper()
    return Parameter(
        names=names if is_option else (),
        metavar=metavar,
        help=info.help or "",
        default=default,
        required=required,
        several=several,
        choices=choices,
        bounds=(info.min, info.max),
        hidden=info.hidden,
        kind=NUMBERS.get(kind, ""),
    )


def _type_of(hint: Any) -> tuple[Any, bool, tuple[str, ...]]:
    """The type of one value, whether there may be several, and the words that it may be if these are all."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _type_of(next(one for one in arguments if one is not NoneType))
    if origin in (list, tuple):
        kind, _, choices = _type_of(arguments[0])
        return kind, True, choices
    if origin is Literal:
        return str, False, tuple(map(str, arguments))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return str, False, tuple(str(one.value) for one in hint)
    return hint, False, ()


def _is_info(value: Any) -> bool:
    return isinstance(value, ArgumentInfo | OptionInfo)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\w\.)\s", text, maxsplit=1)[0]


def _help_of(app: typer.Typer) -> str:
    """What a Typer app says about itself, or its callback does."""
    said = getattr(app.info.help, "value", app.info.help)
    callback = app.registered_callback.callback if app.registered_callback is not None else None
    return said if isinstance(said, str) else _text(callback) if callback is not None else ""


def _text(function: Callable[..., Any]) -> str:
    return " ".join(inspect.cleandoc(function.__doc__ or "").split())
