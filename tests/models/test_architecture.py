"""The laws every architecture keeps."""

from __future__ import annotations

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.models import (
    ARCHITECTURES,
    AnyArchitecture,
    Architecture,
    Cnn,
    CnnDeep,
    ConvNet,
    DeepResNet,
    Encoder,
    Listed,
    Mlp,
    ResNet,
    TextCnn,
    TextTransformer,
    Vgg9,
    create,
    parameter_count,
)
from fedfuse.runtime.compute import Compute

TEXT = TextShape(length=7, vocabulary=30)
SMALL = {"mlp": (5,), "convnet": (3, 18, 20), "text_cnn": TEXT, "text_transformer": TEXT}
DIGITS = (1, 8, 8)


def narrow(name: str, listed: Listed) -> Architecture:
    """An architecture with its defaults, except that it is quick."""
    width = {"width": 8} if "width" in listed.config.model_fields else {}
    return listed.config(arch=name, **width)


REGISTERED = [narrow(name, listed) for name, listed in ARCHITECTURES.items() if listed.has_defaults]
FOR_IMAGES = [architecture for architecture in REGISTERED if not architecture.arch.startswith("text_")]
VARIANTS: list[Architecture] = [
    *REGISTERED,
    Mlp(hidden=()),
    Cnn(arch="cnn1", channels=3),
    CnnDeep(channels=(2, 3)),
    ConvNet(extra_layers=2),
    ResNet(arch="resnet8", norm="group"),
    ResNet(arch="resnet8", norm="none"),
    ResNet(arch="resnet8", norm="none", shortcut="pad", initialisation="xavier", width=5),
    Vgg9(variant="feddf", width=2),
    DeepResNet(arch="resnet18", width=4, stem="large", dropout=0.5),
    DeepResNet(arch="resnet50", width=4, norm="group", channels_per_group=2),
]


def shape_for(architecture: Architecture) -> tuple[int, ...]:
    if isinstance(architecture, Vgg9) and architecture.variant == "feddf":
        return (1, 32, 33)
    return SMALL.get(architecture.arch, DIGITS)


def batch_for(architecture: Architecture, count: int) -> torch.Tensor:
    shape = shape_for(architecture)
    if isinstance(shape, TextShape):
        return torch.randint(1, shape.vocabulary, (count, shape.length), generator=Key(1).torch())
    return torch.randn(count, *shape, generator=Key(1).torch())


@pytest.fixture(params=VARIANTS, ids=lambda a: f"{a.arch}-{len(a.model_fields_set)}")
def architecture(request: pytest.FixtureRequest) -> Architecture:
    result: Architecture = request.param
    return result


@pytest.mark.parametrize("training", [True, False])
def test_forward_is_the_classifier_of_the_features(architecture: Architecture, training: bool) -> None:
    shape = shape_for(architecture)
    model = create(architecture, shape, 7, Key(0)).train(training)
    x = batch_for(architecture, 3)
    with torch.no_grad():
        with Key(2).default_generator():
            features = model.features(x)
        with Key(2).default_generator():  # the same dropout
            logits = model(x)
    assert features.shape == (3, model.feature_size)
    assert logits.shape == (3, 7)
    assert torch.isfinite(logits).all()
    assert torch.equal(model.classifier(features), logits)


def test_the_key_alone_decides_the_initial_weights(architecture: Architecture) -> None:
    shape = shape_for(architecture)

    def initial(key: Key) -> Weights:
        return Weights.of(create(architecture, shape, 3, key))

    first = initial(Key(0, ("init",)))
    torch.rand(5)
    before = torch.get_rng_state()
    assert initial(Key(0, ("init",))).equals(first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not initial(Key(1, ("init",))).equals(first)


def test_every_parameter_gets_a_gradient(architecture: Architecture) -> None:
    shape = shape_for(architecture)
    model = create(architecture, shape, 3, Key(0))
    model(batch_for(architecture, 4)).logsumexp(1).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_training_step_has_the_same_bits_twice(architecture: Architecture, channels_last: bool) -> None:
    compute = Compute(torch.device("cpu"), threads=1, channels_last=channels_last)
    shape = shape_for(architecture)
    x = compute.inputs(batch_for(architecture, 8))

    def stepped() -> Weights:
        model = compute.place(create(architecture, shape, 3, Key(0)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with Key(2).default_generator():
            model(x).logsumexp(1).sum().backward()
        optimizer.step()
        return Weights.of(model)

    first = stepped()
    assert stepped().equals(first)
    assert not first.equals(Weights.of(create(architecture, shape, 3, Key(0))))
    assert first.flat.isfinite().all()


@pytest.mark.parametrize("architecture", REGISTERED, ids=lambda a: a.arch)
def test_a_projection_head_fits_on_everything(architecture: Architecture) -> None:
    shape = shape_for(architecture)
    plain = create(architecture, shape, 3, Key(0))
    headed = create(architecture.model_copy(update={"projection_head": 5}), shape, 3, Key(0)).eval()
    d = plain.feature_size
    x = batch_for(architecture, 2)
    assert headed.features(x).shape == (2, 5)
    assert headed(x).shape == (2, 3)
    assert parameter_count(headed) - parameter_count(plain) == (d * d + d) + (d * 5 + 5) + (5 * 3 + 3) - (d * 3 + 3)


def test_a_config_survives_json(architecture: Architecture) -> None:
    adapter: TypeAdapter[Architecture] = TypeAdapter(AnyArchitecture)
    assert adapter.validate_json(adapter.dump_json(architecture)) == architecture


def test_the_listing_names_exactly_what_a_config_accepts() -> None:
    schema = TypeAdapter(AnyArchitecture).json_schema()
    assert set(schema["anyOf"][0]["discriminator"]["mapping"]) == set(ARCHITECTURES)
    assert all(listed.description and "\n" not in listed.description for listed in ARCHITECTURES.values())


@pytest.mark.parametrize(
    ("architecture", "shape", "sentence"),
    [
        *(
            (
                architecture,
                TEXT,
                f"{architecture.arch} cannot read texts; choose a text model such as text_cnn or text_transformer",
            )
            for architecture in (Mlp(), Cnn(arch="cnn1"), ResNet(arch="resnet8"))
        ),
        *(
            (
                architecture,
                (1, 8, 8),
                f"{architecture.arch} reads texts, but the data holds inputs of shape (1, 8, 8); choose another model",
            )
            for architecture in (TextCnn(), TextTransformer(), Encoder(arch="distilbert"))
        ),
        (
            ResNet(arch="resnet8"),
            (2,),
            "resnet8 cannot take inputs of shape (2,): "
            "it needs images (channels, height, width) of at least 1x1 pixels",
        ),
        (
            ConvNet(),
            (3, 8, 8),
            "convnet cannot take inputs of shape (3, 8, 8): "
            "it needs images (channels, height, width) of at least 18x18 pixels",
        ),
        (
            Cnn(arch="cnn2"),
            (28, 28),
            "cnn2 cannot take inputs of shape (28, 28): "
            "it needs images (channels, height, width) of at least 4x4 pixels",
        ),
        (
            CnnDeep(),
            (1, 3, 28),
            "cnn_deep cannot take inputs of shape (1, 3, 28): "
            "it needs images (channels, height, width) of at least 4x4 pixels",
        ),
        (
            Mlp(),
            (3, 0),
            "mlp cannot take inputs of shape (3, 0): it needs at least one dimension, and none of size 0",
        ),
        (
            Vgg9(variant="feddf"),
            (1, 28, 28),
            "vgg9 (feddf) cannot take inputs of shape (1, 28, 28): "
            "it needs images (channels, height, width) of at least 32x32 pixels",
        ),
        (Mlp(), (), "mlp cannot take inputs of shape (): it needs at least one dimension, and none of size 0"),
    ],
)
def test_wrong_inputs_are_refused_in_one_sentence(
    architecture: Architecture, shape: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        create(architecture, shape, 10, Key(0))
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("architecture", "smallest"), [(Cnn(arch="cnn1"), 4), (CnnDeep(), 4), (ConvNet(), 18), (Vgg9(width=2), 8)]
)
def test_the_stated_smallest_image_is_the_smallest(architecture: Architecture, smallest: int) -> None:
    model = create(architecture, (2, smallest, smallest), 3, Key(0))
    assert model(torch.zeros(2, 2, smallest, smallest)).shape == (2, 3)
    with pytest.raises(ConfigError):
        create(architecture, (2, smallest, smallest - 1), 3, Key(0))
    if isinstance(architecture, ConvNet):
        with pytest.raises(RuntimeError):
            model.features(torch.zeros(2, 2, smallest, smallest - 1))


@pytest.mark.parametrize("side", [19, 21, 28, 33])
@pytest.mark.parametrize("architecture", [Cnn(arch="cnn3"), CnnDeep(), ConvNet(), *FOR_IMAGES])
def test_sides_that_do_not_divide_evenly(architecture: Architecture, side: int) -> None:
    model = create(architecture, (1, side, side + 1), 3, Key(0))
    assert model(torch.zeros(2, 1, side, side + 1)).shape == (2, 3)


def test_no_classes() -> None:
    with pytest.raises(ConfigError, match="mlp needs at least 1 class, not 0"):
        create(Mlp(), (2,), 0, Key(0))


@pytest.mark.parametrize(
    "config",
    [
        {"arch": "mlp", "hidden": (0,)},
        {"arch": "cnn1", "channels": 0},
        {"arch": "cnn_deep", "channels": (8,)},
        {"arch": "convnet", "extra_layers": -1},
        {"arch": "resnet8", "width": 0},
        {"arch": "resnet9"},
        {"arch": "resnet18", "dropout": 1.0},
        {"arch": "resnet50", "stem": "huge"},
        {"arch": "vgg9", "variant": "vgg"},
        {"arch": "shufflenetv2", "width": 7},
        {"arch": "mobilenetv2", "width": 6},
        {"arch": "text_cnn", "widths": ()},
        {"arch": "text_transformer", "width": 10, "heads": 4},
        {"arch": "encoder"},
        {"arch": "encoder", "pretrained": "folder", "config": {"model_type": "bert"}},
        {"arch": "own"},
        {"arch": "own", "callable": "module.function"},
        {"arch": "mlp", "width": 3},
    ],
)
def test_fields_out_of_range(config: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(AnyArchitecture).validate_python(config)
