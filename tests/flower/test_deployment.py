"""Real processes with TLS and node authentication: same bits as the local engine, and faults in the middle of a round.

Takes minutes, therefore only with FEDFUSE_DEPLOYMENT=1 (make test-engines).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys

import pytest

from fedfuse.experiment import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.flower.keys import make_keys
from tests.flower.deployment import Deployment, events, wait_until
from tests.helpers import files_of, tiny_config, without_seconds

pytestmark = [
    pytest.mark.skipif("FEDFUSE_DEPLOYMENT" not in os.environ, reason="takes minutes: set FEDFUSE_DEPLOYMENT=1"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
    pytest.mark.usefixtures("without_pictures"),
]
ENGINE = {"kind": "flower", "wait": 120, "timeout": 120, "quorum": 0.5, "poll": 0.2}
THREE_MODELS = {name: {"arch": "mlp", "hidden": [width, 5]} for name, width in [("a", 4), ("b", 6), ("c", 9)]}


def config_of(method, rounds=2, engine=None, **sections):
    common = {
        "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0, "min_examples": 2},
        "federation": {"rounds": rounds},
        **sections,
    }
    return tiny_config(method, engine=engine or ENGINE, **common)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("deployment"), nodes=3) as running:
        yield running


def assert_same(out, config, tmp_path):
    local = Experiment(config.model_copy(update={"engine": tiny_config().engine})).run(tmp_path / "local")
    assert files_of(out / "final") == files_of(local.folder.final)
    mine, other = (without_seconds(RunFolder(path).read_summary()) for path in (out, local.folder.path))
    assert mine == other


@pytest.mark.parametrize(
    ("method", "models"),
    [("fedavg", None), ("feddf", THREE_MODELS), ("scaffold", None), ("fedgkd-vote", None), ("feded-w2", None)],
)
def test_same_bits(deployment, tmp_path, method, models):
    config = config_of(method, **({"models": models} if models else {}))
    assert_same(deployment.run(f"same-{method}", config), config, tmp_path)


def test_a_server_that_was_killed_goes_on(deployment, tmp_path):
    """In its second round, when nodes may be ahead of it; the same submission again ends with the same bits."""
    config = config_of("scaffold", rounds=3, seed=5)
    out = deployment.submit("killed-server", config)
    deployment.wait_for_event(out, "client_finished", 2)
    (server,) = deployment.server_apps()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not deployment.server_apps())
    assert not (out / "summary.json").exists()
    assert deployment.run("killed-server", config) == out
    assert "run_resumed" in [event["event"] for event in events(out)]
    assert_same(out, config, tmp_path)


def refused(out):
    return [record["refused"] for record in events(out) if record["event"] == "round_finished"]


def test_a_killed_node_costs_its_answer_and_comes_back_with_its_state(deployment):
    engine = {**ENGINE, "timeout": 40, "wait": 200}
    out = deployment.submit("killed-node", config_of("scaffold", rounds=3, engine=engine, seed=6))
    deployment.wait_for_event(out, "round_started", 2)
    deployment.end("node-1")
    deployment.wait_for_event(out, "round_finished", 2)
    deployment.restart_node(1)
    deployment.wait_for(out / "summary.json")
    assert refused(out) == [[], [1], []], "a node that had lost its state could not have answered in the third round"


def test_a_node_that_sleeps_past_the_deadline_is_not_waited_for(deployment):
    engine = {**ENGINE, "timeout": 30}
    out = deployment.submit("slow-node", config_of("scaffold", rounds=3, engine=engine, seed=7))
    deployment.wait_for_event(out, "round_started", 2)
    deployment.send("node-2", signal.SIGSTOP)
    try:
        deployment.wait_for_event(out, "round_finished", 2)
    finally:
        deployment.send("node-2", signal.SIGCONT)
    deployment.wait_for(out / "summary.json")
    assert refused(out)[:2] == [[], [2]]


def test_a_node_without_a_registered_key_is_refused(deployment, tmp_path):
    make_keys(tmp_path / "keys", 4, [], days=1)
    shutil.copy(deployment.keys / "ca.crt", tmp_path / "keys" / "ca.crt")
    deployment.start_node(3, tmp_path / "keys")
    assert deployment.processes["node-3"].wait(timeout=120) != 0
    deployment.end("node-3")
    assert "Failed to activate SuperNode" in (deployment.folder / "node-3.log").read_text()
