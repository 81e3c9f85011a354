"""A party's dry run: what it says, and the one sentence for each thing that is wrong."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from typer.testing import CliRunner

from fedfuse.cli.app import app as cli
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.flower.check import experiment_of, reach, rehearse
from fedfuse.flower.keys import make_keys
from fedfuse.flower.party import clients_of
from fedfuse.flower.project import new_project
from fedfuse.flower.receipts import read_receipts
from fedfuse.flower.server import run_on
from tests.flower.federation import flower_config, grid_for

TWO_MODELS = {"mlp": {"arch": "mlp", "hidden": [6]}, "wide": {"arch": "mlp", "hidden": [20]}}


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("method", ["fedavg", "feddf", "scaffold", "fedgkd", "fedmd", "feded-w2", "fedgen"])
def test_it_knows_what_a_round_will_send(tmp_path, method):
    """The records, names and bytes are those of the real first round."""
    config = flower_config(method, federation={"rounds": 1})
    rehearsed = rehearse(config, 1, {}).records
    run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    [path] = (tmp_path / "nodes" / "receipts").glob("*/client-1.jsonl")
    real = list(read_receipts(path))[-1]["records"]
    for name in ("arrays", "extras", "test-outputs"):
        assert rehearsed[name]["arrays"] == real[name]["arrays"]
    assert rehearsed["config"]["values"].keys() == real["config"]["values"].keys()


def test_counts_and_model(tmp_path):
    config = flower_config("feddf", models=TWO_MODELS)
    held = clients_of(config, 0, {}).datasets[0]
    np.savez(tmp_path / "ours.npz", x=held.inputs[:12].numpy(), y=np.array([2] * 8 + [0] * 4))
    found = rehearse(config, 0, {"data": str(tmp_path / "ours.npz"), "prototype": "wide"})
    assert found.counts == {"0": 4, "1": 0, "2": 8}
    assert (found.prototype, found.parameters) == ("wide", 2 * 20 + 20 + 20 * 3 + 3)
    assert found.batch == 8
    assert np.isfinite(found.loss)


@pytest.mark.parametrize(
    ("client", "node_config", "error", "reason"),
    [
        (4, {"data": "ours"}, ConfigError, "the experiment has 4, counted from 0"),
        (0, {"prototype": "mpl"}, ConfigError, "unknown model 'mpl'"),
        (0, {"data": "/gone.csv"}, DataError, "/gone.csv does not exist"),
    ],
)
def test_what_cannot_take_part(tmp_path, client, node_config, error, reason):
    np.savez(tmp_path / "ours.npz", x=np.zeros((3, 2)), y=[0, 1, 2])
    given = {key: str(tmp_path / "ours.npz") if value == "ours" else value for key, value in node_config.items()}
    with pytest.raises(error, match=reason):
        rehearse(flower_config(), client, given)


def test_wild_values_are_found_by_the_step(tmp_path):
    np.savez(tmp_path / "ours.npz", x=np.full((9, 2), 3e38), y=[0, 1, 2] * 3)
    with pytest.raises(DataError, match="look for wild values in the data"):
        rehearse(flower_config(), 0, {"data": str(tmp_path / "ours.npz")})


def test_an_app_or_an_experiment(tmp_path):
    package = new_project(tmp_path / "an-app")
    assert experiment_of(str(tmp_path / "an-app")) == str(package / "experiment.yaml")
    assert experiment_of("digits") == "digits"
    (package / "experiment.yaml").unlink()
    with pytest.raises(ConfigError, match="is an app with 0 files"):
        experiment_of(str(tmp_path / "an-app"))


class Health(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def link(tmp_path):
    """Something that answers as a SuperLink does when it is asked for its health."""
    make_keys(tmp_path / "keys", 1, [], days=1)
    server = HTTPServer(("127.0.0.1", 0), Health)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "keys" / "server.pem", tmp_path / "keys" / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


class TestTheLink:
    def test_one_that_answers(self, link, tmp_path):
        reach(link, tmp_path / "keys")

    def test_one_of_another_federation(self, link, tmp_path):
        make_keys(tmp_path / "others", 1, [], days=1)
        with pytest.raises(ConfigError, match=r"is not the SuperLink of .*others/ca\.crt"):
            reach(link, tmp_path / "others")

    def test_one_that_is_not_there(self, tmp_path):
        make_keys(tmp_path / "keys", 1, [], days=1)
        with pytest.raises(ConfigError, match="cannot be reached"):
            reach("127.0.0.1:1", tmp_path / "keys")

    def test_something_else(self, link, tmp_path, monkeypatch):
        monkeypatch.setattr(Health, "status", 403)
        with pytest.raises(ConfigError, match="answers with status 403"):
            reach(link, tmp_path / "keys")

    @pytest.mark.parametrize("address", ["link", "link:http", ":8000"])
    def test_no_address(self, tmp_path, address):
        with pytest.raises(ConfigError, match="write HOST:PORT"):
            reach(address, tmp_path)


class TestCommandLine:
    def run(self, *arguments):
        return CliRunner().invoke(cli, ["flower", *map(str, arguments)])

    def test_check(self, link, tmp_path):
        file = tmp_path / "experiment.yaml"
        file.write_text(flower_config().to_yaml())
        (tmp_path / "ours.csv").write_text("a,b,label\n" + "1,2,0\n3,4,1\n" * 5)
        options = ["--keys", tmp_path / "keys", "--client", 0, "--superlink", link]
        answer = self.run("check", file, "--data", tmp_path / "ours.csv", *options)
        assert answer.exit_code == 0, answer.output
        for said in ("10 examples, shape 2", "0 5, 1 5, 2 0", "mlp, 39 parameters", "arrays", link, "can take part"):
            assert said in answer.output

    def test_a_link_needs_keys(self):
        assert "--superlink needs --keys" in str(self.run("check", "digits", "--superlink", "a:1").exception)

    def test_receipt(self, tmp_path):
        config = flower_config(federation={"rounds": 1})
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        answer = self.run("receipt", tmp_path / "nodes")
        assert answer.exit_code == 0
        assert answer.output.count("total bytes") == 4
        assert "update" in answer.output
        [path] = (tmp_path / "nodes" / "receipts").glob("*/client-1.jsonl")
        path.write_bytes(path.read_bytes().partition(b"\n")[2])
        assert "a line was changed or taken out" in str(self.run("receipt", path).exception)

    def test_no_receipts(self, tmp_path):
        assert "has no receipts" in str(self.run("receipt", tmp_path).exception)

    def test_no_status(self, tmp_path):
        assert "is not a folder" in str(self.run("status", tmp_path / "gone").exception)
        assert "this machine alone" in str(self.run("status", tmp_path, "--address", "0.0.0.0:9200").exception)
