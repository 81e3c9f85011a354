"""Keys work together, and every way in which they may not is said in one sentence."""

from __future__ import annotations

import re
import shutil
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from fedfuse.core.errors import ConfigError
from fedfuse.flower.deployment import connection, superexec_command, superlink_command, supernode_command
from fedfuse.flower.keys import (
    check_node,
    check_server,
    ending,
    fingerprint,
    make_keys,
    make_node_key,
    read_public,
    renew,
)

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
        "ca.crt", "ca.key", "server.pem", "server.key", "client-0", "client-0.pub", "client-1", "client-1.pub"
    }  # fmt: skip
    assert {name for name, mode in files.items() if mode == 0o600} == {"ca.key", "server.key", "client-0", "client-1"}


def shake_hands(keys, host):
    """In memory, by Python's own TLS; which version they speak, and until when the server's certificate is valid."""
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
    return sides[0].version(), datetime.fromtimestamp(ssl.cert_time_to_seconds(sides[0].getpeercert()["notAfter"]), UTC)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "link.example.org", "10.0.0.7"])
def test_a_tls_client_trusts_the_server_by_name(keys, host):
    assert shake_hands(keys, host)[0] == "TLSv1.3"
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


class TestAPartysOwnKey:
    def test_it_is_made_where_it_stays(self, tmp_path):
        mark = make_node_key(tmp_path / "ours", 3)
        assert stat.S_IMODE((tmp_path / "ours" / "client-3").stat().st_mode) == 0o600
        assert mark == fingerprint(read_public(tmp_path / "ours" / "client-3.pub"))
        assert (tmp_path / "ours" / "client-3.pub").read_text().startswith("ecdsa-sha2-nistp384 ")

    def test_its_fingerprint_is_that_of_ssh(self, tmp_path):
        mark = make_node_key(tmp_path, 0)
        program = shutil.which("ssh-keygen")
        if program is None:
            pytest.skip("ssh-keygen is not here")
        said = subprocess.run([program, "-lf", tmp_path / "client-0.pub"], capture_output=True, text=True, check=True)
        assert said.stdout.split()[1] == mark

    def test_it_is_never_overwritten(self, keys):
        before = (keys / "client-0").read_bytes()
        with pytest.raises(ConfigError, match="client-0 is a key already"):
            make_node_key(keys, 0)
        assert (keys / "client-0").read_bytes() == before

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"junk", "does not hold the public half of a key"),
            (b"", "does not hold the public half of a key"),
            (b"\xff\xfe", "does not hold the public half of a key"),
            (None, "No such file or directory"),
        ],
    )
    def test_what_is_no_public_key(self, tmp_path, content, reason):
        if content is not None:
            (tmp_path / "x.pub").write_bytes(content)
        with pytest.raises(ConfigError, match=reason):
            read_public(tmp_path / "x.pub")

    def test_an_endless_one_is_not_read_to_its_end(self, keys, tmp_path):
        """A party sends it by any way; a real key goes before the rest."""
        content = (keys / "client-0.pub").read_bytes().strip()
        (tmp_path / "x.pub").write_bytes(content + b" a comment")
        assert read_public(tmp_path / "x.pub")
        (tmp_path / "x.pub").write_bytes(content + b" " + b"x" * (1 << 20))
        with pytest.raises(ConfigError, match="does not hold the public half of a key"):
            read_public(tmp_path / "x.pub")

    def test_of_another_kind(self, tmp_path):
        public = ed25519.Ed25519PrivateKey.generate().public_key()
        form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        (tmp_path / "x.pub").write_bytes(public.public_bytes(*form))
        with pytest.raises(ConfigError, match=r"x\.pub is not the \.pub of a key that Flower takes"):
            read_public(tmp_path / "x.pub")

    def test_the_private_half_is_not_taken_for_it(self, keys):
        with pytest.raises(ConfigError, match=r"client-0 is not the \.pub of a key"):
            read_public(keys / "client-0")


class TestRenewal:
    def test_parties_notice_nothing(self, keys):
        kept = {name: (keys / name).read_bytes() for name in ("ca.crt", "ca.key", "server.key", "client-0")}
        end = renew(keys, ["new.example.org"], days=90)
        assert {name: (keys / name).read_bytes() for name in kept} == kept
        for host in ("link.example.org", "10.0.0.7", "new.example.org", "127.0.0.1"):
            version, valid = shake_hands(keys, host)
            assert version == "TLSv1.3"
            assert valid == end.replace(microsecond=0)
            check_server(keys, host, NOW + timedelta(days=60))

    def test_again_and_again(self, keys):
        for days in (10, 20, 5):
            end = renew(keys, [], days)
            assert shake_hands(keys, "localhost")[1] == end.replace(microsecond=0)

    def test_of_one_that_has_expired(self, keys):
        later = NOW + timedelta(days=31)
        with pytest.raises(ConfigError, match=r"server\.pem expired on .*; renew it with fedfuse flower keys --renew"):
            check_server(keys, None, later)
        check_node(keys, 0, later)
        renew(keys, [], 30, later)
        check_server(keys, None, later)

    def test_it_outlives_nobody_who_signed_it(self, keys):
        later = NOW + timedelta(days=3600)
        assert renew(keys, [], 365, later) < NOW + timedelta(days=3651)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("ca.key", "has no ca.key, which signs"), ("ca.crt", r"ca\.crt: No such"), ("server.key", r"key: No such")],
    )
    def test_what_it_needs(self, keys, name, reason):
        before = (keys / "server.pem").read_bytes()
        (keys / name).unlink()
        with pytest.raises(ConfigError, match=reason):
            renew(keys, [], 30)
        assert (keys / "server.pem").read_bytes() == before

    def test_another_federations_authority_does_not_sign(self, keys, tmp_path):
        make_keys(tmp_path / "other", 0, [], days=30)
        shutil.copy(tmp_path / "other" / "ca.key", keys)
        with pytest.raises(ConfigError, match=r"ca\.key is not the key of .*ca\.crt"):
            renew(keys, [], 30)


def test_certificates_are_spoken_of_a_month_before_their_end(keys):
    now = datetime.now(UTC)  # of the keys, and not of a session that may have begun long before
    renew(keys, [], 90, now)
    assert ending(keys, now + timedelta(days=59)) == []
    (sentence,) = ending(keys, now + timedelta(days=80))
    assert re.search(r"server\.pem expires on 20\d\d-\d\d-\d\d, in (9|10) days; renew it", sentence)
    (keys / "server.pem").unlink()
    assert ending(keys, now + timedelta(days=80)) == [], "a party has only ca.crt"
    (sentence,) = ending(keys, now + timedelta(days=3640))
    assert "ca.crt expires" in sentence
    assert ending(keys / "nowhere") == []


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


@pytest.mark.parametrize(("days", "reason"), [(3651, "expired on"), (-1, "is valid from .* check this clock")])
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
    with pytest.raises(ConfigError, match=r"not for other\.example\.org; add it with fedfuse flower keys .* --renew"):
        check_server(keys, "other.example.org")


class TestCommands:
    def link(self, tmp_path, host="127.0.0.1", keys=None, database=None):
        return superlink_command(host, 8001, keys, database, tmp_path / "secret")

    def test_secure_by_default(self, keys, tmp_path):
        link = self.link(tmp_path, keys=keys)
        assert "--enable-supernode-auth" in link
        assert "--insecure" not in link
        node = supernode_command("127.0.0.1:8000", 9100, keys, 1, {"prototype": "cnn"}, ["ab", "cd"])
        assert node[:4] == [sys.executable, "-m", "fedfuse.flower.supernode", "ab,cd"]
        assert str(keys / "client-1") in node
        assert node[node.index("--node-config") + 1] == 'client=1 prototype="cnn"'
        assert "--insecure" not in node

    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "10.0.0.7"])
    def test_flower_itself_serves_this_machine_alone(self, keys, tmp_path, host):
        link = self.link(tmp_path, host, keys)
        assert link[link.index("--host") + 1] == "127.0.0.1"

    def test_tasks_of_the_server_are_for_those_who_know_the_secret(self, keys, tmp_path):
        link = self.link(tmp_path, keys=keys)
        assert link[link.index("--isolation") + 1] == "process"
        commands = link, superexec_command(8001, keys, tmp_path / "secret", 1), self.link(tmp_path)
        for command in commands:
            assert command[command.index("--superexec-auth-secret-file") + 1] == str(tmp_path / "secret")

    def test_insecure_on_this_machine_only(self, tmp_path):
        assert "--insecure" in self.link(tmp_path)
        assert "--insecure" in supernode_command("localhost:8000", 9100, None, 0, {}, [])
        for host in ("0.0.0.0", "link.example.org", "10.0.0.7"):
            with pytest.raises(ConfigError, match="--insecure is for this machine alone"):
                self.link(tmp_path, host)
            with pytest.raises(ConfigError, match="--insecure is for this machine alone"):
                supernode_command(f"{host}:8000", 9100, None, 0, {}, [])

    def test_keys_are_looked_at_before_anything_is_started(self, tmp_path):
        with pytest.raises(ConfigError, match="make keys with fedfuse flower keys"):
            self.link(tmp_path, keys=tmp_path)
        with pytest.raises(ConfigError, match="make keys with fedfuse flower keys"):
            supernode_command("127.0.0.1:8000", 9100, tmp_path, 0, {}, [])

    def test_what_the_superlink_knows_is_in_a_file_for_its_owner_only(self, keys, tmp_path):
        for given, file in ((None, keys / "superlink.db"), (tmp_path / "mine.db", tmp_path / "mine.db")):
            command = self.link(tmp_path, keys=keys, database=given)
            assert command[command.index("--database") + 1] == str(file)
            assert file.stat().st_mode & 0o777 == 0o600
        assert "--database" not in self.link(tmp_path)
        with pytest.raises(ConfigError, match=r"link\.db: No such file or directory; name a file that can be written"):
            self.link(tmp_path, keys=keys, database=tmp_path / "nowhere" / "link.db")

    def test_connection_is_what_flower_reads(self, keys):
        import tomllib

        read = tomllib.loads(connection("127.0.0.1:8000", keys))["superlink"]["fedfuse"]
        assert read == {"address": "127.0.0.1:8000", "root-certificates": str((keys / "ca.crt").resolve())}
