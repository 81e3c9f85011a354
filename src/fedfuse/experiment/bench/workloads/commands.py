"""W6: how long commands take, in starts of a bare interpreter."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from functools import partial

from fedfuse.experiment.bench.workloads.base import Contender, Outcome, Row, Setup, SizeName, Workload

BARE = "python -c pass"
BY_HAND = "torch, digits, one step"
_BY_HAND = """
import torch
from sklearn.datasets import load_digits
inputs, labels = load_digits(return_X_y=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.nn.functional.cross_entropy(model(torch.from_numpy(inputs).float()), torch.from_numpy(labels)).backward()
optimizer.step()
"""
ASK = ("-m", "fedfuse", "completion", "--line", "fish")
"""As a shell does when TAB is pressed."""
COMMANDS = {
    BARE: ("-c", "pass"),
    "import torch": ("-c", "import torch"),
    "import fedfuse": ("-c", "import fedfuse"),
    "fedfuse --help": ("-m", "fedfuse", "--help"),
    "fedfuse methods": ("-m", "fedfuse", "methods"),
    "fedfuse datasets": ("-m", "fedfuse", "datasets"),
    "fedfuse models": ("-m", "fedfuse", "models"),
    "fedfuse presets": ("-m", "fedfuse", "presets"),
    "fedfuse parts": ("-m", "fedfuse", "parts"),
    "fedfuse keys": ("-m", "fedfuse", "keys"),
    "fedfuse methods feddf": ("-m", "fedfuse", "methods", "feddf"),
    "fedfuse parts merge ties": ("-m", "fedfuse", "parts", "merge", "ties"),
    "fedfuse help learning_rate": ("-m", "fedfuse", "help", "learning_rate"),
    "fedfuse run -h": ("-m", "fedfuse", "run", "-h"),
    "TAB after fedfuse run digits --set": (*ASK, "fedfuse run digits --set "),
    "fedfuse metods": ("-m", "fedfuse", "metods"),
    "fedfuse run nosuch": ("-m", "fedfuse", "run", "nosuch"),
    "fedfuse run digits --rounds 3": ("-m", "fedfuse", "run", "digits", "--rounds", "3"),
    "fedfuse run digits --set lr=3": ("-m", "fedfuse", "run", "digits", "--set", "lr=3"),
    "fedfuse run digits, one round": ("-m", "fedfuse", "run", "digits", "--set", "federation.rounds=1"),
    BY_HAND: ("-c", _BY_HAND),
}
REPEATED = 5
"""A bare interpreter is too quick to be timed once."""


def timed(name: str, _setup: Setup) -> Outcome:
    """User and system time of the command in a folder of its own, started anew."""
    times = REPEATED if name == BARE else 1
    before = _children()
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, *COMMANDS[name]], cwd=folder, capture_output=True, check=False)
    return Outcome({"cpu": (_children() - before) / times})


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _sizes(name: str) -> tuple[SizeName, ...]:
    """Commands that take seconds are for the page of results, and a few of the others for tests."""
    if name in (BY_HAND, "fedfuse run digits, one round"):
        return ("full",)
    return ("full", "small", "tiny") if name in (BARE, "fedfuse --help", "fedfuse methods") else ("full", "small")


START = Workload(
    "W6",
    "Commands, in starts of a bare interpreter",
    "whether a listing or a misspelt name waits for torch",
    contenders=tuple(Contender(name, partial(timed, name), sizes=_sizes(name)) for name in COMMANDS),
    rows=tuple(Row(name, name, "cpu", BARE) for name in COMMANDS if name != BARE),
    seconds=120,
)
