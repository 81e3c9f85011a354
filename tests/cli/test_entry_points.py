"""Commands of other packages, installed beside this one or not."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest
import typer

from fedfuse.cli import entry_points
from tests.cli.test_cli import InProcess, only_sentence
from tests.cli.test_cli import in_process as in_process

group = typer.Typer(help="Several commands.")


@group.command()
def first() -> None:
    """Say one."""
    typer.echo("one")


@group.command()
def second() -> None:
    """Say two."""
    typer.echo("two")


nested = typer.Typer(help="Groups of groups.")
nested.add_typer(group, name="numbers")
unsaid = typer.Typer()


@unsaid.callback()
def _about() -> None:
    """Said by a callback."""


@unsaid.command()
def only() -> None:
    """Say nothing."""


def single(word: str, loud: bool = False) -> None:
    """Say a word."""
    typer.echo(word.upper() if loud else word)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Other packages' commands in the place of whatever is installed."""

    def install(**commands: str) -> None:
        points = EntryPoints(EntryPoint(name, value, entry_points.GROUP) for name, value in commands.items())
        monkeypatch.setattr(entry_points, "entry_points", points.select)

    return install


def test_a_function_is_a_command_and_an_app_is_a_group(in_process: InProcess, install) -> None:
    install(say=f"{__name__}:single", count=f"{__name__}:group")
    assert in_process("say", "hello", "--loud").stdout == "HELLO\n"
    assert in_process("count", "second").stdout == "two\n"
    listed = in_process("--help").stdout
    assert "say" in listed
    assert "Say a word." in listed
    assert "Several commands." in listed
    assert "--install-completion" not in in_process("count", "--help").stdout


def test_groups_of_groups_and_apps_without_a_help_of_their_own(in_process: InProcess, install) -> None:
    install(deep=f"{__name__}:nested", quiet=f"{__name__}:unsaid")
    assert in_process("deep", "numbers", "first").stdout == "one\n"
    listed = in_process("-h").stdout
    assert "Groups of groups." in listed
    assert "Said by a callback." in listed
    assert in_process("deep", "-h").stdout.startswith("Usage: fedfuse deep COMMAND")
    assert "Say two." in in_process("deep", "numbers", "-h").stdout
    assert in_process("deep", "numbers", "second", "-h").stdout.startswith("Usage: fedfuse deep numbers second")


def test_a_broken_one_disturbs_nobody_and_says_what_is_wrong(in_process: InProcess, install) -> None:
    install(say="no_such_package:say")
    assert in_process("presets").returncode == 0
    assert "cannot be loaded" in in_process("--help").stdout
    sentence = only_sentence(in_process("say", "hello", "--loud"))
    assert sentence == "say of no_such_package:say cannot be loaded: No module named 'no_such_package'"


def test_none_takes_the_place_of_ours(in_process: InProcess, install) -> None:
    install(presets="no_such_package:say")
    assert in_process("presets").returncode == 0
    assert in_process("--help").stdout.count(" presets ") == 1


def test_a_command_of_a_package_that_is_not_installed_says_which(in_process: InProcess, install) -> None:
    install()
    sentence = only_sentence(in_process("reproduce", "feddf/table2", "--scale", "small"))
    assert sentence == "reproduce is a command of fedfuse-papers; install it: pip install fedfuse-papers"
    assert "reproduce" not in in_process("--help").stdout
    assert only_sentence(in_process("reproduced")).startswith("unknown command 'reproduced' (known: audit, ")


def test_a_misspelt_command_gets_a_guess_among_all(in_process: InProcess, install) -> None:
    install(say=f"{__name__}:single")
    assert only_sentence(in_process("metods")) == "unknown command 'metods' (did you mean 'methods'?)"
    assert only_sentence(in_process("sai", "x")) == "unknown command 'sai' (did you mean 'say'?)"


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from fedfuse.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert done.stdout.endswith("False\n")
