"""A Ray cluster of several machines, played by processes of this one: joined by its address, one machine is lost."""

from __future__ import annotations

import time

import pytest

from fedfuse.engines.ray.engine import RayEngine, RayEngineSettings
from fedfuse.federation.events import EventLog
from tests.engines.players import Everyone, federation, first_clients, result
from tests.helpers import Recorder

ray = pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
METHOD = "scaffold"


@pytest.fixture
def cluster():
    """A head that trains nobody, and two machines with a CPU each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


def room(engine):
    return engine._room("a client", engine.settings)


def test_a_machine_is_lost_in_the_middle_of_a_round(cluster, tmp_path, capfd):
    here = federation(METHOD)
    everyone = Everyone({METHOD: here.engine.clients}, tmp_path)
    engine = RayEngine(RayEngineSettings(address=cluster.address), everyone, EventLog(listeners=(heard := Recorder(),)))
    try:
        assert room(engine) == 2
        (victim,) = first_clients(here, 1)
        everyone.lay(victim, "machine")
        assert result(here, engine=engine) == result(here)
        assert (1, victim) in {(event["round"], event["client"]) for event in heard.of("client_retried")}
        until = time.monotonic() + 60
        while (
            engine._room("a client", engine.settings) != 1 and time.monotonic() < until
        ):  # Ray takes its time to notice
            time.sleep(0.5)
        assert room(engine) == 1
    finally:
        engine.close()
    assert not ray.is_initialized(), "it has left the cluster that it had joined"
    out, err = capfd.readouterr()
    assert out == ""
    assert "Raylet is terminated" in err
    said = [line for line in err.splitlines() if line.strip() and "network_util" not in line]
    assert len(said) <= 6, "a line from everybody who noticed"
    assert all("(raylet)" in line for line in said), "and nobody's log"
