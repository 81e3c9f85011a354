"""A frozen generator makes one fixed table of inputs, or one sentence about what is wrong with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data import Examples
from fedfuse.parts.sources import FrozenGenerator
from fedfuse.parts.sources.generators import GeneratorTraining, VaeSettings, train_generator
from tests.helpers import make_examples
from tests.parts.sources.surroundings import around, images, planar

MODULE = """
import numpy
import torch
from beside import factor

number = 3
calls = []


def unit(count, generator):
    return torch.rand(count, 1, 8, 8, generator=generator) * factor


def pixels(count, generator):
    return torch.randint(0, 256, (count, 1, 8, 8), dtype=torch.uint8, generator=generator)


def of_class(count, generator, *, labels):
    calls.append(labels)
    return (labels / 10).reshape(-1, 1, 1, 1).expand(count, 1, 8, 8)


def forgetful(count, generator):
    return torch.rand(count, 1, 8, 8)


def features(count, generator):
    return 9 * torch.randn(count, 2, generator=generator, dtype=torch.float64)


def too_few(count, generator):
    return unit(count - 1, generator)


def flat(count, generator):
    return torch.rand(count, 64)


def long(count, generator):
    return torch.zeros(count, 1, 8, 8, dtype=torch.long)


def signed(count, generator):
    return 2 * unit(count, generator) - 1


def hole(count, generator):
    return torch.full((count, 1, 8, 8), float("nan"))


def array(count, generator):
    return numpy.zeros((count, 1, 8, 8))


def larger(count, generator):
    return torch.rand(count, 1, 9, 9)


def failing(count, generator):
    raise LookupError("no weights\\nsecond line")


def none(count):
    return None
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current folder, with a neighbour that it imports."""
    (tmp_path / "own_maker.py").write_text(MODULE)
    (tmp_path / "beside.py").write_text("factor = 1.0\n")
    (tmp_path / "broken_maker.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    yield "own_maker"
    for name in ("own_maker", "beside", "broken_maker"):
        sys.modules.pop(name, None)


def made(address, surroundings=None, **options):
    return FrozenGenerator(callable=address, **{"size": 12, **options}).open(surroundings or images())


class TestCallable:
    @pytest.mark.parametrize("name", ["unit", "pixels", "forgetful"])
    def test_same_key_same_bits(self, module, name):
        one, same, other = (made(f"{module}:{name}", images(key=key)).raw for key in (1, 1, 2))
        assert torch.equal(one, same)
        assert not torch.equal(one, other)

    def test_the_callers_random_numbers_are_left_alone(self, module):
        surroundings = images()
        torch.manual_seed(4)
        made(f"{module}:forgetful", surroundings)
        here = torch.rand(3)
        torch.manual_seed(4)
        assert torch.equal(here, torch.rand(3))

    def test_floats_become_bytes_with_the_experiments_normalisation(self, module):
        source = made(f"{module}:unit", size=500)
        assert source.raw.dtype == torch.uint8
        assert (int(source.raw.min()), int(source.raw.max())) == (0, 255)
        assert torch.allclose(source.inputs(torch.arange(3)), (source.raw[:3].float() / 255 - 0.5) / 0.25, atol=1e-6)
        assert source.name == "own_maker:unit"

    def test_classes_are_uniform(self, module):
        source = made(f"{module}:of_class", size=3000)
        (labels,) = sys.modules[module].calls
        assert labels.dtype == torch.int64
        assert torch.allclose(torch.bincount(labels) / 3000, torch.full((3,), 1 / 3), atol=0.05)
        assert torch.equal(source.raw[:, 0, 0, 0], (labels * 25.5).round().to(torch.uint8))

    def test_classes_can_be_chosen(self, module):
        assert set(made(f"{module}:of_class", classes=(0, 2), size=50).raw.flatten().tolist()) == {0, 51}
        with pytest.raises(ConfigError, match=r"source\.classes names 3, but own_maker:of_class has classes 0 to 2"):
            made(f"{module}:of_class", classes=(3,))
        with pytest.raises(ConfigError, match="own_maker:unit has no parameter 'labels'"):
            made(f"{module}:unit", classes=(0,))

    def test_features(self, module):
        source = made(f"{module}:features", planar())
        assert source.raw.dtype == torch.float32
        with pytest.raises(ConfigError, match="must return a tensor of 12 float features"):
            made(f"{module}:pixels", planar())

    def test_the_import_path_is_given_back(self, module):
        before = list(sys.path)
        made(f"{module}:unit")
        with pytest.raises(ConfigError):
            made("broken_maker:unit")
        assert sys.path == before

    @pytest.mark.parametrize(
        ("address", "sentence"),
        [
            (
                "nowhere.at_all:f",
                "nowhere.at_all cannot be imported .*: ModuleNotFoundError: No module named 'nowhere'",
            ),
            ("broken_maker:f", "broken_maker cannot be imported .*: ZeroDivisionError: division by zero"),
            ("own_maker:other", "unknown function 'other'"),
            ("own_maker:number", "own_maker:number is not a function but int"),
            ("own_maker:too_few", r"returned a tensor of shape \(11, 1, 8, 8\)"),
            ("own_maker:flat", r"returned a tensor of shape \(12, 64\)"),
            ("own_maker:long", r"returned numbers of type torch\.int64"),
            ("own_maker:signed", r"returned pixels from -0\.\d+ to 0\.\d+"),
            ("own_maker:hole", "returned NaN or infinite numbers"),
            ("own_maker:array", "returned ndarray; a generator must return a tensor of 12 images"),
            ("own_maker:larger", "shape 1x9x9, but the clients' models read 1x8x8"),
            (
                "own_maker:failing",
                r"own_maker:failing failed with LookupError: no weights \(.*own_maker\.py, line \d+\)$",
            ),
            ("own_maker:none", "failed with TypeError"),
        ],
    )
    @pytest.mark.usefixtures("module")
    def test_mistakes_get_one_sentence(self, address, sentence):
        with pytest.raises(ConfigError, match=sentence) as caught:
            made(address)
        assert "\n" not in str(caught.value)


class TestFile:
    def trained(self, path, examples, classes):
        settings = GeneratorTraining(network=VaeSettings(latent=3, hidden=8), epochs=1)
        return train_generator(examples, classes, settings, path)

    def test_images(self, tmp_path):
        examples = Examples(torch.randint(0, 256, (20, 1, 8, 8), dtype=torch.uint8), torch.arange(20) % 2)
        self.trained(tmp_path / "g.safetensors", examples, 2)
        settings = FrozenGenerator(file=str(tmp_path / "g.safetensors"), size=600)
        one, same, other = (settings.open(images(key=key)) for key in (1, 1, 2))
        assert one.raw.shape == (600, 1, 8, 8)
        assert one.raw.dtype == torch.uint8
        assert one.name == "g.safetensors"
        assert torch.equal(one.raw, same.raw)
        assert not torch.equal(one.raw, other.raw)
        with pytest.raises(ConfigError, match="has classes 0 to 1"):
            settings.model_copy(update={"classes": (2,)}).open(images())
        with pytest.raises(ConfigError, match=r"shape 1x8x8, but .* read 1x9x9; choose a generator of that shape"):
            settings.open(images(side=9))

    def test_features_lie_in_the_range_of_the_data(self, tmp_path):
        examples = make_examples(40)
        self.trained(tmp_path / "g.safetensors", examples, 3)
        raw = FrozenGenerator(file=str(tmp_path / "g.safetensors"), size=50).open(around()).raw
        assert raw.shape == (50, 4)
        assert bool((raw > examples.inputs.amin(0)).all())
        assert bool((raw < examples.inputs.amax(0)).all())

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(DataError, match=r"g\.safetensors"):
            FrozenGenerator(file=str(tmp_path / "g.safetensors")).open(images())


@pytest.mark.parametrize("names", [{}, {"file": "g.safetensors", "callable": "a:b"}])
def test_exactly_one_generator(names):
    with pytest.raises(ValidationError, match="either file or callable"):
        FrozenGenerator(**names)


@pytest.mark.parametrize("address", ["maker", "maker:", ":f", "a/b.py:f", "maker:f()"])
def test_an_address_has_two_parts(address):
    with pytest.raises(ValidationError, match="callable"):
        FrozenGenerator(callable=address)


CHECKPOINT = Path(os.environ.get("FEDFUSE_DATA", "")) / "mnist_generator" / "generator.ckpt"

WRAPPER = f"""
import torch
from torch import nn

network = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh()
)
network.load_state_dict(torch.load({str(CHECKPOINT)!r}, map_location="cpu", weights_only=True))


def digits(count, generator):
    codes = torch.randn(count, 64, generator=generator)
    return (network(codes).reshape(count, 1, 28, 28) + 1) / 2
"""


@pytest.mark.skipif(not CHECKPOINT.is_file(), reason="FEDFUSE_DATA has no mnist_generator/generator.ckpt")
def test_a_real_generator_of_somebody_else(tmp_path, monkeypatch):
    (tmp_path / "foreign_gan.py").write_text(WRAPPER)
    monkeypatch.chdir(tmp_path)
    source = made("foreign_gan:digits", images(side=28), size=200)
    assert source.raw.shape == (200, 1, 28, 28)
    share_of_ink = (source.raw > 127).float().mean()
    assert 0.05 < share_of_ink < 0.25, "MNIST has about 0.13"
    assert (source.raw[:, :, :2] < 30).float().mean() > 0.95, "digits do not touch the upper edge"
