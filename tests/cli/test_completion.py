"""Completion: what may follow a line, and the same in real shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedfuse.catalogue.index import own_methods
from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.completing import candidates, split
from fedfuse.cli.completing_values import FREE, KINDS
from fedfuse.cli.completion import SCRIPTS, Shell
from fedfuse.cli.surface import Parameter, Surface, surface_of
from fedfuse.experiment import presets


def words(line: str) -> list[str]:
    return [one.word for one in candidates(line)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment file, a run and other things."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine.yaml", "notes.txt", "runs/first/config.yaml", "runs/all/second/config.yaml", "with space.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_commands_and_their_own() -> None:
    assert set(COMMANDS) <= set(words("fedfuse "))
    assert "reproduce" in words("fedfuse re")
    assert words("fedfuse generator ") == ["train", "show"]
    assert words("fedfuse nosuch ") == []
    assert all(one.help for one in candidates("fedfuse "))


def test_options_of_the_command_each_once_unless_it_may_be_repeated() -> None:
    assert {"--method", "--set", "--resume", "--help"} <= set(words("fedfuse run digits --"))
    again = words("fedfuse run digits --method fedavg --set a=1 --")
    assert "--method" not in again
    assert "--set" in again


def test_names_that_the_catalogue_knows() -> None:
    assert words("fedfuse run digits --method ") == list(own_methods())
    assert words("fedfuse run digits --method=fedp") == ["--method=fedprox"]
    others = ["fedavg,fedavgm", "fedavg,fedavgm-as-coded", "fedavg,fedaux"]
    assert words("fedfuse compare digits --methods fedavg,feda") == others
    assert words("fedfuse datasets cifar") == ["cifar10", "cifar100"]
    assert words("fedfuse models resnet5") == ["resnet56", "resnet50"]
    assert words("fedfuse parts merg") == ["merge"]
    assert words("fedfuse parts merge ti") == ["ties"]
    assert words("fedfuse parts merge ties ") == []
    assert words("fedfuse run digits --engine ") == ["local", "ray"]
    assert words("fedfuse completion ") == ["bash", "zsh", "fish"]


def test_keys_a_section_at_a_time_and_then_their_values() -> None:
    assert words("fedfuse run digits --set part") == ["partition."]
    assert "partition.alpha=" in words("fedfuse run digits --set partition.")
    assert words("fedfuse run digits --set method.fuse.distiller.st") == ["method.fuse.distiller.steps="]
    schedules = [f"training.schedule={one}" for one in ("constant", "linear", "cosine")]
    assert words("fedfuse run digits --set training.schedule=") == schedules
    assert words("fedfuse run digits --set partition.kind=ii") == ["partition.kind=iid"]
    assert words("fedfuse run digits --set method=scaf") == ["method=scaffold"]
    assert words("fedfuse run digits --set data.name=digi") == ["data.name=digits"]
    assert words("fedfuse run digits --set training.shuffle=t") == ["training.shuffle=true"]
    assert words("fedfuse run digits --set nosuch.key=") == []


def test_files_folders_and_runs(here: Path) -> None:
    assert set(presets.names()) < set(words("fedfuse run "))
    assert words("fedfuse run m") == ["mnist-small", "mine.yaml"]
    assert words("fedfuse run runs/") == ["runs/all/", "runs/first/"]
    assert words("fedfuse monitor runs/") == ["runs/all/", "runs/first"]
    assert words(f"fedfuse monitor {here}/runs/all/s") == [f"{here}/runs/all/second"]
    assert words("fedfuse run 'with s") == ["with space.yaml"]
    assert words("fedfuse run with\\ s") == ["with space.yaml"]
    assert words("fedfuse run no/such/folder/x") == []
    assert "notes.txt" in words("fedfuse run digits --out n")


@pytest.mark.parametrize(
    "line", ["", "fedfuse", "fedfuse run digits --set =", "fedfuse run 'x\" y", "fedfuse - -- =", "fedfuse run --set"]
)
def test_a_line_that_makes_no_sense_offers_something_or_nothing(line: str) -> None:
    assert isinstance(words(line), list)


def test_a_line_is_split_as_a_shell_would() -> None:
    assert split("fedfuse run ") == ["fedfuse", "run", ""]
    assert split("fedfuse run 'a b") == ["fedfuse", "run", "a b"]
    assert split('fedfuse run "a b" ') == ["fedfuse", "run", "a b", ""]


def parameters(surface: Surface) -> Iterator[Parameter]:
    yield from surface.parameters
    for inner in surface.commands:
        yield from parameters(inner)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_value_is_completed_or_said_to_be_free(command: str) -> None:
    unknown = {
        one.metavar
        for one in parameters(surface_of(command))
        if one.metavar and not one.choices and one.metavar not in KINDS and one.metavar not in FREE
    }
    assert unknown == set(), "say in cli/completing_values.py how these are completed"


ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if key not in ("PROMPT_COMMAND", "ZDOTDIR")},
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "TERM": "dumb",
    "PS1": "ready> ",
}


def typed(shell: list[str], lines: list[str], keys: str, wanted: str, folder: Path) -> str:
    """What a shell in a terminal shows after lines were entered and keys pressed, until ``wanted`` is seen."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(shell[0], shell, ENVIRONMENT)
    seen = b""
    try:
        for text in (*(f"{line}\n" for line in lines), keys):
            os.write(terminal, text.encode())
        end = time.monotonic() + 60
        while wanted.encode() not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.5)[0]:
                seen += os.read(terminal, 65536)
    except OSError:
        pass  # the shell ended
    finally:
        os.close(terminal)
        os.kill(child, 9)
        os.waitpid(child, 0)
    return seen.decode(errors="replace")


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


INSTEAD = 'fedfuse() { if [ "$1" = completion ]; then command fedfuse "$@"; else echo "got:$*:"; fi; }'
"""Shows what would have been run."""


def test_bash_completes_a_value_behind_an_equals_sign(here: Path) -> None:
    needs("bash")
    start = ['eval "$(fedfuse completion bash)"', INSTEAD]
    keys = "fedfuse run dig\t--meth\tfedp\t--set partition.ki\tii\t\n"
    seen = typed(["bash", "--norc", "-i"], start, keys, "got:run digits", here)
    assert "got:run digits --method fedprox --set partition.kind=iid" in seen


def test_bash_quotes_what_it_would_take_apart(here: Path) -> None:
    needs("bash")
    (here / "it's $HOME & more.yaml").touch()
    (here / "bad\nname.yaml").touch()
    for typed_so_far, name in (
        ("it", "it's $HOME & more.yaml"),
        ("'with", "with space.yaml"),
    ):
        keys = f"fedfuse run {typed_so_far}\t\n"
        seen = typed(["bash", "--norc", "-i"], ['eval "$(fedfuse completion bash)"', INSTEAD], keys, "got:run", here)
        assert f"got:run {name}:" in seen


def test_zsh_completes_a_method(here: Path) -> None:
    needs("zsh")
    start = ["autoload -Uz compinit; compinit -u -D", 'eval "$(fedfuse completion zsh)"', INSTEAD]
    keys = "fedfuse run digits --method fedpr\t--set training.ep\n"
    seen = typed(["zsh", "-f", "-i"], start, keys, "got:run digits", here)
    assert "got:run digits --method fedprox --set training.ep" in seen.replace("\r", "")


def test_fish_offers_words_with_their_meanings(here: Path) -> None:
    needs("fish")
    asked = ("fedfuse run digits --method fedpr", "fedfuse monitor runs/f")
    script = "\n".join([SCRIPTS[Shell.FISH], *(f"complete -C '{line}'" for line in asked)])
    environment = {**ENVIRONMENT, "HOME": str(here), "XDG_CONFIG_HOME": str(here)}
    command = ["fish", "--no-config", "-c", script]
    done = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["fedprox\tFedAvg with a proximal term in the loss", "runs/first\ta run"]
