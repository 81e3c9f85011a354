"""An experiment as a Python object: build it from a config, run it, resume it, look at the result."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.core.files import write_text
from fedfuse.core.origin import origin
from fedfuse.core.weights import Weights
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
from fedfuse.experiment.lessons import doubts
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.stored import check_models, load_run
from fedfuse.experiment.variants import folder_words, words_of
from fedfuse.experiment.variants.words import shortened_words
from fedfuse.federation import Engine, Federation, Snapshot
from fedfuse.federation.checkpoint import Identity, Saved, go_on_from, new_states, save_checkpoint
from fedfuse.federation.events import EventLog, Listener
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.logged_rounds import LOG
from fedfuse.federation.summary import summarise
from fedfuse.models.saved import save_model
from fedfuse.parts.protocol.nothing import KEPT_MODEL
from fedfuse.report import draw_run

LEAST_SECONDS = 1.0
"""Between two checkpoints that nobody asked for: what a crash costs at most, and far more than one takes to write."""


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
        resume: bool = False,
        overwrite: bool = False,
        listeners: tuple[Listener, ...] = (),
        engine: Engine | None = None,
    ) -> RunResult:
        """Run to the end, writing a run folder; with ``resume``, go on where a former process stopped.

        ``engine`` is one that is open already, in place of the experiment's own.
        """
        folder = RunFolder(Path(out) if out is not None else self.default_folder)
        with folder.opened():
            self._check_claim(folder, resume, overwrite)
            with closing(EventLog(folder.events, listeners)) as log:
                return _Run(self.config, folder, log, resume, engine).finish()

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
    return read_yaml(RunFolder(path).config if path.is_dir() else path)


def where(given: Given) -> str:
    """What errors call it."""
    return str(given) if isinstance(given, str | Path) else "the experiment"


def run_folder(given: Given, out: str | Path | None, resume: bool) -> Path | None:
    """Where a run shall lie, if that is said; who resumes a run folder means that folder."""
    if out is None and resume and isinstance(given, str | Path) and Path(given).is_dir():
        return Path(given)
    return None if out is None else Path(out)


class _Run:
    """One process's work on one run folder."""

    def __init__(
        self, config: ExperimentConfig, folder: RunFolder, log: EventLog, keep: bool, engine: Engine | None
    ) -> None:
        self.config = config
        self.folder = folder
        self.log = log
        self.keep = keep
        self.engine = engine
        self.chosen: dict[str, Any] = {}

    def finish(self) -> RunResult:
        if self.keep and self.folder.is_complete() and is_this_very(self.config, self.folder):
            return self._found()
        saved = self._earlier() if self.keep else None
        # Before anything is written: an impossible experiment leaves no trace.
        built = build(self.config, self.log, self.engine)
        self.chosen = chosen(self.config, built.config)
        self.config, identity = built.config, built.config.of_checkpoints
        try:
            if saved and (reason := other_data(built.facts, self.folder)):
                raise refusal(self.folder, reason)
            self._lay_out(built, saved)
            # Not under a name of its own, which would hold the first snapshot until the end.
            snapshot = self._rounds(
                built.federation, saved.snapshot if saved else self._start(built.federation, identity), identity
            )
        finally:
            built.federation.engine.close()
        return self._conclude(built, snapshot)

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

    def _lay_out(self, built: Built, saved: Saved | None) -> None:
        """Bring the folder to the state in which the next round may begin."""
        self.folder.sweep()
        rounds = self.config.federation.rounds
        planned = other_rounds(rounds, self.folder) if saved else None
        if saved is None:
            self.folder.clear()
        else:
            if (length := length_of(self.config, self.folder)).differs:
                length.apply(self.folder)
            go_on_from(self.folder.checkpoints, saved)
            self.log.cut(saved.log)
        write_text(self.folder.config, self.config.to_yaml())
        built.partition.save(self.folder.partition)
        event = "run_resumed" if saved else "run_started"
        facts = {**built.facts, **({"chosen": self.chosen} if self.chosen else {})}
        others = other_versions(self.folder) if saved else {}
        self.log.emit(event, rounds=rounds, **facts, origin=origin().to_json())
        if planned is not None:
            self.log.emit("rounds_changed", before=planned, now=rounds)
        for skipped in saved.skipped if saved else ():
            self.log.emit("checkpoint_skipped", **skipped._asdict())
        for what, (before, now) in others.items():
            self.log.emit("version_changed", what=what, before=before, now=now)

    def _start(self, federation: Federation, identity: Identity) -> Snapshot:
        snapshot = replace(federation.start(), clients=new_states(self.folder.checkpoints))
        if self.config.recipe.start.is_work:
            self._save(snapshot, identity)
        return snapshot

    def _save(self, snapshot: Snapshot, identity: Identity) -> None:
        save_checkpoint(self.folder.checkpoints, Saved(snapshot, self.log.mark()), identity)

    def _rounds(self, federation: Federation, snapshot: Snapshot, identity: Identity) -> Snapshot:
        saved_at = -math.inf
        while not self._is_over(snapshot):
            snapshot = federation.advance(snapshot)
            if self._is_due(snapshot, time.monotonic() - saved_at) or self._is_over(snapshot):
                self._save(snapshot, identity)
                saved_at = time.monotonic()
        return snapshot

    def _is_due(self, snapshot: Snapshot, seconds: float) -> bool:
        """Whether it is time for a checkpoint, so many seconds after the last one."""
        every = self.config.federation.checkpoint_every
        if every != "auto":
            return snapshot.server.round % every == 0
        nodes_keep_states = self.engine is not None  # of the latest rounds only
        return seconds >= LEAST_SECONDS or nodes_keep_states

    def _is_over(self, snapshot: Snapshot) -> bool:
        target = self.config.evaluation.target_accuracy
        if self.config.evaluation.stop_at_target and target and snapshot.server.history.all_reached(target):
            return True
        return snapshot.server.round >= self.config.federation.rounds

    def _conclude(self, built: Built, snapshot: Snapshot) -> RunResult:
        config, server = self.config, snapshot.server
        models = self._save_models(built, snapshot)
        about = {**config.names(), **built.facts}
        target, metrics = config.evaluation.target_accuracy, config.evaluation.metrics
        summary = summarise(server, about, target, config.recipe.has_server_model, metrics)
        if config.evaluation.pictures:
            draw_run(self.folder.pictures, server.history, built.partition, target)
        said = {"doubts": list(doubts(summary))}
        about_log = {LOG: asdict(self.log.mark())}
        self.log.emit(
            "run_finished", seconds=summary["seconds"], models=models, **(said if said["doubts"] else {}), **about_log
        )
        self.folder.write_summary(summary)  # last: its presence means that the run is complete
        return RunResult(self.folder, summary, tuple(server.history), runs_own_code=True)

    def _save_models(self, built: Built, snapshot: Snapshot) -> int:
        """The server's models, or the clients' own where the server has none; how many they are."""
        bank, saved = built.federation.bank, 0
        for path, name, weights in self._finals(built.federation, snapshot):
            architecture, network = self.config.models[name], bank.lend(name, weights)
            save_model(path, architecture, bank.input_shape, bank.classes, weights, built.interface, network)
            saved += 1
        return saved

    def _finals(self, federation: Federation, snapshot: Snapshot) -> Iterator[tuple[Path, str, Weights]]:
        """Each model's file, prototype and weights, one after another."""
        if self.config.recipe.has_server_model:
            for name, weights in snapshot.server.weights.items():
                yield self.folder.final_weights(name), name, weights
            return
        names = federation.prototypes
        for client, state in snapshot.clients.items():
            if KEPT_MODEL in state:
                weights = Weights(state[KEPT_MODEL], federation.bank.layout(names[client]))
                yield self.folder.final_client(client), names[client], weights
