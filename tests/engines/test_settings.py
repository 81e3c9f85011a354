"""What an experiment file and the command line may say about engines, and what is refused before anything runs."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace

import pytest
import torch

from fedfuse.cli.words import with_assignments
from fedfuse.core.errors import ConfigError, FedfuseError, MissingExtraError
from fedfuse.engines import LocalEngine, LocalEngineSettings, RayEngineSettings
from fedfuse.engines.ray.engine import _connect
from fedfuse.engines.workers import WorkersEngine
from fedfuse.experiment.config import assign
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from tests.engines.players import federation
from tests.helpers import tiny_config


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ({"workers": -1}, "engine.workers is -1, but should be greater than or equal to 0"),
        ({"workers": 1, "timeout": 5}, "engine: a timeout needs workers of 2 or more"),
        ({"workers": 2, "timeout": 0}, "engine.timeout is 0, but should be greater than 0"),
        ({"worker": 2}, r"unknown key 'worker' \(did you mean 'workers'\?\)"),
        ({"address": "auto"}, "unknown key 'address'"),
        ({"kind": "rai"}, r"engine: unknown kind 'rai' \(did you mean 'ray'\?\)"),
        ({"kind": "ray", "cpus": 0}, "engine.cpus is 0, but should be greater than 0"),
        ({"kind": "ray", "workers": 0}, "engine.workers is 0, but should be greater than or equal to 1"),
        ({"kind": "ray", "fusion": {"cpus": 0}}, "engine.fusion.cpus is 0, but should be greater than 0"),
        ({"kind": "ray", "fusion": {"cpu": 2}}, r"unknown key 'cpu' \(did you mean 'cpus'\?\)"),
        ({"workers": 2, "fusion": {}}, "unknown key 'fusion'"),
        ("ray", "engine is 'ray', but should be"),
    ],
)
def test_what_cannot_be_is_refused(engine, sentence):
    with pytest.raises(ConfigError, match=sentence):
        tiny_config(engine=engine)


@pytest.mark.parametrize(
    "engine", [{"workers": 2}, {"kind": "ray", "cpus": 2}, {"kind": "ray", "fusion": {"cpus": 2}}], ids=str
)
def test_the_engine_is_not_part_of_what_an_experiment_is(engine):
    assert tiny_config(engine=engine).sha256() == tiny_config().sha256()


@pytest.mark.parametrize(("workers", "engine"), [(0, LocalEngine), (1, LocalEngine), (2, WorkersEngine)])
def test_processes_from_two_workers_on(workers, engine):
    clients = federation("fedavg").engine.clients
    opened = LocalEngineSettings(workers=workers).open(clients, EventLog())
    assert type(opened) is engine
    opened.close()


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ((None, None, None), {"kind": "ray", "cpus": 2}),
        ((None, 3, None), {"kind": "ray", "cpus": 2, "workers": 3}),
        (("local", 3, None), {"kind": "local", "workers": 3}),
        (("ray", None, "auto"), {"kind": "ray", "address": "auto"}),
        (("ray", None, "ray://host:10001"), {"kind": "ray", "address": "ray://host:10001"}),
    ],
)
def test_the_command_line_goes_before_the_file(options, engine):
    changes = with_assignments(dict(zip(("engine", "workers", "address"), options, strict=True)), ())
    assert assign({"engine": {"kind": "ray", "cpus": 2}}, changes) == {"engine": engine}


class TestRay:
    def test_without_the_extra_the_sentence_is_the_command_that_installs_it(self, monkeypatch, out):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'fedfuse\[ray\]'"):
            Experiment(tiny_config(engine={"kind": "ray"})).run(out)
        assert not list(out.glob("*.yaml")), "nothing has begun"

    @pytest.mark.parametrize(("device", "gpus"), [("cpu", 1), ("cuda", 0)])
    def test_gpus_without_cuda_and_cuda_without_gpus(self, device, gpus):
        clients = federation("fedavg").engine.clients
        clients.bank.compute = replace(clients.bank.compute, device=torch.device(device))
        with pytest.raises(ConfigError, match=f"compute.device is {device} and engine.gpus is {gpus}"):
            RayEngineSettings(gpus=gpus).open(clients, EventLog())
        own = {"gpus": 1 - gpus, "fusion": {"gpus": gpus}}
        with pytest.raises(ConfigError, match=f"compute.device is {device} and engine.fusion.gpus is {gpus}"):
            RayEngineSettings(**own).open(clients, EventLog())

    def test_a_cluster_that_is_not_there(self):
        class NoRay:
            def is_initialized(self):
                return False

            def init(self, **_options):
                raise ConnectionError("nobody\n answers")

        with pytest.raises(FedfuseError, match="no Ray cluster can be joined at host:1: nobody answers"):
            _connect(NoRay(), "host:1")
        with pytest.raises(FedfuseError, match="Ray cannot be started on this machine: nobody answers"):
            _connect(NoRay(), None)

    def test_sigterm_stays_ours(self):
        class BossyRay:
            def is_initialized(self):
                return False

            def init(self, **_options):
                signal.signal(signal.SIGTERM, lambda *_: None)

        before = signal.getsignal(signal.SIGTERM)
        try:
            assert _connect(BossyRay(), None)
            assert signal.getsignal(signal.SIGTERM) == before
        finally:
            signal.signal(signal.SIGTERM, before)
