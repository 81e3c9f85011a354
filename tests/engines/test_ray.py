"""Ray, for real, on this machine: the same bits as in this process, for every method and whatever happens to a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.engines.ray import RayEngine, RayEngineSettings
from fedfuse.experiment import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from tests.engines.players import Everyone, federations, first_clients, result
from tests.helpers import Recorder, files_of, played, tiny_config

ray = pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
pytestmark = pytest.mark.usefixtures("without_pictures")
METHOD = "scaffold"


@pytest.fixture(scope="module")
def here():
    return federations()


@pytest.fixture(scope="module")
def engine(here, tmp_path_factory):
    """Ray on two CPUs, for the whole module."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    everyone = Everyone({name: one.engine.clients for name, one in here.items()}, tmp_path_factory.mktemp("traps"))
    engine = RayEngine(RayEngineSettings(), everyone, EventLog())
    engine.everyone = everyone
    yield engine
    engine.close()
    ray.shutdown()


@pytest.fixture
def heard(engine, monkeypatch):
    """What the engine says."""
    recorder = Recorder()
    monkeypatch.setattr(engine, "log", EventLog(listeners=(recorder,)))
    return recorder


@pytest.mark.parametrize("method", list(METHODS))
def test_same_bits_as_in_this_process(here, engine, method):
    assert result(here[method], engine=engine) == result(here[method])


def test_a_run_begun_here_is_finished_on_ray(engine, out, tmp_path):  # noqa: ARG001 - Ray must be there
    config = tiny_config("feddf", federation={"rounds": 3})
    expected = Experiment(config).run(tmp_path / "straight")

    def stop(event):
        if event["event"] == "round_finished":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(out, listeners=(stop,))
    finished = Experiment.load(out, ["engine={kind: ray, workers: 1}"]).run(out, resume=True)
    assert files_of(finished.folder.final) == files_of(expected.folder.final)
    assert ray.is_initialized(), "a Ray that somebody else started is left alone"


class TestRoom:
    @pytest.mark.parametrize(
        ("settings", "room"),
        [({}, 2), ({"cpus": 2}, 1), ({"cpus": 0.5}, 4), ({"workers": 7}, 7), ({"memory": 10**6}, 2)],
    )
    def test_as_many_clients_as_fit(self, engine, monkeypatch, settings, room):
        monkeypatch.setattr(engine, "settings", RayEngineSettings(**settings))
        assert engine._room() == room

    @pytest.mark.parametrize("settings", [{"cpus": 3}, {"gpus": 1}, {"memory": 10**15}])
    def test_what_fits_nowhere_is_refused(self, engine, monkeypatch, settings):
        monkeypatch.setattr(engine, "settings", RayEngineSettings(**settings))
        with pytest.raises(ConfigError, match="but no machine of the Ray cluster has that"):
            engine._room()


class TestFaults:
    def test_all_processes_killed_in_the_middle_of_a_round(self, here, engine, heard):
        victims = first_clients(here[METHOD], 2)
        for client in victims:
            engine.everyone.lay(client, "SIGKILL")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        events = heard.of("client_retried")
        assert sorted((event["round"], event["client"]) for event in events) == [(1, client) for client in victims]
        assert {event["reason"] for event in events} == {"Ray lost it (WorkerCrashedError)"}

    def test_a_client_that_kills_every_process(self, here, engine):
        engine.everyone.lay(*first_clients(here[METHOD], 1), "SIGKILL", times=3)
        with pytest.raises(FedfuseError, match=r"was tried 3 times in round 1, but Ray lost it"):
            played(replace(here[METHOD], engine=engine), rounds=1)

    def test_a_mistake_of_the_client_is_raised_here_and_not_retried(self, here, engine, heard):
        engine.everyone.lay(*first_clients(here[METHOD], 1), "ZeroDivisionError")
        with pytest.raises(ZeroDivisionError, match="a mistake of the client's own") as caught:
            played(replace(here[METHOD], engine=engine), rounds=1)
        assert "in work" in "\n".join(caught.value.__notes__), "the process's own traceback"
        assert not heard.of("client_retried")

    def test_a_process_that_hangs(self, here, engine, heard, monkeypatch):
        """The time includes the start of a new process, which may take long where much else is done."""
        monkeypatch.setattr(engine, "settings", RayEngineSettings(timeout=40))
        engine.everyone.lay(*first_clients(here[METHOD], 1), "SIGSTOP")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        assert [event["reason"] for event in heard.of("client_retried")] == ["it gave no answer in 40 s"]
