"""A Ray of our own is reached from this machine only."""

from __future__ import annotations

import json
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds sockets in /proc")
RUN = """
import json, sys
from fedfuse.experiment.run import Experiment
from tests.engines.sockets import listening
from tests.helpers import tiny_config

found = []
def look(event):
    if event["event"] == "round_finished":
        found.extend(listening())
config = tiny_config("fedavg", engine={"kind": "ray"}, federation={"rounds": 1}, evaluation={"pictures": False})
Experiment(config).run(sys.argv[1], listeners=(look,))
print(json.dumps(found))
"""


def test_it_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "run")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) > 2
    assert all(ip_address(address).is_loopback for address in found), found
