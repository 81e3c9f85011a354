"""The tutorial does what it says: every file, script, command and section of an experiment file on it is run."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys

import pytest
import yaml

from fedfuse.core.choice import part_at
from fedfuse.experiment.run import Experiment
from fedfuse.testing.slots import SLOTS
from tests.cli.test_cli import QUICK, in_process
from tests.outside import page
from tests.outside.parts import PARTS

__all__ = ["in_process"]
pytestmark = pytest.mark.usefixtures("without_pictures", "here")
SMALL = [word for change in QUICK for word in ("--set", change)]
COMMANDS = page.commands()


@pytest.mark.long
@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("python")])
def test_every_command_of_python_works(here, command):
    subprocess.run([sys.executable, *shlex.split(command)[1:]], check=True, cwd=here, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith("python")])
def test_every_command_works(in_process, here, command):
    program, *arguments = shlex.split(command)
    assert program == "fedfuse"
    quick = [*SMALL, "--overwrite"] if arguments[0] in ("run", "compare") else []
    done = in_process(*arguments, *quick, folder=here)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", page.scripts())
def test_every_script_works(script, here, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(here)
    monkeypatch.setattr("fedfuse.experiment.api.Experiment.load", quickly(Experiment.load))
    exec(script.replace('"runs/', f'"{tmp_path}/'), {"__name__": "script"})


def quickly(load):
    return lambda given, assignments=(), **values: load(given, [*assignments, *QUICK], **values)


@pytest.mark.long
def test_the_test_of_the_page_passes(monkeypatch, here):
    monkeypatch.syspath_prepend(here)
    module = importlib.import_module("test_my_methods")
    module.test_feddyn_keeps_the_laws()
    module.test_without_strength_it_is_fedavg()


@pytest.mark.parametrize("section", page.blocks("yaml"))
def test_every_section_of_an_experiment_file_is_valid(section):
    Experiment.load("digits", **yaml.safe_load(section))


def test_every_slot_has_its_example(here, monkeypatch):
    """A metric or an engine as well as a merge: whatever ``check_part`` knows, the page shows."""
    monkeypatch.syspath_prepend(here)
    shown = [part_at(one.address, slot.base) for slot in SLOTS[1:] for one in PARTS.values() if fits(one, slot.base)]
    assert len(shown) >= len(SLOTS) - 1
    assert {f"{one.address.partition(':')[0]}.py" for one in PARTS.values()} <= set(page.files())


def fits(outside, base):
    module, _, name = outside.address.partition(":")
    return issubclass(getattr(importlib.import_module(module), name), base)


def test_the_output_on_the_page_names_the_laws():
    from fedfuse.testing.laws import EVERY

    laws = "\n".join(law.__name__.replace("_", " ") for law in EVERY)
    assert laws in page.TEXT


def test_the_example_is_the_file_of_the_page():
    assert (page.ROOT / "examples" / "feddyn.py").read_text() == page.files()["my_methods.py"]
