"""Trials: runs that are killed, resumed and compared with one that was left alone."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from tests.helpers import tiny_config
from tests.reliability.evidence import Evidence, difference, evidence
from tests.reliability.forked import Forked, HangsError, is_alive, is_worker
from tests.reliability.kept import FOLDER
from tests.reliability.kills.legs import leg
from tests.reliability.kills.plan import MANY, Kill, Trial

ROUNDS, MANY_ROUNDS = 6, 40
BEHIND = 90.0
"""Seconds until nothing may be left of a run that was killed; two agents of Ray notice after a minute."""


@dataclass(frozen=True)
class Outcome:
    """What a trial came to; no fault if it is as it should be."""

    method: str
    engines: list[str]
    clients: int
    kills: dict[str, int]
    fault: str
    seconds: float


class Runs:
    """Runs below a folder, and what those came to that were left alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._expected: dict[Path, tuple[Evidence, int]] = {}

    def outcome(self, trial: Trial) -> Outcome:
        began, kills = time.monotonic(), dict[str, int]()
        try:
            fault = self._fault(trial, kills)
        except HangsError as error:
            fault = str(error)
        if fault:
            fault += f"; its folder is {self._kept(trial)}"
        return Outcome(trial.method, trial.engines, trial.clients, kills, fault, round(time.monotonic() - began, 1))

    def _fault(self, trial: Trial, kills: dict[str, int]) -> str:
        config = self._config(trial)
        expected, events = self._straight(config, "flower" if trial.last == "flower" else "local")
        out = self.folder / f"trial-{trial.number}"
        for kill in trial.kills:
            process = Forked(leg(kill.engine, config, out), self.folder / f"log-{trial.number}")
            if fault := _struck(process, kill, out / "events.jsonl", events, kills):
                process.end()
                return fault
        last = Forked(leg(trial.last, config, out), self.folder / f"log-{trial.number}")
        last.wait()
        if last.code() != 0:
            return f"does not go on: {last.last_words()}"
        if left := [path.name for path in out.rglob("*.tmp")]:
            return f"left {left}"
        if differs := difference(evidence(out), expected):
            return f"differs in {differs}"
        shutil.rmtree(out)
        return ""

    def _kept(self, trial: Trial) -> Path:
        """What is left of a run and of what it said, where it can be looked at."""
        kept = FOLDER / f"trial-{trial.number}"
        kept.mkdir(exist_ok=True)
        shutil.copy(self.folder / f"log-{trial.number}", kept / "log")
        if (out := self.folder / kept.name).exists():
            shutil.copytree(out, kept / "run", dirs_exist_ok=True)
        return kept

    def _straight(self, config: Path, engine: str) -> tuple[Evidence, int]:
        """What a run comes to that is left alone, and how many lines its log has."""
        if config not in self._expected:
            out = self.folder / f"straight-{config.stem}"
            process = Forked(leg(engine, config, out), self.folder / "log-straight")
            process.wait()
            if process.code() != 0:
                raise RuntimeError(f"{config.stem} does not even run: {process.last_words()}")
            self._expected[config] = evidence(out), _lines(out / "events.jsonl")
        return self._expected[config]

    def _config(self, trial: Trial) -> Path:
        kind = "flower" if trial.last == "flower" else "many" if trial.clients == MANY else "simulated"
        path = self.folder / f"{kind}-{trial.method}-{trial.stack}.yaml"
        if not path.exists():
            path.write_text(self._experiment(kind, trial))
        return path

    def _experiment(self, kind: str, trial: Trial) -> str:
        evaluation, compute = {"pictures": False}, {"device": "cpu", "stack": trial.stack}
        if kind == "many":
            return yaml.safe_dump(
                {
                    "data": {"name": "npz", "path": str(self._many()), "public": 20, "validation": 10},
                    "partition": {"kind": "iid", "clients": MANY},
                    "models": {"small": {"arch": "mlp", "hidden": [4]}},
                    "method": trial.method,
                    "federation": {"rounds": MANY_ROUNDS, "clients_per_round": 6},
                    "evaluation": evaluation,
                    "compute": compute,
                }
            )
        engine = {}
        if kind == "flower":
            from tests.flower.federation import QUICK

            engine = {"engine": {**QUICK, "wait": 10.0, "timeout": 100.0}}
        federation = {"rounds": ROUNDS, "participation": 0.75, "checkpoint_every": 1}
        config = tiny_config(trial.method, federation=federation, evaluation=evaluation, compute=compute, **engine)
        return config.to_yaml()

    def _many(self) -> Path:
        """Three examples for each of very many clients."""
        path = self.folder / "many.npz"
        if not path.exists():
            inputs = np.random.default_rng(0).standard_normal((3 * MANY + 80, 4), dtype=np.float32)
            labels = (inputs.sum(axis=1) > 0).astype(np.int64)
            np.savez(path, x_train=inputs[:-50], y_train=labels[:-50], x_test=inputs[-50:], y_test=labels[-50:])
        return path


def _struck(process: Forked, kill: Kill, log: Path, events: int, kills: dict[str, int]) -> str:
    """Let a run go on until its moment, and end it; what is wrong then."""
    before = _lines(log)
    moment = before + 1 + int(kill.moment * max(events - before, 0))
    process.wait(lambda: _lines(log) >= moment)
    if kill.how == "worker":
        process.wait(lambda: any(map(is_worker, process.below())))
    time.sleep(kill.delay)
    below = process.below()
    if process.code() is None:
        _end(process, kill, below)
        kills[kill.how] = kills.get(kill.how, 0) + 1
    process.wait()
    allowed = {"worker": (0,), "asked": (0, 2)}.get(kill.how, (0, -signal.SIGKILL))
    if process.code() not in allowed:
        return f"ended with {process.code()}: {process.last_words()}"
    deadline = time.monotonic() + BEHIND
    while left := [pid for pid in below if is_alive(pid)]:
        if time.monotonic() > deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return f"{len(left)} processes stayed behind a run that ended by '{kill.how}' on {kill.engine}"
        time.sleep(0.05)
    return ""


def _end(process: Forked, kill: Kill, below: set[int]) -> None:
    with suppress(ProcessLookupError):
        if kill.how == "group":
            os.killpg(process.pid, signal.SIGKILL)
        elif kill.how == "asked":
            os.kill(process.pid, signal.SIGTERM)
        elif kill.how == "worker":
            os.kill(min(filter(is_worker, below), default=process.pid), signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0
