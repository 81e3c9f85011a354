"""Laws of every method in the registry; a new method is covered without a new line here."""

from __future__ import annotations

import itertools

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
from fedfuse.parts.protocol import AnyExchange
from fedfuse.parts.screen import AnyScreen
from tests.helpers import Recorder, files_of, kinds, shrunk, tiny_config, tiny_method, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")
every_method = pytest.mark.parametrize("method", list(METHODS))
# Different networks with features of one size, because a generator of features serves them all.
TWO_MODELS = {"small": {"arch": "mlp", "hidden": [4, 5]}, "wide": {"arch": "mlp", "hidden": [9, 5]}}


@pytest.fixture
def finished(tmp_path_factory):
    """Runs an experiment into a folder of its own."""
    return lambda config: Experiment(config).run(tmp_path_factory.mktemp("laws") / "run")


def final(result):
    return files_of(result.folder.final)


def history(result):
    return without_seconds([record.to_json() for record in result.history])


@every_method
def test_same_seed_same_bits(finished, method):
    one, other = finished(tiny_config(method)), finished(tiny_config(method))
    assert one.folder.path != other.folder.path
    assert final(one)
    assert final(one) == final(other)
    assert history(one) == history(other)
    assert without_seconds(one.summary) == without_seconds(other.summary)


@every_method
def test_other_seed_other_bits(finished, method):
    one, other = finished(tiny_config(method, seed=1)), finished(tiny_config(method, seed=2))
    assert final(one) != final(other)
    assert one.summary["partition_sha256"] != other.summary["partition_sha256"]


@every_method
def test_listeners_and_names_change_nothing(finished, method, tmp_path):
    plain = finished(tiny_config(method))
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
    assert final(result) == final(finished(tiny_config(method, models=TWO_MODELS)))


@every_method
def test_batch_norm_on_images(finished, method):
    config = tiny_config(
        method,
        data={"name": "digits", "train_limit": 120, "validation": 0.15, "public": 0.2},
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
def test_the_final_model_is_the_one_that_was_measured(finished, method):
    result = finished(tiny_config(method))
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
def test_is_fedavg_bit_for_bit(finished, name, models):
    sections = {"federation": {"rounds": 3, "participation": 0.75}, **({"models": models} if models else {})}
    plain = finished(tiny_config("fedavg", **sections))
    assert final(finished(tiny_config(ZEROS[name], **sections))) == final(plain)


@pytest.mark.parametrize("name", list(METHODS))
def test_is_not_fedavg(finished, name):
    """The same with its own parameters: a law that everything obeys would prove nothing."""
    if name not in ("fedavg", "1-ensemble"):  # the second differs in what is measured only
        rounds = {"rounds": 3, "participation": 0.75}
        plain = finished(tiny_config("fedavg", federation=rounds))
        assert final(finished(tiny_config(name, federation=rounds))) != final(plain)


def is_refused(local, merge):
    """A client cannot go on with what it remembers of a network whose layers had other widths."""
    return merge.changes_widths and local.remembers_weights


PRODUCT = [
    parts
    for parts in itertools.product(
        kinds(AnyObjective),
        [None, *kinds(AnyScreen)],
        kinds(AnyMerge),
        [f for f in kinds(AnyFuse) if f.reads != "predictions"],
        ["average", "last"],
    )
    if not is_refused(parts[0], parts[2])
]


@pytest.mark.parametrize("parts", PRODUCT, ids=lambda parts: "-".join(getattr(p, "__name__", str(p)) for p in parts))
def test_every_combination_of_parts_runs(tmp_path, parts):
    local, screen, merge, fuse, batch_norm = parts
    method = tiny_method("fedavg")
    method |= {"local": {"kind": kind_of(local)}, "merge": {"kind": kind_of(merge)}}
    method |= {"fuse": shrunk(fuse().model_dump(mode="json")), "screen": [{"kind": kind_of(screen)}] if screen else []}
    config = tiny_config(method, federation={"rounds": 2, "batch_norm": batch_norm}, models=TWO_MODELS)
    result = Experiment(config).run(tmp_path / "run")
    assert len(result.history) == 2
    assert result.summary["updates_refused"] == 0


REFUSED = [pair for pair in itertools.product(kinds(AnyObjective), kinds(AnyMerge)) if is_refused(*pair)]


@pytest.mark.parametrize(("local", "merge"), REFUSED, ids=lambda part: part.__name__)
def test_what_is_not_in_the_product_is_refused(local, merge):
    method = tiny_method("fedavg", local={"kind": kind_of(local)}, merge={"kind": kind_of(merge)})
    with pytest.raises(ConfigError, match=f"local {kind_of(local)} remembers weights or features of the neurons"):
        tiny_config(method)


CARRIERS = [exchange for exchange in kinds(AnyExchange) if exchange.carries == "weights"]


@pytest.mark.parametrize("local", kinds(AnyObjective), ids=lambda part: part.__name__)
@pytest.mark.parametrize("exchange", CARRIERS, ids=lambda part: part.__name__)
def test_every_objective_works_with_every_way_of_sending_weights(tmp_path, exchange, local):
    parts = {"exchange": {"kind": kind_of(exchange)}, "local": shrunk(local().model_dump(mode="json"))}
    config = tiny_config(tiny_method("fedavg", **parts), models=TWO_MODELS)
    result = Experiment(config).run(tmp_path / "run")
    assert result.summary["updates_refused"] == 0


@pytest.mark.parametrize("local", kinds(AnyObjective), ids=lambda part: part.__name__)
def test_objectives_without_travelling_weights_either_work_or_say_why_not(tmp_path, local):
    method = tiny_method("feded-w0", local=shrunk(local().model_dump(mode="json")))
    if local.needs_weights:
        with pytest.raises(ConfigError, match="needs weights that travel"):
            tiny_config(method)
    else:
        result = Experiment(tiny_config(method)).run(tmp_path / "run")
        assert result.summary["updates_refused"] == 0


def kind_of(part):
    return part.model_fields["kind"].default


def test_the_product_is_the_whole_one():
    assert {parts[0] for parts in PRODUCT} == set(kinds(AnyObjective))
    assert len(PRODUCT) >= 2 * 2 * 2 * 2 * 2
