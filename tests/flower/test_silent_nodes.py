"""Real processes, and nodes that do not answer in the middle of a run: the round ends with the others."""

from __future__ import annotations

import os
import signal

import pytest

from tests.flower.deployment import ENGINE, REAL_PROCESSES, Deployment, config_of, missing, wait_until

pytestmark = REAL_PROCESSES


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("silent"), nodes=2) as running:
        yield running


def test_a_slow_node_is_not_waited_for_past_the_deadline(deployment):
    """Its answer comes too late to count, and it takes part again in the next round."""
    config = config_of("scaffold", rounds=3, clients=2, seed=10, engine={**ENGINE, "timeout": 60})
    out = deployment.submit("slow-node", config)
    deployment.wait_for_event(out, "round_started", 2)

    def slept_through() -> bool:
        for pid in deployment.client_apps(1):
            os.kill(pid, signal.SIGSTOP)
        return len(missing(out)) == 2

    wait_until(slept_through, deployment.story)
    for pid in deployment.client_apps(1):
        os.kill(pid, signal.SIGCONT)
    deployment.wait_for(out / "summary.json")
    assert missing(out) == [[], [1], []]


def test_a_killed_node_costs_its_answer_and_comes_back_with_its_state(deployment):
    out = deployment.submit("killed-node", config_of("scaffold", rounds=3, clients=2, seed=11))
    deployment.wait_for_event(out, "round_started", 2)
    deployment.end("node-1")
    deployment.wait_for_event(out, "round_finished", 2)
    deployment.restart_node(1)
    deployment.wait_for(out / "summary.json")
    assert missing(out) == [[], [1], []], "a node that had lost its state could not have answered in the third round"
