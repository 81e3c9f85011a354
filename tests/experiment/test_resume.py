"""Exact resume: a run that was stopped anywhere and taken up again ends with the same bytes."""

from __future__ import annotations

import random
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import RunFolderError
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from tests.helpers import CopyAt, Recorder, events_of, files_of, tiny_config, tiny_method, without_seconds
from tests.reliability.forked import Forked

pytestmark = pytest.mark.usefixtures("without_pictures")

ROUNDS = 3
MOMENTS = [
    ("run_started", 1),
    ("round_started", 1),
    ("client_finished", 2),
    ("round_finished", 1),
    ("client_finished", 7),
    ("round_finished", 2),
    ("tick", 9),
    ("round_finished", 3),
    ("run_finished", 1),
]
"""The event, and the how-manieth of its kind, at which the run is stopped."""
EVERYWHERE = [
    pytest.param("client_finished", 2, marks=pytest.mark.long),  # as the first of test_stopped_again_and_again
    pytest.param("round_finished", 1, marks=pytest.mark.long),  # as test_resumed_from_an_older_checkpoint
    ("round_started", 3),
]


class StopAt:
    """A listener that interrupts the run at a moment, once."""

    def __init__(self, kind, count):
        self.kind, self.left = kind, count

    def __call__(self, entry):
        if entry["event"] == self.kind:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def experiment(method="fedavg", **sections):
    return Experiment(tiny_config(method, **{"federation": {"rounds": ROUNDS, "participation": 0.75}, **sections}))


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The uninterrupted runs, one for each method."""
    results = {}

    def run(method):
        if method not in results:
            results[method] = experiment(method).run(tmp_path_factory.mktemp("straight") / "run")
        return results[method]

    return run


def assert_same(resumed, expected):
    assert_same_log(resumed.folder.path, expected)
    assert_same_result(resumed, expected)


def assert_same_result(resumed, expected):
    assert files_of(resumed.folder.final) == files_of(expected.folder.final)
    assert history(resumed) == history(expected)
    assert without_seconds(resumed.summary) == without_seconds(expected.summary)
    assert resumed.folder.read_summary() == resumed.summary


def assert_same_log(folder, expected):
    """Every round and every client's part in it exactly once, and one end."""
    finished = events_of(folder, "round_finished")
    assert [event["round"] for event in finished] == [record.round for record in expected.history]
    told = [(event["round"], event["client"]) for event in events_of(folder, "client_finished")]
    assert sorted(told) == [(record.round, client) for record in expected.history for client in record.clients]
    assert len(events_of(folder, "run_finished")) == 1


def history(result):
    return without_seconds([record.to_json() for record in result.history])


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(("kind", "count"), EVERYWHERE)
def test_every_method_is_stopped_at_some_moments(straight, out, method, kind, count):
    stop_and_resume(straight, out, method, kind, count)


@pytest.mark.parametrize("method", ["fedavg", "feddf", "scaffold", "ds-fl"])
@pytest.mark.parametrize(("kind", "count"), MOMENTS)
def test_some_methods_are_stopped_at_every_moment(straight, out, method, kind, count):
    stop_and_resume(straight, out, method, kind, count)


def stop_and_resume(straight, out, method, kind, count):
    with pytest.raises(KeyboardInterrupt):
        experiment(method).run(out, listeners=(StopAt(kind, count),))
    assert not (out / "summary.json").exists()
    assert_same(experiment(method).run(out, resume=True), straight(method))


@pytest.mark.parametrize("method", list(METHODS))
def test_stopped_again_and_again(straight, out, method):
    lonely = METHODS[method].recipe.pooled  # one client in a round, so fewer moments
    for count in (2, 1, 2) if lonely else (2, 5, 1, 4):
        with pytest.raises(KeyboardInterrupt):
            experiment(method).run(out, resume=True, listeners=(StopAt("client_finished", count),))
    assert_same(experiment(method).run(out, resume=True), straight(method))


@pytest.mark.parametrize("method", list(METHODS))
def test_resumed_from_an_older_checkpoint(tmp_path, method):
    rare = {"federation": {"rounds": 4, "participation": 0.75, "checkpoint_every": 2}}
    straight, crashed = tmp_path / "straight", tmp_path / "crashed"
    expected = experiment(method, **rare).run(straight, listeners=(CopyAt("round_finished", 3, straight, crashed),))
    assert_same(experiment(method, **rare).run(crashed, resume=True), expected)
    assert events_of(crashed, "run_resumed")


def test_a_start_that_took_work_is_not_repeated(straight, out):
    with pytest.raises(KeyboardInterrupt):
        experiment("fedaux").run(out, listeners=(StopAt("round_started", 1),))
    told = Recorder()
    assert_same(experiment("fedaux").run(out, resume=True, listeners=(told,)), straight("fedaux"))
    assert "contrastive" not in {event["what"] for event in told.of("tick")}


def test_a_damaged_newest_checkpoint_does_not_matter(straight, out):
    with pytest.raises(KeyboardInterrupt):
        experiment("fedavgm").run(out, listeners=(StopAt("round_started", 3),))
    newest = max((out / "checkpoints").glob("round-*"))
    newest.write_bytes(newest.read_bytes()[:-7])
    assert_same(experiment("fedavgm").run(out, resume=True), straight("fedavgm"))


def test_a_log_that_ends_in_half_a_line_does_not_matter(straight, out):
    with pytest.raises(KeyboardInterrupt):
        experiment().run(out, listeners=(StopAt("client_finished", 5),))
    log = out / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-9])
    assert_same(experiment().run(out, resume=True), straight("fedavg"))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("fedgkd", {"buffer": 1}),
        ("fedgkd", {"buffer": 3, "buffer_initial": True}),
        ("fedgkd-vote", {"buffer": 1}),
        ("fedgkd-vote", {"buffer": 3, "buffer_initial": True}),
        ("moon", {"previous": 2}),
    ],
)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_buffers_that_are_empty_or_half_full(tmp_path, method, options, count):
    """One client in a round, so that an architecture is without any for a while."""
    recipe = tiny_method(method)
    recipe["local"] |= options
    models = {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [9]}}
    sections = {"models": models, "federation": {"rounds": 4, "clients_per_round": 1}}
    expected = experiment(recipe, **sections).run(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        experiment(recipe, **sections).run(tmp_path / "run", listeners=(StopAt("round_started", count),))
    assert_same(experiment(recipe, **sections).run(tmp_path / "run", resume=True), expected)


@pytest.mark.parametrize("method", ["feddf", "fedbe"])
@pytest.mark.parametrize(("kind", "count"), [("tick", 9), ("round_finished", 2)])
def test_inputs_that_are_new_at_every_step(tmp_path, method, kind, count):
    fresh = {"source": {"kind": "gaussian_noise", "size": 30, "fresh": True}}
    expected = experiment(method, **fresh).run(tmp_path / "straight")
    assert files_of(expected.folder.final) != files_of(experiment(method).run(tmp_path / "other").folder.final)
    with pytest.raises(KeyboardInterrupt):
        experiment(method, **fresh).run(tmp_path / "run", listeners=(StopAt(kind, count),))
    assert_same(experiment(method, **fresh).run(tmp_path / "run", resume=True), expected)


@pytest.mark.parametrize("method", list(METHODS))
def test_different_architectures(tmp_path, method):
    sections = {
        "models": {"small": {"arch": "mlp", "hidden": [4, 5]}, "wide": {"arch": "mlp", "hidden": [9, 5]}},
        "federation": {"rounds": 2, "participation": 0.75},
    }
    straight, crashed = tmp_path / "straight", tmp_path / "crashed"
    moment = ("round_started", 2) if METHODS[method].recipe.pooled else ("client_finished", 5)
    expected = experiment(method, **sections).run(straight, listeners=(CopyAt(*moment, straight, crashed),))
    assert_same(experiment(method, **sections).run(crashed, resume=True), expected)
    assert events_of(crashed, "run_resumed")


class TestFolder:
    def test_a_complete_run_returns_at_once(self, straight, out):
        first = experiment().run(out)
        heard = []
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "events.jsonl"}
        again = experiment().run(out, resume=True, listeners=(heard.append,))
        assert [event["event"] for event in heard] == ["run_found"]
        assert again.summary == first.summary
        assert again.history == first.history
        assert {path: path.read_bytes() for path in before} == before
        assert files_of(out / "final") == files_of(straight("fedavg").folder.final)

    def test_a_complete_run_keeps_its_log(self, out):
        experiment().run(out)
        before = (out / "events.jsonl").read_bytes()
        experiment().run(out, resume=True)
        assert (out / "events.jsonl").read_bytes() == before

    def test_a_run_that_never_reached_a_checkpoint_starts_once(self, out):
        with pytest.raises(KeyboardInterrupt):
            experiment().run(out, listeners=(StopAt("client_finished", 1),))
        experiment().run(out, resume=True)
        assert len(events_of(out, "run_started")) == 1

    def test_a_complete_run_with_a_damaged_checkpoint_is_still_complete(self, straight, out):
        experiment().run(out)
        newest = max((out / "checkpoints").glob("round-*"))
        newest.write_bytes(newest.read_bytes()[:-7])
        assert_same(experiment().run(out, resume=True), straight("fedavg"))

    def test_resume_of_nothing_is_a_start(self, straight, out):
        assert_same(experiment().run(out, resume=True), straight("fedavg"))

    def test_a_run_is_not_replaced_by_accident(self, out):
        experiment().run(out)
        with pytest.raises(RunFolderError, match=r"already holds a run; add resume=True .* overwrite=True"):
            experiment().run(out, resume=False)

    def test_overwrite_starts_afresh(self, straight, out):
        experiment("feddf", seed=9).run(out)
        assert_same(experiment().run(out, overwrite=True), straight("fedavg"))

    @pytest.mark.parametrize(
        ("sections", "key"),
        [
            ({"seed": 1}, "seed is 0 there and 1 here"),
            ({"training": {"epochs": 2, "batch_size": 8}}, "training.epochs is 1 there and 2 here"),
            (
                {"federation": {"rounds": 3, "participation": 0.5}},
                "federation.participation is 0.75 there and 0.5 here",
            ),
            ({"models": {"mlp": {"arch": "mlp", "hidden": [7]}}}, "models.mlp.hidden"),
            ({"method": {"name": "fedprox"}}, "method.local.kind is plain there and proximal here"),
        ],
    )
    def test_another_config_is_refused_by_its_key(self, out, sections, key):
        with pytest.raises(KeyboardInterrupt):
            experiment().run(out, listeners=(StopAt("round_finished", 2),))
        before = files_of(out / "checkpoints")
        with pytest.raises(RunFolderError, match="holds another experiment") as caught:
            experiment(**sections).run(out, resume=True)
        assert key in str(caught.value)
        assert files_of(out / "checkpoints") == before

    def test_another_name_is_the_same_experiment(self, straight, out):
        with pytest.raises(KeyboardInterrupt):
            experiment().run(out, listeners=(StopAt("round_finished", 1),))
        resumed = experiment(name="other").run(out, resume=True)
        assert files_of(resumed.folder.final) == files_of(straight("fedavg").folder.final)

    @pytest.mark.parametrize("changed", ["data", "source"])
    def test_other_contents_of_the_same_files_are_refused(self, tmp_path, out, changed):
        draw = np.random.default_rng(0)
        files = {name: tmp_path / f"{name}.npz" for name in ("data", "source")}
        write = {
            "data": lambda: np.savez(files["data"], x=draw.normal(size=(150, 2)), y=np.arange(150) % 3),
            "source": lambda: np.savez(files["source"], x=draw.normal(size=(30, 2))),
        }
        for make in write.values():
            make()
        sections = {
            "data": {"name": "npz", "path": str(files["data"]), "validation": 0.15},
            "source": {"kind": "folder", "path": str(files["source"])},
        }
        with pytest.raises(KeyboardInterrupt):
            experiment("feddf", **sections).run(out, listeners=(StopAt("round_finished", 2),))
        began, before = files[changed].read_bytes(), files_of(out)
        write[changed]()
        with pytest.raises(RunFolderError, match=r"begun with other contents of .*; bring them back"):
            experiment("feddf", **sections).run(out, resume=True)
        assert files_of(out) == before
        files[changed].write_bytes(began)
        assert experiment("feddf", **sections).run(out, resume=True).summary["rounds"] == ROUNDS

    def test_the_saved_config_is_enough_to_go_on(self, straight, out):
        with pytest.raises(KeyboardInterrupt):
            experiment("feddf").run(out, listeners=(StopAt("round_finished", 1),))
        assert_same(Experiment.load(out).run(out, resume=True), straight("feddf"))

    @pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
    def test_strangers_files_are_refused_and_kept(self, tmp_path, options):
        (tmp_path / "thesis.txt").write_text("mine")
        with pytest.raises(RunFolderError, match=r"thesis\.txt"):
            experiment().run(tmp_path, **options)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def work_slowly(setting: Experiment, out: Path) -> None:
    """It rests at every event, so that there is time to kill it."""
    setting.run(out, resume=True, listeners=(lambda _: time.sleep(0.03),))


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize("method", ["feddf", pytest.param("scaffold", marks=pytest.mark.long)])
def test_killed_for_real(tmp_path, method):
    """kill -9 at random moments, then this process; a second one of the folder is refused meanwhile."""
    moments = random.Random(0)
    setting = experiment(method, federation={"rounds": 8, "participation": 0.75})
    expected = setting.run(tmp_path / "straight")
    out = tmp_path / "run"
    log = out / "events.jsonl"
    for kill in range(3):
        before = size_of(log)
        process = Forked(partial(work_slowly, setting, out), tmp_path / "log")
        process.wait(lambda before=before: size_of(log) > before)
        assert process.code() is None, process.last_words()
        if kill == 0:
            with pytest.raises(RunFolderError, match="in use by another run"):
                setting.run(out, resume=True)
        time.sleep(moments.uniform(0.0, 0.25))
        process.end()
        assert process.code() == -signal.SIGKILL, "it was killed before it could finish"
    assert_same(Experiment.load(out).run(out, resume=True), expected)


def test_a_run_that_stops_at_its_target_is_complete_and_stays_so(tmp_path):
    evaluation = {"target_accuracy": 0.01, "stop_at_target": True}
    result = experiment(evaluation=evaluation).run(tmp_path / "run")
    assert result.summary["rounds"] == 1 < ROUNDS
    before = files_of(tmp_path / "run")
    again = experiment(evaluation=evaluation).run(tmp_path / "run", resume=True)
    assert again.summary == result.summary
    assert files_of(tmp_path / "run") == before
    assert (
        experiment(evaluation={**evaluation, "target_accuracy": 1.0}).run(tmp_path / "all").summary["rounds"] == ROUNDS
    )
