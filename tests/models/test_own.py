"""Networks of other people: adapted without a change in what they compute, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import fedfuse
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout, Weights
from fedfuse.experiment.choices import as_begun
from fedfuse.models import Classifier, Own, create, parameter_count
from fedfuse.models.saved import load_model, save_model
from tests.helpers import tiny_config
from tests.models import foreign

DIGITS = (1, 8, 8)


def own(function: str, **arguments: object) -> Own:
    return Own.model_validate({"arch": "own", "callable": f"tests.models.foreign:{function}", "arguments": arguments})


def made(function: str, **arguments: object) -> Classifier:
    return create(own(function, **arguments), DIGITS, 3, Key(0))


def batch() -> Tensor:
    return torch.randn(4, *DIGITS, generator=Key(1).torch())


ADAPTABLE = [
    ("plain", lambda: foreign.plain(DIGITS, 3), 6),
    ("lazy", lambda: foreign.lazy(3), 6),
    ("Vision", lambda: foreign.Vision(3), 4),
    ("Functional", lambda: foreign.Functional(3), 6),
    ("Parts", lambda: foreign.Parts(3), 5),
    ("Tied", lambda: foreign.Tied(3), 5),
    ("Wrapped", lambda: foreign.Wrapped(3), 6),
]


@pytest.mark.parametrize(("function", "original", "features"), ADAPTABLE, ids=[name for name, _, _ in ADAPTABLE])
@pytest.mark.parametrize("training", [False, True])
def test_adapted_networks_compute_what_they_did(function, original, features, training):
    """Same initial weights from the same key, and the same logits, dropout included."""
    with Key(0).default_generator():
        network = original().train(training)
        if function == "lazy":
            network(batch())
    model = made(function).train(training)
    assert parameter_count(model) == sum(p.numel() for p in network.parameters())
    with Key(5).default_generator():
        expected = network(batch())
    with Key(5).default_generator():
        logits = model(batch())
    assert torch.equal(logits, getattr(expected, "logits", expected))
    assert model.features(batch()).shape == (4, features) == (4, model.feature_size)


@pytest.mark.parametrize("function", [name for name, _, _ in ADAPTABLE])
def test_the_key_alone_decides_the_initial_weights(function):
    first = Weights.of(made(function))
    torch.rand(3)
    assert Weights.of(made(function)).equals(first)
    assert not Weights.of(create(own(function), DIGITS, 3, Key(1))).equals(first)


@pytest.mark.parametrize("function", [name for name, _, _ in ADAPTABLE])
def test_a_projection_head_takes_the_classifiers_place(function):
    plain = made(function)
    headed = create(own(function).model_copy(update={"projection_head": 7}), DIGITS, 3, Key(0))
    assert headed.features(batch()).shape == (4, 7)
    assert headed(batch()).shape == (4, 3)
    d = plain.feature_size
    removed = sum(p.numel() for p in plain.classifier.parameters())
    assert parameter_count(headed) == parameter_count(plain) - removed + (d * d + d) + (d * 7 + 7) + (7 * 3 + 3)


@pytest.mark.parametrize("function", [name for name, _, _ in ADAPTABLE])
def test_a_saved_model_comes_back(tmp_path, function):
    model = made(function)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    save_model(tmp_path / "m.safetensors", own(function), DIGITS, 3, Weights.of(model))
    loaded = load_model(tmp_path / "m.safetensors", trust_own_code=True)
    assert Weights.of(loaded).equals(Weights.of(model))
    assert torch.equal(loaded(batch()), model.eval()(batch()))


def test_a_saved_model_runs_nobodys_code_unasked(tmp_path):
    save_model(tmp_path / "m.safetensors", own("plain"), DIGITS, 3, Weights.of(made("plain")))
    with pytest.raises(DataError, match=r"is built by calling 'tests.models.foreign:plain'; if you trust the file"):
        fedfuse.load_model(tmp_path / "m.safetensors")


def test_a_saved_model_whose_code_is_gone_or_changed(tmp_path):
    path = tmp_path / "m.safetensors"
    weights = Weights.of(made("plain"))
    save_model(path, Own(callable="no_such_module:net"), DIGITS, 3, weights)
    with pytest.raises(ConfigError, match="No module named 'no_such_module'"):
        load_model(path, trust_own_code=True)
    save_model(path, own("plain", hidden=7), DIGITS, 3, weights)
    with pytest.raises(DataError, match="does not fit the network that 'own' builds now"):
        load_model(path, trust_own_code=True)


def test_a_linear_layer_alone_is_logistic_regression():
    model = create(own("only_linear"), (5,), 3, Key(0))
    x = torch.randn(2, 5)
    assert torch.equal(model.features(x), x)
    assert Layout.of(model).parameters == (("classifier.weight", (3, 5)), ("classifier.bias", (3,)))


def test_texts(tmp_path):
    shape = TextShape(length=6, vocabulary=20)
    model = create(own("Words"), shape, 3, Key(0)).eval()
    tokens = torch.tensor([[4, 7, 0, 0, 0, 0]])
    assert model.features(tokens).shape == (1, 5)
    save_model(tmp_path / "m.safetensors", own("Words"), shape, 3, Weights.of(model))
    assert torch.equal(load_model(tmp_path / "m.safetensors", trust_own_code=True)(tokens), model(tokens))


def test_a_tied_weight_travels_once():
    model = made("Tied")
    names = [name for name, _ in Layout.of(model).parameters]
    assert "network.first.weight" in names
    assert "network.second.weight" not in names
    Weights.of(create(own("Tied"), DIGITS, 3, Key(9))).load_into(model)
    assert model.network.first.weight is model.network.second.weight


def test_integer_buffers_stay_and_floating_ones_travel():
    layout = Layout.of(made("Functional"))
    assert layout.buffers == (("network.scale", (6,)),)


def test_a_network_that_the_function_keeps_is_not_shared():
    one, other = made("kept"), made("kept")
    assert Weights.of(one).equals(Weights.of(other))
    with torch.no_grad():
        one.classifier.weight.zero_()
    assert other.classifier.weight.any()
    assert isinstance(foreign.KEPT[1], nn.Linear)


def test_arguments_win_over_what_the_data_demand():
    assert made("plain", hidden=9).feature_size == 9
    with pytest.raises(ConfigError, match=r"returns numbers of shape \(2, 4\) for 2 examples, .* \(2, 3\)"):
        made("plain", classes=4)


REFUSED = [
    ("no_such", "own model 'tests.models.foreign:no_such': unknown function 'no_such'"),
    ("Visio", "unknown function 'Visio' (did you mean 'Vision'?)"),
    ("NOT_A_FUNCTION", "is not a function but int"),
    ("failing", "failed: RuntimeError: no weights for 3 classes"),
    ("number", "returned a value of type int, but should return a torch.nn.Module"),
    ("only_linear", "failed on a batch of shape (2, 1, 8, 8) in evaluation mode: RuntimeError: "),
    ("without_linear", "needs a linear layer with 3 outputs whose result is what it returns"),
    ("double", "has '1.weight' of type torch.float64, but should be float32"),
    ("Unreached", "has a lazy parameter 'never.weight' that its forward pass does not reach"),
    ("MADE", "is a network already made; name its class, or a function that makes one"),
    ("Detached", "gets no gradient below its classifier: forward() ends with detach() or runs under no_grad()"),
    ("Counting", "changes its integer buffer 'batches' in training"),
]


def test_a_frozen_body_is_meant_and_a_wholly_frozen_network_is_not():
    assert made("Detached", frozen="body").feature_size == 5
    with pytest.raises(ConfigError, match="has nothing to train: requires_grad is False for all of its parameters"):
        made("frozen")


@pytest.mark.parametrize(("function", "words"), REFUSED, ids=[name for name, _ in REFUSED])
def test_refusals_are_one_sentence(function, words):
    with pytest.raises(ConfigError) as refusal:
        made(function)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        ("tuple", "returns a value of type tuple, but should return a tensor of logits"),
        ("tuple in training", "returns a value of type tuple, but"),
        ("namespace of nothing", "returns a value of type NoneType, but"),
        ("softmax", "cannot be cut into features and a classifier"),
    ],
)
def test_outputs_that_are_not_logits(wrap, words):
    with pytest.raises(ConfigError, match=words):
        made("Wrapped", wrap=wrap)


def test_an_unknown_argument():
    with pytest.raises(ConfigError, match=r"failed: TypeError: plain\(\) got an unexpected keyword argument 'depth'"):
        made("plain", depth=3)


def test_a_module_that_does_not_compile(tmp_path, monkeypatch):
    (tmp_path / "broken_net_of_mine.py").write_text("def net(:\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be imported .*: SyntaxError: "):
        create(Own(callable="broken_net_of_mine:net"), DIGITS, 3, Key(0))


@pytest.mark.usefixtures("without_pictures")
def test_an_experiment_with_a_network_next_to_the_working_folder(tmp_path: Path, monkeypatch):
    """Beside an architecture of ours, under a method that fuses both; the run is repeatable and its model loads."""
    (tmp_path / "net_of_mine.py").write_text(
        "from torch import nn\n"
        "def net(input_shape, num_classes, width):\n"
        "    return nn.Sequential(nn.Linear(input_shape[0], width), nn.BatchNorm1d(width), nn.ReLU(), "
        "nn.Linear(width, num_classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    models = {
        "mine": {"arch": "own", "callable": "net_of_mine:net", "arguments": {"width": 5}},
        "ours": {"arch": "mlp", "hidden": [4]},
    }
    experiment = fedfuse.Experiment(tiny_config("feddf", models=models))
    result = experiment.run(tmp_path / "run")
    assert result.summary["updates_refused"] == 0
    assert experiment.run(tmp_path / "again").accuracy == result.accuracy
    assert result.model("mine").feature_size == 5
    names = load_file(tmp_path / "run" / "final" / "mine.safetensors").keys()
    assert {"0.weight", "0.bias", "1.running_mean", "1.num_batches_tracked", "3.weight", "3.bias"} < names
    assert result.model("mine").predict([[0.0, 1.0]]).shape == (1,)
    begun = fedfuse.Experiment.load(tmp_path / "run").config
    assert as_begun(experiment.config, begun) == begun


def test_an_address_that_is_none():
    with pytest.raises(ConfigError, match=r"models.mine.callable: 'net_of_mine' should be written as package.module"):
        tiny_config(models={"mine": {"arch": "own", "callable": "net_of_mine"}})


@pytest.mark.parametrize("function", [name for name, _, _ in ADAPTABLE])
def test_a_file_loads_back_into_the_network_as_it_was_written(tmp_path, function):
    """Every name that load_state_dict asks for, and no other; the answers are those of the cut network."""
    model = made(function)
    weights = Weights(Weights.of(model).flat + 0.01, Layout.of(model))
    weights.load_into(model)
    path = tmp_path / "m.safetensors"
    save_model(path, own(function), DIGITS, 3, weights, network=model)
    plain = next(original() for name, original, _ in ADAPTABLE if name == function)
    plain.load_state_dict(load_file(path))
    x = torch.rand(4, *DIGITS)
    expected = model.eval()(x)
    answer = plain.eval()(x)
    assert torch.equal(getattr(answer, "logits", answer), expected)
    loaded = load_model(path, trust_own_code=True)
    assert torch.equal(loaded(x), expected)
    assert Weights.of(loaded).equals(weights)


def test_a_linear_layer_alone_has_its_own_names_too(tmp_path):
    model = create(own("only_linear"), (5,), 3, Key(0))
    save_model(tmp_path / "m", own("only_linear"), (5,), 3, Weights.of(model), network=model)
    assert load_file(tmp_path / "m").keys() == {"weight", "bias"}
    assert Weights.of(load_model(tmp_path / "m", trust_own_code=True)).equals(Weights.of(model))
