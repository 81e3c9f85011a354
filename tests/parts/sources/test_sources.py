"""Sources bring inputs that the models can read, without labels, the same ones for the same key."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from pydantic import ValidationError

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import Examples, Transform, load
from fedfuse.experiment.assembly import build, cautions
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.parts.fuse import GaussianNoise, HeldOut, OtherDataset, PublicData, UniformNoise
from tests.helpers import files_of, make_examples, tiny_config, tiny_method
from tests.parts.sources.surroundings import around, images, planar


def test_a_source_has_labels_only_if_a_method_reads_them():
    public = make_examples(12, seed=5)
    around_it = around(public)
    assert HeldOut().open(around_it).labels is None
    reading = dataclasses.replace(around_it, reads_labels=True)
    assert torch.equal(HeldOut().open(reading).labels, public.labels)
    with pytest.raises(ConfigError, match="reads the true labels"):
        UniformNoise(size=9).open(reading)


class TestHeldOut:
    def test_is_the_public_part(self):
        public = make_examples(12, seed=5)
        source = HeldOut().open(around(public))
        assert len(source) == 12
        assert torch.equal(source.inputs(source.all_indices()), public.inputs)
        assert source.overlap == 0

    def test_needs_a_public_part(self):
        with pytest.raises(ConfigError, match=r"data\.public"):
            HeldOut().open(around())

    def test_fraction_and_limit_draw_a_seeded_part(self):
        public = make_examples(40, seed=5)
        rows = {tuple(row) for row in public.inputs.tolist()}
        part, again = (HeldOut(fraction=0.25).open(around(public)).raw for _ in range(2))
        assert torch.equal(part, again)
        assert len({tuple(row) for row in part.tolist()} & rows) == 10
        assert len(HeldOut(fraction=0.5, limit=3).open(around(public))) == 3
        assert not torch.equal(part, HeldOut(fraction=0.25).open(around(public, key=1)).raw)

    def test_needs_two_inputs(self):
        with pytest.raises(ConfigError, match="at least 2"):
            HeldOut().open(around(make_examples(1)))
        with pytest.raises(ConfigError, match="has 1 input"):
            HeldOut(limit=1).open(around(make_examples(9)))


class TestOtherDataset:
    def test_another_shape_is_refused_in_a_sentence(self):
        with pytest.raises(ConfigError, match="'digits' has inputs of shape 1x8x8, but the clients' models read 4;"):
            OtherDataset(data=PublicData(name="digits")).open(around())

    def test_resize_is_proposed_and_helps(self):
        data = PublicData(name="digits", resize=4, train_limit=20)
        with pytest.raises(ConfigError, match=r"source\.data\.resize"):
            OtherDataset(data=data).open(images())
        assert len(OtherDataset(data=data.model_copy(update={"resize": 8})).open(images())) == 20

    def test_limit_takes_a_seeded_subset(self):
        settings = OtherDataset(data=PublicData(name="blobs", examples=50, classes=7), limit=20)
        surroundings = planar()
        source, again = settings.open(surroundings), settings.open(surroundings)
        assert len(source) == 20
        assert torch.equal(source.raw, again.raw)
        whole = {tuple(row) for row in load(settings.data, Key(0).child("load")).train.inputs.tolist()}
        rows = {tuple(row) for row in source.raw.tolist()}
        assert len(rows) == 20
        assert rows <= whole

    def test_a_limit_above_the_size_takes_all(self):
        settings = OtherDataset(data=PublicData(name="blobs", examples=50), limit=500)
        assert len(settings.open(planar())) == 50

    def test_it_is_normalised_like_the_clients(self):
        data = PublicData(name="digits", train_limit=20, augment=("crop",), crop_padding=3)
        source = OtherDataset(data=data).open(images())  # mean 0.5, deviation 0.25
        inputs = source.inputs(source.all_indices())
        assert torch.allclose(inputs, (source.raw / 255 - 0.5) / 0.25, atol=1e-6)
        assert source.transform.crop_padding == 3

    @pytest.mark.parametrize("normalisation", ["experiment", "dataset", "half"])
    @pytest.mark.parametrize(
        ("choice", "padding", "flip"),
        [
            ({}, 2, True),
            ({"augment": ()}, 0, False),
            ({"augment": ("flip",)}, 0, True),
            ({"augment": ("crop",), "crop_padding": 3}, 3, False),
        ],
    )
    def test_its_augmentation_is_the_experiments_unless_it_says_otherwise(self, choice, padding, flip, normalisation):
        surroundings = images(augment=True)
        mirrored = Transform(surroundings.transform.normalisation, (1, 8, 8), crop_padding=2, flip=True)
        data = PublicData(name="digits", train_limit=20, normalisation=normalisation, **choice)
        source = OtherDataset(data=data).open(dataclasses.replace(surroundings, transform=mirrored))
        assert (source.transform.crop_padding, source.transform.flip) == (padding, flip)
        every = source.all_indices()
        assert torch.equal(source.augmented(every, Key(0)), source.inputs(every)) == (padding == 0 and not flip)

    def test_one_augmentation_twice_is_refused(self):
        with pytest.raises(ValidationError, match="names one augmentation twice"):
            PublicData(name="digits", augment=("crop", "crop"))

    @pytest.mark.parametrize(("choice", "mean", "deviation"), [("none", 0.0, 1.0), ("half", 0.5, 0.5)])
    def test_other_constants(self, choice, mean, deviation):
        data = PublicData(name="digits", train_limit=20, normalisation=choice)
        source = OtherDataset(data=data).open(images())
        inputs = source.inputs(source.all_indices())
        assert torch.allclose(inputs, (source.raw / 255 - mean) / deviation, atol=1e-6)

    def test_it_can_be_normalised_by_its_own_constants(self):
        data = PublicData(name="blobs", examples=500, normalisation="dataset")
        source = OtherDataset(data=data).open(planar())
        inputs = source.inputs(source.all_indices())
        assert torch.allclose(inputs.mean(0), torch.zeros(2), atol=1e-3)
        assert torch.allclose(inputs.std(0), torch.ones(2), atol=1e-2)


class TestUniformNoise:
    def test_depends_on_the_key_only(self):
        one, same, other = (UniformNoise(size=9).open(around(key=key)).raw for key in (1, 1, 2))
        assert torch.equal(one, same)
        assert not torch.equal(one, other)

    def test_numbers_fill_the_clients_range(self):
        surroundings = around()
        raw = UniformNoise(size=2000).open(surroundings).raw
        low, high = surroundings.clients.inputs.amin(0), surroundings.clients.inputs.amax(0)
        assert raw.shape == (2000, 4)
        assert bool(((raw >= low) & (raw <= high)).all())
        assert torch.allclose(raw.mean(0), (low + high) / 2, atol=0.15)

    def test_images_are_noise_in_bytes(self):
        source = UniformNoise(size=400).open(images())
        assert source.raw.dtype == torch.uint8
        assert source.raw.shape == (400, 1, 8, 8)
        assert (int(source.raw.min()), int(source.raw.max())) == (0, 255)
        assert abs(float(source.raw.float().mean()) - 127.5) < 3


class TestOverlap:
    @pytest.mark.parametrize("shared", [0, 1, 7])
    def test_exact_copies_of_client_inputs_are_counted(self, shared):
        clients, own = make_examples(30, seed=1), make_examples(10, seed=2)
        public = Examples(torch.cat([clients.inputs[:shared], own.inputs]), torch.zeros(10 + shared, dtype=torch.long))
        assert HeldOut().open(around(public, clients)).overlap == shared

    @pytest.mark.parametrize("shared", [0, 4])
    def test_exact_copies_of_test_inputs_are_counted_apart(self, shared):
        clients, test = make_examples(30, seed=1), make_examples(10, seed=2)
        public = Examples(torch.cat([clients.inputs[:3], test.inputs[:shared]]), torch.zeros(3 + shared).long())
        source = HeldOut().open(dataclasses.replace(around(public, clients), test=test))
        assert (source.overlap, source.test_overlap) == (3, shared)

    def test_a_run_tells_of_a_source_that_holds_its_test_inputs(self):
        """The whole of digits as a source holds every client's and every test input."""
        raw = {
            "data": {"name": "digits", "validation": 0.1},
            "models": {"m": {"arch": "mlp"}},
            "method": "feddf",
            "source": {"kind": "dataset", "data": {"name": "digits"}},
        }
        facts = build(validate(raw), EventLog()).facts
        assert (facts["data"]["test"], facts["source"]["test_overlap"], facts["source"]["size"]) == (359, 359, 1797)
        assert cautions(facts) == ["359 of the 1,797 inputs of source 'digits' are copies of test inputs"]
        held_out = validate({**raw, "data": {"name": "digits", "public": 0.3}, "source": {"kind": "held_out"}})
        assert cautions(build(held_out, EventLog()).facts) == []

    def test_a_changed_bit_is_no_copy(self):
        clients = make_examples(5)
        nearly = torch.nextafter(clients.inputs, torch.full_like(clients.inputs, 9.0))
        assert HeldOut().open(around(Examples(nearly, clients.labels), clients)).overlap == 0


def test_inputs_and_views_of_a_source():
    source = UniformNoise(size=6).open(images())
    where = torch.tensor([4, 1])
    assert torch.allclose(source.inputs(where), (source.raw[where].float() / 255 - 0.5) / 0.25, atol=1e-6)
    assert torch.equal(source.augmented(where, Key(0)), source.inputs(where)), "nothing to augment"


class TestGaussianNoise:
    @pytest.mark.parametrize("make", [planar, images])
    def test_every_input_reaches_both_ends_of_its_range(self, make):
        surroundings = make()
        source = GaussianNoise(size=50).open(surroundings)
        assert source.raw.dtype == surroundings.clients.inputs.dtype
        if source.raw.dtype == torch.uint8:
            flat = source.raw.reshape(50, -1)
            assert (flat.amin(1) == 0).all()
            assert (flat.amax(1) == 255).all()
        else:
            low, high = surroundings.clients.inputs.amin(0), surroundings.clients.inputs.amax(0)
            ends = torch.isclose(source.raw, low) | torch.isclose(source.raw, high)
            assert ends.all()  # two numbers: one is the smallest, the other the largest

    def test_pixels_are_normal_within_an_input(self):
        pixels = GaussianNoise(size=400).open(images()).raw.reshape(400, -1).double()
        spread = (pixels - pixels.mean(1, keepdim=True)) / pixels.std(1, keepdim=True)
        assert (spread.abs() < 1).double().mean() == pytest.approx(0.68, abs=0.02)

    def test_follows_the_key(self):
        one, again, other = (GaussianNoise(size=5).open(around(key=k)).raw for k in (0, 0, 1))
        assert torch.equal(one, again)
        assert not torch.equal(one, other)

    def test_all_together_reach_both_ends_of_the_range_and_single_ones_do_not(self):
        pixels = GaussianNoise(size=300, stretched="together").open(images()).raw.reshape(300, -1)
        assert (int(pixels.min()), int(pixels.max())) == (0, 255)
        assert (pixels.amin(dim=1) > 20).double().mean() > 0.9
        assert (pixels.amax(dim=1) < 235).double().mean() > 0.9


class TestFreshNoise:
    @pytest.mark.parametrize("kind", [UniformNoise, GaussianNoise])
    @pytest.mark.parametrize("make", [planar, images])
    def test_new_inputs_are_like_those_of_the_table(self, kind, make):
        surroundings = make()
        table, source = kind(size=50).open(surroundings), kind(size=50, fresh=True).open(surroundings)
        assert table.draw is None
        assert torch.equal(source.raw, table.raw), "what BatchNorm statistics are estimated on"
        one, again, other = (source.drawn(7, Key(seed)) for seed in (1, 1, 2))
        assert len(one) == 7
        assert (one.raw.dtype, one.raw.shape[1:]) == (table.raw.dtype, table.raw.shape[1:])
        assert torch.equal(one.raw, again.raw)
        assert not torch.equal(one.raw, other.raw)
        assert not torch.equal(one.raw, table.raw[:7])
        if one.raw.is_floating_point():
            low, high = surroundings.clients.inputs.amin(0), surroundings.clients.inputs.amax(0)
            assert bool(((one.raw >= low - 1e-5) & (one.raw <= high + 1e-5)).all())

    def test_as_the_released_code_of_feddf(self):
        """Normal noise of one batch by its smallest and largest number to 0..1, then to -1..1, up to bytes."""
        settings = GaussianNoise(fresh=True, stretched="together", normalisation="half")
        batch = settings.open(images()).drawn(128, Key(4))
        noise = torch.randn((128, 1, 8, 8), generator=Key(4).child("draw").torch())
        expected = 2 * (noise - noise.min()) / (noise.max() - noise.min()) - 1
        assert torch.allclose(batch.inputs(batch.all_indices()), expected, atol=1.01 / 255)

    @pytest.mark.parametrize(("normalisation", "low", "high"), [("none", 0.0, 1.0), ("half", -1.0, 1.0)])
    @pytest.mark.parametrize("kind", [UniformNoise, GaussianNoise])
    def test_other_constants_and_the_same_augmentation(self, kind, normalisation, low, high):
        source = kind(size=200, normalisation=normalisation).open(images(augment=True))
        inputs = source.inputs(source.all_indices())
        assert (inputs.min().item(), inputs.max().item()) == pytest.approx((low, high))
        assert source.transform.crop_padding == 2

    def test_numbers_have_their_own_ranges(self):
        with pytest.raises(ConfigError, match=r"source\.normalisation half is for pixels, but the clients have num"):
            UniformNoise(normalisation="half").open(planar())

    @pytest.mark.parametrize("method", ["feded-w0", "ds-fl", "fedaux", "fedmd", "cfd"])
    def test_methods_that_ask_about_the_same_inputs_again_refuse_them(self, method):
        fresh = {"kind": "uniform_noise", "fresh": True}
        with pytest.raises(ConfigError, match=f"source.fresh .* but method {method} reads the same ones again"):
            tiny_config(method, source=fresh)
        tiny_config(method, source={**fresh, "fresh": False})
        for other in ("fedavg", "feddf", "fedbe"):
            tiny_config(other, source=fresh)


class TestPartsOfADataset:
    DATA = PublicData(name="blobs", examples=90)

    def test_classes(self):
        dataset = load(self.DATA, Key(0).child("load"))
        source = OtherDataset(data=self.DATA, classes=(0, 2)).open(planar())
        assert torch.equal(source.raw, dataset.train.inputs[dataset.train.labels != 1])

    def test_fraction_and_limit_take_the_smaller_number(self):
        whole = len(load(self.DATA, Key(0).child("load")).train)
        assert len(OtherDataset(data=self.DATA, fraction=0.5).open(planar())) == round(0.5 * whole)
        assert len(OtherDataset(data=self.DATA, fraction=0.5, limit=7).open(planar())) == 7
        assert len(OtherDataset(data=self.DATA, fraction=0.1, limit=80).open(planar())) == round(0.1 * whole)

    def test_a_class_that_is_not_there_is_refused(self):
        with pytest.raises(ConfigError, match=r"source\.classes names 3, but blobs has classes 0 to 2"):
            OtherDataset(data=self.DATA, classes=(0, 3)).open(planar())


@pytest.mark.usefixtures("without_pictures")
def test_a_student_sees_augmented_images_of_another_dataset(tmp_path):
    """As FedBE's; without a word about it in the source, too."""
    same = {"augment": ["crop", "flip"], "crop_padding": 2}
    choices = {"none": {"augment": []}, "said": same, "unsaid": {}}
    ends = {}
    for name, choice in choices.items():
        config = tiny_config(
            tiny_method("v-distillation"),
            data={"name": "digits", "train_limit": 80, "test_limit": 20, **same},
            source={"kind": "dataset", "data": {"name": "digits", "train_limit": 30, **choice}},
            federation={"rounds": 1},
        )
        ends[name] = files_of(Experiment(config).run(tmp_path / name).folder.final)
    assert ends["unsaid"] == ends["said"] != ends["none"]
