"""Laws of every method in the registry; a new method is covered without a new line here."""

from __future__ import annotations

from itertools import product

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights
from fedfuse.experiment.assembly import build as built
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.parts.fuse import AnyFuse
from fedfuse.parts.local import AnyObjective
from fedfuse.parts.merge import AnyMerge
from fedfuse.parts.protocol import AnyProtocol
from fedfuse.parts.scores import AnyScores, Uniform
from fedfuse.parts.screen import AnyScreen
from fedfuse.parts.start import AnyStart, Saved
from fedfuse.parts.upload import AnyUpload, Clip, Noise, Partial, Statistics
from fedfuse.testing import pairwise
from tests.helpers import (
    CopyAt,
    Recorder,
    events_of,
    files_of,
    kinds,
    shrunk,
    tiny_config,
    tiny_method,
    without_seconds,
)

pytestmark = pytest.mark.usefixtures("without_pictures")
every_method = pytest.mark.parametrize("method", list(METHODS))
# Different networks with features of one size, because a generator of features serves them all.
TWO_MODELS = {"small": {"arch": "mlp", "hidden": [4, 5]}, "wide": {"arch": "mlp", "hidden": [9, 5]}}


@pytest.fixture
def finished(tmp_path_factory):
    """Runs an experiment into a folder of its own."""
    return lambda config: Experiment(config).run(tmp_path_factory.mktemp("laws") / "run")


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Runs an experiment, unless it was run here before: then gives that result."""
    results = {}

    def run(config):
        key = config.to_yaml()
        if key not in results:
            results[key] = Experiment(config).run(tmp_path_factory.mktemp("once") / "run")
        return results[key]

    return run


def final(result):
    return files_of(result.folder.final)


def history(result):
    return without_seconds([record.to_json() for record in result.history])


@every_method
def test_same_seed_same_bits(once, finished, method):
    one, other = once(tiny_config(method)), finished(tiny_config(method))
    assert one.folder.path != other.folder.path
    assert final(one)
    assert final(one) == final(other)
    assert history(one) == history(other)
    assert without_seconds(one.summary) == without_seconds(other.summary)


@every_method
def test_other_seed_other_bits(once, finished, method):
    one, other = once(tiny_config(method)), finished(tiny_config(method, seed=1))
    assert final(one) != final(other)
    assert one.summary["partition_sha256"] != other.summary["partition_sha256"]


@every_method
def test_listeners_and_names_change_nothing(once, method, tmp_path):
    plain = once(tiny_config(method))
    heard = Recorder()
    named = Experiment(tiny_config(method, name="another-name")).run(tmp_path / "run", listeners=(heard,))
    assert final(plain) == final(named)
    assert len(heard.of("round_finished")) == 2


@every_method
def test_different_architectures(finished, method):
    result = finished(tiny_config(method, models=TWO_MODELS))
    if METHODS[method].recipe.has_server_model:
        assert set(final(result)) == {"small.safetensors", "wide.safetensors"}
    assert set(result.accuracy) == {"small", "wide"}


@every_method
def test_batch_norm_on_images(finished, method):
    config = tiny_config(
        method,
        data={"name": "digits", "train_limit": 60, "test_limit": 60, "validation": 0.15, "public": 0.2},
        models={"resnet": {"arch": "resnet8", "norm": "batch", "width": 4}},
        partition={"kind": "iid", "clients": 2},
        federation={"rounds": 1, "batch_norm": "reestimate"},
    )
    if METHODS[method].recipe.merge.changes_widths:
        with pytest.raises(ConfigError, match="without norm layers and shortcuts"):
            finished(config)
        return
    result = finished(config)
    assert 0 <= result.accuracy["resnet"] <= 1


@every_method
def test_the_final_model_is_the_one_that_was_measured(once, method):
    result = once(tiny_config(method))
    (values,) = result.summary["prototypes"].values()
    if METHODS[method].recipe.has_server_model:
        assert Weights.of(result.model()).sha256() == values["weights_sha256"]
    else:
        last, test = result.history[-1], built(tiny_config(method), EventLog()).federation.test
        for client, accuracy in last.client_accuracy.items():
            assert test.score(result.client_model(client)).accuracy == accuracy


ZEROS = {
    "FedProx with strength 0": tiny_method("fedprox", local={"kind": "proximal", "strength": 0.0}),
    "FedAvgM with beta 0": tiny_method("fedavgm", merge={"kind": "momentum", "beta": 0.0}),
    "FedDF with 0 steps": tiny_method("feddf", fuse={"kind": "ensemble_distillation", "distiller": {"steps": 0}}),
    "FedGKD with coefficient 0": tiny_method("fedgkd", local={"kind": "global_distillation", "coefficient": 0.0}),
    "MOON with strength 0": tiny_method("moon", local={"kind": "contrastive", "strength": 0.0}),
    "FedDistill+ with coefficient 0": tiny_method(
        "feddistill-plus", local={"kind": "label_logits", "coefficient": 0.0}
    ),
    "1-Ensemble": tiny_method("1-ensemble"),
}


@pytest.mark.parametrize("models", [None, TWO_MODELS], ids=["one model", "two models"])
@pytest.mark.parametrize("name", list(ZEROS))
def test_is_fedavg_bit_for_bit(once, finished, name, models):
    sections = {"federation": {"rounds": 3, "participation": 0.75}, **({"models": models} if models else {})}
    plain = once(tiny_config("fedavg", **sections))
    assert final(finished(tiny_config(ZEROS[name], **sections))) == final(plain)


@pytest.mark.parametrize("name", list(METHODS))
def test_is_not_fedavg(once, name):
    """The same with its own parameters: a law that everything obeys would prove nothing."""
    if name not in ("fedavg", "1-ensemble"):  # the second differs in what is measured only
        late = name == "fedavgm-as-coded"  # its momentum begins a round later
        federation = {"rounds": 3 if late else 2, "participation": 0.75}
        own, plain = (once(tiny_config(method, federation=federation)) for method in (name, "fedavg"))
        assert final(own) != final(plain)


CLASHES = {
    ("protocol", "fuse"): lambda protocol, fuse: fuse.reads not in ("nothing", protocol.carries),
    ("protocol", "local"): lambda protocol, local: local.needs_weights and protocol.carries != "weights",
    ("protocol", "screen"): lambda protocol, screen: screen is not None and protocol.carries != "weights",
    ("protocol", "merge"): lambda protocol, merge: (
        protocol.carries not in ("weights", "layer") if merge.changes_widths else protocol.carries == "layer"
    ),
    ("protocol", "upload"): lambda protocol, link: link is not None and not packs(link, protocol.carries),
    ("protocol", "scores"): lambda protocol, scores: (
        not scores.for_predictions
        if protocol.carries == "predictions"
        else protocol.carries != "weights" and scores is not Uniform
    ),
    ("upload", "merge"): lambda link, merge: (
        link is not None
        and ((link.needs_whole_model and merge.changes_widths) or (link.remembers_weights and merge.reorders_units))
    ),
    ("screen", "merge"): lambda screen, merge: screen is not None and screen.compares_weights and merge.changes_widths,
    ("scores", "fuse"): lambda scores, fuse: (
        not scores.for_models if fuse.reads == "weights" else fuse.reads == "nothing" and scores is not Uniform
    ),
    ("local", "merge"): lambda local, merge: local.remembers_weights and (merge.changes_widths or merge.reorders_units),
}
"""Parts that cannot be combined, said once more than in the recipe, so that nothing else is refused by mistake."""


def packs(link, carries):
    if carries == "nothing":
        return not link.needs_payload
    if link.needs_probabilities:
        return carries == "predictions"
    return carries == "weights" or not link.needs_whole_model or (carries == "predictions" and link.takes_predictions)


SLOTS = {
    "start": kinds(AnyStart),
    "protocol": kinds(AnyProtocol),
    "upload": (None, *kinds(AnyUpload)),
    "scores": kinds(AnyScores),
    "local": kinds(AnyObjective),
    "screen": (None, *kinds(AnyScreen)),
    "merge": kinds(AnyMerge),
    "fuse": kinds(AnyFuse),
    "batch_norm": ("average", "last"),
}
LISTS = ("upload", "screen")
CASES = pairwise(SLOTS, CLASHES)


def named(value):
    return "-".join(map(named, value.values())) if isinstance(value, dict) else getattr(value, "__name__", str(value))


@pytest.fixture(scope="module")
def needed(tmp_path_factory):
    """The settings that a part cannot do without."""
    folder = Experiment(tiny_config(models=TWO_MODELS)).run(tmp_path_factory.mktemp("saved") / "run").folder
    return {
        Saved: {"files": {"small": str(folder.final / "small.safetensors")}},
        Clip: {"norm": 0.5},
        Noise: {"deviation": 0.01},
        Statistics: {"norm": 5.0, "deviation": 0.01},
        Partial: {"names": "^layers"},
    }


def settings(part, needed):
    return shrunk(part(**needed.get(part, {})).model_dump(mode="json"))


def chosen(case, needed):
    """A case's parts as a file would say them."""
    parts = {slot: part and settings(part, needed) for slot, part in case.items() if slot != "batch_norm"}
    return {slot: ([part] if part else []) if slot in LISTS else part for slot, part in parts.items()}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_any_two_parts_run_together_and_resume_exactly(tmp_path, needed, case):
    method = tiny_method("fedavg", **chosen(case, needed))
    federation = {"rounds": 2, "batch_norm": case["batch_norm"]}
    config = tiny_config(method, federation=federation, models=TWO_MODELS)
    straight, crashed = tmp_path / "straight", tmp_path / "crashed"
    whole = Experiment(config).run(straight, listeners=(CopyAt("round_started", 2, straight, crashed),))
    assert len(whole.history) == 2
    assert whole.summary["updates_refused"] == 0
    assert not (crashed / "summary.json").exists()
    resumed = Experiment(config).run(crashed, resume=True)
    assert events_of(crashed, "run_resumed")
    assert final(resumed) == final(whole)
    assert history(resumed) == history(whole)


def test_every_part_is_in_a_case():
    assert {slot: {case[slot] for case in CASES} for slot in SLOTS} == {slot: set(SLOTS[slot]) for slot in SLOTS}


REASONS = {
    ("protocol", "fuse"): "needs clients' weights|reads predictions",
    ("protocol", "local"): "needs weights that travel",
    ("protocol", "screen"): "needs weights that travel",
    ("protocol", "merge"): "changes the widths of layers|sends one layer at a time",
    ("protocol", "upload"): "nothing to pack|whole models|packs probabilities",
    ("protocol", "scores"): "judge clients' models|this method asks none",
    ("upload", "merge"): "whole models of fixed widths|remembers weights or features of the units",
    ("screen", "merge"): "compares clients' weights number by number",
    ("scores", "fuse"): "compare predictions that clients send|this method asks none",
    ("local", "merge"): "remembers weights or features of the (neurons|units)",
}
REFUSED = [
    {one: part, other: another}
    for (one, other), clash in CLASHES.items()
    for part, another in product(SLOTS[one], SLOTS[other])
    if clash(part, another)
]


@pytest.mark.parametrize("pair", REFUSED, ids=named)
def test_parts_that_clash_are_refused(pair, needed):
    parts = {slot: settings(part, needed) for slot, part in pair.items()}
    said = {slot: [part] if slot in LISTS else part for slot, part in parts.items()}
    whole = {"merge": {"kind": "matched"}} if "layers" in [part["kind"] for part in parts.values()] else {}
    with pytest.raises(ConfigError, match=REASONS[tuple(pair)]):
        tiny_config({"name": "fedavg", **whole, **said})
