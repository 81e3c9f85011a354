"""The commands of deploy/flower/compose.yaml, as docs/operation.md has them run, but as plain processes right here.

Volumes are folders, the image's environment is the processes', services are on 127.0.0.1 and on free ports.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import copy
from typing import Any

from typer.testing import CliRunner

from fedfuse.cli.app import app
from fedfuse.federation.folder import RunFolder
from fedfuse.flower.project import new_project
from tests.deploy.test_backup import backup_command
from tests.deploy.test_files import FLOWER, PARTIES, SERVICES
from tests.flower.deployment import BIN, PATIENCE, REAL_PROCESSES, assert_same, config_of, free_port, wait_until

pytestmark = REAL_PROCESSES
CLIENTS = {name: service["command"][service["command"].index("--client") + 1] for name, service in PARTIES.items()}


def obey(*words: str) -> str:
    """A command of ours, in this process."""
    answer = CliRunner().invoke(app, ["flower", *words], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.output


class Composed:
    """The services of the compose file in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"8000": str(free_port()), "8001": str(free_port())}
        self.app_hash = ""

    def path(self, service: str, inside: str) -> Path:
        """What a path in a service's container is here."""
        for mount in SERVICES[service]["volumes"]:
            source, target = mount.removesuffix(":ro").split(":")
            if inside == target or inside.startswith(f"{target}/"):
                place = self.folder / (source if source.startswith("./") else f"volumes/{source}")
                return place / inside.removeprefix(target).strip("/")
        raise AssertionError(f"{service} has nothing at {inside}")

    def words(self, service: str) -> list[str]:
        """The service's command with all that is otherwise here."""
        return [self._word(service, word) for word in SERVICES[service]["command"]]

    def _word(self, service: str, word: str) -> str:
        if word.startswith("/"):
            return str(self.path(service, word))
        if word.startswith("${FEDFUSE_APP:"):
            return self.app_hash
        return self.ports.get(word) or {
            "superlink:8000": f"127.0.0.1:{self.ports['8000']}",
            "0.0.0.0": "127.0.0.1",
        }.get(word, word)

    def environment(self, service: str) -> dict[str, str]:
        """That of the image."""
        own = dict(pair.split("=", 1) for name, words in FLOWER if name == "ENV" for pair in words.split())
        here = {
            key: str(self.path(service, value)) if value.startswith("/state") else value for key, value in own.items()
        }
        return {**os.environ, **here, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    @contextmanager
    def up(self, service: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "fedfuse", "flower", *self.words(service), *options]
        with (self.folder / f"{service}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment(service), cwd=self.folder / "volumes", stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """In the SuperLink's container."""
        return subprocess.run(
            command, env=self.environment("superlink"), cwd=self.folder / "volumes", capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip

    def wait_for(self, link: subprocess.Popen[bytes]) -> None:
        """Until the SuperLink's health check says so."""
        wait_until(lambda: self.is_healthy("superlink", self.ports["8000"]) or link.poll() is not None, self.story)
        assert link.poll() is None, self.story()

    def is_healthy(self, service: str, port: str) -> bool:
        """What the service's health check says, at the port that it has here."""
        _, _, _, code = SERVICES[service]["healthcheck"]["test"]
        code = code.replace(":8000/", f":{port}/").replace(":9100/", f":{port}/")
        code = code.replace("/keys/ca.crt", str(self.path("superlink", "/keys/ca.crt")))
        return self.execute(sys.executable, "-c", code).returncode == 0

    def nodes(self) -> dict[str, str]:
        """What the SuperLink knows of each node."""
        answer = self.execute("flwr", "supernode", "list", "fedfuse", "--format", "json")
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return {node["node-id"]: node["status"] for node in json.loads(answer.stdout)["nodes"]}

    def story(self) -> str:
        return "\n".join(f"{log.name}\n{log.read_text()[-3000:]}" for log in sorted(self.folder.glob("*.log")))


def prepared(folder: Path, config: Any) -> Composed:
    """All that the page does before it starts anything."""
    composed = Composed(folder)
    (folder / "mine.yaml").write_text(config.to_yaml())
    new_project(folder / "app", str(folder / "mine.yaml"))
    composed.app_hash = obey("hash", str(folder / "app")).strip()
    keys = composed.path("superlink", "/keys")
    obey("keys", str(keys), "--host", "superlink")
    for name, client in CLIENTS.items():
        own = composed.path(name, "/keys")
        obey("key", str(own), "--client", client)
        copy(keys / "ca.crt", own)
        copy(own / f"client-{client}.pub", keys)
    for service in SERVICES:
        composed.path(service, "/state/flwr").mkdir(parents=True)
    settings = (Path(__file__).parents[2] / "deploy" / "flower" / "config.toml").read_text()
    settings = settings.replace("8001", composed.ports["8001"]).replace("/keys/ca.crt", str(keys / "ca.crt"))
    composed.path("superlink", "/state/flwr/config.toml").write_text(settings)
    return composed


def monitored(folder: Path) -> str:
    return CliRunner().invoke(app, ["monitor", str(folder), "--once"]).output


def registered(composed: Composed) -> None:
    keys = composed.path("superlink", "/keys")
    for client in CLIENTS.values():
        public = str(keys / f"client-{client}.pub")
        obey("register", str(keys), public, "--client", client, "--operator-port", composed.ports["8001"])


def test_three_parties_a_run_a_backup_and_its_restoration(tmp_path: Path) -> None:
    config = config_of("fedavg", rounds=1, clients=len(PARTIES))
    composed = prepared(tmp_path, config)
    database, backup = composed.path("superlink", "/state/superlink.db"), tmp_path / "backup.db"
    with ExitStack() as parties:
        with composed.up("superlink") as link:
            composed.wait_for(link)
            registered(composed)
            ports = {name: str(free_port()) for name in PARTIES}
            for name, port in ports.items():
                assert not composed.is_healthy(name, port)
                parties.enter_context(composed.up(name, "--port", port))
            answer = composed.execute("flwr", "run", str(composed.path("superlink", "/app")), "fedfuse")
            assert answer.returncode == 0, answer.stdout + answer.stderr
            folder = RunFolder(composed.path("superlink", "/runs/app"))
            wait_until(folder.is_complete, composed.story)
            assert all(composed.is_healthy(name, port) for name, port in ports.items())
            before = composed.nodes()
            assert list(before.values()) == ["online"] * len(PARTIES)
            assert 'fedfuse_clients_total{run="app",outcome="counted"} 3\n' in monitored(folder.path)
            subprocess.run(backup_command(database, backup), check=True, timeout=60)
        assert_same(folder.path, config, tmp_path)
        for path in (database, *database.parent.glob("superlink.db-*")):
            path.unlink()
        backup.rename(database)
        with composed.up("superlink") as link:
            composed.wait_for(link)
            wait_until(lambda: composed.nodes() == before, composed.story)
    for log in tmp_path.glob("*.log"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert lines
        assert all(set(line) == {"time", "level", "message"} for line in lines)
