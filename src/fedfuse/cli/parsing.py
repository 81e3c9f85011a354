"""A command line read by Typer; what it finds wrong becomes one sentence, with a guess at what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from fedfuse.cli.app import app
from fedfuse.cli.surface import Parameter, Surface
from fedfuse.core.errors import ConfigError, shortened

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of all that is wrong with a command line; where it is defined depends on the version of Typer."""
PROGRAM = "fedfuse"
INTERRUPTED = 130
"""What newer versions of Typer make of Ctrl-C, as shells do."""
EXTRA = re.compile(r"unexpected extra arguments? ?(?:\(s\) )?\((.*)\)")
OTHER_OPTIONS = {
    "jobs": "workers",
    "processes": "workers",
    "parallel": "jobs",
    "output": "out",
    "folder": "out",
    "method": "methods",
    "methods": "method",
    "seed": "seeds",
    "seeds": "seed",
    "force": "overwrite",
    "continue": "resume",
    "silent": "quiet",
    "debug": "verbose",
    "config": "set",
}
"""What other tools, or other commands of ours, call an option."""


OF_FUSIONS = (
    "weights", "sure", "start", "merge", "steps", "batch_size", "learning_rate", "temperature", "loss", "augment",
    "samples", "seed", "limit", "device", "threads",
)  # fmt: skip
"""What ``fuse --set`` changes, without the torch that its own list needs."""


def obey(words: Sequence[str]) -> None:
    """Run the command that the words ask for."""
    try:
        code = app(args=list(words), prog_name=PROGRAM, standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except UsageError as error:
        _refuse(error, words)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if isinstance(code, int) and code:
        raise SystemExit(code)


def _refuse(error: Any, words: Sequence[str]) -> NoReturn:
    """The sentence for what Typer found wrong."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        raise SystemExit(error.exit_code)
    path = error.ctx.command_path if error.ctx is not None else " ".join([PROGRAM, *words[:1]])
    surface: Surface | None = getattr(error.ctx and error.ctx.command, "surface", None)
    raise ConfigError(f"{_sentence(error, words, surface, path.partition(' ')[2] or path)}; {path} -h says more")


def _sentence(error: Any, words: Sequence[str], surface: Surface | None, command: str) -> str:
    kind, param = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        return f"{command} has no option {error.option_name}{guess(error.option_name, words, surface, command)}"
    if param is not None and surface is not None and (meant := _parameter(param, surface)) is not None:
        if kind == "MissingParameter":
            return f"{command} needs {meant.shown} ({meant.help})"
        if (wanted := meant.wanted) and not meant.is_option:
            return f"{command} takes {wanted}"
        if wanted:
            name = next((name for name in meant.names if value_of(name, words)), meant.shown)
            return f"{command}: {name} is '{shortened(value_of(name, words))}', but should be {wanted}"
    message = error.format_message().rstrip(".").replace("requires an argument", "needs a value")
    if further := EXTRA.search(message):
        return f"{command} does not know what to do with '{shortened(further[1])}'"
    return f"{command}: {message[:1].lower()}{message[1:]}"


def _parameter(param: Any, surface: Surface) -> Parameter | None:
    """What we know about a parameter of Typer's."""
    if param.param_type_name == "option":
        return surface.option(param.opts[0])
    return next((one for one in surface.arguments if one.metavar == (param.metavar or param.name.upper())), None)


def guess(option: str, words: Sequence[str], surface: Surface | None, command: str) -> str:
    """What was probably meant by an option that a command does not have, as a part of a sentence."""
    if surface is None:
        return ""
    plain = option.lstrip("-").replace("_", "-")
    names = {name for one in surface.options for name in one.names if name.startswith("--")}
    other = f"--{OTHER_OPTIONS.get(plain, '')}"
    found = (
        other if other in names else next(iter(difflib.get_close_matches(f"--{plain}", names, n=1, cutoff=0.8)), None)
    )
    if found is None and "--set" in names and (key := _key(plain, command)):
        value = value_of(option, words)
        found = f"--set {key}={'VALUE' if not value or value.startswith('-') else value}"
    if found is None:
        found = next(iter(difflib.get_close_matches(f"--{plain}", names, n=1, cutoff=0.6)), None)
    return f" (did you mean {found}?)" if found else ""


def _key(option: str, command: str) -> str | None:
    """What ``--set`` of this command may change that is called so; a fusion's settings are no keys of experiments."""
    name = option.replace("-", "_")
    if command == "fuse":
        return next(iter(difflib.get_close_matches(name, OF_FUSIONS, n=1, cutoff=0.8)), None)
    from fedfuse.catalogue.keys import meant

    return meant(name)


def value_of(option: str, words: Sequence[str]) -> str:
    """What stands behind an option, if anything does."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else next((word for word in words[number + 1 : number + 2]), "")
    return ""
