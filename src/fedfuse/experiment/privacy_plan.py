"""What a promise of privacy would cost, before anything is run: epsilon by round, and the noise that a budget needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.core.releases import AUTO
from fedfuse.experiment.assembly import build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.config.noise import noise_keys, with_noise
from fedfuse.experiment.promise import Promise
from fedfuse.experiment.run import Experiment, Given
from fedfuse.federation.events import EventLog
from fedfuse.privacy.account import told
from fedfuse.report.sheet import Sheet

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Of all rounds, after which epsilon is told, beside the first."""


@dataclass(frozen=True, repr=False)
class PrivacyPlan:
    """If all goes as planned."""

    config: ExperimentConfig
    """The experiment with all noise chosen."""
    clients: dict[int, float | None]
    """Epsilon of every client at the end; None: no bound."""
    by_round: dict[int, float | None]
    """Of the client that has given away most by then, after some of the rounds."""
    noise: dict[float, dict[str, float]]
    """By budget, what each key would be that says how much noise there is."""

    @property
    def epsilon(self) -> float | None:
        """Of the client that will have given away most."""
        return self.by_round[max(self.by_round)]

    def sheets(self) -> list[Sheet]:
        privacy = self.config.privacy
        assert privacy is not None, "planned only where something is promised"
        about = f"every {privacy.unit}, at delta {privacy.delta:g} ({privacy.accountant})"
        rounds = [((str(number),), (_in_words(value),)) for number, value in self.by_round.items()]
        sheets = [Sheet(f"epsilon of {about}", ("after round",), ("epsilon",), rounds)]
        if self.noise:
            keys = tuple(next(iter(self.noise.values())))
            found = [((f"{budget:g}",), tuple(f"{own[key]:g}" for key in keys)) for budget, own in self.noise.items()]
            sheets.append(Sheet("noise that a budget needs", ("epsilon",), keys, found))
        return sheets

    def __repr__(self) -> str:
        return "\n\n".join(sheet.text() for sheet in self.sheets())

    def _repr_html_(self) -> str:
        return "".join(sheet.html() for sheet in self.sheets()) + f"<p>{escape(self.config.label)}</p>"


def plan_privacy(
    experiment: Given, budgets: Sequence[float] = (), assignments: Sequence[str] = (), **values: Any
) -> PrivacyPlan:
    """What an experiment would give away, and how much noise it would need to stay within other budgets.

    The data is loaded, because sizes of clients matter; nothing is trained.
    """
    config = Experiment.load(experiment, assignments, **values).config
    if config.privacy is None:
        raise ConfigError("this experiment promises no privacy; say what is protected: privacy: {unit: example}")
    built = build(config, EventLog())
    built.federation.engine.close()
    promise = built.promise
    assert promise is not None, "the section is there"
    rounds = config.federation.rounds
    shown = sorted({1, *(max(1, round(share * rounds)) for share in SHARES)})
    return PrivacyPlan(
        promise.config,
        {client: told(epsilon) for client, epsilon in sorted(promise.epsilons(rounds).items())},
        {number: told(max(promise.epsilons(number).values())) for number in shown},
        {budget: _noise_for(promise, budget) for budget in budgets},
    )


def _noise_for(promise: Promise, budget: float) -> dict[str, float]:
    """What each key would be if it was left to fedfuse, with this budget."""
    assert promise.config.privacy is not None, "the section is there"
    keys = [key for key, _ in noise_keys(promise.config)]
    left = with_noise(promise.config, dict.fromkeys(keys, AUTO))
    privacy = promise.config.privacy.model_copy(update={"budget": budget})
    found = Promise.of(left.model_copy(update={"privacy": privacy}), promise.around)
    assert found is not None, "the section is there"
    return dict(noise_keys(found.config))


def _in_words(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else f"{epsilon:.4g}"
