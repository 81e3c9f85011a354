"""What is measured: experiments by what they differ in. A cell is one experiment; seeds are its repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedfuse.experiment.config import ExperimentConfig, Raw, merge, validate

SHARES = (0.0, 0.1, 0.2, 0.4)
"""Of the clients, those who attack."""
SUSPECTED = 0.2
"""The share that a defence is told to bear where nobody attacks."""

DATA: Mapping[str, Raw] = {
    "digits": {
        "data": {"name": "digits", "validation": 0.1, "public": 0.2},
        "training": {"epochs": 5, "batch_size": 32, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
        "federation": {"rounds": 10},
    },
    "mnist": {
        "data": {"name": "mnist", "train_limit": 7000, "test_limit": 2000, "validation": 500, "public": 1000},
        "training": {"epochs": 2, "batch_size": 32, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
        "federation": {"rounds": 10},
    },
    "usps": {
        "data": {"name": "usps", "train_limit": 5000, "validation": 400, "public": 800},
        "training": {"epochs": 3, "batch_size": 32, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
        "federation": {"rounds": 10},
    },
}
ONE_MODEL: Raw = {"mlp": {"arch": "mlp", "hidden": [64]}}
THREE_MODELS: Raw = {**ONE_MODEL, "deep": {"arch": "mlp", "hidden": [32, 32]}, "cnn": {"arch": "cnn1"}}
COMMON: Raw = {
    "evaluation": {"ensemble": False, "pictures": False, "every": 1000},
    "compute": {"device": "cpu", "threads": 1},
    "engine": {"workers": 1},
}
PARTITIONS: Mapping[str, Raw] = {
    "iid": {"kind": "iid"},
    "dirichlet 1": {"kind": "dirichlet", "alpha": 1.0, "min_examples": 10},
    "dirichlet 0.3": {"kind": "dirichlet", "alpha": 0.3, "min_examples": 10},
    "dirichlet 0.1": {"kind": "dirichlet", "alpha": 0.1, "min_examples": 10},
    "quantity": {"kind": "quantity", "alpha": 0.5, "min_examples": 5},
}
ATTACKS: Mapping[str, tuple[Raw, ...]] = {
    "sign flip": ({"kind": "sign_flip"},),
    "sign flip x 5": ({"kind": "sign_flip", "factor": 5.0},),
    "sign flip, last layer": ({"kind": "sign_flip", "factor": 2.0, "layers": "last"},),
    "scaled x 20": ({"kind": "scaled"},),
    "Gaussian": ({"kind": "gaussian"},),
    "label flip": ({"kind": "label_flip"},),
    "one class": ({"kind": "label_flip", "target": 0},),
    "backdoor": ({"kind": "backdoor"},),
    "a little is enough": ({"kind": "a_little_is_enough"},),
    "inner product": ({"kind": "inner_product"},),
    "min-max": ({"kind": "min_max"},),
    "mimic": ({"kind": "mimic"},),
    "liar, sign flip": ({"kind": "sign_flip"}, {"kind": "claims"}),
    "free rider": ({"kind": "free_rider"},),
    "loud": ({"kind": "loud"},),
    "sleeper": ({"kind": "sign_flip", "factor": 2.0, "begins": 5},),
    "on and off": ({"kind": "sign_flip", "factor": 2.0, "every": 2},),
}
NOBODY, GONE = "none", "refused"
REFUSED: Mapping[str, tuple[Raw, ...]] = {GONE: ({"kind": "benchmarks.attacks.refused:Refused"},)}
"""A client of which nothing counts, which leaves what the others have."""
KNOWING = ("a little is enough", "inner product", "min-max", "mimic")
ALONE: Mapping[str, tuple[Raw, ...]] = {name: parts for name, parts in ATTACKS.items() if name not in KNOWING}
"""Those that need not know the weights of others, of whom few may have the same architecture."""
FALSE_PREDICTIONS: Mapping[str, tuple[Raw, ...]] = {
    say: ({"kind": "predictions", "say": say},) for say in ("shifted", "constant", "reversed", "noise")
}
TAKEN: Raw = {"federation": {"claims": "taken", "moves": "taken"}}
DISTILLED: Raw = {"name": "feddf", "fuse": {"distiller": {"steps": 150, "batch_size": 64}}}
PREDICTED: Raw = {"name": "feded-w0", "fuse": {"distiller": {"epochs": 15, "batch_size": 32}}}

HOSTILE = "hostile"
"""Stands for the share that a defence is told to bear."""

DEFENCES: Mapping[str, Raw] = {
    "none (`taken`)": TAKEN,
    "bounds (default)": {},
    "`norm_clip`": {"method": {"screen": [{"kind": "norm_clip"}]}},
    "`norm_bound`": {"method": {"screen": [{"kind": "norm_bound", "times": 1.5}]}},
    "`krum`": {"method": {"screen": [{"kind": "krum", "hostile": HOSTILE}]}},
    "`multi_krum`": {"method": {"screen": [{"kind": "multi_krum", "hostile": HOSTILE}]}},
    "`drop_worst`": {"method": {"screen": [{"kind": "drop_worst", "chance_factor": 2.0}]}},
    "`median`": {"method": {"merge": {"kind": "median"}}},
    "`trimmed_mean`": {"method": {"merge": {"kind": "trimmed_mean", "hostile": HOSTILE}}},
    "`geometric_median`": {"method": {"merge": {"kind": "geometric_median"}}},
    "`centred_clipping`": {"method": {"merge": {"kind": "centred_clipping"}}},
    "`bulyan`": {"method": {"merge": {"kind": "bulyan", "hostile": HOSTILE}}},
    "`nearest_mixing`, `trimmed_mean`": {
        "method": {
            "merge": {
                "kind": "nearest_mixing",
                "hostile": HOSTILE,
                "then": {"kind": "trimmed_mean", "hostile": HOSTILE},
            }
        }
    },
    "`nearest_mixing`, `centred_clipping`": {
        "method": {"merge": {"kind": "nearest_mixing", "hostile": HOSTILE, "then": {"kind": "centred_clipping"}}}
    },
    "`bucketing`, `median`": {"method": {"merge": {"kind": "bucketing", "then": {"kind": "median"}}}},
    "`fltrust`": {"method": {"merge": {"kind": "fltrust", "training": "training"}}},
}
OF_TEACHERS: Mapping[str, Raw] = {
    "none (`taken`)": TAKEN,
    "bounds (default)": {},
    "`agreement`": {"method": {"scores": {"kind": "agreement", "epsilon": HOSTILE}}},
    "`median` of answers": {"method": {"scores": "median"}},
    "`trimmed_mean` of answers": {"method": {"scores": {"kind": "trimmed_mean", "hostile": HOSTILE}}},
    "`reliability`": {"method": {"scores": "reliability"}},
    "`multi_krum`": {"method": {"screen": [{"kind": "multi_krum", "hostile": HOSTILE}]}},
    "`multi_krum`, `agreement`": {
        "method": {
            "screen": [{"kind": "multi_krum", "hostile": HOSTILE}],
            "scores": {"kind": "agreement", "epsilon": HOSTILE},
        }
    },
    "`drop_worst`, `fltrust`, `validation`": {
        "method": {
            "screen": [{"kind": "norm_clip"}, {"kind": "drop_worst", "chance_factor": 3.0, "outlier_deviations": 0.5}],
            "merge": {"kind": "fltrust", "training": "training"},
            "scores": "validation",
        }
    },
}
OF_PREDICTIONS: Mapping[str, Raw] = {
    "none (`taken`)": TAKEN,
    "bounds (default)": {},
    "`agreement`": {"method": {"scores": {"kind": "agreement", "epsilon": HOSTILE}}},
    "`median`": {"method": {"scores": "median"}},
    "`trimmed_mean`": {"method": {"scores": {"kind": "trimmed_mean", "hostile": HOSTILE}}},
    "`reliability`": {"method": {"scores": "reliability"}},
}
BEARABLE = {"bulyan": 0.2}
"""What rules cannot bear more of, with twenty clients: they are told this where more attack."""


@dataclass(frozen=True)
class Cell:
    """One number of a table."""

    data: str
    partition: str
    family: str
    defence: str
    attack: str
    share: float

    def config(self, seed: int) -> ExperimentConfig:
        family = FAMILIES[self.family]
        raw = merge(merge(COMMON, DATA[self.data]), {"method": family.method, "seed": seed})
        raw["models"] = family.models
        raw["federation"] = {**raw["federation"], **family.federation}
        raw["partition"] = {**PARTITIONS[self.partition], "clients": family.clients}
        raw = merge(raw, _told(family.defences[self.defence], self.share or SUSPECTED, raw["training"]))
        if self.share:
            raw["attack"] = [{**one, "clients": self.share} for one in family.attacks[self.attack]]
        return validate(raw)


@dataclass(frozen=True)
class Family:
    """Defences of one method, beside each other."""

    title: str
    method: Raw
    clients: int
    defences: Mapping[str, Raw]
    attacks: Mapping[str, tuple[Raw, ...]]
    shares: tuple[float, ...]
    partitions: tuple[str, ...]
    models: Raw = field(default_factory=lambda: ONE_MODEL)
    federation: Raw = field(default_factory=dict)

    @property
    def is_by_default(self) -> bool:
        """Whether nothing but the defaults contains its one attacker."""
        return self.defences is BY_DEFAULT

    def cells(self, data: str, name: str) -> Iterator[Cell]:
        for partition in self.partitions:
            for defence in self.defences:
                yield Cell(data, partition, name, defence, NOBODY, 0.0)
                for attack in self.attacks:
                    for share in self.shares:
                        yield Cell(data, partition, name, defence, attack, share)


BY_DEFAULT = {name: DEFENCES[name] for name in ("none (`taken`)", "bounds (default)")}
EVERYWHERE = ("iid", "dirichlet 1", "dirichlet 0.3", "dirichlet 0.1")
FAMILIES: Mapping[str, Family] = {
    "one-fedavg": Family(
        "FedAvg, one client of ten attacks",
        {"name": "fedavg"}, 10, BY_DEFAULT, {**REFUSED, **ATTACKS}, (0.1,), EVERYWHERE,
    ),
    "few-fedavg": Family(
        "FedAvg of three clients a round, twice as many rounds, one client of ten attacks",
        {"name": "fedavg"}, 10, BY_DEFAULT, {**REFUSED, **ATTACKS}, (0.1,), EVERYWHERE,
        federation={"participation": 0.3, "rounds": 20},
    ),
    "one-feddf": Family(
        "FedDF, one client of ten attacks", DISTILLED, 10, BY_DEFAULT, {**REFUSED, **ATTACKS}, (0.1,), EVERYWHERE
    ),
    "one-mixed": Family(
        "FedDF of three architectures, one client of ten attacks",
        DISTILLED, 10, BY_DEFAULT, {**REFUSED, **ALONE}, (0.1,), EVERYWHERE, THREE_MODELS,
    ),
    "one-predictions": Family(
        "One-shot predictions (FedED-w0), one client of ten attacks",
        PREDICTED, 10, BY_DEFAULT, {**REFUSED, **FALSE_PREDICTIONS}, (0.1,), EVERYWHERE,
    ),
    "fedavg": Family(
        "FedAvg with defences", {"name": "fedavg"}, 20, DEFENCES, ATTACKS, SHARES[1:], ("iid", "dirichlet 1")
    ),
    "feddf": Family(
        "FedDF with defences", DISTILLED, 20, OF_TEACHERS, ATTACKS, SHARES[1:], ("iid", "dirichlet 1")
    ),
    "predictions": Family(
        "One-shot predictions (FedED-w0) with defences",
        PREDICTED, 20, OF_PREDICTIONS, FALSE_PREDICTIONS, SHARES[1:], ("iid", "dirichlet 1"),
    ),
}  # fmt: skip


def cells(data: str, families: tuple[str, ...]) -> list[Cell]:
    """All that the tables of a dataset need."""
    return [cell for name in families for cell in FAMILIES[name].cells(data, name)]


def _told(changes: Any, share: float, training: Raw) -> Any:
    """A defence that is told what to bear, and how clients train where it trains like them."""
    if isinstance(changes, Mapping):
        own = min(share, BEARABLE.get(str(changes.get("kind")), share))
        return {key: _told(value, own, training) for key, value in changes.items()}
    if isinstance(changes, list):
        return [_told(one, share, training) for one in changes]
    return share if changes == HOSTILE else training if changes == "training" else changes
