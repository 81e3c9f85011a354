"""Real processes, and attempts to get in: with nothing, with ca.crt, with a party's key; and what the operator does."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.common.constant import TIMESTAMP_HEADER
from flwr.proto.control_pb2 import ListNodesRequest, ListRunsRequest
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    RegisterNodeFleetRequest,
)
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES
from typer.testing import CliRunner

from fedfuse.cli import flower
from fedfuse.cli.app import app as cli
from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.flower import superexec, superlink
from fedfuse.flower.bundles import hash_of_app
from fedfuse.flower.deployment import _database, connection
from fedfuse.flower.keys import make_keys, make_node_key
from fedfuse.flower.parties import Parties
from fedfuse.flower.registration import register, unregister
from fedfuse.flower.supernode import REFUSAL
from tests.flower.deployment import (
    PATIENCE,
    REAL_PROCESSES,
    Deployment,
    assert_same,
    below,
    command_of,
    config_of,
    free_port,
    wait_until,
)

PROTOBUF = {"content-type": PROTOBUF_MEDIA_TYPE}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("door"), nodes=2) as running:
        yield running


def credentials(key: Path) -> dict[str, str]:
    """The headers by which a node proves that it has this key."""
    private = load_ssh_private_key(key.read_bytes(), None)
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return {
        TIMESTAMP_HEADER: now,
        FLEET_HTTP_PUBLIC_KEY_HEADER: b64encode(public_key_to_bytes(private.public_key())).decode(),
        FLEET_HTTP_SIGNATURE_HEADER: b64encode(sign_message(private, now.encode())).decode(),
    }


def seen_by_the_operator(deployment):
    """All nodes and all runs."""
    with ControlHttpClient.from_server_address(
        deployment.operator, False, (deployment.keys / "ca.crt").read_bytes(), []
    ) as control:
        nodes = control.ListNodes(ListNodesRequest()).nodes_info
        runs = control.ListRuns(ListRunsRequest()).run_dict
        return {node.node_id for node in nodes}, set(runs)


@pytest.mark.usefixtures("deployment")
class TestFromAPartysPlace:
    pytestmark = REAL_PROCESSES

    @pytest.mark.parametrize("who", ["a stranger", "a party", "a party that is not registered"])
    def test_nothing_but_the_fleet_answers(self, deployment, tmp_path, who):
        """Every way that Flower knows, with a body that it would understand."""
        headers = dict(PROTOBUF)
        if who != "a stranger":
            make_node_key(tmp_path, 0)
            headers |= credentials((deployment.keys if who == "a party" else tmp_path) / "client-0")
        before = seen_by_the_operator(deployment)
        forbidden = [key for key in PROTOBUF_REQUEST_TYPES if not key[1].startswith("/v1/fleet/")]
        assert len(forbidden) > 50
        with httpx.Client(base_url=f"https://{deployment.host}:{deployment.port}", verify=deployment.trust()) as door:
            for method, path in [*forbidden, ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/"), ("PUT", "/x")]:
                assert door.request(method, path, headers=headers).status_code == 403, path
            for path in ("/v1/responses", "//v1/control/list-runs", "/v1/fleet/%2e%2e/control/list-runs"):
                assert door.post(path, headers=headers).status_code == 403, path
            assert door.get("/health").status_code == 200
        assert seen_by_the_operator(deployment) == before

    def test_the_fleet_itself_asks_for_a_key_that_was_registered(self, deployment, tmp_path):
        make_node_key(tmp_path, 0)
        own, other = tmp_path / "client-0", deployment.keys / "client-1"
        node = Parties(deployment.keys).registered()[0].node
        public = public_key_to_bytes(load_ssh_private_key(other.read_bytes(), None).public_key())
        pull = PullMessagesRequest()
        pull.node.node_id = node
        tries = [
            ("pull-messages", pull, {}),
            ("pull-messages", pull, {**credentials(other), **dict.fromkeys(credentials(other), "junk")}),
            ("pull-messages", pull, {**credentials(other), FLEET_HTTP_SIGNATURE_HEADER: "YQ=="}),
            ("pull-messages", pull, {**credentials(other), TIMESTAMP_HEADER: "2020-01-01T00:00:00+00:00"}),
            ("pull-messages", pull, credentials(own)),
            ("pull-messages", pull, credentials(other)),
            ("activate-node", ActivateNodeRequest(public_key=public, heartbeat_interval=30), credentials(own)),
            ("register-node", RegisterNodeFleetRequest(public_key=public), credentials(own)),
        ]
        with httpx.Client(base_url=f"https://{deployment.host}:{deployment.port}", verify=deployment.trust()) as door:
            for path, request, proof in tries:
                answer = door.post(f"/v1/fleet/{path}", content=request.SerializeToString(), headers=PROTOBUF | proof)
                assert answer.status_code == (404 if path == "activate-node" else 401), (path, answer.text)
            request = RegisterNodeFleetRequest(public_key=public)
            content = request.SerializeToString()
            answer = door.post("/v1/fleet/register-node", content=content, headers=PROTOBUF | credentials(other))
            assert answer.status_code >= 400, "nodes are registered by the operator only"

    def test_nobody_answers_in_anothers_name(self, deployment):
        """Flower asks who sends an answer, but not whether it is his."""
        parties = Parties(deployment.keys).registered()
        request = PushMessagesRequest()
        request.node.node_id = parties[0].node
        request.messages_list.add().metadata.src_node_id = parties[1].node
        with httpx.Client(base_url=f"https://{deployment.host}:{deployment.port}", verify=deployment.trust()) as door:
            headers = PROTOBUF | credentials(deployment.keys / "client-0")
            answer = door.post("/v1/fleet/push-messages", content=request.SerializeToString(), headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (403, "an answer in another node's name")

    def test_flowers_own_commands_get_nowhere(self, deployment, tmp_path):
        """As in the trial in which they registered a node and ran code everywhere."""
        make_node_key(tmp_path, 0)
        before = seen_by_the_operator(deployment)
        (tmp_path / "flwr").mkdir()
        (tmp_path / "flwr" / "config.toml").write_text(
            connection(f"{deployment.host}:{deployment.port}", deployment.keys)
        )
        stranger = Deployment(tmp_path, nodes=0)
        for command in (["supernode", "register", str(tmp_path / "client-0.pub"), "fedfuse"], ["list", "fedfuse"]):
            answer = stranger.flwr(*command)
            assert answer.returncode != 0, answer.stdout
        assert seen_by_the_operator(deployment) == before

    def test_the_servers_tasks_are_for_who_knows_the_secret(self, deployment):
        """Even on the machine itself."""
        with httpx.Client(base_url=f"https://{deployment.operator}", verify=deployment.trust()) as inside:
            assert inside.post("/v1/runtime/acquire-task", headers=PROTOBUF).status_code == 401

    def test_a_nodes_tasks_are_for_its_own_processes(self, deployment):
        """And not for another user of the party's machine, or a web page there whose name points to it."""
        node = deployment.processes["node-0"].pid
        wait_until(lambda: any("superexec" in command_of(pid) for pid in below(node)), deployment.story)
        words = command_of(node).split()
        port = words[words.index("fedfuse.flower.supernode") + 3]

        def asked():
            try:
                return httpx.post(f"http://127.0.0.1:{port}/v1/runtime/acquire-task", headers=PROTOBUF).status_code
            except httpx.ConnectError:  # it is about to listen
                return None

        wait_until(lambda: asked() is not None, deployment.story)
        assert asked() == 401

    def test_without_ca_crt_there_is_no_connection(self, deployment):
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"https://{deployment.host}:{deployment.port}/health", verify=ssl.create_default_context())


@pytest.mark.usefixtures("deployment")
class TestParties:
    pytestmark = REAL_PROCESSES

    def test_a_fourth_one_a_lost_key_and_a_farewell(self, deployment, tmp_path):
        keys, operator = deployment.keys, deployment.operator
        (tmp_path / "ca.crt").write_bytes((keys / "ca.crt").read_bytes())
        mark = self.say("key", tmp_path, "--client", 3).split("SHA256:")[1].split()[0]
        port = ("--operator-port", deployment.operator_port)
        assert mark in self.say("register", keys, tmp_path / "client-3.pub", "--client", 3, *port)
        first = Parties(keys).registered()[3]
        assert register(keys, tmp_path / "client-3.pub", 3, operator) == first, "again changes nothing"
        with pytest.raises(ConfigError, match="is the key of client 3"):
            register(keys, tmp_path / "client-3.pub", 4, operator)
        deployment.start_node(3, tmp_path)
        wait_until(lambda: f"SuperNode ID: {first.node}" in self.log(deployment, 3), deployment.story)
        make_node_key(tmp_path / "new", 3)
        second = register(keys, tmp_path / "new" / "client-3.pub", 3, operator)
        assert second.node != first.node
        assert Parties(keys).registered()[3] == second
        assert deployment.processes["node-3"].wait(timeout=PATIENCE) is not None, "its key is let in no longer"
        with pytest.raises(ConfigError, match="was unregistered, and Flower lets no key in again"):
            register(keys, tmp_path / "client-3.pub", 3, operator)
        assert second.key in self.say("unregister", keys, "--client", 3, *port)
        with pytest.raises(ConfigError, match="client 3 is not registered; registered: 0, 1"):
            unregister(keys, 3, operator)
        deployment.end("node-3")

    def test_what_a_crash_left_half_done_is_completed(self, deployment, tmp_path):
        """Registered at Flower, but not in the file."""
        make_node_key(tmp_path, 5)
        deployment.flwr("supernode", "register", str(tmp_path / "client-5.pub"), "fedfuse")
        assert 5 not in Parties(deployment.keys).registered()
        party = register(deployment.keys, tmp_path / "client-5.pub", 5, deployment.operator)
        assert party.node in seen_by_the_operator(deployment)[0]
        unregister(deployment.keys, 5, deployment.operator)

    def test_where_no_superlink_is(self, deployment, tmp_path):
        make_node_key(tmp_path, 6)
        for address, reason in (
            (f"127.0.0.1:{free_port()}", "no SuperLink answers at"),
            (f"{deployment.host}:{deployment.port}", "refuses: parties reach the fleet API here and nothing else"),
        ):
            with pytest.raises(FedfuseError, match=reason):
                register(deployment.keys, tmp_path / "client-6.pub", 6, address)
        assert 6 not in Parties(deployment.keys).registered()

    def say(self, *words):
        """To the command line, and what it answers."""
        answer = CliRunner().invoke(cli, ["flower", *map(str, words)])
        assert answer.exit_code == 0, answer.output
        return answer.output

    def log(self, deployment, client):
        return (deployment.folder / f"node-{client}.log").read_text()


@pytest.mark.usefixtures("deployment")
class TestRuns:
    pytestmark = REAL_PROCESSES

    def test_a_node_runs_what_was_accepted_and_says_what_was_not(self, deployment, tmp_path):
        """The run waits until it is accepted. And the SuperExec, killed before and its secret tidied up, is back."""
        (pid,) = [pid for pid in below(deployment.processes["link"].pid) if "superexec" in command_of(pid)]
        words = command_of(pid).split()
        shutil.rmtree(Path(words[words.index("--superexec-auth-secret-file") + 1]).parent)
        os.kill(pid, signal.SIGKILL)
        config = config_of("fedavg", rounds=1, clients=2, seed=20)
        deployment.stop_node(1)
        deployment.start_node(1, accept="ab" * 32)
        log = deployment.folder / "node-1.log"
        out = deployment.submit("guarded", config)
        mark = hash_of_app(deployment.folder / "guarded")
        wait_until(lambda: f"start this node with --accept {mark}" in log.read_text(), deployment.story)
        (number,) = seen_by_the_operator(deployment)[1]
        wait_until(lambda: REFUSAL in deployment.flwr("log", str(number), "fedfuse", "--show").stdout, deployment.story)
        deployment.stop_node(1)
        deployment.start_node(1, accept=mark)
        deployment.wait_for(out / "summary.json")
        assert_same(out, config, tmp_path)

    def test_sigterm_ends_all_of_it(self, tmp_path):
        with Deployment(tmp_path, nodes=0) as short:
            link = short.processes["link"]
            children = below(link.pid)
            assert any("superexec" in command_of(pid) for pid in children)
            link.send_signal(signal.SIGTERM)
            assert link.wait(timeout=60) == 0
            wait_until(lambda: not any(command_of(pid) for pid in children), short.story)

    def test_a_party_that_never_ends_its_request_does_not_keep_it_up(self, tmp_path):
        with Deployment(tmp_path, nodes=1) as short:
            words = {**credentials(short.keys / "client-0"), **PROTOBUF, "host": "127.0.0.1", "content-length": "1000"}
            head = "".join(f"{name}: {value}\r\n" for name, value in words.items())
            with socket.create_connection((short.host, short.port)) as plain:
                slow = short.trust().wrap_socket(plain, server_hostname=short.host)
                slow.sendall(f"POST /v1/fleet/pull-messages HTTP/1.1\r\n{head}\r\nhalf of it".encode())
                time.sleep(1)
                link = short.processes["link"]
                link.send_signal(signal.SIGTERM)
                assert link.wait(timeout=60) == 0


class TestServerAppsOfAnotherUser:
    @pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights")
    def test_they_cannot_read_keys(self, monkeypatch):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            keys, database = Path(folder) / "keys", Path(folder) / "keys" / "superlink.db"
            make_keys(keys, 1, [], days=1)
            _database(database)
            for user, code in ((None, 0), ("nobody", 1)):
                one = superexec.SuperExec(1, keys, user, Path(folder) / f"secret-{user}")

                def reads(path, one=one):
                    monkeypatch.setattr(superexec, "superexec_command", lambda *_: ["cat", str(path)])
                    return one.start().wait(timeout=20)

                assert [reads(keys / name) for name in ("server.key", "ca.key", "client-0")] == [code] * 3
                assert reads(database) == code
                assert reads(keys / "ca.crt") == 0, "whom it speaks to, it knows"
                assert reads(one.secret) == 0

    def test_one_who_does_not_exist(self):
        with pytest.raises(ConfigError, match="--app-user ghost: this machine has no such user"):
            superlink.serve(superlink.SuperLink("127.0.0.1", 1, 2, None, None, "ghost"))

    def test_the_secret_is_for_one_user_and_outlives_a_tidy_up(self, tmp_path):
        one = superexec.SuperExec(1, None, None, tmp_path / "secret")
        content = one.secret.read_bytes()
        assert len(content) == 32
        assert (one.secret.stat().st_mode & 0o777, one.secret.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        shutil.rmtree(one.secret.parent)
        one.write_secret()
        assert one.secret.read_bytes() == content
        assert one.secret.stat().st_mode & 0o777 == 0o600


QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


@pytest.mark.parametrize("wanted", [{}, {"FLWR_TELEMETRY_ENABLED": "1", "FLWR_DISABLE_UPDATE_CHECK": "0"}])
@pytest.mark.parametrize("command", [["superlink"], ["supernode", "--client", "0", "--accept", "any"]])
def test_flower_calls_nobody_unless_it_is_asked_to(monkeypatch, command, wanted):
    seen = {}

    def note(*_):
        seen.update({name: os.environ[name] for name in QUIET})

    for name in QUIET:
        monkeypatch.setenv(name, wanted.get(name, ""))
        if not wanted:
            monkeypatch.delenv(name)
    monkeypatch.setattr(superlink, "serve", note)
    monkeypatch.setattr(flower, "_become", note)
    assert CliRunner().invoke(cli, ["flower", *command, "--insecure"]).exit_code == 0
    assert seen == (wanted or QUIET)


def test_an_occupied_port_is_one_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["--insecure", "--port", port, "--operator-port", str(free_port())]
        command = [sys.executable, "-m", "fedfuse", "flower", "superlink", *options]
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert answer.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in answer.stdout + answer.stderr
