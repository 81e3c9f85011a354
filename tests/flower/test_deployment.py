"""Real processes with TLS and node authentication: same bits as the local engine, and no node without its key."""

from __future__ import annotations

import shutil

import pytest

from fedfuse.flower.check import reach
from fedfuse.flower.keys import make_keys
from fedfuse.flower.receipts import read_receipts
from tests.flower.deployment import PATIENCE, REAL_PROCESSES, Deployment, assert_same, config_of

pytestmark = REAL_PROCESSES
THREE_MODELS = {name: {"arch": "mlp", "hidden": [width, 5]} for name, width in [("a", 4), ("b", 6), ("c", 9)]}

SUMS = {"rounds": 2, "claims": "taken", "moves": "taken", "secure_sums": {}}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("deployment"), nodes=3) as running:
        yield running


@pytest.mark.parametrize(
    ("method", "sections"),
    [
        ("fedavg", {}),
        ("fedprox", {"federation": SUMS}),
        ("feddf", {"models": THREE_MODELS}),
        ("scaffold", {}),
        ("fedgkd-vote", {}),
        ("feded-w2", {}),
    ],
)
def test_same_bits(deployment, tmp_path, method, sections):
    config = config_of(method, rounds=2, clients=3, **sections)
    assert_same(deployment.run(f"same-{method}", config), config, tmp_path)


def test_a_node_without_a_registered_key_is_refused(deployment, tmp_path):
    make_keys(tmp_path / "keys", 4, [], days=1)
    shutil.copy(deployment.keys / "ca.crt", tmp_path / "keys" / "ca.crt")
    deployment.start_node(3, tmp_path / "keys", more=("--wait", "0"))
    assert deployment.processes["node-3"].wait(timeout=PATIENCE) != 0
    deployment.end("node-3")
    assert "this key is not registered at the SuperLink" in (deployment.folder / "node-3.log").read_text()


def test_a_party_with_a_table_of_its_own(deployment):
    """Its node reads it, says so, and keeps receipts of all that left; nobody wrote a line of code."""
    table = deployment.folder / "ours.csv"
    table.write_text("first,second,finding\n" + "0.5,1,0\n1,0.5,1\n-1,0,2\n" * 6)
    described = deployment.folder / "ours.yaml"
    described.write_text("{name: csv, path: ours.csv, label_column: finding}")
    reach(f"{deployment.host}:{deployment.port}", deployment.keys)
    deployment.stop_node(0)
    deployment.start_node(0, more=["--data", "ours.yaml"])
    config = config_of("fedavg", rounds=1, clients=3, name="with-a-table")
    deployment.run("with-a-table", config)
    lines = list(read_receipts(deployment.folder / "nodes" / "receipts" / "with-a-table" / "client-0.jsonl"))
    *descriptions, update = lines  # a slow node is asked who it is more than once
    assert {line["purpose"] for line in descriptions} == {"description"}
    assert update["purpose"] == "update"
    assert update["records"]["metrics"]["values"]["num-examples"] == 18
    assert (
        "with-a-table (fedavg), client 0: round 1 of 1, trains mlp on 18 examples"
        in (deployment.folder / "node-0.log").read_text()
    )


def test_a_node_that_is_killed_and_started_at_once_waits_and_is_let_in(deployment):
    deployment.end("node-2")
    deployment.restart_node(2)
    said = (deployment.folder / "node-2.log").read_text()
    assert "Exit Code" not in said
