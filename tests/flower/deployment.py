"""A real federation on this machine: SuperLink and SuperNodes as processes, with TLS and node authentication.

Such tests take minutes and run only with FEDFUSE_DEPLOYMENT=1 (make test-engines).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.flower.deployment import connection
from fedfuse.flower.keys import make_keys
from fedfuse.flower.project import new_project
from fedfuse.flower.registration import register
from tests.helpers import files_of, tiny_config, without_seconds

BIN = Path(sys.executable).parent
FEDFUSE = (sys.executable, "-m", "fedfuse", "flower")
PATIENCE = 480.0
"""Seconds until a test gives up waiting for something that takes a few: a busy machine must not fail it."""
ENGINE = {"kind": "flower", "wait": PATIENCE, "timeout": PATIENCE, "quorum": 0.5, "poll": 0.2}
REAL_PROCESSES = [
    pytest.mark.skipif("FEDFUSE_DEPLOYMENT" not in os.environ, reason="takes minutes: set FEDFUSE_DEPLOYMENT=1"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
    pytest.mark.usefixtures("without_pictures"),
]


def config_of(method: str, rounds: int, clients: int, **sections: Any) -> ExperimentConfig:
    partition = {"kind": "dirichlet", "clients": clients, "alpha": 1.0, "min_examples": 2}
    return tiny_config(
        method, **{"engine": ENGINE, "partition": partition, "federation": {"rounds": rounds}, **sections}
    )


def assert_same(out: Path, config: ExperimentConfig, folder: Path) -> None:
    """What the local engine makes of the same experiment, below ``folder``, byte for byte."""
    local = Experiment(config.model_copy(update={"engine": tiny_config().engine})).run(folder / "local")
    assert files_of(out / "final") == files_of(local.folder.final)
    mine, other = (without_seconds(RunFolder(path).read_summary()) for path in (out, local.folder.path))
    assert mine == other


def missing(out: Path) -> list[list[int]]:
    """The clients without whom each round had to end; none of them for what its update was like."""
    rounds = [record for record in events(out) if record["event"] == "round_finished"]
    assert not any(record["refused"] for record in rounds)
    return [[*record.get("absent", ()), *record.get("late", ())] for record in rounds]


class Deployment:
    """Processes that are ended, children included, when the deployment is left.

    ``host`` is the SuperLink's address for parties, and ``before`` what the command of a client's node begins with.
    """

    def __init__(
        self, folder: Path, nodes: int, host: str = "127.0.0.1", before: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        self.folder, self.nodes, self.host, self.before = folder, nodes, host, before or {}
        self.keys = folder / "keys"
        self.port, self.operator_port = free_port(host), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
        }

    @property
    def operator(self) -> str:
        """Where the SuperLink answers its operator."""
        return f"127.0.0.1:{self.operator_port}"

    def __enter__(self) -> Deployment:
        try:
            make_keys(self.keys, self.nodes, [self.host], days=1)
            config = self.folder / "flwr" / "config.toml"
            config.parent.mkdir(parents=True)
            config.write_text(connection(self.operator, self.keys))
            self.start_link()
            for client in range(self.nodes):
                register(self.keys, self.keys / f"client-{client}.pub", client, self.operator)
                self.start_node(client)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.end(name)

    def start(self, name: str, command: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_link(self) -> None:
        """With the state, the keys and the port of the one before."""
        options = ["--keys", str(self.keys), "--host", self.host, "--port", str(self.port)]
        self.start("link", [*FEDFUSE, "superlink", *options, "--operator-port", str(self.operator_port)])
        wait_until(self._link_listens, self.story)

    def _link_listens(self) -> bool:
        assert self.processes["link"].poll() is None, self.story()
        try:
            return httpx.get(f"https://{self.host}:{self.port}/health", verify=self.trust()).is_success
        except httpx.HTTPError:
            return False

    def trust(self) -> ssl.SSLContext:
        """What anybody who has ca.crt sees."""
        return ssl.create_default_context(cafile=self.keys / "ca.crt")

    def start_node(
        self,
        client: int,
        keys: Path | None = None,
        program: Sequence[str] = FEDFUSE,
        accept: str = "any",
        more: Sequence[str] = (),
    ) -> None:
        superlink, state = f"{self.host}:{self.port}", str(self.folder / "nodes")
        options = ["--client", str(client), "--superlink", superlink, "--port", str(free_port()), "--state", state]
        options += ["--accept", accept, *more]
        command = [*program, "supernode", "--keys", str(keys or self.keys), *options]
        self.start(f"node-{client}", [*self.before.get(client, ()), *command])

    def stop_node(self, client: int) -> None:
        """As its owner would, so that Flower knows at once that it is gone."""
        node = self.processes[f"node-{client}"]
        node.send_signal(signal.SIGTERM)
        node.wait(timeout=PATIENCE)
        self.end(f"node-{client}")

    def restart_node(self, client: int) -> None:
        """Flower takes a killed node for connected until it missed its heartbeats, and refuses a new one till then."""
        log = self.folder / f"node-{client}.log"
        before = log.stat().st_size
        self.start_node(client)
        wait_until(lambda: b"SuperNode ID" in log.read_bytes()[before:], log.read_text)
        assert self.processes[f"node-{client}"].poll() is None

    def flwr(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "flwr", *command],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def submit(self, name: str, config: ExperimentConfig) -> Path:
        """Start a run of this experiment, and return its run folder."""
        app, file = self.folder / name, self.folder / f"{name}.yaml"
        file.write_text(config.to_yaml())
        if not app.exists():
            new_project(app, str(file))
        out = self.folder / "runs" / name
        answer = self.flwr("run", str(app), "fedfuse", "--run-config", f'out="{out}"')
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return out

    def run(self, name: str, config: ExperimentConfig) -> Path:
        out = self.submit(name, config)
        self.wait_for(out / "summary.json")
        return out

    def wait_for(self, path: Path) -> None:
        wait_until(path.exists, self.story)

    def wait_for_event(self, out: Path, event: str, number: int) -> None:
        def happened() -> bool:
            return any((e["event"], e.get("round")) == (event, number) for e in events(out))

        wait_until(happened, self.story)

    def story(self) -> str:
        """The last words of all processes, for a test that failed."""
        return "\n".join(f"{log.name}\n{log.read_text()[-3000:]}" for log in sorted(self.folder.glob("*.log")))

    def end(self, name: str) -> None:
        """Kill a process and all that it started."""
        self.send(name, signal.SIGKILL)
        self.processes.pop(name).wait(timeout=30)

    def send(self, name: str, how: signal.Signals) -> None:
        """A signal for a process and all that it started, even if it is gone itself."""
        with suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, how)

    def server_apps(self) -> list[int]:
        return [pid for pid in below(self.processes["link"].pid) if "flwr-serverapp" in command_of(pid)]

    def client_apps(self, client: int) -> list[int]:
        return [pid for pid in below(self.processes[f"node-{client}"].pid) if "flwr-clientapp" in command_of(pid)]


def events(out: Path) -> list[dict[str, object]]:
    path = out / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def wait_until(condition: Callable[[], bool], story: Callable[[], str] = lambda: "") -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"did not happen within {PATIENCE} s\n{story()}"
        time.sleep(0.3)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def below(pid: int) -> list[int]:
    """All processes that this one started, directly or not."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if Path(f"/proc/{pid}").exists() else ():
        found += [int(child), *below(int(child))]
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
