"""The trials of a sweep, one after another or side by side, each known to later ones in its turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fedfuse.core.errors import FedfuseError, MissingExtraError, RunFolderError, StopRun
from fedfuse.core.imports import check_findable_elsewhere
from fedfuse.data.given import handed_over
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.comparison.processes import Processes
from fedfuse.experiment.comparison.running import named, told_of
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.stored import load_run
from fedfuse.experiment.sweep.ledger import Ledger
from fedfuse.experiment.sweep.pruning import Pruning
from fedfuse.experiment.sweep.space import Space, Values
from fedfuse.experiment.sweep.suggesting import Known, Suggester
from fedfuse.experiment.sweep.trial import Curve, Outcome, curve_of
from fedfuse.experiment.tracking import grouped
from fedfuse.federation import RoundRecord
from fedfuse.federation.events import Listener
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.judging import Judge
from fedfuse.federation.logged_rounds import rounds_so_far

HOPELESS = 5
"""Trials that may fail before any has come to an end."""


@dataclass(frozen=True)
class Course:
    """How a sweep goes about its trials."""

    space: Space
    suggester: Suggester
    ledger: Ledger
    seeds: tuple[int, ...]
    judge: Judge
    best_round: bool
    prune: bool
    window: int
    listener: Listener

    def play(self, budget: int, jobs: int) -> None:
        """All trials up to a number of them, or until there is nothing left to try."""
        left = deque(number for number in range(budget) if number not in self.ledger.outcomes)
        if jobs == 1:
            while left and (trial := self._trial(left.popleft())):
                self._one_by_one(trial)
        else:
            self._side_by_side(left, jobs)

    def _trial(self, number: int) -> TrialAtWork | None:
        """As it was suggested, or is suggested now; None if there is nothing left to try."""
        if number not in self.ledger.values:
            values = self.suggester.suggest(number, self._known(number))
            if values is None:
                return None
            self.ledger.suggested(number, values)
        return TrialAtWork(self, number, self.ledger.values[number], self._known(number))

    def _known(self, number: int) -> Known:
        """What a trial may know: of the last ones before it only that they run, whether or not they have ended."""
        outcomes, running = self.ledger.outcomes, number - self.window + 1
        return [(self.ledger.values[one], outcomes[one] if one < running else None) for one in range(number)]

    def _is_known(self, number: int) -> bool:
        """Whether all trials have ended that this one may know of."""
        return all(one in self.ledger.outcomes for one in range(number - self.window + 1))

    def _one_by_one(self, trial: TrialAtWork) -> None:
        with trial.failing():
            while (cell := trial.next_run()) is not None:
                self.listener(told_of(cell, "study_run_started", rounds=trial.rounds, done=0))
                listeners = (named(cell, self.listener),)
                result = cell.experiment.run(cell.folder.path, resume=True, listeners=listeners, stop=trial.stops)
                if result.stopped:
                    raise StopRun(result.stopped)
                self.listener(told_of(cell, "study_run_stopped"))
        self._end(trial)

    def _side_by_side(self, left: deque[int], jobs: int) -> None:
        at_work: dict[Cell, TrialAtWork] = {}
        given = {str(self.space.entrant({}).config.data.path)}
        with handed_over(given) as environment, Processes(environment) as runs:
            while left or at_work:
                while left and len(at_work) < jobs and self._is_known(left[0]):
                    if (trial := self._trial(left.popleft())) is None:
                        left.clear()
                    else:
                        self._go_on(trial, runs, at_work)
                runs.wait()
                for cell, trial in at_work.items():
                    done = runs.rounds(cell)
                    self.listener(told_of(cell, "study_run_advanced", done=done, latest=runs.counts(cell).last))
                    if trial.stops_now(done):
                        runs.stop(cell)
                for cell, failure in runs.ended():
                    self.listener(told_of(cell, "study_run_stopped"))
                    self._go_on(at_work.pop(cell), runs, at_work, failure)

    def _go_on(
        self,
        trial: TrialAtWork,
        runs: Processes,
        at_work: dict[Cell, TrialAtWork],
        failure: FedfuseError | None = None,
    ) -> None:
        """Start the trial's next run, or write down what came of it."""
        with trial.failing():
            if failure is not None and not trial.is_stopped:
                raise failure
            if (cell := trial.next_run()) is not None:
                check_findable_elsewhere(cell.experiment.config.foreign_code)
                cell.experiment.prepare(cell.folder, resume=True)
                done = runs.start(cell)
                self.listener(told_of(cell, "study_run_started", rounds=trial.rounds, done=done))
                at_work[cell] = trial
                return
        self._end(trial)

    def _end(self, trial: TrialAtWork) -> None:
        assert trial.outcome is not None
        self.ledger.ended(trial.number, trial.outcome)
        told = {"trial": trial.number, "values": dict(trial.values), "outcome": trial.outcome}
        self.listener({"event": "trial_ended", **told})
        ended = self.ledger.outcomes.values()
        if len(ended) >= HOPELESS and all(outcome.state == "failed" for outcome in ended):
            raise FedfuseError(f"the first {len(ended)} trials failed; the last one: {trial.outcome.reason}")


class TrialAtWork:
    """One trial: its runs seed after seed, until all are finished or one is stopped."""

    def __init__(self, course: Course, number: int, values: Values, known: Known) -> None:
        self.course, self.number, self.values = course, number, values
        self.outcome: Outcome | None = self._of_the_same(known)
        self.is_stopped = False
        self.rounds = 0
        self._earlier = [outcome for _, outcome in known if outcome is not None] if course.prune else []
        self._curves: list[Curve] = []
        self._curve: Curve = ()
        """Of the run that is at work."""
        self._judge = course.judge
        self._log = Path()
        self._seen = 0

    @contextmanager
    def failing(self) -> Iterator[None]:
        """What is wrong with a trial is its outcome; what is wrong with the surroundings ends the sweep."""
        try:
            yield
        except (MissingExtraError, RunFolderError, StopRun):
            raise
        except FedfuseError as error:
            self.outcome = Outcome("failed", curves=tuple(self._curves), reason=str(error))

    def next_run(self) -> Cell | None:
        """What is left to run; None if nothing is, and then there is an outcome."""
        while self.outcome is None:
            if len(self._curves) == len(self.course.seeds):
                self.outcome = Outcome.of(self._curves, self._judge, self.course.best_round)
                break
            cell = self._cell(self.course.seeds[len(self._curves)])
            is_finished = cell.is_finished
            history = load_run(cell.folder.path).history if is_finished else rounds_so_far(self._log)
            self._curve = curve_of(history, self._judge)
            if (cut := self._cut()) is not None:
                self.outcome = Outcome("pruned", curves=(*self._curves, cut))
            elif is_finished:
                self._curves.append(self._curve)
            else:
                return cell
        return None

    def stops(self, record: RoundRecord) -> bool:
        """Whether the run at work stops after this round."""
        before = tuple(point for point in self._curve if point[0] < record.round)
        self._curve = (*before, *curve_of([record], self._judge))
        self.is_stopped = self._pruning.stops(len(self._curves), self._curve)
        return self.is_stopped

    def stops_now(self, rounds: int) -> bool:
        """Whether the run at work, which another process plays and has finished so many rounds, shall be stopped."""
        if rounds == self._seen or self.is_stopped or not self._earlier:
            return False
        self._seen = rounds
        self._curve = curve_of(rounds_so_far(self._log), self._judge)
        self.is_stopped = self._cut() is not None
        return self.is_stopped

    def _cell(self, seed: int) -> Cell:
        config = self.course.space.config(self.values, seed)
        self._judge = replace(self.course.judge, ensemble=config.answers_as_ensemble)
        cell = Cell(
            Experiment(grouped(config, self.course.ledger.folder.name)),
            RunFolder(self.course.ledger.run_folder(self.number, seed)),
        )
        self.rounds, self._log, self._seen, self.is_stopped = config.federation.rounds, cell.folder.events, 0, False
        return cell

    def _cut(self) -> Curve | None:
        return self._pruning.cut(len(self._curves), self._curve)

    @property
    def _pruning(self) -> Pruning:
        return Pruning(self._judge, self.rounds, self._earlier)

    def _of_the_same(self, known: Known) -> Outcome | None:
        """What came of an earlier trial with the very same values: the same would come of this one."""
        same = (outcome for values, outcome in known if outcome is not None and values == self.values)
        return next((outcome for outcome in same if outcome.state != "pruned"), None)
