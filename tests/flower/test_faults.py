"""Real processes, and what befalls them in the middle of a run: it ends with the right bits or with a quorum.

A network that is cut has a file of its own (test_partition.py).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.flower.deployment import (
    ENGINE,
    REAL_PROCESSES,
    Deployment,
    assert_same,
    command_of,
    config_of,
    events,
    refused,
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


def test_a_killed_server_goes_on(deployment, tmp_path):
    """In its second round, when a node is ahead of it."""
    config = config_of("scaffold", rounds=3, clients=2, seed=5)
    out = deployment.submit("killed-server", config)
    wait_until(lambda: [*deployment.folder.glob("nodes/*/client-*/round-000002.safetensors")], deployment.story)
    (server,) = deployment.server_apps()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not deployment.server_apps())
    finish(deployment, "killed-server", config, out)
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


def test_a_slow_node_is_not_waited_for_past_the_deadline(deployment):
    """Its answer comes too late to count, and it takes part again in the next round."""
    config = config_of("scaffold", rounds=3, clients=2, seed=10, engine={**ENGINE, "timeout": 60})
    out = deployment.submit("slow-node", config)
    deployment.wait_for_event(out, "round_started", 2)

    def slept_through() -> bool:
        for pid in deployment.client_apps(1):
            os.kill(pid, signal.SIGSTOP)
        return len(refused(out)) == 2

    wait_until(slept_through, deployment.story)
    for pid in deployment.client_apps(1):
        os.kill(pid, signal.SIGCONT)
    deployment.wait_for(out / "summary.json")
    assert refused(out) == [[], [1], []]


def test_a_killed_node_costs_its_answer_and_comes_back_with_its_state(deployment):
    out = deployment.submit("killed-node", config_of("scaffold", rounds=3, clients=2, seed=11))
    deployment.wait_for_event(out, "round_started", 2)
    deployment.end("node-1")
    deployment.wait_for_event(out, "round_finished", 2)
    deployment.restart_node(1)
    deployment.wait_for(out / "summary.json")
    assert refused(out) == [[], [1], []], "a node that had lost its state could not have answered in the third round"
