"""An experiment as a Python object: build it from a config, run it, resume it, look at the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from fedfuse.core.arguments import place, truth
from fedfuse.core.errors import ConfigError, RunFolderError, StopRun
from fedfuse.core.files import is_there, write_text
from fedfuse.core.origin import origin
from fedfuse.experiment import presets
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.choices import chosen
from fedfuse.experiment.config import ExperimentConfig, Raw, assign, merge, read_yaml, validate
from fedfuse.experiment.config.changes import Change, changes_of
from fedfuse.experiment.config.python_values import in_words
from fedfuse.experiment.earlier import (
    continued,
    is_this_very,
    last_checkpoint,
    length_of,
    other_data,
    other_experiment,
    other_rounds,
    other_versions,
    refusal,
)
from fedfuse.experiment.finding import find_experiment
from fedfuse.experiment.keeping import Keeping
from fedfuse.experiment.lessons import doubts
from fedfuse.experiment.model_files import best_models
from fedfuse.experiment.playing import Play, Stop
from fedfuse.experiment.provenance import data_called
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.shown import experiment_table
from fedfuse.experiment.sketching import Sketches
from fedfuse.experiment.stored import check_models, load_run
from fedfuse.experiment.tracking import tracked
from fedfuse.experiment.variants import folder_words, words_of
from fedfuse.experiment.variants.words import shortened_words
from fedfuse.federation import Engine, RoundRecord, Snapshot, confusion
from fedfuse.federation.checkpoint import Saved, go_on_from
from fedfuse.federation.events import EventLog, Listener
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.logged_rounds import LOG
from fedfuse.federation.summary import ANSWERS_AS_ENSEMBLE, summarise
from fedfuse.report import draw_run


class Experiment:
    """A validated experiment.

    >>> fedfuse.Experiment.load("digits", method="fedavg", seed=1)
    Experiment(digits: fedavg on digits, models mlp, 15 rounds, seed 1, identity ...)
    """

    def __init__(self, config: ExperimentConfig | Mapping[str, Any] | None = None, **values: Any) -> None:
        if isinstance(config, ExperimentConfig):
            if values:
                raise ConfigError("give a finished config or keys, not both")
            self.config = config
        else:
            self.config = validate(merge(config or {}, values))
        self.variant = ""
        """What was changed in the file that it was loaded from, in a word: ``alpha=0.5``."""

    def __repr__(self) -> str:
        config, models = self.config, ", ".join(self.config.models)
        return (
            f"Experiment({config.name}: {config.method.called} on {config.data.name}, models {models}, "
            f"{config.federation.rounds} rounds, seed {config.seed}, identity {config.sha256()[:8]})"
        )

    def _repr_html_(self) -> str:
        return experiment_table(self.config, self.default_folder)

    @staticmethod
    def load(experiment: Given, assignments: Sequence[str] = (), **values: Any) -> Experiment:
        """Read an experiment file, a preset by name, the ``config.yaml`` of a run folder, a mapping or an experiment.

        ``values`` are laid over it key by key (``training={"epochs": 2}`` leaves the batch size as it is), and then the
        ``assignments``, which replace what they name (``"training={epochs: 2}"``). None gives a section its defaults.
        """
        raw, values = read_raw(experiment), in_words(values)
        loaded = Experiment(validate(assign(merge(raw, values), assignments), where(experiment)))
        changes = [*changes_of(values), *map(Change.read, assignments)]
        before = [experiment.variant] if isinstance(experiment, Experiment) else []
        words = "-".join(filter(None, [*before, words_of(folder_words(raw, changes, loaded.config))]))
        loaded.variant = shortened_words(words)
        return loaded

    @property
    def default_folder(self) -> Path:
        """Named by the experiment, by what was changed in its file, by method and seed."""
        config = self.config
        names = [config.name, self.variant, config.method.called, f"seed{config.seed}"]
        return Path("runs") / "-".join(filter(None, names))

    def run(
        self,
        out: str | Path | None = None,
        resume: bool | None = None,
        overwrite: bool = False,
        listeners: Listener | Sequence[Listener] = (),
        engine: Engine | None = None,
        stop: Stop | None = None,
    ) -> RunResult:
        """Run to the end, writing a run folder.

        If the folder holds this very run already, it is read, or gone on with where it stopped; ``overwrite`` runs it
        anew, and ``resume=False`` refuses any run that is there. ``engine`` is one that is open already, in place of
        the experiment's own. ``stop`` is called with the
        record of every round; where it says true, the run stops after that round, unfinished.
        """
        resume, overwrite = resume if resume is None else truth("resume", resume), truth("overwrite", overwrite)
        heard = (listeners,) if callable(listeners) else tuple(listeners)
        folder = RunFolder(place("out", out) or self.default_folder)
        with folder.opened():
            if resume is None:
                resume = not overwrite and not self._has_other_length(folder)
            self._check_claim(folder, resume, overwrite)
            with (
                tracked(self.config, folder, heard) as trackers,
                closing(EventLog(folder.events, (*heard, *trackers))) as log,
            ):
                return _Run(self.config, folder, log, resume, engine, stop).finish()

    def prepare(self, folder: RunFolder, resume: bool = False, overwrite: bool = False) -> None:
        """Make the folder this experiment's, so that ``fedfuse run FOLDER --resume`` runs it.

        A run that is there keeps its config, which has what it chose by itself.
        """
        with folder.opened():
            self._check_claim(folder, resume, overwrite)
            if not resume or not folder.holds_a_run():
                folder.clear()
                write_text(folder.config, self.config.to_yaml())
            elif (length := length_of(self.config, folder)).differs:
                length.apply(folder)

    def _has_other_length(self, folder: RunFolder) -> bool:
        """Whether the folder holds this run with another number of rounds, which is made longer only if asked to."""
        is_same = folder.holds_a_run() and other_experiment(self.config, folder) is None
        return is_same and length_of(self.config, folder).differs

    def _check_claim(self, folder: RunFolder, resume: bool, overwrite: bool) -> None:
        if resume and overwrite:
            raise RunFolderError("--resume goes on with a run and --overwrite replaces it; give one of them")
        if not folder.holds_a_run() or overwrite:
            return
        if not resume:
            raise RunFolderError(
                f"{folder.path} already holds a run; add --resume to go on with it, --overwrite to replace it, "
                "or choose another --out"
            )
        if reason := other_experiment(self.config, folder):
            raise refusal(folder, reason)


Given = str | Path | Mapping[str, Any] | Experiment
"""Where an experiment comes from: a file, a preset, a run folder, its keys, or an experiment to change."""


def read_raw(given: Given) -> Raw:
    """The raw mapping behind it."""
    if isinstance(given, Experiment):
        return given.config.model_dump(mode="json")
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str | Path):
        raise ConfigError(f"an experiment is a file, a preset, a run folder or a mapping, not {type(given).__name__}")
    path = find_experiment(given)
    if path is None:
        return yaml.safe_load(presets.text(str(given)))  # type: ignore[no-any-return]
    if path.is_dir() and not is_there(RunFolder(path).config):
        raise ConfigError(f"{given or 'an empty text'} is no run folder; give a file, a preset or the folder of a run")
    return read_yaml(RunFolder(path).config if path.is_dir() else path)


def where(given: Given) -> str:
    """What errors call it."""
    return str(given) if isinstance(given, str | Path) else "the experiment"


def run_folder(given: Given, out: str | Path | None, resume: bool, overwrite: bool = False) -> Path | None:
    """Where a run shall lie, if that is said; who resumes a run folder means that folder.

    Who overwrites must say which one: that folder, or whatever lies where such a run would be put.
    """
    if out is None and isinstance(given, str | Path) and Path(given).is_dir():
        if overwrite:
            raise ConfigError(f"--overwrite of a run like {given}: say with --out which folder shall be replaced")
        if resume:
            return Path(given)
    return None if out is None else Path(out)


def is_run_in(given: Given, config: ExperimentConfig) -> bool:
    """Whether a run folder is given, and nothing is changed in it that makes it another run."""
    if not isinstance(given, str | Path) or not Path(given).is_dir():
        return False
    folder = RunFolder(Path(given))
    return folder.holds_a_run() and other_experiment(config, folder) is None


class _Run:
    """One process's work on one run folder."""

    def __init__(
        self,
        config: ExperimentConfig,
        folder: RunFolder,
        log: EventLog,
        keep: bool,
        engine: Engine | None,
        stop: Stop | None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.log = log
        self.keep = keep
        self.engine = engine
        self.stop = stop
        self.chosen: dict[str, Any] = {}

    def finish(self) -> RunResult:
        if self.keep and self.folder.is_complete() and is_this_very(self.config, self.folder):
            return self._found()
        saved = self._earlier() if self.keep else None
        # Before anything is written: an impossible experiment leaves no trace.
        built = build(self.config, self.log, self.engine)
        self.chosen = chosen(self.config, built.config)
        self.config = built.config
        sketches = Sketches(partial(self._draw, built)) if self.config.evaluation.pictures else None
        try:
            if saved and (reason := other_data(built.facts, self.folder)):
                raise refusal(self.folder, reason)
            play = Play(built, self.folder, self.log, self.engine is not None, self.stop, sketches)
            self._lay_out(built, saved, play.keeping)
            # Not under a name of its own, which would hold the first snapshot until the end.
            snapshot = play.rounds(saved.snapshot if saved else play.start())
            if sketches and not play.is_over(snapshot):
                sketches.end()
        except KeyboardInterrupt:
            if sketches:
                sketches.end()
            raise
        finally:
            built.federation.engine.close()
        if play.is_over(snapshot):
            return self._conclude(built, snapshot, play)
        if self.log.stop:
            return self._stopped(self.log.stop, snapshot)
        return load_run(self.folder.path, trust_own_code=True)

    def _stopped(self, stop: StopRun, snapshot: Snapshot) -> RunResult:
        """What a run came to that a listener stopped; before its first round there is nothing to look at."""
        if not snapshot.server.round:
            raise stop
        self.log.emit("run_stopped", round=snapshot.server.round, reason=str(stop))
        return replace(load_run(self.folder.path, trust_own_code=True), stopped=str(stop) or "a listener stopped it")

    def _found(self) -> RunResult:
        """A run that is over is read, if all of it is still there."""
        result = load_run(self.folder.path)
        check_models(self.folder, result.summary)
        self.log.tell("run_found", rounds=result.summary["rounds"])
        return result

    def _earlier(self) -> Saved | None:
        """Where a former process stopped, if it came to a checkpoint."""
        self.config = continued(self.config, self.folder)
        return last_checkpoint(self.config, self.folder)

    def _lay_out(self, built: Built, saved: Saved | None, keeping: Keeping) -> None:
        """Bring the folder to the state in which the next round may begin."""
        self.folder.sweep()
        rounds = self.config.federation.rounds
        if saved is None:
            self.folder.clear()
        else:
            if (length := length_of(self.config, self.folder)).differs:
                length.apply(self.folder)
            go_on_from(self.folder.checkpoints, saved)
            keeping.fall_back_to(saved.snapshot.server.round)
            self.log.cut(saved.log)
        write_text(self.folder.config, self.config.to_yaml())
        built.partition.save(self.folder.partition)
        event = "run_resumed" if saved else "run_started"
        facts = {**built.facts, **({"chosen": self.chosen} if self.chosen else {})}
        others, planned = (other_versions(self.folder), other_rounds(rounds, self.folder)) if saved else ({}, None)
        self.log.emit(event, rounds=rounds, **facts, origin=origin().to_json())
        if planned is not None:
            self.log.emit("rounds_changed", before=planned, now=rounds)
        for skipped in saved.skipped if saved else ():
            self.log.emit("checkpoint_skipped", **skipped._asdict())
        for what, (before, now) in others.items():
            self.log.emit("version_changed", what=what, before=before, now=now)

    def _conclude(self, built: Built, snapshot: Snapshot, play: Play) -> RunResult:
        config, server = self.config, snapshot.server
        models = play.keeping.last(snapshot)
        self._save_confusion(built, snapshot)
        about = {**config.names(), **built.facts, **built.privacy_of(server.memory)}
        if config.answers_as_ensemble:
            about[ANSWERS_AS_ENSEMBLE] = True
        target, metrics = config.evaluation.target_accuracy, config.evaluation.metrics
        summary = summarise(server, about, target, config.recipe.has_server_model, metrics, play.watch)
        if config.evaluation.keep_best and summary["best"]:
            summary["best"]["kept"] = len(best_models(self.folder, summary["best"]["round"]))
        if config.evaluation.pictures:
            self._draw(built, server.history)
        said = {"doubts": list(doubts(summary))}
        about_log = {LOG: asdict(self.log.mark())}
        self.log.emit(
            "run_finished", seconds=summary["seconds"], models=models, **(said if said["doubts"] else {}), **about_log
        )
        self.folder.write_summary(summary)  # last: its presence means that the run is complete
        return RunResult(self.folder, summary, tuple(server.history), runs_own_code=True)

    def _draw(self, built: Built, history: Sequence[RoundRecord]) -> None:
        """The rounds so far, or all of them."""
        target, names = self.config.evaluation.target_accuracy, (self.config.label, data_called(built.facts))
        draw_run(self.folder.pictures, history, built.partition, target, *names)

    def _save_confusion(self, built: Built, snapshot: Snapshot) -> None:
        """Of the server's models, what they take each class for."""
        bank, classes = built.federation.bank, built.dataset.classes
        if self.config.recipe.has_server_model and classes <= confusion.MOST_LISTED:
            test, weights = built.federation.test, snapshot.server.weights
            found = {name: confusion.measured(test, bank.lend(name, own), classes) for name, own in weights.items()}
            confusion.write(self.folder.confusion, found)
