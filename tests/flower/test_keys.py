"""Keys work together, and every way in which they may not is said in one sentence."""

from __future__ import annotations

import shutil
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization

from fedfuse.core.errors import ConfigError
from fedfuse.flower.deployment import connection, superlink_command, supernode_command
from fedfuse.flower.keys import check_node, check_server, make_keys

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "keys"
    make_keys(folder, 2, ["link.example.org", "10.0.0.7"], days=30)
    return folder


@pytest.fixture
def keys(made, tmp_path):
    return shutil.copytree(made, tmp_path / "keys")


def test_what_is_secret_is_readable_by_its_owner_only(keys):
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in keys.iterdir()}
    assert files.keys() == {
        "ca.crt", "server.pem", "server.key", "client-0", "client-0.pub", "client-1", "client-1.pub"
    }  # fmt: skip
    assert {name for name, mode in files.items() if mode == 0o600} == {"server.key", "client-0", "client-1"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "link.example.org", "10.0.0.7"])
def test_a_tls_client_trusts_the_server_by_name(keys, host):
    """A handshake in memory, by Python's own TLS."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(keys / "server.pem", keys / "server.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        ssl.create_default_context(cafile=keys / "ca.crt").wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert sides[0].version() == "TLSv1.3"
    check_server(keys, host)


def test_public_and_private_keys_belong_together(keys):
    check_node(keys, 1)
    private = serialization.load_ssh_private_key((keys / "client-1").read_bytes(), None)
    public = serialization.load_ssh_public_key((keys / "client-1.pub").read_bytes())
    assert private.public_key().public_numbers() == public.public_numbers()


def test_keys_are_never_overwritten(keys):
    before = (keys / "server.key").read_bytes()
    with pytest.raises(ConfigError, match="has keys already"):
        make_keys(keys, 1, [], days=1)
    assert (keys / "server.key").read_bytes() == before


@pytest.mark.parametrize("name", ["ca.crt", "server.pem", "server.key"])
def test_missing_and_damaged_files_of_the_server(keys, name):
    (keys / name).write_text("junk")
    with pytest.raises(ConfigError, match=f"{name} does not hold a"):
        check_server(keys, "127.0.0.1")
    (keys / name).unlink()
    with pytest.raises(ConfigError, match=f"{name}: No such file or directory; make keys with fedfuse flower keys"):
        check_server(keys, "127.0.0.1")


@pytest.mark.parametrize("name", ["ca.crt", "client-0"])
def test_missing_and_damaged_files_of_a_node(keys, name):
    (keys / name).write_text("junk")
    with pytest.raises(ConfigError, match=f"{name} does not hold a"):
        check_node(keys, 0)
    (keys / name).unlink()
    with pytest.raises(ConfigError, match=f"{name}: No such file"):
        check_node(keys, 0)


@pytest.mark.parametrize(("days", "reason"), [(31, "expired on"), (-1, "is valid from .* check this clock")])
def test_certificates_out_of_time(keys, days, reason):
    then = NOW + timedelta(days=days)
    with pytest.raises(ConfigError, match=rf"ca\.crt {reason}"):
        check_server(keys, "127.0.0.1", then)
    with pytest.raises(ConfigError, match=rf"ca\.crt {reason}"):
        check_node(keys, 0, then)


def test_files_of_two_federations_do_not_mix(keys, tmp_path):
    make_keys(tmp_path / "other", 1, [], days=30)
    shutil.copy(tmp_path / "other" / "server.key", keys)
    with pytest.raises(ConfigError, match=r"server\.key is not the key of .*server\.pem"):
        check_server(keys, "127.0.0.1")
    shutil.copy(tmp_path / "other" / "server.pem", keys)
    with pytest.raises(ConfigError, match=r"server\.pem was not signed by .*ca\.crt"):
        check_server(keys, "127.0.0.1")


def test_a_host_that_the_certificate_does_not_name(keys):
    with pytest.raises(ConfigError, match=r"not for other\.example\.org; make keys with --host other"):
        check_server(keys, "other.example.org")


class TestCommands:
    def test_secure_by_default(self, keys):
        link = superlink_command("127.0.0.1", 8000, keys, None)
        assert "--enable-supernode-auth" in link
        assert "--insecure" not in link
        node = supernode_command("127.0.0.1:8000", 9100, keys, 1, {"prototype": "cnn"})
        assert str(keys / "client-1") in node
        assert node[node.index("--node-config") + 1] == 'client=1 prototype="cnn"'
        assert "--insecure" not in node

    def test_listening_on_every_address(self, keys):
        assert "--enable-supernode-auth" in superlink_command("0.0.0.0", 8000, keys, None)

    def test_insecure_on_this_machine_only(self):
        assert "--insecure" in superlink_command("127.0.0.1", 8000, None, None)
        assert "--insecure" in supernode_command("localhost:8000", 9100, None, 0, {})
        for host in ("0.0.0.0", "link.example.org", "10.0.0.7"):
            with pytest.raises(ConfigError, match="--insecure is for this machine alone"):
                superlink_command(host, 8000, None, None)
            with pytest.raises(ConfigError, match="--insecure is for this machine alone"):
                supernode_command(f"{host}:8000", 9100, None, 0, {})

    def test_keys_are_looked_at_before_anything_is_started(self, tmp_path):
        with pytest.raises(ConfigError, match="make keys with fedfuse flower keys"):
            superlink_command("127.0.0.1", 8000, tmp_path, None)
        with pytest.raises(ConfigError, match="make keys with fedfuse flower keys"):
            supernode_command("127.0.0.1:8000", 9100, tmp_path, 0, {})

    def test_what_the_superlink_knows_is_in_a_file_for_its_owner_only(self, keys, tmp_path):
        for given, file in ((None, keys / "superlink.db"), (tmp_path / "mine.db", tmp_path / "mine.db")):
            command = superlink_command("127.0.0.1", 8000, keys, given)
            assert command[command.index("--database") + 1] == str(file)
            assert file.stat().st_mode & 0o777 == 0o600
        assert "--database" not in superlink_command("127.0.0.1", 8000, None, None)
        with pytest.raises(ConfigError, match=r"link\.db: No such file or directory; name a file that can be written"):
            superlink_command("127.0.0.1", 8000, keys, tmp_path / "nowhere" / "link.db")

    def test_connection_is_what_flower_reads(self, keys):
        import tomllib

        read = tomllib.loads(connection("127.0.0.1:8000", keys))["superlink"]["fedfuse"]
        assert read == {"address": "127.0.0.1:8000", "root-certificates": str((keys / "ca.crt").resolve())}
