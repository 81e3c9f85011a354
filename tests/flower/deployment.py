"""A real federation on this machine: SuperLink and SuperNodes as processes, with TLS and node authentication."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fedfuse.config import ExperimentConfig
from fedfuse.flower.deployment import connection
from fedfuse.flower.keys import make_keys
from fedfuse.flower.project import new_project

BIN = Path(sys.executable).parent
PATIENCE = 240.0


class Deployment:
    """Processes that are ended, children included, when the deployment is left."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.nodes = folder, nodes
        self.keys = folder / "keys"
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
        }

    def __enter__(self) -> Deployment:
        make_keys(self.keys, self.nodes, [], days=1)
        config = self.folder / "flwr" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(connection(f"127.0.0.1:{self.port}", self.keys))
        self.start("link", "superlink", "--keys", str(self.keys), "--port", str(self.port))
        for client in range(self.nodes):
            register = ["supernode", "register", str(self.keys / f"client-{client}.pub"), "fedfuse"]
            wait_until(lambda register=register: self.flwr(*register).returncode == 0)
            self.start_node(client)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.end(name)

    def start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        arguments = [sys.executable, "-m", "fedfuse", "flower", *command]
        self.processes[name] = subprocess.Popen(
            arguments,
            env=self.environment,
            cwd=self.folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()

    def start_node(self, client: int, keys: Path | None = None) -> None:
        superlink, state = f"127.0.0.1:{self.port}", str(self.folder / "nodes")
        options = ["--client", str(client), "--superlink", superlink, "--port", str(free_port()), "--state", state]
        self.start(f"node-{client}", "supernode", "--keys", str(keys or self.keys), *options)

    def restart_node(self, client: int) -> None:
        """Flower takes a node for connected until it missed two heartbeats, and refuses a second one meanwhile."""

        def stays() -> bool:
            self.start_node(client)
            try:
                self.processes[f"node-{client}"].wait(timeout=20)
            except subprocess.TimeoutExpired:
                return True
            self.end(f"node-{client}")
            return False

        wait_until(stays)

    def flwr(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "flwr", *command], env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60
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
        wait_until(path.exists, lambda: (self.folder / "link.log").read_text()[-3000:])

    def wait_for_event(self, out: Path, event: str, number: int) -> None:
        def happened() -> bool:
            return any((e["event"], e.get("round")) == (event, number) for e in events(out))

        wait_until(happened, lambda: (self.folder / "link.log").read_text()[-3000:])

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


def events(out: Path) -> list[dict[str, object]]:
    path = out / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def wait_until(condition: Callable[[], bool], story: Callable[[], str] = lambda: "") -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"did not happen within {PATIENCE} s\n{story()}"
        time.sleep(0.3)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
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
