"""Early stopping, the best round's models and every client's: the same after any interruption, and what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import fedfuse
from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.core.weights import Weights
from fedfuse.experiment.assembly import build
from fedfuse.experiment.model_files import best_models
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from tests.experiment.test_resume import MOMENTS, StopAt, assert_same
from tests.helpers import Recorder, events_of, files_of, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")

BEST = {"keep_best": True}
FEDERATION = {"rounds": 4, "participation": 0.75}


def experiment(method: Any = "fedavg", **sections: Any) -> Experiment:
    return Experiment(tiny_config(method, **{"federation": FEDERATION, "evaluation": BEST, **sections}))


def models(folder: Path) -> dict[str, bytes]:
    """Of all rounds that are kept."""
    return {name: content for name, content in files_of(folder).items() if name.startswith(("best", "clients"))}


def everything() -> Experiment:
    """With all that may be kept, and a run that ends by itself."""
    evaluation = {"patience": 3, "keep_best": True, "every": 2}
    return experiment("scaffold", federation={**FEDERATION, "rounds": 20, "keep_clients": True}, evaluation=evaluation)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return everything().run(tmp_path_factory.mktemp("straight") / "run")


def test_the_best_model_is_that_of_the_round_with_the_highest_validation_accuracy(tmp_path: Path) -> None:
    """By hand: every round as a run of its own length."""
    result = experiment().run(tmp_path / "run")
    values = [record.prototypes["mlp"].validation["accuracy"] for record in result.history]
    best = values.index(max(value for value in values if value is not None)) + 1
    assert result.summary["best"]["round"] == best
    assert result.summary["best"]["on"] == "validation"
    assert result.summary["best"]["value"] == max(values)
    short = experiment(federation={**FEDERATION, "rounds": best}, evaluation={}).run(tmp_path / "short")
    by_hand, kept = short.model().state_dict(), result.model(which="best").state_dict()
    assert all(torch.equal(by_hand[name], kept[name]) for name in by_hand)
    built = build(experiment().config, EventLog())
    validation = built.federation.judging
    assert validation is not None
    assert validation.score(result.model(which="best")).accuracy == result.summary["best"]["value"]
    assert [path.parent.name for path in best_models(result.folder, best)] == [f"round-{best:06d}"]


def test_keeping_changes_no_bit_of_the_run(tmp_path: Path, straight: RunResult) -> None:
    rounds = straight.summary["rounds"]
    plain = experiment("scaffold", federation={**FEDERATION, "rounds": rounds}, evaluation={"every": 2})
    assert files_of(plain.run(tmp_path / "plain").folder.final) == files_of(straight.folder.final)


def test_patience_ends_the_run_and_says_so(straight: RunResult) -> None:
    best = straight.summary["best"]
    assert best["ran_out_of_patience"]
    assert straight.summary["rounds"] < 20
    assert straight.summary["rounds"] - best["round"] >= 3
    assert straight.is_finished


@pytest.mark.parametrize(("kind", "count"), [*MOMENTS, ("round_finished", 5), ("client_finished", 14)])
def test_stopped_anywhere_it_keeps_the_same_models(tmp_path: Path, straight: RunResult, kind: str, count: int) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        everything().run(folder, listeners=(StopAt(kind, count),))
    assert_same(everything().run(folder, resume=True), straight)
    assert models(folder) == models(straight.folder.path)


@pytest.mark.parametrize("place", ["keeping.Keeping._write", "playing.save_checkpoint", "keeping.Keeping.keep_best"])
@pytest.mark.parametrize("time", [1, 2, 3])
def test_killed_while_models_are_kept_it_goes_on(
    tmp_path: Path, straight: RunResult, monkeypatch: pytest.MonkeyPatch, place: str, time: int
) -> None:
    module, _, name = f"fedfuse.experiment.{place}".rpartition(".")
    owner: Any = _found(module)
    real, left = getattr(owner, name), [time]

    def killed(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(KeyboardInterrupt):
            everything().run(tmp_path / "run")
    assert_same(everything().run(tmp_path / "run", resume=True), straight)
    assert models(tmp_path / "run") == models(straight.folder.path)


def _found(address: str) -> Any:
    import importlib

    try:
        return importlib.import_module(address)
    except ModuleNotFoundError:
        module, _, name = address.rpartition(".")
        return getattr(importlib.import_module(module), name)


def test_more_rounds_keep_the_best_of_all(tmp_path: Path) -> None:
    sections = {"federation": {**FEDERATION, "keep_clients": True}}
    long = {"federation": {**FEDERATION, "rounds": 7, "keep_clients": True}}
    experiment(**sections).run(tmp_path / "run")
    longer = experiment(**long).run(tmp_path / "run", resume=True)
    whole = experiment(**long).run(tmp_path / "whole")
    assert_same(longer, whole)
    assert models(tmp_path / "run") == models(tmp_path / "whole")


def test_a_clients_kept_model_is_the_one_that_it_sent(tmp_path: Path) -> None:
    """The last round is played again by other code, which shows the updates."""
    result = experiment(federation={**FEDERATION, "keep_clients": True}, evaluation={}).run(tmp_path / "run")
    updates = fedfuse.replay(tmp_path / "run").updates
    assert sorted(update.client for update in updates) == sorted(result.history[-1].clients)
    for update in updates:
        kept = result.client_model(update.client, round=4)
        assert Weights.of(kept).equals(update.weights)


@pytest.mark.parametrize(("method", "workers"), [("feddf", 1), ("fedprox", 1), ("local-only", 1), ("fedmd", 2)])
def test_everybody_who_was_heard_has_a_model_of_every_round(tmp_path: Path, method: str, workers: int) -> None:
    kept = {**FEDERATION, "rounds": 2, "keep_clients": True}
    result = experiment(method, federation=kept, evaluation={}, engine={"workers": workers}).run(tmp_path / "run")
    for record in result.history:
        folder = tmp_path / "run" / "clients" / f"round-{record.round:06d}"
        assert sorted(int(file.stem) for file in folder.iterdir()) == sorted(record.heard)
        for client in record.heard:
            result.client_model(client, round=record.round)


def test_who_is_refused_has_no_kept_model(tmp_path: Path) -> None:
    wild = {"epochs": 1, "batch_size": 8, "optimizer": {"kind": "sgd", "learning_rate": 1e30}}
    kept = {**FEDERATION, "rounds": 1, "keep_clients": True}
    result = experiment(training=wild, federation=kept, evaluation={}).run(tmp_path / "run")
    assert result.history[0].refused
    assert len(files_of(tmp_path / "run" / "clients")) == len(result.history[0].heard)


def test_clients_models_of_the_best_round_where_the_server_has_none(tmp_path: Path) -> None:
    told = Recorder()
    result = experiment("fedmd").run(tmp_path / "run", listeners=(told,))
    best = result.summary["best"]
    assert best["on"] == "test"
    assert any("judged on the test examples" in sentence for sentence in result.cautions)
    until = {**FEDERATION, "rounds": best["round"]}
    short = experiment("fedmd", federation=until, evaluation={}).run(tmp_path / "short")
    assert files_of(short.folder.final) == files_of(result.folder.best_of(best["round"]))
    assert best["kept"] == len(files_of(short.folder.final))
    result.client_model(result.history[0].clients[0], which="best")


def test_an_ensembles_answer_is_judged_as_such(tmp_path: Path) -> None:
    result = experiment("1-ensemble").run(tmp_path / "run")
    values = [record.ensemble_validation["accuracy"] for record in result.history]
    assert result.summary["best"]["value"] == max(values)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"evaluation": {"best_on": "validation"}, "data": "none"}, "there are no such examples; set data.validation"),
        ({"evaluation": {"validation": True}, "data": "none"}, "examples that there are not; set data.validation"),
        ({"method": "fedmd", "evaluation": {"best_on": "validation"}}, "leaves all models with its clients"),
        ({"method": "fedma", "federation": {"rounds": 2, "keep_clients": True}}, "send one layer at a time"),
    ],
)
def test_what_cannot_be_is_refused_before_round_1(tmp_path: Path, sections: dict[str, Any], sentence: str) -> None:
    if sections.get("data") == "none":
        sections = {**sections, "data": {"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}}
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        experiment(**sections).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_validation_examples_the_test_split_judges_and_the_run_says_so(tmp_path: Path) -> None:
    data = {"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}
    result = experiment(data=data).run(tmp_path / "run")
    assert result.summary["best"]["on"] == "test"
    assert [sentence for sentence in result.cautions if "data.validation gives them examples of their own" in sentence]


def test_what_is_at_its_default_is_no_part_of_an_experiment() -> None:
    """Runs that were begun before there were these keys go on."""
    identity = tiny_config().identity()
    newer = {"patience", "least_gain", "keep_best", "best_by", "best_on", "validation"}
    assert not newer & identity["evaluation"].keys()
    assert "keep_clients" not in identity["federation"]
    plain = tiny_config().sha256()
    for evaluation in ({"patience": 2}, {"keep_best": True}, {"best_on": "test"}, {"validation": True}):
        assert tiny_config(evaluation=evaluation).sha256() != plain


def test_validation_alone_measures_and_keeps_nothing(tmp_path: Path) -> None:
    result = experiment(evaluation={"validation": True, "metrics": ["macro_f1"]}).run(tmp_path / "run")
    assert {"accuracy", "loss", "macro_f1"} == result.history[-1].prototypes["mlp"].validation.keys()
    assert "best" not in result.summary
    assert not result.folder.best.exists()
    assert "validation_accuracy" in result.records()[0]


def test_what_is_missing_is_said_in_words(tmp_path: Path, straight: RunResult) -> None:
    plain = experiment(evaluation={}).run(tmp_path / "plain")
    with pytest.raises(RunFolderError, match=r"has kept no best models; evaluation.keep_best keeps them"):
        plain.model(which="best")
    with pytest.raises(RunFolderError, match=r"has kept no models of its clients; federation.keep_clients keeps them"):
        plain.client_model(0, round=1)
    with pytest.raises(RunFolderError, match=r"has no models of round 99, but of rounds 1 to \d"):
        straight.client_model(0, round=99)
    absent = next(client for client in range(4) if client not in straight.history[0].heard)
    with pytest.raises(RunFolderError, match=f"no model of client {absent} in round 1, which heard "):
        straight.client_model(absent, round=1)
    with pytest.raises(RunFolderError, match="by round; say which"):
        straight.client_model(0)
    with pytest.raises(RunFolderError, match="did you mean 'best'"):
        straight.model(which="bst")  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_finished_run_whose_best_model_is_damaged_is_refused(tmp_path: Path, damage: str) -> None:
    result = experiment().run(tmp_path / "run")
    [file] = best_models(result.folder, result.summary["best"]["round"])
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(RunFolderError, match=r"models are gone from|is damaged"):
        experiment().run(tmp_path / "run", resume=True)


def test_overwriting_removes_what_was_kept_and_nothing_else(tmp_path: Path) -> None:
    everything().run(tmp_path / "run")
    others = [tmp_path / "run" / "clients" / "round-000001" / "notes.txt", tmp_path / "run" / "best" / "mine.txt"]
    for other in others:
        other.write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "0.safetensors").write_text("mine")
    (tmp_path / "run" / "clients" / "round-000099").symlink_to(tmp_path / "outside")
    experiment(evaluation={}).run(tmp_path / "run", overwrite=True)
    assert all(other.read_text() == "mine" for other in others)
    assert (tmp_path / "outside" / "0.safetensors").read_text() == "mine"
    assert not models(tmp_path / "run")


def test_a_run_can_be_stopped_politely_and_goes_on(tmp_path: Path) -> None:
    stopped = experiment(evaluation={}).run(tmp_path / "run", stop=lambda record: record.round == 2)
    assert not stopped.is_finished
    assert stopped.summary["rounds"] == 2
    assert not events_of(tmp_path / "run", "run_finished")
    whole = experiment(evaluation={}).run(tmp_path / "whole")
    assert_same(experiment(evaluation={}).run(tmp_path / "run", resume=True), whole)


def test_the_disk_that_clients_models_will_take_is_said_before_the_first_round(tmp_path: Path) -> None:
    told = Recorder()
    experiment(federation={**FEDERATION, "keep_clients": True}, evaluation={}).run(tmp_path / "run", listeners=(told,))
    said = told.of("run_started")[0]["kept_clients"]
    taken = sum(len(content) for content in files_of(tmp_path / "run" / "clients").values())
    assert 0.5 < said / taken < 2
