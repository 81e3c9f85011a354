"""Keys of version 0.1: every one gives the method that it gave then, with one note each that says what to write now."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import ExperimentConfig, assign, merge, validate
from fedfuse.experiment.config.older import OlderKeyWarning
from fedfuse.methods import METHODS

SMALL: dict[str, Any] = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}, "bit": {"arch": "mlp"}}}
Raw = dict[str, Any]


def heard(raw: Mapping[str, Any], show: Literal["always", "default"] = "always") -> tuple[ExperimentConfig, list[str]]:
    """A configuration, and the notes about older keys that came with it; by default Python shows equal ones once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(show)
        config = validate(raw)
    return config, [str(one.message) for one in caught if issubclass(one.category, OlderKeyWarning)]


def of(name: str, **changes: Any) -> Raw:
    return {**SMALL, "method": {"name": name, **changes}}


def assert_same(old: Raw, new: Raw, notes: int = 1) -> None:
    config, told = heard(old)
    expected, silence = heard(new)
    assert config.recipe == expected.recipe
    assert config == expected
    assert config.sha256() == expected.sha256()
    assert len(told) == notes, told
    assert all(note.endswith("the old key is still read") for note in told)
    assert silence == []


ADAM = {"kind": "adam", "learning_rate": 0.001}
STUDENT = {"kind": "prediction_distillation"}
TESTIMONY = {"weighting": "testimony"}
SPELLINGS: dict[str, tuple[str, Raw, Raw]] = {
    "weights": ("fedavg", {"exchange": {"kind": "weights"}}, {"protocol": {"kind": "weights"}}),
    "half": ("fedavg", {"exchange": {"kind": "half"}}, {"upload": [{"kind": "half"}]}),
    "bfloat16": (
        "feddf",
        {"exchange": {"kind": "half", "type": "bfloat16"}},
        {"upload": [{"kind": "half", "type": "bfloat16"}]},
    ),
    "one_bit": ("fedavg", {"exchange": {"kind": "one_bit"}}, {"upload": [{"kind": "one_bit"}]}),
    "one_bit of some": (
        "fedavg",
        {"exchange": {"kind": "one_bit", "prototypes": ["bit"]}},
        {"upload": [{"kind": "one_bit", "prototypes": ["bit"]}]},
    ),
    "one_bit of some, without its kind": (
        "feddf-one-bit",
        {"exchange": {"prototypes": ["bit"]}},
        {"upload": [{"kind": "one_bit", "prototypes": ["bit"]}]},
    ),
    "scored_weights": (
        "feddf",
        {"exchange": {"kind": "scored_weights"}, "fuse": TESTIMONY},
        {"scores": {"kind": "certainty"}},
    ),
    "scored_weights with weighting": (
        "feddf",
        {
            "exchange": {
                "kind": "scored_weights",
                "weighting": {"kind": "certainty", "negatives": 0.3, "delta": 0.1},
            },
            "fuse": TESTIMONY,
        },
        {"scores": {"kind": "certainty", "negatives": 0.3, "delta": 0.1}},
    ),
    "scored_weights with another weighting": (
        "feddf",
        {"exchange": {"kind": "scored_weights", "weighting": {"kind": "labels"}}, "fuse": TESTIMONY},
        {"scores": {"kind": "labels"}},
    ),
    "scores of fedaux, without any kind": (
        "fedaux",
        {"exchange": {"weighting": {"epsilon": 0.1}}},
        {"scores": {"epsilon": 0.1}},
    ),
    "pooled": ("fedavg", {"exchange": {"kind": "pooled"}}, {"pooled": True}),
    "layers": (
        "fedavg",
        {"exchange": {"kind": "layers"}, "merge": {"kind": "matched"}},
        {"protocol": {"kind": "layers"}, "merge": {"kind": "matched"}},
    ),
    "nothing": ("fedavg", {"exchange": {"kind": "nothing"}}, {"protocol": {"kind": "nothing"}}),
    "predictions": (
        "fedavg",
        {"exchange": {"kind": "predictions"}, "fuse": STUDENT},
        {"protocol": {"kind": "predictions"}, "scores": {"kind": "examples"}, "fuse": STUDENT},
    ),
    "predictions with everything": (
        "fedavg",
        {
            "exchange": {
                "kind": "predictions",
                "weighting": {"kind": "reconstruction", "epochs": 2},
                "output": "probabilities",
                "inputs": 100,
                "temperature": 0.1,
                "digest": {"of": "student", "loss": "mse", "keep": "digested", "optimizer": ADAM},
                "bits_up": 2,
                "bits_down": 4,
            },
            "fuse": STUDENT,
        },
        {
            "protocol": {
                "kind": "predictions",
                "output": "probabilities",
                "inputs": 100,
                "temperature": 0.1,
                "distillation": {"of": "student", "loss": "mse", "keep": "distilled", "optimizer": ADAM},
                "bits_down": 4,
            },
            "scores": {"kind": "reconstruction", "epochs": 2},
            "upload": [{"kind": "soft_labels", "bits": 2}],
            "fuse": STUDENT,
        },
    ),
    "weighting without a kind": (
        "feded-w2",
        {"exchange": {"weighting": {"epochs": 1}}},
        {"scores": {"epochs": 1}},
    ),
    "another weighting without the exchange's kind": (
        "feded-w2",
        {"exchange": {"weighting": {"kind": "labels"}}},
        {"scores": {"kind": "labels"}},
    ),
    "digest without a kind": (
        "cfd",
        {"exchange": {"digest": {"epochs": 1, "keep": "trained"}}},
        {"protocol": {"distillation": {"epochs": 1, "keep": "trained"}}},
    ),
    "no digest": ("cronus", {"exchange": {"digest": None}}, {"protocol": {"distillation": None}}),
    "inputs without a kind": ("fedmd", {"exchange": {"inputs": 5000}}, {"protocol": {"inputs": 5000}}),
    "bits_up without a kind": (
        "cfd",
        {"exchange": {"bits_up": 3}},
        {"upload": [{"kind": "soft_labels", "bits": 3}]},
    ),
    "no bits_up": ("cfd", {"exchange": {"bits_up": None}}, {"upload": []}),
    "fuse.weighting uniform": ("feddf", {"fuse": {"weighting": "uniform"}}, {"scores": "uniform"}),
    "fuse.weighting examples": ("feddf", {"fuse": {"weighting": "examples"}}, {"scores": {"kind": "examples"}}),
    "fuse.weighting validation": (
        "1-ensemble",
        {"fuse": {"weighting": "validation", "target": "mean_logits"}},
        {"scores": "validation", "fuse": {"target": "mean_logits"}},
    ),
    "fuse.weighting testimony": ("fedaux", {"fuse": {"weighting": "testimony"}}, {}),
}


def number_of_old_keys(changes: Raw) -> int:
    return ("exchange" in changes) + ("weighting" in changes.get("fuse", {}))


@pytest.mark.parametrize("name", SPELLINGS)
def test_old_and_new_spelling_are_one_experiment(name: str) -> None:
    method, old, new = SPELLINGS[name]
    assert_same(of(method, **old), of(method, **new), number_of_old_keys(old))


@pytest.mark.parametrize("name", SPELLINGS)
def test_also_in_the_section_methods(name: str) -> None:
    method, old, new = SPELLINGS[name]
    raws = ({**SMALL, "method": method, "methods": {method: changes}} for changes in (old, new))
    (config, told), (expected, _) = (heard(raw, "default") for raw in raws)
    assert config.recipe == expected.recipe
    assert len(told) == number_of_old_keys(old)


FROM_THE_START: dict[str, tuple[Raw, Raw]] = {
    "the same kind again keeps the method's weighting": (
        of("cronus", exchange={"kind": "predictions", "inputs": 50}),
        of("cronus", protocol={"inputs": 50}),
    ),
    "the same kind again keeps the autoencoders": (of("feded-w2", exchange={"kind": "predictions"}), of("feded-w2")),
    "full weights in the place of one bit": (
        of("feddf-one-bit", exchange={"kind": "weights"}),
        of("feddf-one-bit", upload=[]),
    ),
    "half precision in the place of one bit": (
        of("feddf-one-bit", exchange={"kind": "half"}),
        of("feddf-one-bit", upload=[{"kind": "half"}]),
    ),
    "a federation in the place of the bound": (
        of("centralised", exchange={"kind": "weights"}),
        of("centralised", pooled=False),
    ),
    "nothing in the place of predictions": (
        of("feded-w2", exchange={"kind": "nothing"}, fuse={"kind": "none"}),
        of("feded-w2", protocol={"kind": "nothing"}, scores="uniform", fuse={"kind": "none"}),
    ),
    "nothing in the place of few bits": (
        of("cfd", exchange={"kind": "nothing"}, fuse={"kind": "none"}),
        of("cfd", protocol={"kind": "nothing"}, upload=[], fuse={"kind": "none"}),
    ),
    "weights in the place of predictions, and a fusion of models": (
        of("feded-w2", exchange={"kind": "weights"}, fuse={"kind": "ensemble_distillation"}),
        of("feded-w2", protocol={"kind": "weights"}, scores="uniform", fuse={"kind": "ensemble_distillation"}),
    ),
}
"""An exchange was one part: another kind of it took all of the former's keys with it, the same kind none."""


@pytest.mark.parametrize("name", FROM_THE_START)
def test_an_exchange_replaces_what_it_replaced(name: str) -> None:
    assert_same(*FROM_THE_START[name])


class TestANewKeyWins:
    def test_over_a_weighting(self) -> None:
        old = of("feded-w2", exchange={"weighting": {"kind": "labels"}}, scores={"kind": "examples"})
        assert_same(old, of("feded-w2", scores={"kind": "examples"}))

    def test_over_an_upload(self) -> None:
        old = of("fedavg", exchange={"kind": "half"}, upload=[{"kind": "clip", "norm": 1.0}])
        assert_same(old, of("fedavg", upload=[{"kind": "clip", "norm": 1.0}]))

    def test_over_a_protocol(self) -> None:
        old = of("fedmd", exchange={"inputs": 10}, protocol={"inputs": 20})
        assert_same(old, of("fedmd", protocol={"inputs": 20}))

    def test_over_fuse_weighting(self) -> None:
        old = of("feddf", fuse={"weighting": "validation"}, scores="entropy")
        assert_same(old, of("feddf", scores="entropy"))


def test_assignments_and_keywords_are_read_too() -> None:
    new = of("fedavg", upload=[{"kind": "half", "type": "bfloat16"}])
    plain = {**SMALL, "method": "fedavg"}
    assert_same(assign(plain, ["method.exchange.kind=half", "method.exchange.type=bfloat16"]), new)
    assert_same(merge(plain, {"method": {"exchange": {"kind": "half", "type": "bfloat16"}}}), new)
    assert_same(
        assign({**SMALL, "method": "feddf"}, ["method.fuse.weighting=examples"]), of("feddf", scores="examples")
    )


def test_the_note_names_the_new_keys() -> None:
    _, told = heard(of("cfd", exchange={"kind": "predictions", "bits_up": 2, "weighting": {"kind": "examples"}}))
    assert len(told) == 1
    assert told[0].startswith("method.exchange is now ")
    assert all(f"method.{key}" in told[0] for key in ("protocol", "scores", "upload"))
    _, told = heard(of("feddf", fuse={"weighting": "examples"}))
    assert told == ["method.fuse.weighting is now method.scores; the old key is still read"]


def test_what_was_wrong_then_is_wrong_now() -> None:
    with pytest.warns(OlderKeyWarning), pytest.raises(ConfigError, match="fuse ensemble_distillation needs clients'"):
        validate(of("feddf", exchange={"kind": "nothing"}))


ADAM_THEN = {
    "kind": "adam", "learning_rate": 0.001, "weight_decay": 0.0, "decay_norms": True, "decay_biases": True
}  # fmt: skip


def predictions(**changes: Any) -> Raw:
    plain = {"output": "probabilities", "inputs": None, "temperature": None, "digest": None}
    return {"kind": "predictions", **plain, "bits_up": None, "bits_down": None, **changes}


def digest(**changes: Any) -> Raw:
    plain = {"of": "consensus", "when": "before", "loss": "kl", "epochs": 1, "batch_size": 256}
    return {**plain, "optimizer": ADAM_THEN, "keep": "trained", **changes}


WRITTEN: dict[str, Raw] = {
    "fedma": {"exchange": {"kind": "layers"}},
    "feddf-one-bit": {"exchange": {"kind": "one_bit", "prototypes": None}, "fuse": {"weighting": "uniform"}},
    "feded-w0": {"exchange": predictions(weighting={"kind": "examples"})},
    "feded-w1": {"exchange": predictions(weighting={"kind": "labels"})},
    "feded-w2": {
        "exchange": predictions(
            weighting={
                "kind": "reconstruction", "exponent": 6.0, "epochs": 30, "learning_rate": 0.001, "weight_decay": 1e-05,
                "batch_size": 64, "scaled": False,
            }
        )
    },
    "fedaux": {
        "exchange": {
            "kind": "scored_weights",
            "weighting": {
                "kind": "certainty", "negatives": 0.2, "regularisation": 0.01, "epsilon": None, "delta": 1e-05,
            },
        },
        "fuse": {"weighting": "testimony"},
    },
    "fd": {"exchange": {"kind": "nothing"}},
    "local-only": {"exchange": {"kind": "nothing"}},
    "centralised": {"exchange": {"kind": "pooled"}},
    "fedmd": {"exchange": predictions(weighting={"kind": "uniform"}, output="logits", digest=digest(loss="mae"))},
    "ds-fl": {"exchange": predictions(weighting={"kind": "uniform"}, temperature=0.1, digest=digest())},
    "cronus": {
        "exchange": predictions(
            weighting={"kind": "agreement", "epsilon": 0.2}, digest=digest(when="along", batch_size=64)
        )
    },
    "cfd": {
        "exchange": predictions(
            weighting={"kind": "uniform"},
            digest=digest(of="student", epochs=5, keep="digested"),
            bits_up=1,
            bits_down=8,
        )
    },
}  # fmt: skip
"""What version 0.1 wrote into config.yaml, beside what it writes now; other methods had plain weights."""
FUSED = ("feddf", "feddf-as-coded", "fedbe", "fedbe-as-coded", "v-distillation", "1-ensemble")


def written(name: str) -> Raw:
    """The exchange and the weighting of the ensemble that a run of version 0.1 wrote down."""
    fuse = {"fuse": {"weighting": "uniform"}} if name in FUSED else {}
    return WRITTEN.get(name, {"exchange": {"kind": "weights"}, **fuse})


@pytest.mark.parametrize("name", METHODS)
def test_the_file_of_an_older_run_is_that_of_a_new_one(name: str) -> None:
    """Every method with its exchange written out in full, on top of itself and of FedAvg."""
    recipe = METHODS[name].recipe.model_dump(mode="json")
    others = {part: recipe[part] for part in ("start", "local", "screen", "merge", "fuse")}
    old = written(name)
    for base in (name, "fedavg"):
        fuse = {"fuse": {**others["fuse"], **old.get("fuse", {})}}
        config, told = heard(of(base, **{**others, **old, **fuse}))
        method = config.method.model_dump(mode="json")
        assert {part: method[part] for part in recipe} == recipe
        assert len(told) == len(old)
