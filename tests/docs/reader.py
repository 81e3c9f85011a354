"""Somebody who goes through a page from top to bottom, in one folder, and does all that it says.

Commands of fedfuse run inside this process. Experiments are cut to two short rounds, unless FEDFUSE_WHOLE_PAGES is set:
what is tried is that everything on the page works and prints what the page shows, but for its numbers.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import fedfuse
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.fusing.plan import FusePlan
from tests.docs.blocks import ROOT, Block, blocks_of, commands

WHOLE = bool(os.environ.get("FEDFUSE_WHOLE_PAGES"))
MOST = {"rounds": 2, "epochs": 1, "steps": 10, "collect_after": 2, "cycle": 2}
BASE: dict[str, Any] = {
    "data": {"name": "digits", "public": 0.2, "validation": 0.1},
    "models": {"mlp": {"arch": "mlp"}},
}
SERVERS = ("watch", "monitor")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


class Reader:
    """``folder`` is where the reader works; ``names`` are what Python blocks have defined so far."""

    def __init__(self, folder: Path, run: Any) -> None:
        self.folder, self.run, self.names = folder, run, dict[str, Any](__name__="page", fedfuse=fedfuse)

    def write_files(self, page: str) -> None:
        """Those that a page shows with their names, before anything is tried."""
        for block in blocks_of(page):
            if block.file:
                (self.folder / block.file).write_text(block.text)

    def follow(self, block: Block) -> None:
        follow = getattr(self, f"_{block.language or 'output'}")
        follow(block)

    def _python(self, block: Block) -> None:
        if not block.file:
            exec(compile("\n" * block.line + block.text, block.page, "exec"), self.names)

    def _yaml(self, block: Block) -> None:
        for section in variants(block.text):
            Experiment({**BASE, **section})

    def _toml(self, block: Block) -> None:
        tomllib.loads(block.text)

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _console(self, block: Block) -> None:
        for command, shown in commands(block):
            check_shown(shown, self._command(command), f"{block.place}: {command}")

    def _output(self, block: Block) -> None:
        """What stands without a language is shown, not run; a command in it would be forgotten."""
        assert not block.text.startswith("$ "), f"{block.place}: a command, so the block is console"

    def _command(self, command: str) -> str:
        program, *arguments = words = shlex.split(command, comments=True)
        if program == "make":
            return _made(words)
        if program == "pip":
            return _installed(arguments)
        target = None
        if ">" in arguments:
            target, arguments = arguments[-1], arguments[: arguments.index(">")]
        if program == "fedfuse" and arguments[0] in SERVERS:
            return self._served(arguments)
        if program == "fedfuse":
            done = self.run(*_in_this_process(arguments), folder=self.folder)
        else:
            assert program == "python", f"nobody here knows how to run {program}"
            done = subprocess.run(
                [sys.executable, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300
            )
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
        if target:
            (self.folder / target).write_text(done.stdout)
        return str(done.stdout + done.stderr)

    def _served(self, arguments: list[str]) -> str:
        """What serves until Ctrl-C is asked for its page, and then gets one."""
        command = [sys.executable, "-m", "fedfuse", *arguments]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True) as server:
            clock = threading.Timer(120, server.kill)
            clock.start()
            try:
                assert server.stdout is not None
                line = server.stdout.readline()
                address = re.search(r"http://\S+", line)
                assert address, f"{command}: {line!r} has no address"
                with urllib.request.urlopen(address.group(), timeout=60) as page:
                    assert b"<html" in page.read()
                server.send_signal(signal.SIGINT)
                assert server.wait(60) == 0
            finally:
                clock.cancel()
                server.kill()
        return line


def _in_this_process(arguments: list[str]) -> list[str]:
    """Without processes of their own, which would run whole experiments, and with few trials."""
    shorter = {"--jobs": "1", "--budget": "3"}
    return [shorter.get(before, word) for before, word in zip(["", *arguments], arguments, strict=False)]


def _made(words: list[str]) -> str:
    """What make would do, which is run by whoever says so; the target and its commands must be there."""
    subprocess.run([*words, "-n"], cwd=ROOT, check=True, capture_output=True, timeout=60)
    return ""


def _installed(arguments: list[str]) -> str:
    """Nothing is installed here, but the extras must exist."""
    for extra in re.findall(r"\[([\w,-]+)\]", " ".join(arguments)):
        assert set(extra.split(",")) <= set(EXTRAS), f"pyproject.toml has no extra {extra}"
    return ""


def variants(text: str) -> list[Mapping[str, Any]]:
    """A block's sections; where one stands several times, each is a variant of its own."""
    keys = re.findall(r"^(\w+):", text, flags=re.MULTILINE)
    if len(set(keys)) == len(keys):
        return [yaml.safe_load(text) or {}]
    repeated = {key for key in keys if keys.count(key) > 1}
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rest = "\n".join(line for line in lines if line.partition(":")[0] not in repeated)
    each = [line for line in lines if line.partition(":")[0] in repeated]
    return [yaml.safe_load(f"{rest}\n{line}") for line in each]


def check_shown(shown: str, printed: str, place: str) -> None:
    """The words that a page shows are printed, in that order of lines; numbers are those of one machine."""
    lines = iter([_words(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        wanted = _words(line)
        if wanted:
            assert any(wanted == got for got in lines), f"{place}: not printed: {line!r}\n{printed}"


def _words(line: str) -> list[str]:
    return re.findall(
        r"[A-Za-z_][\w-]*[A-Za-z_]", re.sub(r"\(\d+ of \d+\)|\b[kMG]?B\b|\b(better|worse|equal|unclear)$", "", line)
    )


def shortened(config: Any) -> Any:
    """The same experiment, cut to what shows that it works."""
    short = _cut(config.model_dump(mode="json"))
    return config if short == config.model_dump(mode="json") else validate(short)


def _cut(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: min(inner, MOST[key]) if key in MOST and isinstance(inner, int) else _cut(inner)
            for key, inner in value.items()
        }
    return [_cut(inner) for inner in value] if isinstance(value, list) else value


@contextlib.contextmanager
def short_experiments() -> Any:
    """Every experiment that is made here is a short one."""
    with pytest.MonkeyPatch.context() as patch:
        begin = Experiment.__init__

        def begin_short(self: Experiment, *given: Any, **values: Any) -> None:
            begin(self, *given, **values)
            self.config = shortened(self.config)

        plan = FusePlan.of

        def short_plan(method: str, wishes: Mapping[str, Any]) -> FusePlan:
            planned = plan(method, wishes)
            return planned.model_copy(update={"steps": min(planned.steps, MOST["steps"])})

        if not WHOLE:
            patch.setattr(Experiment, "__init__", begin_short)
            patch.setattr(FusePlan, "of", staticmethod(short_plan))
        yield
