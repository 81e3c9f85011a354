"""What help, completion and docs know of commands is what Typer makes of them; and the help that is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer

from fedfuse.cli import app as command_line
from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.help import NARROWEST, help_text
from fedfuse.cli.surface import Surface, read, surface_of
from tests.cli.test_cli import InProcess
from tests.cli.test_cli import in_process as in_process

GROUP = typer.main.get_command(command_line.app)
HELP = {"--help", "-h"}


def pairs() -> Iterator[tuple[str, Surface, Any]]:
    """Every command by its path, as we read it and as Typer does."""
    for name in COMMANDS:
        surface, command = surface_of(name), GROUP.get_command(None, name)
        if not surface.commands:
            yield name, surface, command
        for inner in surface.commands:
            yield f"{name} {inner.name}", inner, command.commands[inner.name]


PAIRS = list(pairs())
PATHS = [path for path, _, _ in PAIRS]
SURFACES = [(path, surface) for path, surface, _ in PAIRS]


@pytest.mark.parametrize(("surface", "command"), [pair[1:] for pair in PAIRS], ids=PATHS)
def test_it_takes_what_typer_takes(surface: Surface, command: Any) -> None:
    options = [set(param.opts) for param in command.params if param.param_type_name == "option"]
    assert [set(one.names) for one in surface.parameters if one.is_option] == [opts for opts in options if opts - HELP]
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    assert [one.required for one in surface.arguments] == [param.required for param in arguments]
    assert [one.several for one in surface.arguments] == [param.nargs == -1 for param in arguments]
    switches = {param.opts[0] for param in command.params if getattr(param, "is_flag", False)} - HELP
    assert {one.names[0] for one in surface.parameters if one.is_switch} == switches


@pytest.mark.parametrize("surface", [surface for _, surface in SURFACES], ids=PATHS)
def test_everything_is_said_to_mean_something(surface: Surface) -> None:
    assert surface.help
    assert [one.shown for one in surface.parameters if not one.help] == []


@pytest.mark.parametrize("width", [NARROWEST, 80, 200])
@pytest.mark.parametrize(("path", "surface"), SURFACES, ids=PATHS)
def test_help_has_every_option_and_fits(
    path: str, surface: Surface, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = help_text(f"fedfuse {path}", surface)
    assert all(name in text for one in surface.options for name in one.names[:1])
    words = [word for one in surface.parameters for word in one.text.split()]
    assert [word for word in words if word not in text] == []
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width


def test_the_same_text_for_both_spellings_of_help(in_process: InProcess) -> None:
    for words in (("run",), ("flower", "superlink"), ("generator",), ()):
        short, long = in_process(*words, "-h"), in_process(*words, "--help")
        assert short.returncode == long.returncode == 0
        assert short.stdout == long.stdout
        assert short.stdout.startswith(" ".join(["Usage: fedfuse", *words]))


def test_bounds_defaults_and_what_is_required_are_said() -> None:
    def example(
        file: Annotated[str, typer.Argument(metavar="FILE", help="a file")],
        most: Annotated[int, typer.Option(min=1, max=9, help="how many")] = 3,
        to: Annotated[str | None, typer.Option("--to", "--target", "-t", help="where")] = None,
        words: Annotated[list[str] | None, typer.Option(help="some")] = None,
        loud: bool = False,
    ) -> None:
        """Do something. And more."""

    surface = read("example", example)
    assert surface.purpose == "Do something."
    text = help_text("fedfuse example", surface)
    assert "Usage: fedfuse example [OPTIONS] FILE\n" in text
    assert "--most N       how many [from 1 to 9; default: 3]" in text
    assert "-t, --to TEXT" in text
    assert "--loud\n" in text
    assert surface.option("--target") is surface.option("-t")
    assert surface.option("--words").several


def test_parameters_in_typers_older_style_are_read_too() -> None:
    def older(
        word: str = typer.Argument(..., help="a word"), times: int = typer.Option(2, min=1, help="again")
    ) -> None:
        """Say it."""

    surface = read("older", older)
    assert [one.help for one in surface.parameters] == ["a word", "again"]
    assert surface.option("--times").bounds == (1, None)


def test_the_front_page_has_every_command_once_and_says_where_to_read_on(in_process: InProcess) -> None:
    lines = in_process("-h").stdout.splitlines()
    for name in COMMANDS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1
    assert any("fedfuse doctor" in line for line in lines)
    assert max(map(len, lines)) <= 80
