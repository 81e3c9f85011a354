"""What cannot hold is refused before round 1, in one sentence that says what would be right."""

from __future__ import annotations

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.assembly import build
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.privacy import refusals
from tests.helpers import TinyNorm, tiny_config, tiny_method

UNIFORM = {"kind": "mean", "weighting": "uniform"}
CLIP, NOISE = {"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 1.0}
OWN = [CLIP, NOISE]
SHARED = [CLIP, {**NOISE, "shared": True}]
DP_SGD = {"epochs": 1, "batch_size": 8, "privacy": {"norm": 1.0, "multiplier": 1.0}}
CLIENT, EXAMPLE = {"unit": "client"}, {"unit": "example"}
STATISTICS = {"kind": "statistics", "norm": 1.0, "multiplier": 1.0}
COUNTS = {"kind": "statistics", "multiplier": 1.0}
TAKEN = {"rounds": 2, "claims": "taken", "moves": "taken"}


def built(method, **sections):
    result = build(tiny_config(method, **sections), EventLog())
    result.federation.engine.close()
    return result


def refusal(method, **sections):
    with pytest.raises(ConfigError) as caught:
        built(method, **sections)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def fedavg(**parts):
    return tiny_method("fedavg", **{"merge": UNIFORM, **parts})


REFUSED = {
    "weights without noise, clients": (
        fedavg(),
        {"privacy": CLIENT},
        "no noise that protects all of a client's data; set method.upload",
    ),
    "weights without noise, examples": (fedavg(), {"privacy": EXAMPLE}, "nothing bounds what an example adds"),
    "DP-SGD for clients": (
        fedavg(),
        {"privacy": CLIENT, "training": DP_SGD},
        "training.privacy protects single examples alone",
    ),
    "a mean by examples": (
        fedavg(upload=OWN, merge={"kind": "mean"}),
        {"privacy": CLIENT},
        "merge mean weighs clients by how many examples they have",
    ),
    "teachers by examples": (
        tiny_method("feddf", merge=UNIFORM, upload=OWN, scores="examples"),
        {"privacy": CLIENT},
        "scores examples weighs clients",
    ),
    "BatchNorm with DP-SGD": (
        tiny_method("fedavg"),
        {
            "privacy": EXAMPLE,
            "training": DP_SGD,
            "models": {"n": {"arch": "resnet8", "width": 4}},
            "data": {"name": "digits", "train_limit": 60, "test_limit": 40},
        },
        "the BatchNorm of model 'n' mixes the examples",
    ),
    "an objective that looks at examples": (
        tiny_method("feddistill-plus"),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "local label_logits looks at examples elsewhere",
    ),
    "a loss that decides": (
        tiny_method("fedavg"),
        {"privacy": EXAMPLE, "training": {**DP_SGD, "stop_above": 9.0}},
        "training.stop_above lets a client's loss",
    ),
    "an order that is not drawn": (
        tiny_method("fedavg"),
        {"privacy": EXAMPLE, "training": {**DP_SGD, "shuffle": False}},
        "training.shuffle is false",
    ),
    "label counts, examples": (
        tiny_method("feded-w1"),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "method.scores labels sends something that is made of a client's examples beside the payload; add {kind: "
        "statistics, multiplier",
    ),
    "label counts of FedMA": (
        tiny_method("fedma"),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "method.protocol layers sends something",
    ),
    "label counts of FedGen, clients": (
        tiny_method("fedgen", merge=UNIFORM, upload=OWN),
        {"privacy": CLIENT},
        "method.local generative sends something that is made of a client's examples beside the payload; add {kind: "
        "statistics, norm",
    ),
    "counts by one example's measure, clients": (
        tiny_method("fedgen", merge=UNIFORM, upload=[*OWN, COUNTS]),
        {"privacy": CLIENT},
        "one example is no measure of it",
    ),
    "control variates, clients": (
        tiny_method("scaffold", upload=OWN),
        {"privacy": CLIENT},
        "method.local control_variates sends something",
    ),
    "errors of autoencoders": (
        tiny_method("feded-w2", upload=[COUNTS]),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "nobody knows how far one example moves it",
    ),
    "certainty without noise": (
        tiny_method("fedaux"),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "method.scores certainty sends something",
    ),
    "certainty on a scale that tells something": (
        tiny_method("fedaux", scores={"kind": "certainty", "epsilon": 0.5}),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "method.scores certainty sends something",
    ),
    "layers of changing widths, clients": (
        tiny_method("fedma"),
        {"privacy": CLIENT},
        "sends layers of widths that change, which no link can clip",
    ),
    "shared noise and a fusion of models": (
        tiny_method("feddf", merge=UNIFORM, upload=SHARED),
        {"privacy": CLIENT},
        "fuse ensemble_distillation asks single models",
    ),
    "shared noise and a screen": (
        fedavg(upload=SHARED, screen=[{"kind": "drop_worst"}]),
        {"privacy": CLIENT},
        "screen drop_worst looks at single updates",
    ),
    "shared noise and a merge of single models": (
        fedavg(upload=SHARED, merge={"kind": "ties", "weighting": "uniform"}),
        {"privacy": CLIENT},
        "merge ties looks at single updates",
    ),
    "shared noise and robust predictions": (
        tiny_method("cronus", upload=SHARED),
        {"privacy": CLIENT},
        "some clients' predictions count without others'",
    ),
    "a deviation whose norm is looked for": (
        fedavg(upload=[{**CLIP, "quantile": 0.5}, {"kind": "noise", "deviation": 1.0}]),
        {"privacy": CLIENT},
        "so that nobody knows what it is worth; give a multiplier",
    ),
    "a clip that looks for its norm before another": (
        fedavg(upload=[{**CLIP, "quantile": 0.5}, *OWN]),
        {"privacy": CLIENT},
        "method.upload[0] clip says something aside about an update that has no noise yet",
    ),
    "a look for the norm without noise": (
        fedavg(upload=[{**CLIP, "quantile": 0.5, "bit_deviation": 0.0}, NOISE]),
        {"privacy": CLIENT},
        "method.upload[0] clip says without noise whether an update is within its norm",
    ),
    "label counts beside control variates": (
        tiny_method("feddf", local={"kind": "control_variates"}, scores="labels", upload=[COUNTS]),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "control_variates sends something beside what labels does, and nobody knows how far one example moves it",
    ),
    "several teachers beside DP-SGD": (
        tiny_method("feded-w0", protocol={"kind": "votes", "teachers": 3}, scores="uniform"),
        {"privacy": EXAMPLE, "training": DP_SGD},
        "the several teachers of method.protocol votes are trained beside",
    ),
    "a clock that counts examples": (
        fedavg(upload=OWN),
        {"privacy": CLIENT, "federation": {"rounds": 2, "clock": {}}},
        "federation.clock counts by how many examples",
    ),
    "a budget that nothing fits into": (
        fedavg(upload=OWN),
        {"privacy": {**CLIENT, "budget": 0.5}},
        "privacy.budget is 0.5, but the first round alone would cost 4.73",
    ),
    "a budget that no noise keeps": (
        fedavg(
            upload=[
                CLIP,
                {**NOISE, "multiplier": "auto"},
            ]
        ),
        {"privacy": {**CLIENT, "budget": 1e-9}},
        "privacy.budget is 1e-09, which no noise can keep at delta 1e-05",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_is_refused(name):
    method, sections, sentence = REFUSED[name]
    assert sentence in refusal(method, **sections)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"training": DP_SGD}, r"training.privacy.multiplier promises privacy, but nobody counts it; .*unit: example"),
        ({"method": fedavg(upload=OWN)}, r"method.upload\[1\].multiplier promises privacy, but nobody counts it"),
        (
            {"method": fedavg(upload=[CLIP, {**NOISE, "multiplier": "auto"}]), "privacy": CLIENT},
            r"method.upload\[1\].multiplier is auto, as much noise as a budget needs, but there is none",
        ),
        (
            {"method": tiny_method("feded-w0", protocol={"kind": "votes", "deviation": "auto"})},
            r"method.protocol.deviation is auto",
        ),
        ({"privacy": {"delta": 1e-5}}, "privacy.unit is missing"),
        ({"privacy": {"unit": "person"}}, "privacy.unit is 'person', but should be 'example' or 'client'"),
        ({"privacy": {"unit": "example", "epsilon": 3}}, "unknown key 'epsilon'"),
    ],
)
def test_a_file_that_says_half_of_it_is_refused(sections, sentence):
    with pytest.raises(ConfigError, match=sentence):
        tiny_config(**sections)


def test_statistics_of_a_network_of_ones_own_are_refused(monkeypatch):
    bank = built("fedavg").clients.bank
    monkeypatch.setattr(bank, "network", lambda _: TinyNorm().build((4,), 3))
    claim = type("Claim", (), {"recipe": built("fedavg").federation.recipe, "bank": bank})
    claim.training = tiny_config(training=DP_SGD, privacy=EXAMPLE).training
    assert any("BatchNorm of model 'mlp'" in reason for reason in refusals._about_training(claim))


KEPT = {
    "FedAvg, clients": (fedavg(upload=OWN), {"privacy": CLIENT}),
    "FedAvg, shared": (fedavg(upload=SHARED), {"privacy": CLIENT, "federation": TAKEN}),
    "FedAvgM, shared": (
        tiny_method("fedavgm", merge={"kind": "momentum", "weighting": "uniform"}, upload=SHARED),
        {"privacy": CLIENT, "federation": TAKEN},
    ),
    "FedDF, clients": (tiny_method("feddf", merge=UNIFORM, upload=OWN), {"privacy": CLIENT}),
    "packed behind the noise": (fedavg(upload=[*OWN, {"kind": "top_k"}, {"kind": "half"}]), {"privacy": CLIENT}),
    "examples by clients' noise": (fedavg(upload=OWN), {"privacy": EXAMPLE}),
    "a fixed deviation": (fedavg(upload=[CLIP, {"kind": "noise", "deviation": 2.0}]), {"privacy": CLIENT}),
    "SCAFFOLD, clients": (tiny_method("scaffold", upload=[*OWN, STATISTICS]), {"privacy": CLIENT}),
    "FD, clients": (tiny_method("fd", upload=[STATISTICS]), {"privacy": CLIENT}),
    "FedED-w2, clients": (tiny_method("feded-w2", upload=[NOISE, STATISTICS]), {"privacy": CLIENT}),
    "votes of clients": (
        tiny_method("feded-w0", protocol={"kind": "votes"}, scores="uniform", upload=[{**NOISE, "shared": True}]),
        {"privacy": CLIENT, "federation": TAKEN},
    ),
    "votes of teachers": (
        tiny_method("feded-w0", protocol={"kind": "votes", "teachers": 2, "deviation": 3.0}),
        {"privacy": EXAMPLE},
    ),
    "FedAUX, examples": (
        tiny_method("fedaux", scores={"kind": "certainty", "epsilon": 0.5, "scaled_by": "public"}),
        {"privacy": EXAMPLE, "training": DP_SGD},
    ),
    "FedMA, examples": (tiny_method("fedma", upload=[COUNTS]), {"privacy": EXAMPLE, "training": DP_SGD}),
    "FedED-w1, examples": (tiny_method("feded-w1", upload=[COUNTS]), {"privacy": EXAMPLE, "training": DP_SGD}),
    "label counts beside control variates, with a norm": (
        tiny_method("feddf", local={"kind": "control_variates"}, scores="labels", upload=[STATISTICS]),
        {"privacy": EXAMPLE, "training": DP_SGD},
    ),
    "nothing travels": (tiny_method("local-only"), {"privacy": CLIENT}),
}


@pytest.mark.parametrize("bounds", ["claims", "moves"])
def test_bounds_look_at_single_updates_which_shared_noise_does_not_hide(bounds):
    bounded = {**TAKEN, bounds: "bounded"}
    told = refusal(fedavg(upload=SHARED), privacy=CLIENT, federation=bounded)
    assert f"set federation.{bounds} to taken" in told
    assert built(fedavg(upload=OWN), privacy=CLIENT, federation=bounded).promise is not None


@pytest.mark.parametrize("name", list(KEPT))
def test_is_promised(name):
    method, sections = KEPT[name]
    assert built(method, **sections).promise is not None


BY_EXAMPLES = {
    "feddistill-plus": "looks at examples elsewhere",
    "feddistill-plus-as-coded": "looks at examples elsewhere",
    "fd": "looks at examples elsewhere",
    "fedgen": "looks at examples elsewhere",
    "fedgen-as-printed": "looks at examples elsewhere",
    "feded-w2": "nobody knows how far one example moves it",
    "fedaux": "nobody knows how far one example moves it",
}
"""Published methods that DP-SGD alone, with noise on counts, does not make private, and the reason."""


@pytest.mark.parametrize("method", list(METHODS))
def test_every_published_method_has_a_private_form_for_examples_or_a_reason(method):
    sections = {"privacy": EXAMPLE, "training": DP_SGD}
    made = tiny_method(method)
    made["upload"] = [*made["upload"], COUNTS]
    if method in BY_EXAMPLES:
        assert BY_EXAMPLES[method] in refusal(made, **sections)
    else:
        assert built(made, **sections).promise is not None


BY_CLIENTS = {"fedma": "which no link can clip"}


@pytest.mark.parametrize("method", list(METHODS))
def test_every_published_method_has_a_private_form_for_clients_or_a_reason(method):
    made = tiny_method(method)
    recipe = METHODS[method].recipe
    if "weighting" in made["merge"] and recipe.protocol.carries in ("weights", "layer"):
        made["merge"] = {**made["merge"], "weighting": "uniform"}
    if made["scores"]["kind"] == "examples":
        made["scores"] = {"kind": "uniform"}
    noise = [] if recipe.protocol.carries in ("nothing", "layer") else [CLIP, NOISE]
    made["upload"] = [*noise, STATISTICS, *made["upload"]]
    if method in BY_CLIENTS:
        assert BY_CLIENTS[method] in refusal(made, privacy=CLIENT)
    else:
        assert built(made, privacy=CLIENT).promise is not None


def test_a_promise_is_for_as_many_rounds_as_the_run_has():
    """With ``--resume --set federation.rounds=60`` it would release more than was planned."""
    private = {
        "privacy": {"unit": "example"},
        "training": {"privacy": {"norm": 1.0, "multiplier": 1.0}, "batch_size": 8},
    }
    assert tiny_config(**private).dependent_on_rounds() == ["privacy"]
    assert tiny_config().dependent_on_rounds() == []
