"""Images, compose file and units say what docker, systemd and fedfuse expect to read. None of them is run here."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from fedfuse.cli.app import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("*/Dockerfile"))
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "flower" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PARTIES = {name: service for name, service in SERVICES.items() if name != "superlink"}
SERVICE_KEYS = {
    "image", "restart", "init", "read_only", "tmpfs", "cap_drop", "security_opt", "pids_limit", "stop_grace_period",
    "logging", "command", "ports", "volumes", "healthcheck", "depends_on",
}  # fmt: skip
each_image = pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
each_unit = pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
each_service = pytest.mark.parametrize("name", SERVICES)


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of ``fedfuse flower ...`` as our own command line reads them."""
    name, *arguments = words
    command = typer.main.get_command(app).get_command(None, "flower").commands[name]
    return command.make_context(name, arguments).params


def instructions(file: Path) -> list[tuple[str, str]]:
    """A Dockerfile's lines, continued ones joined, comments left out."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def is_sent(path: str) -> bool:
    """Whether docker sends a file of the repository's root to the builder: the last pattern that fits decides."""
    sent = True
    for pattern in (ROOT / ".dockerignore").read_text().splitlines():
        if pattern and not pattern.startswith("#"):
            plain = pattern.removeprefix("!")
            parts = [path, *(str(parent) for parent in Path(path).parents)]
            if any(fnmatch(part, plain) or fnmatch(f"/{part}", plain.replace("**/", "*/")) for part in parts):
                sent = pattern.startswith("!")
    return sent


class TestWhatGoesIntoAnImage:
    @pytest.mark.parametrize(
        "path",
        [".git/config", ".venv/bin/python", ".venv-engines/bin/python", "runs/mine/config.yaml", "keys/server.key",
         "superlink.db", "hospital-app/pyproject.toml", "deploy/flower/superlink/keys/ca.key", "tests/conftest.py",
         "src/fedfuse/__pycache__/plugins.pyc", "src/fedfuse.egg-info/PKG-INFO", ".env", "my.yaml"],
    )  # fmt: skip
    def test_is_nothing_that_happens_to_lie_here(self, path: str) -> None:
        assert not is_sent(path)

    @each_image
    def test_is_what_it_copies(self, file: Path) -> None:
        copied = [words.split()[:-1] for name, words in instructions(file) if name == "COPY" and "--from=" not in words]
        for path in [word for words in copied for word in words if not word.startswith("--") and word != "."]:
            assert (ROOT / path).exists()
            assert is_sent(path)

    def test_is_all_that_pip_needs(self) -> None:
        for path in (
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "src/fedfuse/__init__.py",
            "src/fedfuse/flower/template/README.md",
        ):
            assert is_sent(path)

    @each_image
    def test_is_a_pinned_torch_installed_before_all_else(self, file: Path) -> None:
        installs = [words for name, words in instructions(file) if name == "RUN" and "pip install" in words]
        assert installs[0].endswith(" torch")
        constraints = Path(re.search(r"-c (\S+)", installs[0])[1]).name
        assert re.search(r"^torch==[\d.]+$", (ROOT / constraints).read_text(), re.MULTILINE)

    @each_image
    def test_has_a_base_of_one_version(self, file: Path) -> None:
        bases = [words.split()[0] for name, words in instructions(file) if name == "FROM"]
        assert all(re.search(r":\d+\.\d+", base) for base in bases)


FLOWER = instructions(DEPLOY / "flower" / "Dockerfile")


class TestTheFlowerImage:
    def test_runs_as_nobody_in_particular(self) -> None:
        assert [words for name, words in FLOWER if name == "USER"] == ["10001:10001"]
        assert not any(name in ("COPY", "ADD", "RUN") for name, _ in FLOWER[self._place("USER") :])

    def test_tells_nobody_about_itself(self) -> None:
        environment = dict(pair.split("=", 1) for name, words in FLOWER if name == "ENV" for pair in words.split())
        assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
        assert environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"

    def test_its_commands_are_ours(self) -> None:
        assert [words for name, words in FLOWER if name == "ENTRYPOINT"] == ['["fedfuse", "flower"]']

    def _place(self, what: str) -> int:
        return [name for name, _ in FLOWER].index(what)


class TestCompose:
    def test_is_one_superlink_and_three_parties(self) -> None:
        assert set(PARTIES) == {"party-0", "party-1", "party-2"}

    @each_service
    def test_has_no_key_that_compose_does_not_know(self, name: str) -> None:
        assert set(SERVICES[name]) <= SERVICE_KEYS

    @each_service
    def test_every_service_is_confined(self, name: str) -> None:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["restart"] == "unless-stopped"

    @each_service
    def test_every_command_is_one_of_ours(self, name: str) -> None:
        options = parsed(SERVICES[name]["command"])
        assert not options["insecure"]
        assert options["keys"] == Path("/keys")

    def test_only_the_parties_port_is_published(self) -> None:
        assert [name for name, service in SERVICES.items() if "ports" in service] == ["superlink"]
        port = parsed(SERVICES["superlink"]["command"])["port"]
        assert SERVICES["superlink"]["ports"] == [f"{port}:{port}"]

    def test_parties_find_the_superlink_and_are_different_clients(self) -> None:
        options = {name: parsed(service["command"]) for name, service in PARTIES.items()}
        port = parsed(SERVICES["superlink"]["command"])["port"]
        assert {own["superlink"] for own in options.values()} == {f"superlink:{port}"}
        assert {name: own["client"] for name, own in options.items()} == {f"party-{n}": n for n in range(3)}

    @each_service
    def test_what_a_command_writes_is_on_a_volume(self, name: str) -> None:
        mounts = dict(reversed(mount.removesuffix(":ro").split(":")) for mount in SERVICES[name]["volumes"])
        options = parsed(SERVICES[name]["command"])
        for path in (options.get("database"), options.get("state")):
            assert path is None or any(path.is_relative_to(mount) for mount in mounts)

    def test_nobody_has_anothers_folder(self) -> None:
        sources = [mount.split(":")[0] for service in SERVICES.values() for mount in service["volumes"]]
        assert len(sources) == len(set(sources))
        named = {source for source in sources if not source.startswith("./")}
        assert named == set(COMPOSE["volumes"])

    @pytest.mark.parametrize("name", PARTIES)
    def test_a_party_may_not_change_its_keys_and_data(self, name: str) -> None:
        assert [mount for mount in PARTIES[name]["volumes"] if mount.startswith("./")] == [
            f"./{name}/keys:/keys:ro",
            f"./{name}/data:/data:ro",
        ]

    @each_service
    def test_the_health_check_is_a_program_that_asks_at_the_services_own_port(self, name: str) -> None:
        kind, program, option, code = SERVICES[name]["healthcheck"]["test"]
        assert (kind, program, option) == ("CMD", "python", "-c")
        compile(code, "healthcheck", "exec")
        assert f":{parsed(SERVICES[name]['command'])['port']}/health" in code


@each_unit
class TestUnit:
    def test_its_command_is_one_of_ours(self, file: Path) -> None:
        program, group, *words = self._command(file)
        assert (program, group) == ("/opt/fedfuse/bin/fedfuse", "flower")
        assert parsed(words)["keys"] == Path("/etc/fedfuse/keys")

    def test_it_comes_back_once_flower_has_noticed_that_it_was_gone(self, file: Path) -> None:
        service = self._section(file)
        assert (service["Restart"], service["RestartSec"]) == ("always", "30")

    def test_it_is_nobody_and_tells_nobody(self, file: Path) -> None:
        service = self._section(file)
        assert service["User"] == "fedfuse"
        assert {"FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1"} <= set(service["Environment"].split())

    def test_it_writes_only_where_it_may(self, file: Path) -> None:
        service = self._section(file)
        assert (service["ProtectSystem"], service["StateDirectory"]) == ("strict", "fedfuse")
        options = parsed(self._command(file)[2:])
        for path in (options.get("database"), options.get("state")):
            assert path is None or path.is_relative_to("/var/lib/fedfuse")

    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
    def test_systemd_has_nothing_to_say_against_it(self, file: Path, tmp_path: Path) -> None:
        copy = tmp_path / file.name
        copy.write_text(file.read_text().replace("/opt/fedfuse/bin/fedfuse", shutil.which("true")))
        name = str(copy).replace("@.", "@2.")
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", name], capture_output=True, text=True, timeout=60
        )
        own = [line for line in done.stderr.splitlines() if "fedfuse" in line]
        assert (done.returncode, own) == (0, [])

    @staticmethod
    def _section(file: Path) -> configparser.SectionProxy:
        unit = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        unit.optionxform = str
        unit.read_string(file.read_text())
        return unit["Service"]

    def _command(self, file: Path) -> list[str]:
        """As systemd would start it for client 2."""
        line = self._section(file)["ExecStart"].replace("%i", "2")
        return shlex.split(line.replace("${SUPERLINK}", "link.example.org:8000").replace("$OPTIONS", "--prototype mlp"))
