"""Ray, for real, on this machine: the same bits as in this process, for every method and whatever happens to a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.engines.ray.engine import RayEngine, RayEngineSettings
from fedfuse.engines.ray.progress import ProgressSender
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from tests.engines.players import Everyone, TrappedEngine, federations, first_clients, result
from tests.helpers import Recorder, files_of, played, tiny_config

ray = pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
pytestmark = pytest.mark.usefixtures("without_pictures")
METHOD, FUSION = "scaffold", "feddf"


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


@pytest.fixture
def fusing(engine, monkeypatch):
    """The engine with resources for the fusion, and traps before it."""
    monkeypatch.setattr(engine, "settings", RayEngineSettings(fusion={"cpus": 2}))
    return TrappedEngine(engine, engine.everyone.traps)


@pytest.mark.parametrize("method", list(METHODS))
def test_same_bits_as_in_this_process(here, fusing, method):
    """With the fusion as a task; without, a run that is begun here below is finished so."""
    assert result(here[method], engine=fusing) == result(here[method])


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
        assert engine._room("a client", engine.settings) == room

    @pytest.mark.parametrize("settings", [{"cpus": 3}, {"gpus": 1}, {"memory": 10**15}])
    def test_what_fits_nowhere_is_refused(self, engine, settings):
        with pytest.raises(ConfigError, match=r"a client wants .* but no machine of the Ray cluster has that"):
            RayEngine(RayEngineSettings(**settings), engine.everyone, EventLog())

    @pytest.mark.parametrize("fusion", [{"cpus": 3}, {"gpus": 1}, {"memory": 10**15}])
    def test_a_fusion_that_fits_nowhere_is_refused(self, here, engine, monkeypatch, fusion):
        settings = RayEngineSettings(fusion=fusion)
        with pytest.raises(ConfigError, match=r"the fusion wants .* but no machine of the Ray cluster has that"):
            RayEngine(settings, engine.everyone, EventLog())
        monkeypatch.setattr(engine, "settings", settings)  # as if a machine had gone since
        with pytest.raises(ConfigError, match="the fusion wants"):
            played(replace(here[FUSION], engine=engine), rounds=1)


class TestFaults:
    def test_all_processes_killed_in_the_middle_of_a_round(self, here, engine, heard):
        victims = first_clients(here[METHOD], 2)
        for client in victims:
            engine.everyone.lay(client, "SIGKILL")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        events = heard.of("client_retried")
        assert set(victims) <= {event["client"] for event in events}, "and whoever trained together with them"
        assert {event["round"] for event in events} == {1}
        assert {event["reason"] for event in events} == {"Ray lost it (WorkerCrashedError)"}

    def test_a_client_that_kills_every_process(self, here, engine):
        engine.everyone.lay(*first_clients(here[METHOD], 1), "SIGKILL", times=3)
        with pytest.raises(FedfuseError, match=r"was tried 3 times in round 1, but Ray lost it"):
            played(replace(here[METHOD], engine=engine), rounds=1)

    def test_a_mistake_of_the_client_is_raised_here_and_not_retried(self, here, engine, heard):
        engine.everyone.lay(*first_clients(here[METHOD], 1), "ZeroDivisionError")
        with pytest.raises(ZeroDivisionError, match="a mistake of its own") as caught:
            played(replace(here[METHOD], engine=engine), rounds=1)
        assert "in work" in "\n".join(caught.value.__notes__), "the process's own traceback"
        assert not heard.of("client_retried")

    def test_a_process_that_hangs(self, here, engine, heard, monkeypatch):
        """The time includes the start of a new process, which may take long where much else is done."""
        monkeypatch.setattr(engine, "settings", RayEngineSettings(timeout=45))
        engine.everyone.lay(*first_clients(here[METHOD], 1), "SIGSTOP")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        assert {event["reason"] for event in heard.of("client_retried")} == {"it gave no answer in 45 s"}


class TestFusion:
    def distilling(self, heard):
        return [(tick["done"], tick["total"]) for tick in heard.of("tick") if tick["what"] == "distil"]

    def test_its_progress_arrives(self, here, fusing):
        heard = Recorder()
        method = "fedbe"  # its students take all their steps
        played(replace(here[method], engine=fusing, log=EventLog(listeners=(heard,))), rounds=1)
        here_heard = Recorder()
        played(replace(here[method], log=EventLog(listeners=(here_heard,))), rounds=1)
        assert self.distilling(heard)[-1] == self.distilling(here_heard)[-1]

    def test_progress_that_cannot_arrive_is_no_harm(self, here, engine, fusing):
        ray.kill(engine._ticks.queue.actor)
        assert result(here[FUSION], engine=fusing) == result(here[FUSION])

    @pytest.mark.parametrize("what", ["teacher", "the distillation"])
    def test_its_process_is_killed(self, here, engine, fusing, heard, what):
        engine.everyone.lay(what, "SIGKILL")
        assert result(here[FUSION], engine=fusing) == result(here[FUSION])
        (event,) = heard.of("work_retried")
        assert event["round"] == 1
        assert event["what"].startswith(what)
        assert event["reason"] == "Ray lost it (WorkerCrashedError)"

    def test_its_mistake_is_raised_here_and_not_retried(self, here, engine, fusing, heard):
        engine.everyone.lay("the distillation", "ZeroDivisionError")
        with pytest.raises(ZeroDivisionError, match="a mistake of its own") as caught:
            played(replace(here[FUSION], engine=fusing), rounds=1)
        assert "in spring" in "\n".join(caught.value.__notes__), "the process's own traceback"
        assert not heard.of("work_retried")


def test_ticks_are_few(monkeypatch):
    """However often there is progress, and whether or not anybody takes the ticks out of the queue."""
    from ray.util.queue import Full

    clock, put = [0.0], []
    monkeypatch.setattr("fedfuse.engines.ray.progress.time.monotonic", lambda: clock[0])

    class Small:
        def put_nowait(self, tick):
            if len(put) == 4:
                raise Full
            put.append(tick)

    teller = ProgressSender(Small())
    for step in range(1, 1001):
        clock[0] = step / 1000
        teller("distil", step, 1000)
    assert put == [("distil", 1, 1000), ("distil", 501, 1000), ("distil", 1000, 1000)]
    for step in range(1, 4):
        teller("distil", step, 1)
    assert len(put) == 4
