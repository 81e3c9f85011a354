"""``fedfuse.audit``: how well somebody who has what left the parties can tell which examples they trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.core.round_files import rounds_in
from fedfuse.core.weights import Weights
from fedfuse.data.partition import Assignment
from fedfuse.experiment.assembly import assigned, build, load_examples
from fedfuse.experiment.auditing.left import ANSWERS, LABELS, MODEL, Examples, Left, Witness, of_kept, scores_of
from fedfuse.experiment.auditing.shadows import Shadows, Tell, check_number, train_shadows
from fedfuse.experiment.replay import play_last_round
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.stored import load_run
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.kept_clients import client_file
from fedfuse.models.saved import load_model
from fedfuse.privacy.membership import (
    RATES,
    Interval,
    Measured,
    class_weights,
    mean,
    measure,
    most_that_epsilon_allows,
    without_outside,
)
from fedfuse.report.sheet import Sheet

ATTACKS = {MODEL: "loss", ANSWERS: "nearest answers", LABELS: "nearest labels"}
LIRA = {MODEL: "LiRA", ANSWERS: "nearest answers, LiRA", LABELS: "nearest labels, LiRA"}
ROUNDS = "loss, all rounds"
FEWEST = 10
"""Members that a party must have, and others of their classes, for its numbers to say anything."""


@dataclass(frozen=True)
class Finding:
    """How well one attack on one thing that left tells members from others."""

    what: str
    attack: str
    members: int
    non_members: int
    auc: Interval
    tpr: Mapping[float, Interval | None]
    """By rate of false positives; None where there are too few non-members to measure it."""
    epsilon: float | None = None
    """What is promised about it; None: nothing."""
    allowed: float | None = None
    """The true positives at 1 % false ones that no attack exceeds if the promise is kept."""

    @property
    def breaks_promise(self) -> bool:
        """Whether even the lower end of what was measured is above what is promised."""
        found = self.tpr[RATES[0]]
        return self.allowed is not None and found is not None and found.low > self.allowed

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tpr": {str(rate): asdict(one) if one else None for rate, one in self.tpr.items()}}


@dataclass(frozen=True, repr=False)
class Audit:
    """What was found, most telling things first as a table; ``clients`` has those of every single client."""

    run: Path
    findings: tuple[Finding, ...]
    clients: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def sheet(self) -> Sheet:
        promised = any(one.epsilon is not None for one in self.findings)
        rows = [((one.what, one.attack), _numbers(one, promised)) for one in self.findings]
        headings = ("AUC", "TPR at\n1 % FPR", "TPR at\n0.1 % FPR", *(("epsilon", "it allows\nat most") * promised))
        return Sheet(f"who was in the training data? {self.run}", ("what left", "attack"), headings, rows)

    def as_json(self) -> dict[str, Any]:
        found, clients = ([one.as_json() for one in several] for several in (self.findings, self.clients))
        return {"run": str(self.run), "findings": found, "clients": clients, "notes": list(self.notes)}

    def __repr__(self) -> str:
        return "\n".join([self.sheet().text(), "", *self.notes])

    def _repr_html_(self) -> str:
        return self.sheet().html()


def audit(folder: str | Path, shadows: int = 0, tell: Tell | None = None) -> Audit:
    """Attack what left the parties of a finished run, to see what it tells about their examples.

    The last round is played again, to have what clients sent. ``shadows`` federations are trained for LiRA, each as
    long as the run was; what they said is kept in the run's folder. Members are the clients' training examples, others
    are the test examples, which must be from the same population.

    >>> run = fedfuse.run("digits", method="fedavg", federation={"rounds": 1}, out="runs/audited")
    >>> fedfuse.audit(run.folder.path).findings[0].what
    'final model mlp'
    """
    check_number(shadows)
    run, config = RunFolder(Path(folder)), Experiment.load(folder).config
    if not run.is_complete():
        raise RunFolderError(f"{run.path} holds no finished run; an audit is of what a whole run gave away")
    loaded = load_examples(config, EventLog())
    built, assignment = build(config, EventLog(), loaded=loaded), assigned(config, loaded)
    witness = Witness(built.federation.bank, built.interface)
    snapshot = play_last_round(run, config.of_checkpoints, replace(built.federation, keeping=witness))
    examples = Examples(built)
    scores = scores_of(built, examples, snapshot, witness.seen)
    if not scores:
        raise ConfigError(f"method {config.method.called} sends neither models nor answers; there is nothing to attack")
    result = load_run(folder)
    heard = sorted({client for record in result.history for client in record.clients})
    judge = _Judge(examples, assignment, heard, result.summary.get("privacy"), config.recipe.pooled)
    singles = [judge.found(left, ATTACKS[left.what], score) for left, score in scores.items()]
    singles += [judge.found(left, ROUNDS, score) for left, score in _kept(run, examples)]
    if shadows:
        trained = train_shadows(built, loaded, assignment, run.path, shadows, tell)
        singles += [judge.found(left, LIRA[left.what], one) for left, one in _lira(scores, trained)]
    found = [one for one in singles if one is not None]
    changed = _changed(result.summary, {name: one.sha256() for name, one in snapshot.server.weights.items()})
    return _gathered(run.path, found, (*changed, *judge.notes(len(singles) - len(found))))


def _kept(run: RunFolder, examples: Examples) -> Iterator[tuple[Left, NDArray[np.float64]]]:
    """Clients whose models of several rounds were kept."""
    rounds, prototypes = rounds_in(run.clients, ""), examples.built.federation.prototypes
    carries = examples.built.config.recipe.protocol.carries
    for client in range(examples.built.federation.clients) if len(rounds) > 1 and carries == "weights" else ():
        files = {number: client_file(run.path, number, client) for number in rounds}
        models = {
            number: (prototypes[client], Weights.of(load_model(file)))
            for number, file in files.items()
            if file.exists()
        }
        if len(models) > 1:
            yield Left(MODEL, client), of_kept(examples, models)


def _lira(scores: Mapping[Left, NDArray[np.float64]], trained: Shadows) -> Iterator[tuple[Left, NDArray[np.float64]]]:
    for left, score in scores.items():
        if left.key in trained.scores:
            yield left, without_outside(score, trained.inside, trained.scores[left.key])


@dataclass(frozen=True)
class _Single:
    """What one attack on one thing came to."""

    left: Left
    attack: str
    measured: Measured
    epsilon: float | None
    allowed: float | None

    def finding(self, what: str) -> Finding:
        return _finding(what, self.attack, self.measured, self.epsilon, self.allowed)


@dataclass(frozen=True)
class _Judge:
    """Who is a member of what, and what was promised."""

    examples: Examples
    assignment: Assignment
    heard: list[int]
    """Clients that took part in some round."""
    privacy: Mapping[str, Any] | None
    pooled: bool

    def found(self, left: Left, attack: str, score: NDArray[np.float64]) -> _Single | None:
        """None if there are too few to say anything."""
        known, labels = ~np.isnan(score), self.examples.labels.numpy()
        tests = np.arange(self.examples.train, len(self.examples))
        members, others = (where[known[where]] for where in (self._members(left), tests))
        members = members[np.isin(labels[members], labels[others])]
        weights = class_weights(labels[members], labels[others])
        if len(members) < FEWEST or (weights > 0).sum() < FEWEST:
            return None
        measured = measure(score[members], score[others], weights, seed=left.client + 1)
        epsilon = self._epsilon(left)
        return _Single(left, attack, measured, epsilon, self._allowed(epsilon))

    def notes(self, left_out: int) -> list[str]:
        tests = f"{self.examples.test:,} test examples, weighted to the same shares of classes"
        about = f"members: the parties' training examples; others: {tests}"
        few = f"{left_out} of the attacks are left out, because a party has fewer than {FEWEST} examples to tell apart"
        return [about, *([few] if left_out else [])]

    def _members(self, left: Left) -> NDArray[np.int64]:
        if left.client >= 0 and not self.pooled:
            return np.sort(self.assignment[left.client])
        whose = range(len(self.assignment)) if self.pooled else self.heard
        return np.sort(np.concatenate([self.assignment[client] for client in whose]))

    def _epsilon(self, left: Left) -> float | None:
        """Towards who sees it: single messages are seen by the server, final models by everybody."""
        if self.privacy is None:
            return None
        against = self.privacy["against"]
        seen = against.get("everybody") or against["others" if left.client < 0 else "server"]
        epsilon = seen["epsilon"] if left.client < 0 else seen["clients"].get(str(left.client), seen["epsilon"])
        return None if epsilon is None else float(epsilon)

    def _allowed(self, epsilon: float | None) -> float | None:
        """Attacks ask about one example, whatever the promise is about."""
        if self.privacy is None or epsilon is None:
            return None
        by_client = self.privacy["unit"] == "client"
        return most_that_epsilon_allows(RATES[0], epsilon, self.privacy["delta"], by_client)


def _gathered(run: Path, singles: list[_Single], notes: tuple[str, ...]) -> Audit:
    """The server's models, then of each attack on clients their mean, and the one that gave away most."""
    findings = [one.finding(f"final model {one.left.prototype}") for one in singles if one.left.client < 0]
    of_clients = [one for one in singles if one.left.client >= 0]
    means, highest = list[Finding](), list[Finding]()
    for attack in dict.fromkeys(one.attack for one in of_clients):
        own = [one for one in of_clients if one.attack == attack]
        worst = max(own, key=lambda one: one.measured.value[0])
        epsilon, allowed = (max((v for v in values if v is not None), default=None) for values in _promises(own))
        means.append(_finding(f"mean of {len(own)} clients", attack, mean([o.measured for o in own]), epsilon, allowed))
        highest.append(worst.finding(f"client {worst.left.client}, the highest"))
    findings += [*means, *highest]
    broken = [f"{one.what}, {one.attack}: more is told than epsilon allows" for one in findings if one.breaks_promise]
    clients = tuple(one.finding(f"client {one.left.client}") for one in of_clients)
    return Audit(run, tuple(findings), clients, (*notes, *broken))


def _promises(singles: list[_Single]) -> tuple[list[float | None], list[float | None]]:
    return [one.epsilon for one in singles], [one.allowed for one in singles]


def _finding(what: str, attack: str, measured: Measured, epsilon: float | None, allowed: float | None) -> Finding:
    tpr = {rate: measured.tpr(rate) for rate in RATES}
    return Finding(what, attack, measured.members, measured.non_members, measured.auc, tpr, epsilon, allowed)


def _numbers(one: Finding, promised: bool) -> tuple[str, ...]:
    rates = [f"{found.value:.3f}" if found else "-" for found in one.tpr.values()]
    first = one.tpr[RATES[0]]
    rates[0] = str(first) if first else "-"
    allowed = (f"{one.epsilon:.3g}" if one.epsilon is not None else "∞", f"{one.allowed:.3f}" if one.allowed else "-")
    return (str(one.auc), *rates, *(allowed * promised))


def _changed(summary: Mapping[str, Any], played: Mapping[str, str]) -> list[str]:
    """Other processors and versions of torch may give other bits."""
    same = all(summary["prototypes"].get(name, {}).get("weights_sha256") == digest for name, digest in played.items())
    return (
        []
        if same
        else ["here the last round does not give the run's own bits; what is attacked is as close as it gets"]
    )
