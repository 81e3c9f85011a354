"""A network that is cut in the middle of a round and mended after it: a node in a network namespace of its own.

Namespaces take root's rights. Where they are not allowed, the killed node of test_silent_nodes.py stands for this: it
is as silent as one behind a cut cable.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest

from tests.flower.deployment import REAL_PROCESSES, Deployment, config_of, missing

pytestmark = REAL_PROCESSES


def ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True, capture_output=True, timeout=30)


class Cable:
    """A link between this machine and a namespace that has nothing else; ``address`` is this machine's end."""

    def __init__(self) -> None:
        number = os.getpid()
        self.namespace, self.here, self.there = f"fedfuse-{number}", f"ffh{number}", f"fft{number}"
        network = f"10.213.{number // 64 % 256}.{number % 64 * 4}"
        start, _, last = network.rpartition(".")
        self.address, self.other = f"{start}.{int(last) + 1}", f"{start}.{int(last) + 2}"

    def __enter__(self) -> Cable:
        try:
            ip("netns", "add", self.namespace)
            ip("link", "add", self.here, "type", "veth", "peer", "name", self.there, "netns", self.namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            pytest.skip(f"network namespaces are not allowed here: {getattr(error, 'stderr', error)!r}")
        ip("address", "add", f"{self.address}/30", "dev", self.here)
        ip("-n", self.namespace, "address", "add", f"{self.other}/30", "dev", self.there)
        ip("link", "set", self.here, "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        self.mend()
        return self

    def cut(self) -> None:
        ip("-n", self.namespace, "link", "set", self.there, "down")

    def mend(self) -> None:
        ip("-n", self.namespace, "link", "set", self.there, "up")

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, subprocess.CalledProcessError):
            ip("netns", "delete", self.namespace)


def test_a_node_that_is_cut_off_costs_its_answer_and_takes_part_again(tmp_path):
    with Cable() as cable:
        inside = ["ip", "netns", "exec", cable.namespace]
        with Deployment(tmp_path, nodes=2, host=cable.address, before={1: inside}) as deployment:
            out = deployment.submit("cut-off", config_of("scaffold", rounds=3, clients=2, seed=12))
            deployment.wait_for_event(out, "round_started", 2)
            cable.cut()
            deployment.wait_for_event(out, "round_finished", 2)
            cable.mend()
            deployment.wait_for(out / "summary.json")
    assert missing(out) == [[], [1], []]
