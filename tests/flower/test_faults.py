"""Real processes, and what befalls them in the middle of a run: it ends with the right bits or with a quorum.

Nodes that are silent have files of their own (test_silent_nodes.py, test_partition.py), to run side by side with this.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.flower.deployment import (
    REAL_PROCESSES,
    Deployment,
    assert_same,
    command_of,
    config_of,
    events,
    wait_until,
)

pytestmark = REAL_PROCESSES
STUTTER = (sys.executable, str(Path(__file__).with_name("stutter.py")))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("faults"), nodes=2) as running:
        yield running


def finish(deployment, name, config, out):
    """Submit an interrupted run again; it goes on, and does not begin anew."""
    assert not (out / "summary.json").exists()
    assert deployment.run(name, config) == out
    assert [event["event"] for event in events(out)].count("run_resumed") == 1


@pytest.mark.parametrize("more", [{}, {"claims": "taken", "moves": "taken", "secure_sums": {"least": 2}}])
def test_a_killed_server_goes_on(deployment, tmp_path, more):
    """In its second round, when a node is ahead of it; with masks, which are new then."""
    config = config_of("scaffold", rounds=3, clients=2, seed=5, federation={"rounds": 3, **more})
    name = "killed-server" + "-of-sums" * bool(more)
    out = deployment.submit(name, config)
    kept = f"nodes/{config.sha256()[:16]}/client-*/round-000002.safetensors"
    wait_until(lambda: [*deployment.folder.glob(kept)], deployment.story)
    (server,) = deployment.server_apps()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not deployment.server_apps())
    finish(deployment, name, config, out)
    assert_same(out, config, tmp_path)


def test_a_killed_superlink_takes_its_run_along_and_nodes_wait_for_the_next_one(deployment, tmp_path):
    config = config_of("scaffold", rounds=2, clients=2, seed=6)
    out = deployment.submit("killed-link", config)
    deployment.wait_for_event(out, "round_started", 2)
    servers, nodes = deployment.server_apps(), [deployment.processes[f"node-{client}"] for client in range(2)]
    deployment.end("link")
    wait_until(lambda: not any("flwr-serverapp" in command_of(pid) for pid in servers), deployment.story)
    deployment.start_link()
    finish(deployment, "killed-link", config, out)
    assert_same(out, config, tmp_path)
    assert [node.poll() for node in nodes] == [None, None], "no party had to do anything"


def test_a_node_that_joins_late_is_waited_for(deployment, tmp_path):
    config = config_of("fedavg", rounds=1, clients=2, seed=7)
    deployment.stop_node(1)
    out = deployment.submit("late-node", config)
    wait_until(deployment.server_apps, deployment.story)
    deployment.start_node(1)
    deployment.wait_for(out / "summary.json")
    assert_same(out, config, tmp_path)


def test_an_answer_that_comes_twice_counts_once(deployment, tmp_path):
    config = config_of("scaffold", rounds=2, clients=2, seed=8)
    deployment.stop_node(1)
    deployment.start_node(1, program=STUTTER)
    out = deployment.run("stutter", config)
    deployment.stop_node(1)
    deployment.start_node(1)
    assert (deployment.folder / "node-1.log").read_text().count("said again") >= 2
    assert_same(out, config, tmp_path)


def test_a_model_of_100_megabytes(deployment, tmp_path):
    models = {"wide": {"arch": "mlp", "hidden": [5000, 5000]}}
    config = config_of("fedavg", rounds=1, clients=2, seed=9, models=models)
    out = deployment.run("large", config)
    assert (out / "final" / "wide.safetensors").stat().st_size > 100e6
    assert_same(out, config, tmp_path)
